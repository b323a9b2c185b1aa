/* Softmax, and the normalizations of batches, layers and roots of mean squares. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "../kernels.h"

/* ---- softmax along an axis */

static int softmax_along(Task *task, bool is_log) {
  Split split = split_at(tensor(task, 0), integer(task, 1));
  double *values = numbers(task, tensor(task, 0));
  for (int64_t block = 0; block < split.outer * split.inner; block++) {
    double *row = values + block / split.inner * split.size * split.inner + block % split.inner;
    double largest = -INFINITY, total = 0;
    for (int64_t k = 0; k < split.size; k++) largest = fmax(largest, row[k * split.inner]);
    for (int64_t k = 0; k < split.size; k++) total += exp(row[k * split.inner] - largest);
    for (int64_t k = 0; k < split.size; k++) {
      double *place = row + k * split.inner, shifted = *place - largest;
      *place = is_log ? shifted - log(total) : exp(shifted) / total;
    }
  }
  put(tensor(task, 2), values);
  return SUCCESS;
}
static int softmax(Task *task) { return softmax_along(task, false); }
static int log_softmax(Task *task) { return softmax_along(task, true); }

static int softmax_gradient_along(Task *task, bool is_log) { /* gradient, output, axis, gradient of the input */
  Split split = split_at(tensor(task, 1), integer(task, 2));
  double *given = numbers(task, tensor(task, 0)), *out = numbers(task, tensor(task, 1));
  for (int64_t block = 0; block < split.outer * split.inner; block++) {
    int64_t start = block / split.inner * split.size * split.inner + block % split.inner;
    double total = 0;
    for (int64_t k = 0, at = start; k < split.size; k++, at += split.inner) total += given[at] * (is_log ? 1 : out[at]);
    for (int64_t k = 0, at = start; k < split.size; k++, at += split.inner)
      given[at] = is_log ? given[at] - exp(out[at]) * total : out[at] * (given[at] - total);
  }
  put(tensor(task, 3), given);
  return SUCCESS;
}
static int softmax_gradient(Task *task) { return softmax_gradient_along(task, false); }
static int log_softmax_gradient(Task *task) { return softmax_gradient_along(task, true); }

/* ---- batches: mean and variance of each channel */

typedef struct { int64_t images, channels, area; double size; } Channels;
static Channels channels_of(const Tensor *in) {
  Channels shape = {in->shape[0], in->shape[1], 1, 0};
  for (int axis = 2; axis < in->rank; axis++) shape.area *= in->shape[axis];
  shape.size = shape.images * shape.area;
  return shape;
}
#define EACH_OF_CHANNEL(shape, channel, at)                                  \
  for (int64_t image = 0; image < (shape).images; image++)                   \
    for (int64_t at = (image * (shape).channels + (channel)) * (shape).area, \
                 end = at + (shape).area; at < end; at++)

typedef struct { double *mean, *variance; } Moments;

static Moments moments(Task *task, const double *values, Channels shape) {
  Moments found = {scratch(task, shape.channels * 8), scratch(task, shape.channels * 8)};
  for (int64_t c = 0; c < shape.channels; c++) {
    EACH_OF_CHANNEL(shape, c, at) found.mean[c] += values[at] / shape.size;
    EACH_OF_CHANNEL(shape, c, at) found.variance[c] += pow(values[at] - found.mean[c], 2) / shape.size;
  }
  return found;
}

static double *or_ones(Task *task, const Tensor *weight, int64_t count) {
  if (weight) return numbers(task, weight);
  double *ones = scratch(task, count * sizeof *ones);
  for (int64_t k = 0; k < count; k++) ones[k] = 1;
  return ones;
}

static void normalize(Task *task, double *values, Channels shape, Moments by, double *weight, double *shift,
                      double epsilon) {
  for (int64_t c = 0; c < shape.channels; c++) {
    double factor = weight[c] / sqrt(by.variance[c] + epsilon);
    EACH_OF_CHANNEL(shape, c, at) values[at] = (values[at] - by.mean[c]) * factor + (shift ? shift[c] : 0);
  }
}

