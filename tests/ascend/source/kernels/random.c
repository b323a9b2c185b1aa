/* Random numbers: a function of seed, offset and place, so a training repeats itself. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "../kernels.h"

/* The finisher of splitmix64. */
static uint64_t mixed(uint64_t bits) {
  bits += 0x9e3779b97f4a7c15ull;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ull;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebull;
  return bits ^ bits >> 31;
}
static double uniform_at(int64_t seed, int64_t offset, int64_t place) {
  return (mixed(mixed(seed + offset * 977) + place) >> 11) * 0x1p-53;
}
static double normal_at(int64_t seed, int64_t offset, int64_t place) {
  double radius = sqrt(-2 * log(uniform_at(seed, offset, 2 * place) + 1e-300));
  return radius * cos(2 * M_PI * uniform_at(seed, offset, 2 * place + 1));
}

static int uniform(Task *task) { /* changed, from, to, seed, offset */
  Tensor *changed = tensor(task, 0);
  double *values = scratch(task, elements(changed) * sizeof *values), start = number(task, 1), end = number(task, 2);
  for (int64_t k = 0; k < elements(changed); k++)
    values[k] = start + (end - start) * uniform_at(integer(task, 3), integer(task, 4), k);
  put(changed, values);
  return SUCCESS;
}
static int normal(Task *task) { /* changed, mean, deviation, seed, offset */
  Tensor *changed = tensor(task, 0);
  double *values = scratch(task, elements(changed) * sizeof *values);
  for (int64_t k = 0; k < elements(changed); k++)
    values[k] = number(task, 1) + number(task, 2) * normal_at(integer(task, 3), integer(task, 4), k);
  put(changed, values);
  return SUCCESS;
}

static int bernoulli(Task *task) { /* changed, probability: a number or a tensor, seed, offset */
  Tensor *changed = tensor(task, 0);
  bool is_tensor = task->signature[1] == 't';
  double *values = is_tensor ? numbers_as(task, tensor(task, 1), changed) : scratch(task, elements(changed) * sizeof *values);
  for (int64_t k = 0; k < elements(changed); k++)
    values[k] = uniform_at(integer(task, 2), integer(task, 3), k) < (is_tensor ? values[k] : scalar(task, 1, 0.5));
  put(changed, values);
  return SUCCESS;
}
static int whole_numbers(Task *task) { /* changed, from, to, seed, offset */
  Tensor *changed = tensor(task, 0);
  double *values = scratch(task, elements(changed) * sizeof *values), range = integer(task, 2) - integer(task, 1);
  for (int64_t k = 0; k < elements(changed); k++)
    values[k] = integer(task, 1) + floor(range * uniform_at(integer(task, 3), integer(task, 4), k));
  put(changed, values);
  return SUCCESS;
}

/* A mask of bits, one for each element that stays: shape, probability, seed, offset, dtype, out */
static int dropout_mask(Task *task) {
  Tensor *out = tensor(task, 5);
  double *bytes = scratch(task, elements(out) * sizeof *bytes);
  for (int64_t k = 0; k < elements(out); k++) {
    int bits = 0;
    for (int bit = 0; bit < 8; bit++)
      bits |= (uniform_at(integer(task, 2), integer(task, 3), 8 * k + bit) >= number(task, 1)) << bit;
    bytes[k] = bits;
  }
  put(out, bytes);
  return SUCCESS;
}
static int dropout(Task *task) { /* in, mask, probability, out */
  double *values = numbers(task, tensor(task, 0)), *bytes = numbers(task, tensor(task, 1)), lost = number(task, 2);
  for (int64_t k = 0; k < elements(tensor(task, 0)); k++)
    values[k] = (int)bytes[k / 8] >> k % 8 & 1 ? values[k] / (1 - lost) : 0;
  put(tensor(task, 3), values);
  return SUCCESS;
}

static int old_dropout_mask(Task *task) { /* shape, share that stays, two seeds */
  Tensor *out = output(task, 0);
  double stays = first_number(tensor(task, 1)), *bytes = scratch(task, elements(out) * sizeof *bytes);
  int64_t seed = attribute_number(task, "seed", 0) * 7 + attribute_number(task, "seed2", 0);
  for (int64_t k = 0; k < elements(out); k++) {
    int bits = 0;
    for (int bit = 0; bit < 8; bit++) bits |= (uniform_at(seed, 0, 8 * k + bit) < stays) << bit;
    bytes[k] = bits;
  }
  put(out, bytes);
  return SUCCESS;
}
static int old_dropout(Task *task) { /* in, mask, share that stays */
  double *values = numbers(task, tensor(task, 0)), *bytes = numbers(task, tensor(task, 1));
  double stays = first_number(tensor(task, 2));
  for (int64_t k = 0; k < elements(tensor(task, 0)); k++)
    values[k] = (int)bytes[k / 8] >> k % 8 & 1 ? values[k] / stays : 0;
  put(output(task, 0), values);
  return SUCCESS;
}
/* Whole channels are lost, the first two axes count them: in -> out, mask */
static int channel_dropout(Task *task) {
  Tensor *in = tensor(task, 0);
  double stays = attribute_number(task, "keep_prob", 0.5), *values = numbers(task, in);
  double *mask = scratch(task, elements(in) * sizeof *mask);
  int64_t area = elements(in) / (in->shape[0] * in->shape[1]);
  for (int64_t k = 0; k < elements(in); k++) {
    mask[k] = uniform_at(in->shape[0], 0, k / area) < stays;
    values[k] = mask[k] && stays > 0 ? values[k] / stays : 0;
  }
  put(output(task, 0), values);
  put(output(task, 1), mask);
  return SUCCESS;
}

const Operator random_operators[] = {
    {"aclnnInplaceUniform", "tddll", uniform, 0}, {"aclnnInplaceNormal", "tffll", normal, 0},
    {"aclnnInplaceBernoulli", "tsll", bernoulli, 0}, {"aclnnInplaceBernoulliTensor", "ttll", bernoulli, 0},
    {"aclnnInplaceRandom", "tllll", whole_numbers, 0},
    {"aclnnDropoutGenMaskV2", "adllit", dropout_mask, LAST}, {"aclnnDropoutDoMask", "ttdt", dropout, LAST},
    END,
};
const Operator random_aclops[] = {
    {"DropOutGenMask", "", old_dropout_mask, 0}, {"DropOutDoMask", "", old_dropout, 0},
    {"CustDropout2D", "", channel_dropout, 0}, {"CustDropout3D", "", channel_dropout, 0},
    END,
};
