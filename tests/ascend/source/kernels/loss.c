/* Losses, and what dense layers add: biases of the older operators. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "../kernels.h"

enum { NO_REDUCTION, MEAN, SUM };

static double weight_of(const double *weights, double target, int64_t ignored) {
  return target == ignored ? 0 : weights ? weights[(int64_t)target] : 1;
}

/* in, target, weight, reduction, ignored class, out, total weight */
static int likelihood(Task *task) {
  Tensor *in = tensor(task, 0);
  int64_t count = elements(tensor(task, 1)), classes = in->shape[in->rank - 1], reduction = integer(task, 3);
  double *values = numbers(task, in), *target = numbers(task, tensor(task, 1));
  double *weights = tensor(task, 2) ? numbers(task, tensor(task, 2)) : NULL, sum = 0, total = 0;
  double *each = scratch(task, count * sizeof *each);
  for (int64_t k = 0; k < count; k++) {
    double weight = weight_of(weights, target[k], integer(task, 4));
    if (weight) each[k] = -values[k * classes + (int64_t)target[k]] * weight;
    sum += each[k];
    total += weight;
  }
  if (reduction == MEAN) sum /= total;
  put(tensor(task, 5), reduction == NO_REDUCTION ? each : &sum);
  put(tensor(task, 6), &total);
  return SUCCESS;
}
/* gradient, in, target, weight, reduction, ignored class, total weight, out */
static int likelihood_gradient(Task *task) {
  Tensor *in = tensor(task, 1);
  int64_t count = elements(tensor(task, 2)), classes = in->shape[in->rank - 1], reduction = integer(task, 4);
  double *given = numbers(task, tensor(task, 0)), *target = numbers(task, tensor(task, 2));
  double *weights = tensor(task, 3) ? numbers(task, tensor(task, 3)) : NULL;
  double total = reduction == MEAN ? first_number(tensor(task, 6)) : 1;
  double *found = scratch(task, elements(in) * sizeof *found);
  for (int64_t k = 0; k < count; k++) {
    double weight = weight_of(weights, target[k], integer(task, 5));
    if (weight) found[k * classes + (int64_t)target[k]] = -weight * given[reduction == NO_REDUCTION ? k : 0] / total;
  }
  put(tensor(task, 7), found);
  return SUCCESS;
}

/* in, target, reduction, out: squares or absolute values of differences */
static int distance(Task *task, bool is_square) {
  Tensor *in = tensor(task, 0), *out = tensor(task, 3);
  double *values = numbers(task, in), *target = numbers_as(task, tensor(task, 1), in), total = 0;
  int64_t count = elements(in);
  for (int64_t k = 0; k < count; k++) {
    double difference = values[k] - target[k];
    values[k] = is_square ? difference * difference : fabs(difference);
    total += values[k];
  }
  if (integer(task, 2) == MEAN) total /= count;
  put(out, integer(task, 2) == NO_REDUCTION ? values : &total);
  return SUCCESS;
}
static int squares(Task *task) { return distance(task, true); }
static int absolutes(Task *task) { return distance(task, false); }
/* gradient, in, target, reduction, out */
static int distance_gradient(Task *task, bool is_square) {
  Tensor *in = tensor(task, 1);
  double *given = numbers_as(task, tensor(task, 0), in), *values = numbers(task, in);
  double *target = numbers_as(task, tensor(task, 2), in);
  int64_t count = elements(in), divisor = integer(task, 3) == MEAN ? count : 1;
  for (int64_t k = 0; k < count; k++) {
    double difference = values[k] - target[k];
    values[k] = given[k] * (is_square ? 2 * difference : (difference > 0) - (difference < 0)) / divisor;
  }
  put(tensor(task, 4), values);
  return SUCCESS;
}
static int squares_gradient(Task *task) { return distance_gradient(task, true); }
static int absolutes_gradient(Task *task) { return distance_gradient(task, false); }

/* ---- biases: one number for each channel, which is the second axis */

static int64_t area_of(const Tensor *in) {
  int64_t area = 1;
  for (int axis = 2; axis < in->rank; axis++) area *= in->shape[axis];
  return area;
}
static int add_bias(Task *task) {
  Tensor *in = tensor(task, 0);
  int64_t area = area_of(in), channels = elements(tensor(task, 1));
  double *values = numbers(task, in), *bias = numbers(task, tensor(task, 1));
  for (int64_t k = 0; k < elements(in); k++) values[k] += bias[k / area % channels];
  put(output(task, 0), values);
  return SUCCESS;
}
static int bias_gradient(Task *task) {
  Tensor *in = tensor(task, 0);
  int64_t area = area_of(in), channels = elements(output(task, 0));
  double *values = numbers(task, in), *total = scratch(task, channels * sizeof *total);
  for (int64_t k = 0; k < elements(in); k++) total[k / area % channels] += values[k];
  put(output(task, 0), total);
  return SUCCESS;
}

const Operator loss_operators[] = {
    {"aclnnNLLLoss", "tttlltt", likelihood, 5}, {"aclnnNLLLossBackward", "ttttlltt", likelihood_gradient, LAST},
    {"aclnnMseLoss", "ttlt", squares, LAST}, {"aclnnMseLossBackward", "tttlt", squares_gradient, LAST},
    {"aclnnL1Loss", "ttlt", absolutes, LAST}, {"aclnnL1LossBackward", "tttlt", absolutes_gradient, LAST},
    END,
};
const Operator loss_aclops[] = {{"BiasAdd", "", add_bias, 0}, {"BiasAddGrad", "", bias_gradient, 0}, END};