/* The gradients of input, weight and shift; in inference the statistics are constants. */
static void normalize_back(Task *task, double *given, double *values, Channels shape, double *mean, double *inverse,
                           double *weight, bool is_training, const Tensor *of_in, const Tensor *of_weight,
                           const Tensor *of_shift) {
  double *weight_sum = scratch(task, shape.channels * 8), *shift_sum = scratch(task, shape.channels * 8);
  for (int64_t c = 0; c < shape.channels; c++) {
    EACH_OF_CHANNEL(shape, c, at) {
      shift_sum[c] += given[at];
      weight_sum[c] += given[at] * (values[at] - mean[c]) * inverse[c];
    }
    EACH_OF_CHANNEL(shape, c, at) {
      double spread = (shift_sum[c] + (values[at] - mean[c]) * inverse[c] * weight_sum[c]) / shape.size;
      given[at] = weight[c] * inverse[c] * (given[at] - (is_training ? spread : 0));
    }
  }
  put(of_in, given);
  put(of_weight, weight_sum);
  put(of_shift, shift_sum);
}

static void update(Task *task, const Tensor *running, const double *now, double share, double factor) {
  if (!running) return;
  double *values = numbers(task, running);
  for (int64_t k = 0; k < elements(running); k++) values[k] = values[k] * (1 - share) + share * factor * now[k];
  put(running, values);
}

/* in, weight, shift, running mean, running variance, is training, momentum, epsilon, out, mean, inverse deviation */
static int batch_norm(Task *task) {
  const Tensor *in = tensor(task, 0);
  Channels shape = channels_of(in);
  double *values = numbers(task, in), epsilon = number(task, 7), share = number(task, 6);
  bool is_training = integer(task, 5);
  Moments by = is_training ? moments(task, values, shape)
                           : (Moments){numbers(task, tensor(task, 3)), numbers(task, tensor(task, 4))};
  normalize(task, values, shape, by, or_ones(task, tensor(task, 1), shape.channels),
            tensor(task, 2) ? numbers(task, tensor(task, 2)) : NULL, epsilon);
  put(tensor(task, 8), values);
  if (!is_training) return SUCCESS;
  update(task, tensor(task, 3), by.mean, share, 1);
  update(task, tensor(task, 4), by.variance, share, shape.size / (shape.size - 1));
  put(tensor(task, 9), by.mean);
  for (int64_t c = 0; c < shape.channels; c++) by.variance[c] = 1 / sqrt(by.variance[c] + epsilon);
  put(tensor(task, 10), by.variance);
  return SUCCESS;
}
/* gradient, in, weight, running mean, running variance, mean, inverse, is training, epsilon, which, three outputs */
static int batch_norm_gradient(Task *task) {
  const Tensor *in = tensor(task, 1);
  Channels shape = channels_of(in);
  bool is_training = integer(task, 7);
  double *mean = numbers(task, tensor(task, is_training ? 5 : 3));
  double *inverse = numbers(task, tensor(task, is_training ? 6 : 4));
  for (int64_t c = 0; !is_training && c < shape.channels; c++) inverse[c] = 1 / sqrt(inverse[c] + number(task, 8));
  normalize_back(task, numbers(task, tensor(task, 0)), numbers(task, in), shape, mean, inverse,
                 or_ones(task, tensor(task, 2), shape.channels), is_training, tensor(task, 10), tensor(task, 11),
                 tensor(task, 12));
  return SUCCESS;
}

/* in, weight, shift, running mean, running variance -> out, mean, variance, and both again for the gradient */
static int old_batch_norm(Task *task) {
  Channels shape = channels_of(tensor(task, 0));
  double *values = numbers(task, tensor(task, 0)), epsilon = attribute_number(task, "epsilon", 1e-5);
  bool is_training = attribute_number(task, "is_training", 1);
  Moments by = is_training ? moments(task, values, shape)
                           : (Moments){numbers(task, tensor(task, 3)), numbers(task, tensor(task, 4))};
  normalize(task, values, shape, by, numbers(task, tensor(task, 1)), numbers(task, tensor(task, 2)), epsilon);
  put(output(task, 0), values);
  put(output(task, 1), by.mean);
  put(output(task, 3), by.mean);
  put(output(task, 4), by.variance);
  for (int64_t c = 0; is_training && c < shape.channels; c++) by.variance[c] *= shape.size / (shape.size - 1);
  put(output(task, 2), by.variance);
  return SUCCESS;
}
static int old_batch_norm_gradient(Task *task) { /* gradient, in, weight, mean, variance */
  Channels shape = channels_of(tensor(task, 1));
  double *inverse = numbers(task, tensor(task, 4));
  for (int64_t c = 0; c < shape.channels; c++)
    inverse[c] = 1 / sqrt(inverse[c] + attribute_number(task, "epsilon", 1e-5));
  normalize_back(task, numbers(task, tensor(task, 0)), numbers(task, tensor(task, 1)), shape,
                 numbers(task, tensor(task, 3)), inverse, numbers(task, tensor(task, 2)),
                 attribute_number(task, "is_training", 1), output(task, 0), output(task, 1), output(task, 2));
  return SUCCESS;
}

