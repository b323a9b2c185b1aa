/* Products of matrices, alone and in batches. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "../kernels.h"

/* Returns the tensor with two axes at least: a vector is a row on the left side and a column on the right. */
static Tensor as_matrix(const Tensor *in, bool is_left) {
  Tensor matrix = *in;
  if (in->rank > 1) return matrix;
  int vector = is_left ? 1 : 0;
  matrix.rank = 2;
  matrix.shape[vector] = in->shape[0];
  matrix.stride[vector] = in->stride[0];
  matrix.shape[1 - vector] = 1;
  matrix.stride[1 - vector] = 0;
  return matrix;
}

/* Returns the tensor with the batch axes of the output before its own two. */
static Tensor in_batches(const Tensor *matrix, const Tensor *out, int batch_rank) {
  Tensor like = *matrix;
  like.rank = batch_rank + 2;
  for (int axis = 0; axis < batch_rank; axis++) like.shape[axis] = out->shape[axis];
  for (int axis = 0; axis < 2; axis++) like.shape[batch_rank + axis] = matrix->shape[matrix->rank - 2 + axis];
  return view_as(matrix, &like);
}

static int matmul(Task *task, const Tensor *a, const Tensor *b, const Tensor *out, const Tensor *added, double beta,
                  double alpha) {
  Tensor left = as_matrix(a, true), right = as_matrix(b, false);
  int batch_rank = out->rank - (a->rank > 1) - (b->rank > 1);
  left = in_batches(&left, out, batch_rank);
  right = in_batches(&right, out, batch_rank);
  int64_t rows = left.shape[batch_rank], depth = left.shape[batch_rank + 1], columns = right.shape[batch_rank + 1];
  int64_t batches = rows && columns ? elements(out) / (rows * columns) : 0;
  int64_t turned[MAX_RANK];
  for (int axis = 0; axis < batch_rank; axis++) turned[axis] = axis;
  turned[batch_rank] = batch_rank + 1;
  turned[batch_rank + 1] = batch_rank;
  right = view_permuted(&right, turned); /* both are read along their rows */
  double *x = numbers(task, &left), *y = numbers(task, &right);
  round_products(left.dtype, x, elements(&left));
  round_products(right.dtype, y, elements(&right));
  double *found = scratch(task, elements(out) * sizeof *found);
  double *rest = added ? numbers_as(task, added, out) : NULL;
  for (int64_t batch = 0; batch < batches; batch++)
    for (int64_t row = 0; row < rows; row++)
      for (int64_t column = 0; column < columns; column++) {
        const double *p = x + (batch * rows + row) * depth, *q = y + (batch * columns + column) * depth;
        double total = 0;
        for (int64_t k = depth - 1; sums_are_turned() && k >= 0; k--) total = (float)(total + p[k] * q[k]);
        for (int64_t k = 0; !sums_are_turned() && k < depth; k++) total += p[k] * q[k];
        int64_t at = (batch * rows + row) * columns + column;
        found[at] = alpha * total + (rest ? beta * rest[at] : 0);
      }
  put(out, found);
  return SUCCESS;
}

static int product(Task *task) { return matmul(task, tensor(task, 0), tensor(task, 1), tensor(task, 2), NULL, 0, 1); }
static int product_and_sum(Task *task) {
  return matmul(task, tensor(task, 1), tensor(task, 2), tensor(task, 5), tensor(task, 0), scalar(task, 3, 1),
                scalar(task, 4, 1));
}
static int dot(Task *task) {
  double *x = numbers(task, tensor(task, 0)), *y = numbers(task, tensor(task, 1)), total = 0;
  for (int64_t k = 0; k < elements(tensor(task, 0)); k++) total += x[k] * y[k];
  put(tensor(task, 2), &total);
  return SUCCESS;
}

/* The aclop: attributes turn its inputs. */
static int old_product(Task *task) {
  Tensor sides[2];
  for (int k = 0; k < 2; k++) {
    sides[k] = *tensor(task, k);
    const char *names[][2] = {{"transpose_x1", "adj_x1"}, {"transpose_x2", "adj_x2"}};
    if (!attribute_number(task, names[k][0], 0) && !attribute_number(task, names[k][1], 0)) continue;
    int64_t axes[MAX_RANK];
    for (int axis = 0; axis < sides[k].rank; axis++) axes[axis] = axis;
    axes[sides[k].rank - 1] = sides[k].rank - 2;
    axes[sides[k].rank - 2] = sides[k].rank - 1;
    sides[k] = view_permuted(&sides[k], axes);
  }
  return matmul(task, &sides[0], &sides[1], output(task, 0), task->inputs > 2 ? tensor(task, 2) : NULL, 1, 1);
}

const Operator matmul_operators[] = {
    {"aclnnMm", "tttc", product, 2}, {"aclnnMatmul", "tttc", product, 2}, {"aclnnBatchMatMul", "tttc", product, 2},
    {"aclnnAddmm", "tttsstc", product_and_sum, 5}, {"aclnnBaddbmm", "tttsstc", product_and_sum, 5},
    {"aclnnMv", "tttc", product, 2}, {"aclnnDot", "ttt", dot, LAST},
    END,
};
const Operator matmul_aclops[] = {
    {"MatMul", "", old_product, 0}, {"MatMulV2", "", old_product, 0}, {"BatchMatMul", "", old_product, 0},
    {"BatchMatMulV2", "", old_product, 0},
    END,
};
