/* What the parts of the simulated CANN share. ../README.md tells which part simulates what. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#pragma once
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of errors, as CANN has them. */
enum {
  SUCCESS = 0,
  INVALID_ARGUMENT = 107000,
  OUT_OF_MEMORY = 207001,
  QUEUE_EMPTY = 207013,
  LAUNCH_REFUSED = 507011,
  TASK_FAILED = 507015,
  NOT_SIMULATED = 561103,
};

/* The numbers of dtypes, as CANN has them. */
enum {
  FLOAT32 = 0, FLOAT16 = 1, INT8 = 2, INT32 = 3, UINT8 = 4, INT16 = 6, UINT16 = 7, UINT32 = 8, INT64 = 9,
  UINT64 = 10, FLOAT64 = 11, BOOL = 12, STRING = 13, COMPLEX64 = 16, COMPLEX128 = 17, BFLOAT16 = 27,
};

/* ---- log.c: texts for people (ASCEND_SIM_LOG=1 or 2), and a record of what was asked of the device */

void note(int level, const char *format, ...);
/* Adds a line to the record, where a test asked for one. */
void record(const char *format, ...);

/* ---- faults.c: planned failures and delays, and counts of everything that can fail */

typedef enum { PREPARE, LAUNCH, RUN, COPY, FILL, ALLOCATE, EVENT, WAIT, COLLECTIVE, PLACES } Place;

/* Counts one thing that happens at a place; returns SUCCESS, or the error that is planned for it. Sleeps where a delay
   is planned. */
int happen(Place place, const char *name);
/* Says that a task failed on the device. All later waits return its error. */
/* The rule that makes this run of an operator wrong: parts in a million of its result, negative for exchanged numbers. */
int wrong_by(void);
void break_device(int error, const char *name);
/* Returns the error of the device. One that was planned as "once" is forgotten with that. */
int device_error(void);
bool device_is_broken(void);

/* ---- memory.c: the memory of the device. The host may not touch it. */

bool is_on_device(const void *address);
/* Returns where the bytes behind an address of the device, or of the host, can be read and written. */
char *bytes_at(const void *address);

/* ---- streams.c: a stream is a thread that runs tasks in order */

void enqueue(void *stream, void (*run)(void *), void *argument);
int stream_number(void *stream);

/* ---- numbers.c */

int size_of_type(int dtype);
double load(int dtype, const void *from);
void store(int dtype, void *to, double value);
bool is_whole(int dtype);

/* ---- rounding.c: other roundings, and wrong kernels */

void begin_rounding(const char *name, int wrong);
bool sums_are_turned(void);
/* Rounds what enters a product of matrices to 11 bits, as HF32 does, where that is wanted. */
void round_products(int dtype, double *numbers, int64_t count);
/* Returns what is stored in place of a kernel's results, to be freed; NULL where these are stored. */
double *other_results(int dtype, const double *numbers, int64_t count);

/* ---- handles.c: aclTensor, aclScalar and the like */

enum { MAX_RANK = 16 };
typedef struct Tensor {
  int users, rank, dtype;
  int64_t shape[MAX_RANK], stride[MAX_RANK], offset; /* in elements */
  char *address;
} Tensor;
typedef struct { int dtype; double value; } Scalar;
typedef struct { uint64_t count; int64_t item[]; } IntArray;
typedef struct { uint64_t count; double item[]; } FloatArray;
typedef struct { int users; uint64_t count; Tensor *item[]; } TensorList;

Tensor *new_tensor(void);
Tensor *copy_of(const Tensor *tensor);
void release(Tensor *tensor);
bool is_tensor(const void *address);
bool is_tensor_list(const void *address);
void set_dense(Tensor *tensor);

/* ---- operators.c: what runs on a stream, and by whose name */

enum { MAX_ARGUMENTS = 96 };
typedef union {
  Tensor *tensor;
  Scalar *scalar;
  IntArray *integers;
  FloatArray *floats;
  TensorList *list;
  int64_t integer;
  double number;
  char *text;
} Argument;

typedef struct Attribute {
  char name[64], text[256];
  double number;
  int64_t count, item[16];
  struct Attribute *next;
} Attribute;

typedef struct Task Task;
typedef int (*Kernel)(Task *);

/* One operator that the simulator knows. A signature has a letter for each argument: t tensor, L list of tensors,
   s scalar, a array of integers, i int32, l int64, b bool, c int8, d double, f float, p pointer. Operators of the older
   kind (aclop) have none: their arguments are the inputs and then the outputs. `result` is the place of the output;
   LAST is the last tensor. */
enum { LAST = -1 };
typedef struct { const char *name, *signature; Kernel kernel; int result; } Operator;

struct Task {
  const char *name, *signature;
  Kernel kernel;
  int count, inputs, result; /* arguments; how many of them are inputs of an aclop; the place of the output */
  bool is_repeatable;
  Argument argument[MAX_ARGUMENTS];
  Attribute *attributes;
  struct Scratch *scratch;
};

const Operator *find_operator(const char *name, bool is_aclop);
void launch_task(Task *task, void *stream);