/* The same in parts, as MindSpore splits it: sums, then the update; in backward the sums, then the gradient. */
static int old_batch_sums(Task *task) {
  Channels shape = channels_of(tensor(task, 0));
  double *values = numbers(task, tensor(task, 0));
  double *sum = scratch(task, shape.channels * 8), *squares = scratch(task, shape.channels * 8);
  for (int64_t c = 0; c < shape.channels; c++)
    EACH_OF_CHANNEL(shape, c, at) sum[c] += values[at], squares[c] += values[at] * values[at];
  put(output(task, 0), sum);
  put(output(task, 1), squares);
  return SUCCESS;
}
static int old_batch_update(Task *task) { /* in, sum, squares, weight, shift, running mean, running variance */
  Channels shape = channels_of(tensor(task, 0));
  double *values = numbers(task, tensor(task, 0)), share = attribute_number(task, "factor", 0.1);
  double *running_mean = numbers(task, tensor(task, 5)), *running_variance = numbers(task, tensor(task, 6));
  Moments by = {numbers(task, tensor(task, 1)), numbers(task, tensor(task, 2))};
  for (int64_t c = 0; c < shape.channels; c++) {
    by.mean[c] /= shape.size;
    by.variance[c] = by.variance[c] / shape.size - by.mean[c] * by.mean[c];
    running_mean[c] += share * (by.mean[c] - running_mean[c]);
    running_variance[c] += share * (by.variance[c] * shape.size / (shape.size - 1) - running_variance[c]);
  }
  normalize(task, values, shape, by, numbers(task, tensor(task, 3)), numbers(task, tensor(task, 4)),
            attribute_number(task, "epsilon", 1e-5));
  double *outputs[] = {values, running_mean, running_variance, by.mean, by.variance};
  for (int k = 0; k < 5; k++) put(output(task, k), outputs[k]);
  return SUCCESS;
}
static int old_batch_update_gradient(Task *task) { /* gradient, in, mean, variance -> of weight, of shift */
  Channels shape = channels_of(tensor(task, 1));
  double *inverse = numbers(task, tensor(task, 3));
  for (int64_t c = 0; c < shape.channels; c++)
    inverse[c] = 1 / sqrt(inverse[c] + attribute_number(task, "epsilon", 1e-5));
  normalize_back(task, numbers(task, tensor(task, 0)), numbers(task, tensor(task, 1)), shape,
                 numbers(task, tensor(task, 2)), inverse, or_ones(task, NULL, shape.channels), true, NULL,
                 output(task, 0), output(task, 1));
  return SUCCESS;
}
static int old_batch_gradient(Task *task) { /* gradient, in, of weight, of shift, weight, mean, variance -> of input */
  Channels shape = channels_of(tensor(task, 1));
  double *inverse = numbers(task, tensor(task, 6));
  for (int64_t c = 0; c < shape.channels; c++)
    inverse[c] = 1 / sqrt(inverse[c] + attribute_number(task, "epsilon", 1e-5));
  normalize_back(task, numbers(task, tensor(task, 0)), numbers(task, tensor(task, 1)), shape,
                 numbers(task, tensor(task, 5)), inverse, numbers(task, tensor(task, 4)), true, output(task, 0), NULL,
                 NULL);
  return SUCCESS;
}

/* ---- layers: mean and variance of each row */

typedef struct { int64_t rows, size; } Rows;

