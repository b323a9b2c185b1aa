/* Operators that move elements: their bits stay as they are. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "../kernels.h"

static int concatenate(Task *task) { /* list, axis, out */
  Tensor *out = tensor(task, 2);
  int64_t start = 0;
  for (uint64_t item = 0; item < list(task, 0)->count; item++) {
    Tensor *part = list(task, 0)->item[item];
    if (part->rank != out->rank) continue; /* an empty vector may stand beside tensors of another rank */
    int64_t size = part->shape[axis_of(part, integer(task, 1))];
    Tensor view = view_part(out, integer(task, 1), start, size);
    move(&view, part);
    start += size;
  }
  return SUCCESS;
}

/* Copies a tensor to one place along an axis that it does not have. */
static void stack_one(const Tensor *out, int64_t chosen, int64_t place, const Tensor *from) {
  Tensor view = view_part(out, chosen, place, 1), part = *from;
  int axis = axis_of(out, chosen);
  for (int k = view.rank - 1; k > axis; k--) part.shape[k] = part.shape[k - 1], part.stride[k] = part.stride[k - 1];
  part.shape[axis] = 1;
  part.stride[axis] = 0;
  part.rank = view.rank;
  move(&view, &part);
}
static int stack(Task *task) { /* list, axis, out */
  for (uint64_t item = 0; item < list(task, 0)->count; item++)
    stack_one(tensor(task, 2), integer(task, 1), item, list(task, 0)->item[item]);
  return SUCCESS;
}

static int split_evenly(Task *task) { /* in, sizes, axis, list */
  int64_t start = 0;
  for (uint64_t item = 0; item < list(task, 3)->count; item++) {
    Tensor *part = list(task, 3)->item[item];
    int64_t size = part->shape[axis_of(part, integer(task, 2))];
    Tensor view = view_part(tensor(task, 0), integer(task, 2), start, size);
    move(part, &view);
    start += size;
  }
  return SUCCESS;
}

static int permute(Task *task) {
  Tensor view = view_permuted(tensor(task, 0), integers(task, 1)->item);
  move(tensor(task, 2), &view);
  return SUCCESS;
}

static int expand(Task *task) {
  Tensor view = view_as(tensor(task, 0), result(task));
  move(result(task), &view);
  return SUCCESS;
}

static int repeat(Task *task) { /* each copy is one place along every axis */
  Tensor *in = tensor(task, 0), *out = tensor(task, 2);
  int missing = out->rank - in->rank;
  int64_t copies = 1, times[MAX_RANK];
  Tensor like = *out;
  for (int axis = 0; axis < out->rank; axis++) {
    like.shape[axis] = axis < missing ? 1 : in->shape[axis - missing];
    times[axis] = like.shape[axis] ? out->shape[axis] / like.shape[axis] : 0;
    copies *= times[axis];
  }
  Tensor source = view_as(in, &like);
  for (int64_t copy = 0; copy < copies; copy++) {
    Tensor target = *out;
    int64_t rest = copy;
    for (int axis = out->rank - 1; axis >= 0; axis--) {
      target = view_part(&target, axis, rest % times[axis] * like.shape[axis], like.shape[axis]);
      rest /= times[axis];
    }
    move(&target, &source);
  }
  return SUCCESS;
}

static int pad_constant(Task *task) { /* in, pads from the last axis on, value, out */
  Tensor *in = tensor(task, 0), *out = tensor(task, 3);
  double *filled = scratch(task, elements(out) * sizeof *filled), value = scalar(task, 2, 0);
  for (int64_t k = 0; k < elements(out); k++) filled[k] = value;
  put(out, filled);
  Tensor target = *out, source = *in;
  IntArray *pads = integers(task, 1);
  for (uint64_t k = 0; k < pads->count / 2; k++) {
    int axis = in->rank - 1 - k;
    int64_t before = pads->item[2 * k];
    int64_t start = before > 0 ? before : 0, skipped = before < 0 ? -before : 0;
    int64_t size = in->shape[axis] - skipped;
    if (size > out->shape[axis] - start) size = out->shape[axis] - start;
    target = view_part(&target, axis, start, size);
    source = view_part(&source, axis, skipped, size);
  }
  move(&target, &source);
  return SUCCESS;
}

