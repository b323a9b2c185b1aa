/* What kernels are written with: tensors become dense arrays of doubles, and are written back. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "simulator.h"

int aclDestroyTensorList(TensorList *list);

/* Zeroed memory that lives as long as the task runs. */
void *scratch(Task *task, int64_t bytes);

/* ---- arguments of a task */
static inline Tensor *tensor(const Task *task, int k) { return task->argument[k].tensor; }
static inline int64_t integer(const Task *task, int k) { return task->argument[k].integer; }
static inline double number(const Task *task, int k) { return task->argument[k].number; }
static inline IntArray *integers(const Task *task, int k) { return task->argument[k].integers; }
static inline TensorList *list(const Task *task, int k) { return task->argument[k].list; }
static inline double scalar(const Task *task, int k, double otherwise) {
  return task->argument[k].scalar ? task->argument[k].scalar->value : otherwise;
}
static inline Tensor *result(const Task *task) { return tensor(task, task->result); }
/* Output k of an aclop; NULL where MindSpore asked for fewer. */
static inline Tensor *output(const Task *task, int k) {
  return task->inputs + k < task->count ? tensor(task, task->inputs + k) : NULL;
}
const Attribute *attribute(const Task *task, const char *name);
double attribute_number(const Task *task, const char *name, double otherwise);

/* ---- shapes */
int64_t elements(const Tensor *tensor);
int axis_of(const Tensor *tensor, int64_t axis); /* negative axes count from the end */
/* A shape around one axis: `outer` blocks of `size` rows of `inner` elements. */
typedef struct { int64_t outer, size, inner; } Split;
Split split_at(const Tensor *tensor, int64_t axis);

/* ---- views: other tensors on the same memory */
Tensor view_part(const Tensor *tensor, int64_t axis, int64_t start, int64_t size);
Tensor view_as(const Tensor *tensor, const Tensor *like); /* broadcast */
Tensor view_permuted(const Tensor *tensor, const int64_t *axes);

/* ---- numbers */
/* A walk over the elements of a tensor, in order. Each call goes on where the last one has ended. */
typedef struct { Tensor tensor; int64_t place, index[MAX_RANK]; } Walk;
Walk walk(const Tensor *tensor);
void read_numbers(Walk *walk, double *to, int64_t count);
void write_numbers(Walk *walk, const double *from, int64_t count);
double *numbers(Task *task, const Tensor *tensor);
double *numbers_as(Task *task, const Tensor *tensor, const Tensor *like); /* broadcast to its shape */
void put(const Tensor *tensor, const double *numbers);                    /* no tensor: nothing to do */
double first_number(const Tensor *tensor);
void move(const Tensor *to, const Tensor *from); /* of one shape; bits stay as they are where the dtypes are equal */

/* ---- kernels for operators without a loop */
int fill_outputs(Task *task);
int halve_in_place(Task *task);

#define END {NULL, NULL, NULL, 0}
