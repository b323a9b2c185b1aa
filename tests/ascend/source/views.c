/* Shapes, views, and the way from tensors to arrays of doubles and back. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

int64_t elements(const Tensor *tensor) {
  int64_t count = 1;
  for (int axis = 0; axis < tensor->rank; axis++) count *= tensor->shape[axis];
  return count;
}

int axis_of(const Tensor *tensor, int64_t axis) { return axis < 0 ? axis + tensor->rank : axis; }

Split split_at(const Tensor *tensor, int64_t axis) {
  Split split = {1, 1, 1};
  int chosen = axis_of(tensor, axis);
  for (int k = 0; k < tensor->rank; k++) {
    int64_t *part = k < chosen ? &split.outer : k == chosen ? &split.size : &split.inner;
    *part *= tensor->shape[k];
  }
  return split;
}

Tensor view_part(const Tensor *tensor, int64_t axis, int64_t start, int64_t size) {
  Tensor view = *tensor;
  int chosen = axis_of(tensor, axis);
  view.offset += start * view.stride[chosen];
  view.shape[chosen] = size;
  return view;
}

Tensor view_as(const Tensor *tensor, const Tensor *like) {
  Tensor view = *like;
  view.dtype = tensor->dtype;
  view.offset = tensor->offset;
  view.address = tensor->address;
  int missing = like->rank - tensor->rank;
  for (int axis = 0; axis < like->rank; axis++) {
    bool is_repeated = axis < missing || tensor->shape[axis - missing] == 1;
    view.stride[axis] = is_repeated ? 0 : tensor->stride[axis - missing];
  }
  return view;
}

Tensor view_permuted(const Tensor *tensor, const int64_t *axes) {
  Tensor view = *tensor;
  for (int k = 0; k < tensor->rank; k++) {
    view.shape[k] = tensor->shape[axis_of(tensor, axes[k])];
    view.stride[k] = tensor->stride[axis_of(tensor, axes[k])];
  }
  return view;
}

Walk walk(const Tensor *tensor) { return (Walk){.tensor = *tensor, .place = tensor->offset}; }

static inline void step(Walk *walk) {
  const Tensor *tensor = &walk->tensor;
  for (int axis = tensor->rank - 1; axis >= 0; axis--) {
    walk->place += tensor->stride[axis];
    if (++walk->index[axis] < tensor->shape[axis]) return;
    walk->place -= tensor->stride[axis] * tensor->shape[axis];
    walk->index[axis] = 0;
  }
}

/* Returns how many of the next elements lie one behind the other, with nothing between them. */
static int64_t neighbours(const Walk *walk, int64_t most) {
  const Tensor *tensor = &walk->tensor;
  int last = tensor->rank - 1;
  if (last < 0 || tensor->stride[last] != 1) return 1;
  int64_t count = tensor->shape[last] - walk->index[last];
  return count < most ? count : most;
}

/* Goes on by elements that are neighbours. */
static void skip(Walk *walk, int64_t count) {
  if (count > 1) {
    walk->index[walk->tensor.rank - 1] += count - 1;
    walk->place += count - 1;
  }
  step(walk);
}

void read_numbers(Walk *walk, double *to, int64_t count) {
  int dtype = walk->tensor.dtype, size = size_of_type(dtype);
  const char *bytes = bytes_at(walk->tensor.address);
  for (int64_t k = 0, run; k < count; k += run, skip(walk, run)) {
    run = neighbours(walk, count - k);
    const char *place = bytes + walk->place * size;
    if (dtype == FLOAT32) {
      for (int64_t i = 0; i < run; i++) to[k + i] = ((const float *)place)[i];
    } else {
      for (int64_t i = 0; i < run; i++) to[k + i] = load(dtype, place + i * size);
    }
  }
}

void write_numbers(Walk *walk, const double *from, int64_t count) {
  int dtype = walk->tensor.dtype, size = size_of_type(dtype);
  char *bytes = bytes_at(walk->tensor.address);
  double *others = other_results(dtype, from, count);
  if (others) from = others;
  for (int64_t k = 0, run; k < count; k += run, skip(walk, run)) {
    run = neighbours(walk, count - k);
    char *place = bytes + walk->place * size;
    if (dtype == FLOAT32) {
      for (int64_t i = 0; i < run; i++) ((float *)place)[i] = from[k + i];
    } else {
      for (int64_t i = 0; i < run; i++) store(dtype, place + i * size, from[k + i]);
    }
  }
  free(others);
}

