/* Optimizers: they change parameters and their own state in place. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "../kernels.h"

/* AdamW of PyTorch's kind: parameter, both moments, their maximum, gradient, steps done, lr, betas, decay, epsilon,
   uses the maximum, maximizes */
static int adamw(Task *task) {
  Tensor *parameter = tensor(task, 0);
  double *p = numbers(task, parameter), *m = numbers(task, tensor(task, 1)), *v = numbers(task, tensor(task, 2));
  double *g = numbers(task, tensor(task, 4)), steps = first_number(tensor(task, 5)) + 1;
  double lr = number(task, 6), beta1 = number(task, 7), beta2 = number(task, 8), decay = number(task, 9);
  double sign = integer(task, 12) ? -1 : 1;
  for (int64_t k = 0; k < elements(parameter); k++) {
    m[k] = m[k] * beta1 + (1 - beta1) * sign * g[k];
    v[k] = v[k] * beta2 + (1 - beta2) * g[k] * g[k];
    double deviation = sqrt(v[k]) / sqrt(1 - pow(beta2, steps)) + number(task, 10);
    p[k] = p[k] * (1 - lr * decay) - lr / (1 - pow(beta1, steps)) * m[k] / deviation;
  }
  put(parameter, p);
  put(tensor(task, 1), m);
  put(tensor(task, 2), v);
  return SUCCESS;
}

/* parameter, gradient, lr, momentum's sum, momentum, whether this is the first step */
static int sgd(Task *task) {
  Tensor *parameter = tensor(task, 0);
  double *p = numbers(task, parameter), *g = numbers(task, tensor(task, 1)), *sum = numbers(task, tensor(task, 3));
  double *is_first = numbers(task, tensor(task, 5)), lr = first_number(tensor(task, 2)), momentum = first_number(tensor(task, 4));
  double decay = attribute_number(task, "weight_decay", 0), damping = attribute_number(task, "dampening", 0);
  for (int64_t k = 0; k < elements(parameter); k++) {
    double change = g[k] + decay * p[k];
    if (momentum > 0) {
      sum[k] = is_first[k] > 0 ? change : sum[k] * momentum + change * (1 - damping);
      is_first[k] = 0;
      change = attribute_number(task, "nesterov", 0) ? change + momentum * sum[k] : sum[k];
    }
    p[k] -= lr * change;
  }
  put(parameter, p);
  put(tensor(task, 3), sum);
  put(tensor(task, 5), is_first);
  return SUCCESS;
}

static int momentum(Task *task) { /* parameter, sum, lr, gradient, momentum */
  Tensor *parameter = tensor(task, 0);
  double *p = numbers(task, parameter), *sum = numbers(task, tensor(task, 1)), *g = numbers(task, tensor(task, 3));
  double lr = first_number(tensor(task, 2)), factor = first_number(tensor(task, 4));
  bool is_nesterov = attribute_number(task, "use_nesterov", 0);
  for (int64_t k = 0; k < elements(parameter); k++) {
    sum[k] = sum[k] * factor + g[k];
    p[k] -= lr * (is_nesterov ? g[k] + factor * sum[k] : sum[k]);
  }
  put(parameter, p);
  put(tensor(task, 1), sum);
  return SUCCESS;
}

static int adam(Task *task) { /* parameter, moments, powers of both betas, lr, betas, epsilon, gradient */
  Tensor *parameter = tensor(task, 0);
  double *p = numbers(task, parameter), *m = numbers(task, tensor(task, 1)), *v = numbers(task, tensor(task, 2));
  double *g = numbers(task, tensor(task, 9)), given[9];
  for (int k = 3; k < 9; k++) given[k] = first_number(tensor(task, k));
  double lr = given[5] * sqrt(1 - given[4]) / (1 - given[3]), beta1 = given[6], beta2 = given[7];
  bool is_nesterov = attribute_number(task, "use_nesterov", 0);
  for (int64_t k = 0; k < elements(parameter); k++) {
    m[k] = m[k] * beta1 + g[k] * (1 - beta1);
    v[k] = v[k] * beta2 + g[k] * g[k] * (1 - beta2);
    p[k] -= lr * (is_nesterov ? m[k] * beta1 + (1 - beta1) * g[k] : m[k]) / (sqrt(v[k]) + given[8]);
  }
  put(parameter, p);
  put(tensor(task, 1), m);
  put(tensor(task, 2), v);
  return SUCCESS;
}