/* Both gradients of a layer's weight and shift, and the input's, from a row's mean and inverse deviation. */
static void layer_back(Task *task, Rows shape, double *given, double *values, double *mean, double *inverse,
                       double *weight, const Tensor *of_in, const Tensor *of_weight, const Tensor *of_shift) {
  double *weight_sum = scratch(task, shape.size * 8), *shift_sum = scratch(task, shape.size * 8);
  for (int64_t row = 0; row < shape.rows; row++) {
    double sum = 0, product = 0;
    for (int64_t k = 0, at = row * shape.size; k < shape.size; k++, at++) {
      double normal = (values[at] - mean[row]) * inverse[row];
      weight_sum[k] += given[at] * normal;
      shift_sum[k] += given[at];
      sum += given[at] * weight[k] / shape.size;
      product += given[at] * weight[k] * normal / shape.size;
    }
    for (int64_t k = 0, at = row * shape.size; k < shape.size; k++, at++)
      given[at] = inverse[row] * (given[at] * weight[k] - sum - (values[at] - mean[row]) * inverse[row] * product);
  }
  put(of_in, given);
  put(of_weight, weight_sum);
  put(of_shift, shift_sum);
}

static void layer(Task *task, const Tensor *in, Rows shape, const Tensor *weight, const Tensor *shift, double epsilon,
                  const Tensor *out, double *mean, double *variance) {
  double *values = numbers(task, in), *factor = or_ones(task, weight, shape.size);
  double *added = shift ? numbers(task, shift) : NULL;
  for (int64_t row = 0; row < shape.rows; row++) {
    double *start = values + row * shape.size;
    for (int64_t k = 0; k < shape.size; k++) mean[row] += start[k] / shape.size;
    for (int64_t k = 0; k < shape.size; k++) variance[row] += pow(start[k] - mean[row], 2) / shape.size;
    double inverse = 1 / sqrt(variance[row] + epsilon);
    for (int64_t k = 0; k < shape.size; k++)
      start[k] = (start[k] - mean[row]) * inverse * factor[k] + (added ? added[k] : 0);
  }
  put(out, values);
}

static Rows rows_of(const Tensor *in, const IntArray *shape) {
  int64_t size = 1;
  for (uint64_t k = 0; k < shape->count; k++) size *= shape->item[k];
  return (Rows){elements(in) / size, size};
}
/* in, shape, weight, shift, epsilon, out, mean, inverse deviation */
static int layer_norm(Task *task) {
  Rows shape = rows_of(tensor(task, 0), integers(task, 1));
  double *mean = scratch(task, shape.rows * 8), *spread = scratch(task, shape.rows * 8);
  layer(task, tensor(task, 0), shape, tensor(task, 2), tensor(task, 3), number(task, 4), tensor(task, 5), mean, spread);
  for (int64_t row = 0; row < shape.rows; row++) spread[row] = 1 / sqrt(spread[row] + number(task, 4));
  put(tensor(task, 6), mean);
  put(tensor(task, 7), spread);
  return SUCCESS;
}
/* gradient, in, shape, mean, inverse deviation, weight, shift, which, three outputs */
static int layer_norm_gradient(Task *task) {
  Rows shape = rows_of(tensor(task, 1), integers(task, 2));
  layer_back(task, shape, numbers(task, tensor(task, 0)), numbers(task, tensor(task, 1)),
             numbers(task, tensor(task, 3)), numbers(task, tensor(task, 4)), or_ones(task, tensor(task, 5), shape.size),
             tensor(task, 8), tensor(task, 9), tensor(task, 10));
  return SUCCESS;
}
static int old_layer_norm(Task *task) { /* in, weight, shift -> out, mean, variance */
  Rows shape = {elements(tensor(task, 0)) / elements(tensor(task, 1)), elements(tensor(task, 1))};
  double *mean = scratch(task, shape.rows * 8), *variance = scratch(task, shape.rows * 8);
  layer(task, tensor(task, 0), shape, tensor(task, 1), tensor(task, 2), attribute_number(task, "epsilon", 1e-7),
        output(task, 0), mean, variance);
  put(output(task, 1), mean);
  put(output(task, 2), variance);
  return SUCCESS;
}
static int old_layer_norm_gradient(Task *task) { /* gradient, in, variance, mean, weight */
  Rows shape = {elements(tensor(task, 0)) / elements(tensor(task, 4)), elements(tensor(task, 4))};
  double *inverse = numbers(task, tensor(task, 2));
  for (int64_t row = 0; row < shape.rows; row++)
    inverse[row] = 1 / sqrt(inverse[row] + attribute_number(task, "epsilon", 1e-7));
  layer_back(task, shape, numbers(task, tensor(task, 0)), numbers(task, tensor(task, 1)), numbers(task, tensor(task, 3)),
             inverse, numbers(task, tensor(task, 4)), output(task, 0), output(task, 1), output(task, 2));
  return SUCCESS;
}