double *numbers(Task *task, const Tensor *tensor) {
  int64_t count = elements(tensor);
  double *found = scratch(task, count * sizeof *found);
  if (!count || !tensor->address) return found;
  Walk at = walk(tensor);
  read_numbers(&at, found, count);
  return found;
}

double *numbers_as(Task *task, const Tensor *tensor, const Tensor *like) {
  Tensor view = view_as(tensor, like);
  return numbers(task, &view);
}

void put(const Tensor *tensor, const double *numbers) {
  if (!tensor || !tensor->address) return;
  Walk at = walk(tensor);
  write_numbers(&at, numbers, elements(tensor));
}

double first_number(const Tensor *tensor) {
  int size = size_of_type(tensor->dtype);
  return load(tensor->dtype, bytes_at(tensor->address) + tensor->offset * size);
}

void move(const Tensor *to, const Tensor *from) {
  int64_t count = elements(to);
  if (!count || !to->address || !from->address) return;
  int wide = size_of_type(to->dtype), narrow = size_of_type(from->dtype);
  char *target = bytes_at(to->address), *source = bytes_at(from->address);
  Walk in = walk(from), out = walk(to);
  for (int64_t k = 0; k < count; k++, step(&in), step(&out)) {
    char *place = target + out.place * wide;
    if (to->dtype == from->dtype) memcpy(place, source + in.place * narrow, wide);
    else store(to->dtype, place, load(from->dtype, source + in.place * narrow));
  }
}

/* ---- operators without a loop */

static void fill(const Tensor *tensor) {
  if (!tensor || !tensor->address || tensor->dtype == STRING) return;
  int64_t count = elements(tensor);
  double *values = malloc((count + 1) * sizeof *values);
  for (int64_t k = 0; k < count; k++)
    values[k] = is_whole(tensor->dtype) ? tensor->dtype == BOOL && k % 2 : 0.25 + 0.125 * (k % 5);
  put(tensor, values);
  free(values);
}

int fill_outputs(Task *task) {
  for (int k = task->inputs; k < task->count; k++) {
    if (task->signature[k] == 't') fill(tensor(task, k));
    else if (task->signature[k] == 'L')
      for (uint64_t item = 0; item < list(task, k)->count; item++) fill(list(task, k)->item[item]);
  }
  return SUCCESS;
}

int halve_in_place(Task *task) {
  Tensor *changed = tensor(task, 0);
  double *values = numbers(task, changed);
  for (int64_t k = 0; k < elements(changed); k++) values[k] = values[k] * 0.5 + 0.25;
  put(changed, values);
  return SUCCESS;
}

static int fill_results(Task *task) {
  task->inputs = task->result;
  return fill_outputs(task);
}

/* Operators without a loop whose outputs cannot be found by their place: several outputs, or something behind them. */
const Operator filled_operators[] = {
    {"aclnnAddRmsNorm", "tttdttt", fill_results, 4}, {"aclnnAddLayerNorm", "tttttdbtttt", fill_results, 7},
    {"aclnnAddLayerNormGrad", "tttttttttt", fill_results, 6}, {"aclnnAddbmm", "tttsstc", fill_results, 5},
    {"aclnnAddmv", "tttsstc", fill_results, 5}, {"aclnnConvTbc", "tttltc", fill_results, 4},
    {"aclnnBatchNormStats", "tdtt", fill_results, 2}, {"aclnnPreluBackward", "ttttt", fill_results, 3},
    {"aclnnMultiScaleDeformableAttentionGrad", "ttttttttt", fill_results, 6},
    {"aclnnBatchNormGatherStatsWithCounts", "tttttddttt", fill_results, 8},
    {"aclnnFlashAttentionScoreV2", "tttttttaaaddlllpllltttt", fill_results, 19},
    {"aclnnFlashAttentionScoreGradV2", "ttttttttttttaaaddlllpllltttt", fill_results, 24},
    END,
};