static int slice(Task *task) { /* in, axis, start, end, step, out */
  Tensor *in = tensor(task, 0), *out = tensor(task, 5);
  int axis = axis_of(in, integer(task, 1));
  int64_t start = integer(task, 2);
  Tensor view = view_part(in, axis, start < 0 ? start + in->shape[axis] : start, out->shape[axis]);
  view.stride[axis] *= integer(task, 4);
  move(out, &view);
  return SUCCESS;
}

static int flip(Task *task) {
  Tensor view = *tensor(task, 0);
  for (uint64_t k = 0; k < integers(task, 1)->count; k++) {
    int axis = axis_of(&view, integers(task, 1)->item[k]);
    view.offset += (view.shape[axis] - 1) * view.stride[axis];
    view.stride[axis] = -view.stride[axis];
  }
  move(tensor(task, 2), &view);
  return SUCCESS;
}

static int triangle(Task *task, int side) { /* in, diagonal, out */
  Tensor *out = tensor(task, 2);
  double *values = numbers(task, tensor(task, 0));
  int64_t columns = out->shape[out->rank - 1], rows = out->shape[out->rank - 2];
  for (int64_t k = 0; k < elements(out); k++)
    if (side * (k % columns - k / columns % rows - integer(task, 1)) > 0) values[k] = 0;
  put(out, values);
  return SUCCESS;
}
static int lower_triangle(Task *task) { return triangle(task, 1); }
static int upper_triangle(Task *task) { return triangle(task, -1); }

static int range(Task *task) { /* start, end, step, out */
  Tensor *out = tensor(task, 3);
  double *values = scratch(task, elements(out) * sizeof *values);
  for (int64_t k = 0; k < elements(out); k++) values[k] = scalar(task, 0, 0) + k * scalar(task, 2, 1);
  put(out, values);
  return SUCCESS;
}
static int line_space(Task *task) { /* start, end, steps, out */
  Tensor *out = tensor(task, 3);
  int64_t count = elements(out);
  double start = scalar(task, 0, 0), end = scalar(task, 1, 0), *values = scratch(task, count * sizeof *values);
  for (int64_t k = 0; k < count; k++) values[k] = count > 1 ? start + (end - start) * k / (count - 1) : start;
  put(out, values);
  return SUCCESS;
}
static int eye(Task *task) { /* rows, columns, out */
  Tensor *out = tensor(task, 2);
  double *values = scratch(task, elements(out) * sizeof *values);
  for (int64_t k = 0; k < integer(task, 0) && k < integer(task, 1); k++) values[k * integer(task, 1) + k] = 1;
  put(out, values);
  return SUCCESS;
}
static int fill_diagonal(Task *task) {
  Tensor *changed = tensor(task, 0);
  double *values = numbers(task, changed);
  int64_t columns = changed->shape[1], rows = changed->shape[0];
  for (int64_t k = 0; k < rows && k < columns; k++) values[k * columns + k] = scalar(task, 1, 0);
  put(changed, values);
  return SUCCESS;
}

static int old_stack(Task *task) {
  Tensor *out = output(task, 0);
  for (int item = 0; item < task->inputs; item++) stack_one(out, attribute_number(task, "axis", 0), item, tensor(task, item));
  return SUCCESS;
}

static int old_unstack(Task *task) {
  const Tensor *in = tensor(task, 0);
  int axis = axis_of(in, attribute_number(task, "axis", 0));
  for (int item = 0; item < task->count - task->inputs; item++) {
    Tensor part = view_part(in, axis, item, 1);
    for (int k = axis; k < part.rank - 1; k++) part.shape[k] = part.shape[k + 1], part.stride[k] = part.stride[k + 1];
    part.rank--;
    move(output(task, item), &part);
  }
  return SUCCESS;
}
static int old_pad(Task *task) { /* in, pads before and after each axis, value */
  const Tensor *in = tensor(task, 0), *out = output(task, 0);
  const Attribute *mode = attribute(task, "mode");
  if (mode && *mode->text && strcmp(mode->text, "constant")) return NOT_SIMULATED;
  double *pads = numbers(task, tensor(task, 1)), *filled = scratch(task, elements(out) * sizeof *filled);
  double value = task->inputs > 2 ? first_number(tensor(task, 2)) : 0;
  for (int64_t k = 0; k < elements(out); k++) filled[k] = value;
  put(out, filled);
  Tensor part = *out;
  for (int axis = 0; axis < in->rank; axis++) {
    if (pads[2 * axis] < 0 || pads[2 * axis + 1] < 0) return NOT_SIMULATED;
    part = view_part(&part, axis, pads[2 * axis], in->shape[axis]);
  }
  move(&part, in);
  return SUCCESS;
}