/* ---- roots of mean squares */

static int rms_norm(Task *task) { /* in, weight, epsilon, out, inverse root */
  int64_t size = elements(tensor(task, 1)), rows = elements(tensor(task, 0)) / size;
  double *values = numbers(task, tensor(task, 0)), *weight = numbers(task, tensor(task, 1));
  double *inverse = scratch(task, rows * sizeof *inverse);
  for (int64_t row = 0; row < rows; row++) {
    double *start = values + row * size, squares = 0;
    for (int64_t k = 0; k < size; k++) squares += start[k] * start[k] / size;
    inverse[row] = 1 / sqrt(squares + number(task, 2));
    for (int64_t k = 0; k < size; k++) start[k] *= inverse[row] * weight[k];
  }
  put(tensor(task, 3), values);
  put(tensor(task, 4), inverse);
  return SUCCESS;
}
static int rms_norm_gradient(Task *task) { /* gradient, in, inverse root, weight, of input, of weight */
  int64_t size = elements(tensor(task, 3)), rows = elements(tensor(task, 1)) / size;
  double *given = numbers(task, tensor(task, 0)), *values = numbers(task, tensor(task, 1));
  double *inverse = numbers(task, tensor(task, 2)), *weight = numbers(task, tensor(task, 3));
  double *weight_sum = scratch(task, size * sizeof *weight_sum);
  for (int64_t row = 0; row < rows; row++) {
    double *g = given + row * size, *x = values + row * size, product = 0;
    for (int64_t k = 0; k < size; k++) {
      weight_sum[k] += g[k] * x[k] * inverse[row];
      product += g[k] * weight[k] * x[k] * inverse[row] / size;
    }
    for (int64_t k = 0; k < size; k++) g[k] = inverse[row] * (g[k] * weight[k] - x[k] * inverse[row] * product);
  }
  put(tensor(task, 4), given);
  put(tensor(task, 5), weight_sum);
  return SUCCESS;
}

const Operator normalization_operators[] = {
    {"aclnnSoftmax", "tlt", softmax, LAST}, {"aclnnLogSoftmax", "tlt", log_softmax, LAST},
    {"aclnnSoftmaxBackward", "ttlt", softmax_gradient, LAST},
    {"aclnnLogSoftmaxBackward", "ttlt", log_softmax_gradient, LAST},
    {"aclnnBatchNorm", "tttttbddttt", batch_norm, 8},
    {"aclnnBatchNormBackward", "tttttttbdattt", batch_norm_gradient, 10},
    {"aclnnLayerNorm", "tattdttt", layer_norm, 5},
    {"aclnnLayerNormBackward", "ttattttattt", layer_norm_gradient, 8},
    {"aclnnRmsNorm", "ttdtt", rms_norm, 3}, {"aclnnRmsNormGrad", "tttttt", rms_norm_gradient, 4},
    END,
};
const Operator normalization_aclops[] = {
    {"BatchNorm", "", old_batch_norm, 0}, {"BatchNormGrad", "", old_batch_norm_gradient, 0},
    {"BNTrainingReduce", "", old_batch_sums, 0}, {"BNTrainingUpdate", "", old_batch_update, 0},
    {"BNTrainingUpdateGrad", "", old_batch_update_gradient, 0}, {"BNTrainingReduceGrad", "", old_batch_gradient, 0},
    {"LayerNorm", "", old_layer_norm, 0}, {"LayerNormGrad", "", old_layer_norm_gradient, 0},
    END,
};
