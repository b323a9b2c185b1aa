/* Maxima and means of windows of images, and their gradients. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "../kernels.h"

typedef struct { int64_t size[2], stride[2], padding[2], divisor; bool counts_padding; } Window;
typedef struct { int64_t planes, height, width, out_height, out_width; } Shape;

static Shape shape_of(const Tensor *in, const Tensor *out) {
  int height = in->rank - 2, width = in->rank - 1;
  Shape shape = {1, in->shape[height], in->shape[width], out->shape[height], out->shape[width]};
  for (int axis = 0; axis < height; axis++) shape.planes *= in->shape[axis];
  return shape;
}

/* The part of the window that lies inside of the image: rows from [0] to [1], columns from [2] to [3]. */
static void inside(Window window, Shape shape, int64_t row, int64_t column, int64_t limits[4]) {
  int64_t start[2] = {row * window.stride[0] - window.padding[0], column * window.stride[1] - window.padding[1]};
  int64_t most[2] = {shape.height, shape.width};
  for (int k = 0; k < 2; k++) {
    limits[2 * k] = start[k] > 0 ? start[k] : 0;
    limits[2 * k + 1] = start[k] + window.size[k] < most[k] ? start[k] + window.size[k] : most[k];
  }
}

/* One loop serves mean and maximum, forward (into `out`) and backward (from `gradient` into `of_in`). */
static int pool(Task *task, const Tensor *in, Window window, bool is_max, const Tensor *out, const Tensor *gradient,
                const Tensor *of_in) {
  const Tensor *pooled = gradient ? gradient : out;
  if (in->rank < 3) return NOT_SIMULATED;
  Shape shape = shape_of(in, pooled);
  double *values = numbers(task, in), *found = scratch(task, elements(pooled) * 8);
  double *given = gradient ? numbers(task, gradient) : NULL, *spread = scratch(task, elements(in) * 8);
  for (int64_t plane = 0; plane < shape.planes; plane++)
    for (int64_t row = 0; row < shape.out_height; row++)
      for (int64_t column = 0; column < shape.out_width; column++) {
        int64_t at = (plane * shape.out_height + row) * shape.out_width + column, limits[4], best = -1;
        inside(window, shape, row, column, limits);
        int64_t count = (limits[1] - limits[0]) * (limits[3] - limits[2]);
        double divisor = window.divisor ? window.divisor : window.counts_padding ? window.size[0] * window.size[1] : count;
        double total = 0;
        for (int64_t y = limits[0]; y < limits[1]; y++)
          for (int64_t x = limits[2]; x < limits[3]; x++) {
            int64_t place = (plane * shape.height + y) * shape.width + x;
            total += values[place];
            if (best < 0 || values[place] > values[best] || isnan(values[place])) best = place;
            if (given && !is_max) spread[place] += given[at] / divisor;
          }
        if (given && is_max) spread[best] += given[at];
        found[at] = is_max ? values[best] : total / divisor;
      }
  put(gradient ? of_in : out, gradient ? spread : found);
  return SUCCESS;
}

static Window window_of(const IntArray *size, const IntArray *stride, const IntArray *padding) {
  if (!stride->count) stride = size;
  Window window = {.counts_padding = true};
  for (int k = 0; k < 2; k++) {
    window.size[k] = size->item[size->count > 1 ? k : 0];
    window.stride[k] = stride->item[stride->count > 1 ? k : 0];
    window.padding[k] = padding->item[padding->count > 1 ? k : 0];
  }
  return window;
}

/* in, size, stride, padding, rounds up, counts padding, divisor, kind, out */
static int mean(Task *task) {
  Window window = window_of(integers(task, 1), integers(task, 2), integers(task, 3));
  window.counts_padding = integer(task, 5);
  window.divisor = integer(task, 6);
  return pool(task, tensor(task, 0), window, false, tensor(task, 8), NULL, NULL);
}
static int mean_gradient(Task *task) { /* the gradient comes before them */
  Window window = window_of(integers(task, 2), integers(task, 3), integers(task, 4));
  window.counts_padding = integer(task, 6);
  window.divisor = integer(task, 7);
  return pool(task, tensor(task, 1), window, false, NULL, tensor(task, 0), tensor(task, 9));
}
/* in, size, stride, padding, dilation, rounds up, out, mask or places */
static int maximum(Task *task) {
  Window window = window_of(integers(task, 1), integers(task, 2), integers(task, 3));
  return pool(task, tensor(task, 0), window, true, tensor(task, 6), NULL, NULL);
}
/* gradient, in, mask or places, size, stride, padding, dilation, rounds up, out */
static int maximum_gradient(Task *task) {
  Window window = window_of(integers(task, 3), integers(task, 4), integers(task, 5));
  return pool(task, tensor(task, 1), window, true, NULL, tensor(task, 0), tensor(task, 8));
}

/* The aclops pad as their shapes need it ("SAME"), or not at all. */
static Window window_of_attributes(const Task *task, const Tensor *in, const Tensor *out) {
  const Attribute *size = attribute(task, "ksize"), *stride = attribute(task, "strides");
  Window window = {.counts_padding = false};
  for (int k = 0; k < 2; k++) {
    window.size[k] = size ? size->item[2 + k] : 1;
    window.stride[k] = stride ? stride->item[2 + k] : 1;
    int64_t missing = (out->shape[2 + k] - 1) * window.stride[k] + window.size[k] - in->shape[2 + k];
    window.padding[k] = missing > 0 ? missing / 2 : 0;
  }
  return window;
}
static int old_pool(Task *task, bool is_max) {
  Window window = window_of_attributes(task, tensor(task, 0), output(task, 0));
  return pool(task, tensor(task, 0), window, is_max, output(task, 0), NULL, NULL);
}
static int old_mean(Task *task) { return old_pool(task, false); }
static int old_maximum(Task *task) { return old_pool(task, true); }
static int old_mean_gradient(Task *task) {
  const Tensor *gradient = tensor(task, task->inputs - 1), *of_in = output(task, 0);
  return pool(task, of_in, window_of_attributes(task, of_in, gradient), false, NULL, gradient, of_in);
}
static int old_maximum_gradient(Task *task) {
  Window window = window_of_attributes(task, tensor(task, 0), tensor(task, 2));
  return pool(task, tensor(task, 0), window, true, NULL, tensor(task, 2), output(task, 0));
}

const Operator pooling_operators[] = {
    {"aclnnAvgPool2d", "taaabblct", mean, 8}, {"aclnnAvgPool2dBackward", "ttaaabblct", mean_gradient, 9},
    {"aclnnMaxPool2dWithMask", "taaaabtt", maximum, 6}, {"aclnnMaxPool2dWithMaskBackward", "tttaaaabt", maximum_gradient, 8},
    {"aclnnMaxPool2dWithIndices", "taaaabtt", maximum, 6},
    {"aclnnMaxPool2dWithIndicesBackward", "tttaaaabt", maximum_gradient, 8},
    END,
};
const Operator pooling_aclops[] = {
    {"AvgPool", "", old_mean, 0}, {"AvgPoolV2", "", old_mean, 0}, {"MaxPool", "", old_maximum, 0},
    {"AvgPoolGrad", "", old_mean_gradient, 0}, {"MaxPoolGrad", "", old_maximum_gradient, 0},
    END,
};