static int old_transpose(Task *task) {
  int64_t axes[MAX_RANK];
  double *given = numbers(task, tensor(task, 1));
  for (int axis = 0; axis < tensor(task, 0)->rank; axis++) axes[axis] = given[axis];
  Tensor view = view_permuted(tensor(task, 0), axes);
  move(output(task, 0), &view);
  return SUCCESS;
}

static int old_slice(Task *task) { /* in, starts, ends, steps; bits of the masks stand for axes */
  Tensor view = *tensor(task, 0);
  double *start = numbers(task, tensor(task, 1)), *step = numbers(task, tensor(task, 3));
  int begins = attribute_number(task, "begin_mask", 0), shrinks = attribute_number(task, "shrink_axis_mask", 0);
  if (attribute_number(task, "ellipsis_mask", 0) || attribute_number(task, "new_axis_mask", 0)) return NOT_SIMULATED;
  const Tensor *out = output(task, 0);
  int kept = 0;
  for (int axis = 0; axis < tensor(task, 0)->rank; axis++) {
    bool is_given = axis < elements(tensor(task, 1));
    int64_t size = tensor(task, 0)->shape[axis], stride = tensor(task, 0)->stride[axis];
    int64_t steps = is_given ? step[axis] : 1, first = steps > 0 ? 0 : size - 1;
    if (is_given && !(begins >> axis & 1)) first = start[axis] < 0 ? start[axis] + size : start[axis];
    view.offset += (first < 0 ? 0 : first) * stride;
    if (is_given && shrinks >> axis & 1) continue;
    view.shape[kept] = out->shape[kept];
    view.stride[kept++] = stride * steps;
  }
  view.rank = kept;
  if (kept != out->rank) return NOT_SIMULATED;
  move(out, &view);
  return SUCCESS;
}

static int old_split(Task *task) { /* axis, in */
  int64_t axis = first_number(tensor(task, 0)), start = 0;
  for (int k = 0; k < task->count - task->inputs; k++) {
    Tensor *part = output(task, k);
    int64_t size = part->shape[axis_of(part, axis)];
    Tensor view = view_part(tensor(task, 1), axis, start, size);
    move(part, &view);
    start += size;
  }
  return SUCCESS;
}

const Operator shape_operators[] = {
    {"aclnnCat", "Llt", concatenate, LAST}, {"aclnnStack", "Llt", stack, LAST},
    {"aclnnSplitTensor", "tllL", split_evenly, LAST}, {"aclnnSplitWithSize", "talL", split_evenly, LAST},
    {"aclnnPermute", "tat", permute, LAST}, {"aclnnExpand", "tat", expand, LAST}, {"aclnnRepeat", "tat", repeat, LAST},
    {"aclnnConstantPadNd", "tast", pad_constant, LAST}, {"aclnnSlice", "tllllt", slice, LAST},
    {"aclnnFlip", "tat", flip, LAST}, {"aclnnTril", "tlt", lower_triangle, LAST}, {"aclnnTriu", "tlt", upper_triangle, LAST},
    {"aclnnArange", "ssst", range, LAST}, {"aclnnLinspace", "sslt", line_space, LAST}, {"aclnnEye", "llt", eye, LAST},
    {"aclnnInplaceFillDiagonal", "tsb", fill_diagonal, 0},
    END,
};
const Operator shape_aclops[] = {{"Transpose", "", old_transpose, 0}, {"BroadcastTo", "", expand, 0},
                                   {"TensorMove", "", expand, 0},
                                   {"StridedSlice", "", old_slice, 0}, {"Split", "", old_split, 0}, {"Pack", "", old_stack, 0},
                                   {"Unpack", "", old_unstack, 0}, {"PadV3", "", old_pad, 0}, END};