/* parameter, mean of squares, momentum's sum, lr, gradient[, rho, momentum, epsilon, where they are no attributes] */
static int rmsprop(Task *task) {
  Tensor *parameter = tensor(task, 0);
  double *p = numbers(task, parameter), *squares = numbers(task, tensor(task, 1)), *sum = numbers(task, tensor(task, 2));
  int last = task->inputs - 1; /* the gradient; the three numbers before it are inputs, or attributes */
  double *g = numbers(task, tensor(task, last)), lr = first_number(tensor(task, 3)), given[3];
  const char *names[] = {"rho", "momentum", "epsilon"};
  for (int k = 0; k < 3; k++)
    given[k] = last > 4 ? first_number(tensor(task, 4 + k)) : attribute_number(task, names[k], 0);
  for (int64_t k = 0; k < elements(parameter); k++) {
    squares[k] = given[0] * squares[k] + (1 - given[0]) * g[k] * g[k];
    sum[k] = given[1] * sum[k] + lr * g[k] / sqrt(squares[k] + given[2]);
    p[k] -= sum[k];
  }
  put(parameter, p);
  put(tensor(task, 1), squares);
  put(tensor(task, 2), sum);
  return SUCCESS;
}

/* AdamWeightDecay, which MindSpore fuses in its graph: gradient, second moment, first moment, parameter, lr, beta1,
   1 - beta1, beta2, 1 - beta2, decay, epsilon -> second moment, first moment, parameter. The inputs change too. */
static int adam_with_decay(Task *task) {
  double *g = numbers(task, tensor(task, 0)), *v = numbers(task, tensor(task, 1)), *m = numbers(task, tensor(task, 2));
  double *p = numbers(task, tensor(task, 3)), given[11];
  for (int k = 4; k < 11; k++) given[k] = first_number(tensor(task, k));
  for (int64_t k = 0; k < elements(tensor(task, 3)); k++) {
    v[k] = given[7] * v[k] + given[8] * g[k] * g[k];
    m[k] = given[5] * m[k] + given[6] * g[k];
    p[k] -= given[4] * (m[k] / (sqrt(v[k]) + given[10]) + given[9] * p[k]);
  }
  double *changed[] = {v, m, p};
  for (int k = 0; k < 3; k++) {
    put(tensor(task, 1 + k), changed[k]);
    put(output(task, k), changed[k]);
  }
  return SUCCESS;
}

static int adagrad(Task *task) { /* parameter, sum of squares, lr, gradient -> parameter, sum of squares */
  double *p = numbers(task, tensor(task, 0)), *sum = numbers(task, tensor(task, 1)), *g = numbers(task, tensor(task, 3));
  double lr = first_number(tensor(task, 2));
  for (int64_t k = 0; k < elements(tensor(task, 0)); k++) {
    if (attribute_number(task, "update_slots", 1)) sum[k] += g[k] * g[k];
    p[k] -= lr * g[k] / sqrt(sum[k]);
  }
  double *changed[] = {p, sum};
  for (int k = 0; k < 2; k++) {
    put(tensor(task, k), changed[k]);
    put(output(task, k), changed[k]);
  }
  return SUCCESS;
}

const Operator optimizer_operators[] = {{"aclnnApplyAdamWV2", "ttttttfffffbb", adamw, 0}, END};
const Operator optimizer_aclops[] = {
    {"SGD", "", sgd, 0}, {"ApplyMomentum", "", momentum, 0}, {"ApplyAdam", "", adam, 0}, {"ApplyAdamD", "", adam, 0},
    {"ApplyRMSProp", "", rmsprop, 0}, {"ApplyRMSPropD", "", rmsprop, 0},
    {"ApplyAdagrad", "", adagrad, 0}, {"ApplyAdagradD", "", adagrad, 0},
    {"AdamApplyOneWithDecayAssign", "", adam_with_decay, 0},
    END,
};
