/* Convolutions of images, and their gradients. Other ranks and transposed convolutions fail by their name. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "../kernels.h"

typedef struct { int64_t stride[2], padding[2], dilation[2], groups; } Window;
typedef void (*Visit)(void *sums, int64_t out, int64_t in, int64_t weight);

/* Calls `visit` for every product that a convolution adds: its place in the output, the input and the weight. */
static void convolve(const Tensor *in, const Tensor *weight, const Tensor *out, Window w, Visit visit, void *sums) {
  int64_t channels = in->shape[1], height = in->shape[2], width = in->shape[3];
  int64_t outs = weight->shape[0], depth = weight->shape[1], rows = weight->shape[2], columns = weight->shape[3];
  int64_t out_height = out->shape[2], out_width = out->shape[3], per_group = outs / w.groups;
  for (int64_t image = 0; image < in->shape[0]; image++)
    for (int64_t o = 0; o < outs; o++)
      for (int64_t i = 0; i < out_height; i++)
        for (int64_t j = 0; j < out_width; j++) {
          int64_t at = ((image * outs + o) * out_height + i) * out_width + j;
          for (int64_t c = 0; c < depth; c++)
            for (int64_t a = 0; a < rows; a++)
              for (int64_t b = 0; b < columns; b++) {
                int64_t y = i * w.stride[0] + a * w.dilation[0] - w.padding[0];
                int64_t x = j * w.stride[1] + b * w.dilation[1] - w.padding[1];
                if (y < 0 || x < 0 || y >= height || x >= width) continue;
                int64_t channel = o / per_group * depth + c;
                visit(sums, at, ((image * channels + channel) * height + y) * width + x,
                      ((o * depth + c) * rows + a) * columns + b);
              }
        }
}

typedef struct { double *in, *weight, *out, *in_sum, *weight_sum; } Sums;
static void forward(void *argument, int64_t out, int64_t in, int64_t weight) {
  Sums *sums = argument;
  sums->out[out] += sums->in[in] * sums->weight[weight];
}
static void backward(void *argument, int64_t out, int64_t in, int64_t weight) {
  Sums *sums = argument;
  sums->in_sum[in] += sums->out[out] * sums->weight[weight];
  sums->weight_sum[weight] += sums->out[out] * sums->in[in];
}

static int run_forward(Task *task, const Tensor *in, const Tensor *weight, const Tensor *bias, Window window,
                       const Tensor *out) {
  if (in->rank != 4) return NOT_SIMULATED;
  double *found = scratch(task, elements(out) * sizeof *found);
  Sums sums = {numbers(task, in), numbers(task, weight), found};
  round_products(in->dtype, sums.in, elements(in));
  round_products(weight->dtype, sums.weight, elements(weight));
  convolve(in, weight, out, window, forward, &sums);
  int64_t area = out->shape[2] * out->shape[3], outs = weight->shape[0];
  double *shift = bias ? numbers(task, bias) : NULL;
  for (int64_t k = 0; shift && k < elements(out); k++) found[k] += shift[k / area % outs];
  put(out, found);
  return SUCCESS;
}

static int run_backward(Task *task, const Tensor *gradient, const Tensor *in, const Tensor *weight, Window window,
                        const Tensor *of_in, const Tensor *of_weight, const Tensor *of_bias) {
  if (in->rank != 4) return NOT_SIMULATED;
  Sums sums = {numbers(task, in), numbers(task, weight), numbers(task, gradient),
               scratch(task, elements(in) * 8), scratch(task, elements(weight) * 8)};
  double *shift = scratch(task, weight->shape[0] * sizeof *shift);
  int64_t area = gradient->shape[2] * gradient->shape[3], outs = weight->shape[0];
  for (int64_t k = 0; k < elements(gradient); k++) shift[k / area % outs] += sums.out[k];
  round_products(in->dtype, sums.in, elements(in));
  round_products(weight->dtype, sums.weight, elements(weight));
  round_products(gradient->dtype, sums.out, elements(gradient));
  convolve(in, weight, gradient, window, backward, &sums);
  put(of_in, sums.in_sum);
  put(of_weight, sums.weight_sum);
  put(of_bias, shift);
  return SUCCESS;
}

static Window window_of(const IntArray *stride, const IntArray *padding, const IntArray *dilation, int64_t groups) {
  Window window = {.groups = groups};
  for (int k = 0; k < 2; k++) {
    window.stride[k] = stride->item[stride->count > 1 ? k : 0];
    window.padding[k] = padding->item[padding->count == 4 ? 2 * k : padding->count == 2 ? k : 0];
    window.dilation[k] = dilation->item[dilation->count > 1 ? k : 0];
  }
  return window;
}

/* in, weight, bias, stride, padding, dilation, is transposed, output padding, groups, out, kind */
static int convolution(Task *task) {
  if (integer(task, 6)) return NOT_SIMULATED;
  Window window = window_of(integers(task, 3), integers(task, 4), integers(task, 5), integer(task, 8));
  return run_forward(task, tensor(task, 0), tensor(task, 1), tensor(task, 2), window, tensor(task, 9));
}
/* gradient, in, weight, bias shape, stride, padding, dilation, is transposed, output padding, groups, which, kind, outs */
static int convolution_gradient(Task *task) {
  if (integer(task, 7)) return NOT_SIMULATED;
  Window window = window_of(integers(task, 4), integers(task, 5), integers(task, 6), integer(task, 9));
  int64_t *wanted = integers(task, 10)->item;
  return run_backward(task, tensor(task, 0), tensor(task, 1), tensor(task, 2), window,
                      wanted[0] ? tensor(task, 12) : NULL, wanted[1] ? tensor(task, 13) : NULL,
                      wanted[2] ? tensor(task, 14) : NULL);
}

static Window window_of_attributes(const Task *task) {
  const Attribute *stride = attribute(task, "strides"), *padding = attribute(task, "pads");
  const Attribute *dilation = attribute(task, "dilations");
  Window window = {.groups = attribute_number(task, "groups", 1)};
  for (int k = 0; k < 2; k++) {
    window.stride[k] = stride ? stride->item[2 + k] : 1;
    window.padding[k] = padding ? padding->item[2 * k] : 0;
    window.dilation[k] = dilation ? dilation->item[2 + k] : 1;
  }
  return window;
}
static int old_convolution(Task *task) {
  return run_forward(task, tensor(task, 0), tensor(task, 1), task->inputs > 2 ? tensor(task, 2) : NULL,
                     window_of_attributes(task), output(task, 0));
}
static int old_input_gradient(Task *task) {
  return run_backward(task, tensor(task, 2), output(task, 0), tensor(task, 1), window_of_attributes(task),
                      output(task, 0), NULL, NULL);
}
static int old_weight_gradient(Task *task) {
  return run_backward(task, tensor(task, 2), tensor(task, 0), output(task, 0), window_of_attributes(task), NULL,
                      output(task, 0), NULL);
}

const Operator convolution_operators[] = {
    {"aclnnConvolution", "tttaaabaltc", convolution, 9},
    {"aclnnConvolutionBackward", "tttaaaabaiacttt", convolution_gradient, 12},
    END,
};
const Operator convolution_aclops[] = {
    {"Conv2D", "", old_convolution, 0}, {"Conv2DBackpropInput", "", old_input_gradient, 0},
    {"Conv2DBackpropFilter", "", old_weight_gradient, 0},
    END,
};
