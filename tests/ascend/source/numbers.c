/* Dtypes: every number is computed as a double, and rounded once when it is stored. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "simulator.h"

int size_of_type(int dtype) {
  switch (dtype) {
    case INT8: case UINT8: case BOOL: return 1;
    case FLOAT16: case BFLOAT16: case INT16: case UINT16: return 2;
    case FLOAT32: case INT32: case UINT32: return 4;
    case COMPLEX128: return 16;
    default: return 8;
  }
}
size_t aclDataTypeSize(int dtype) { return size_of_type(dtype); }

bool is_whole(int dtype) {
  return dtype != FLOAT32 && dtype != FLOAT16 && dtype != BFLOAT16 && dtype != FLOAT64 && dtype != COMPLEX64 &&
         dtype != COMPLEX128;
}

static double of_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                 : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                : ldexp(fraction, -24);
  return bits >> 15 ? -value : value;
}

static uint16_t to_half(double value) {
  if (isnan(value)) return 0x7e00;
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  value = fabs(value);
  if (value >= 65520) return sign | 0x7c00;
  if (value < ldexp(1, -14)) return sign | (uint16_t)nearbyint(ldexp(value, 24));
  int exponent;
  long rounded = nearbyint(ldexp(frexp(value, &exponent), 11));
  return sign | (((exponent + 14) << 10) + rounded - 1024); /* 2048 carries into the exponent */
}

static double of_brain(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}

static uint16_t to_brain(double value) {
  float single = value;
  uint32_t bits;
  memcpy(&bits, &single, 4);
  if (isnan(value)) return 0x7fc0;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

double load(int dtype, const void *from) {
  switch (dtype) {
    case FLOAT32: case COMPLEX64: return *(const float *)from;
    case FLOAT16: return of_half(*(const uint16_t *)from);
    case BFLOAT16: return of_brain(*(const uint16_t *)from);
    case FLOAT64: case COMPLEX128: return *(const double *)from;
    case INT8: return *(const int8_t *)from;
    case UINT8: return *(const uint8_t *)from;
    case INT16: return *(const int16_t *)from;
    case UINT16: return *(const uint16_t *)from;
    case INT32: return *(const int32_t *)from;
    case UINT32: return *(const uint32_t *)from;
    case INT64: return *(const int64_t *)from;
    case UINT64: return *(const uint64_t *)from;
    case BOOL: return *(const uint8_t *)from != 0;
    default: note(0, "dtype %d is not simulated", dtype); return NAN;
  }
}

static int64_t whole(double value) {
  if (isnan(value)) return 0;
  return value >= 9.2e18 ? INT64_MAX : value <= -9.2e18 ? INT64_MIN : (int64_t)value;
}

void store(int dtype, void *to, double value) {
  switch (dtype) {
    case FLOAT32: *(float *)to = value; break;
    case FLOAT16: *(uint16_t *)to = to_half(value); break;
    case BFLOAT16: *(uint16_t *)to = to_brain(value); break;
    case FLOAT64: *(double *)to = value; break;
    case INT8: case UINT8: *(uint8_t *)to = whole(value); break;
    case INT16: case UINT16: *(uint16_t *)to = whole(value); break;
    case INT32: case UINT32: *(uint32_t *)to = whole(value); break;
    case INT64: case UINT64: *(int64_t *)to = whole(value); break;
    case BOOL: *(uint8_t *)to = value != 0; break;
    case COMPLEX64: ((float *)to)[0] = value; ((float *)to)[1] = 0; break;
    case COMPLEX128: ((double *)to)[0] = value; ((double *)to)[1] = 0; break;
    default: note(0, "dtype %d is not simulated", dtype);
  }
}
