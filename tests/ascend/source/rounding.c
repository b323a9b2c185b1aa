/* Kernels that round in other ways than CPU's, and wrong ones. ../README.md tells how to ask for them. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "simulator.h"

/* The part of a task that decides how its outputs are stored. */
static __thread struct { bool rounds; int wrong; uint64_t seed; } now;
static int most_ulp = -1;
static bool turns_sums, halves_products;

/* Operators that only move, choose or compare numbers: a device has their exact results too. */
static const char *const exact[] = {
    "Relu", "Neg", "Abs", "Max", "Min", "Tensor", "Scalar", "Logical", "Bitwise", "Where", "Mask", "Clamp", "Zero",
    "One", "Fill", "Copy", "Cast", "Floor", "Ceil", "Round", "Trunc", "Sign", "Is", "Embedding", "Index", "Gather",
    "Scatter", "Sort", "Topk", "Cat", "Stack", "Split", "Permute", "Expand", "Repeat", "Pad", "Slice", "Flip", "Tril",
    "Triu", "Arange", "Eye", "Arg", "Amax", "Amin", "All", "Any", "Dropout", "Rand", "Normal", "Uniform", "Identity",
    "Transpose", "Reshape", "Tile", "Finite", NULL};

static void read_wish(void) {
  const char *wish = getenv("ASCEND_SIM_ROUNDING"), *ulp = wish ? strstr(wish, "ulp=") : NULL;
  turns_sums = wish && strstr(wish, "order");
  halves_products = wish && strstr(wish, "hf32");
  most_ulp = ulp ? atoi(ulp + 4) : 0;
}

void begin_rounding(const char *name, int wrong) {
  if (most_ulp < 0) read_wish();
  now.rounds = most_ulp > 0;
  for (const char *const *part = exact; *part; part++)
    if (strstr(name, *part) && !strstr(name, "Sigmoid")) now.rounds = false;
  now.wrong = wrong;
  now.seed = 0;
}

bool sums_are_turned(void) { return turns_sums; }

void round_products(int dtype, double *numbers, int64_t count) {
  if (!halves_products || dtype != FLOAT32) return;
  for (int64_t k = 0; k < count; k++) {
    int exponent;
    double part = frexp(numbers[k], &exponent);
    if (isfinite(part)) numbers[k] = ldexp(nearbyint(ldexp(part, 11)), exponent - 11);
  }
}

static double noise(double value, uint64_t k) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  bits = (bits ^ k * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 29) * 0x94d049bb133111ebu;
  return (double)((bits >> 33) % (2 * most_ulp + 1)) - most_ulp;
}

double *other_results(int dtype, const double *numbers, int64_t count) {
  double unit = dtype == FLOAT32 ? 0x1p-23 : dtype == FLOAT16 ? 0x1p-10 : dtype == BFLOAT16 ? 0x1p-7 : 0;
  if (!unit || (!now.rounds && !now.wrong)) return NULL;
  double *found = malloc((count + 1) * sizeof *found);
  for (int64_t k = 0; k < count; k++) {
    int64_t from = now.wrong < 0 && k % 7 == 3 && k ? k - 1 : k; /* one in seven has its neighbour's number */
    found[k] = numbers[from] * (now.wrong > 0 ? 1 + now.wrong * 1e-6 : 1);
    if (now.rounds) found[k] *= 1 + noise(numbers[k], k) * unit;
  }
  return found;
}
