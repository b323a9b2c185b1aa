/* The registry of operators: from a call of MindSpore to a task on a stream. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#define TABLES(TABLE)                                                                                             \
  TABLE(elementwise) TABLE(reduction) TABLE(matmul) TABLE(convolution) TABLE(pooling) TABLE(normalization)         \
  TABLE(shape) TABLE(index) TABLE(loss) TABLE(random) TABLE(optimizer)
#define DECLARE(family) extern const Operator family##_operators[], family##_aclops[];
TABLES(DECLARE)
extern const Operator queue_aclops[], filled_operators[];

static const Operator *search(const Operator *table, const char *name) {
  for (; table->name; table++)
    if (!strcmp(table->name, name)) return table;
  return NULL;
}

const Operator *find_operator(const char *name, bool is_aclop) {
  const Operator *found = is_aclop ? search(queue_aclops, name) : NULL;
#define SEARCH(family) \
  if (!found) found = search(is_aclop ? family##_aclops : family##_operators, name);
  TABLES(SEARCH)
  return found;
}

static bool fills_unknown(void) {
  const char *chosen = getenv("ASCEND_SIM_UNKNOWN");
  return chosen && !strcmp(chosen, "fill");
}

/* ---- scratch memory of a running task */

struct Scratch { struct Scratch *next; };

void *scratch(Task *task, int64_t bytes) {
  struct Scratch *made = calloc(1, sizeof *made + bytes + 16);
  made->next = task->scratch;
  task->scratch = made;
  return made + 1;
}

/* ---- a task on a stream. Its arguments are copies: MindSpore destroys its own after the launch. */

static void run_task(void *argument) {
  Task *task = argument;
  int error = happen(RUN, task->name);
  begin_rounding(task->name, wrong_by());
  if (!device_is_broken()) {
    int refused = error ? SUCCESS : task->kernel(task);
    if (refused && fills_unknown()) { /* shapes or numbers that the kernel does not know */
      task->inputs = task->result;
      refused = fill_outputs(task);
    }
    if (error || refused) break_device(error ? error : refused, task->name);
  }
  for (struct Scratch *next; task->scratch; task->scratch = next) {
    next = task->scratch->next;
    free(task->scratch);
  }
  for (int k = 0; k < task->count; k++) {
    if (task->signature[k] == 't') release(task->argument[k].tensor);
    if (task->signature[k] == 'L') aclDestroyTensorList(task->argument[k].list);
  }
  free(task);
}

static TensorList *copy_of_list(const TensorList *list) {
  if (!list) return NULL;
  TensorList *copy = malloc(sizeof *copy + list->count * sizeof *list->item);
  *copy = *list;
  for (uint64_t k = 0; k < list->count; k++) copy->item[k] = copy_of(list->item[k]);
  return copy;
}

void launch_task(Task *task, void *stream) {
  Task *copy = malloc(sizeof *copy);
  *copy = *task;
  for (int k = 0; k < copy->count; k++) {
    if (copy->signature[k] == 't') copy->argument[k].tensor = copy_of(copy->argument[k].tensor);
    if (copy->signature[k] == 'L') copy->argument[k].list = copy_of_list(copy->argument[k].list);
  }
  enqueue(stream, run_task, copy);
}

/* ---- aclnn: GetWorkspaceSize makes an executor, here a task; the second call launches it */

/* Returns the place after the last argument: there are the addresses of two variables of the caller. */
static int end_of_arguments(const int64_t *whole) {
  int64_t here = (int64_t)&whole, top = here + (1 << 20);
  for (int k = 1; k < 39; k++) {
    int64_t size = whole[k], executor = whole[k + 1];
    bool on_stack = size > here && executor > here && size < top && executor < top;
    if (on_stack && size != executor && labs(size - executor) < 512) return k;
  }
  return -1;
}

/* An operator without a loop, where a test wants every operator to run: its last tensors get fixed values. */
static int prepare_fill(const char *name, const int64_t *whole) {
  int end = end_of_arguments(whole), first = end;
  if (end < 0) return NOT_SIMULATED;
  while (first > 0 && (is_tensor((void *)whole[first - 1]) || is_tensor_list((void *)whole[first - 1]))) first--;
  bool is_inplace = !strncmp(name, "aclnnInplace", 12);
  if (first == 0 && end > 1) first = end - 1; /* no operator begins with an output: those before it are inputs */
  if (is_inplace || first == end) first = 0, end = 1;
  Task *task = calloc(1, sizeof *task);
  char *signature = calloc(1, MAX_ARGUMENTS);
  for (int k = first; k < end && task->count < 20; k++) {
    bool is_list = is_tensor_list((void *)whole[k]);
    if (!is_list && !is_tensor((void *)whole[k])) continue;
    signature[task->count] = is_list ? 'L' : 't';
    task->argument[task->count++].integer = whole[k];
  }
  task->name = name;
  task->signature = signature;
  task->kernel = is_inplace ? halve_in_place : fill_outputs;
  *(uint64_t *)whole[is_inplace || first == 0 ? end_of_arguments(whole) : end] = 0;
  *(Task **)whole[end_of_arguments(whole) + 1] = task;
  return SUCCESS;
}

/* The generated entry points come here with the integers and the floats of their arguments, as the registers and the
   stack have them: they are read by the operator's signature. */
int sim_prepare(const char *name, const int64_t *whole, const double *floats) {
  int error = happen(PREPARE, name);
  if (error) return error;
  const Operator *known = find_operator(name, false);
  if (!known) {
    record("unknown %s", name);
    if (fills_unknown()) known = search(filled_operators, name);
  }
  if (!known) {
    if (fills_unknown()) return prepare_fill(name, whole);
    note(0, "%s is not simulated: tests/ascend/README.md tells how to add an operator", name);
    return NOT_SIMULATED;
  }
  Task *task = calloc(1, sizeof *task);
  task->name = known->name;
  task->signature = known->signature;
  task->kernel = known->kernel;
  task->count = strlen(known->signature);
  task->result = known->result == LAST ? task->count - 1 : known->result;
  for (int k = 0; k < task->count; k++) {
    Argument *argument = task->argument + k;
    switch (known->signature[k]) {
      case 'b': argument->integer = (uint8_t)*whole++; break;
      case 'c': argument->integer = (int8_t)*whole++; break;
      case 'i': argument->integer = (int32_t)*whole++; break;
      case 'd': argument->number = *floats++; break;
      case 'f': {
        float single;
        memcpy(&single, floats++, sizeof single);
        argument->number = single;
        break;
      }
      default: argument->integer = *whole++;
    }
  }
  *(uint64_t *)whole[0] = 0; /* no workspace */
  *(Task **)whole[1] = task;
  return SUCCESS;
}

int sim_launch(const char *name, Task *task, void *stream) {
  int error = happen(LAUNCH, name);
  record("launch %d %s", stream_number(stream), name);
  if (error) return error;
  launch_task(task, stream);
  if (!task->is_repeatable) free(task);
  return SUCCESS;
}

/* ---- aclop, the older kind: an operator by its name, with descriptions and buffers of tensors, and attributes */

typedef struct { Tensor tensor; char *constant; } Description;
typedef struct { void *address; size_t size; } Buffer;
typedef struct { Attribute *first; } Attributes;

Description *aclCreateTensorDesc(int dtype, int rank, const int64_t *shape, int format) {
  Description *made = calloc(1, sizeof *made);
  made->tensor.dtype = dtype;
  made->tensor.rank = rank;
  memcpy(made->tensor.shape, shape, rank * sizeof *shape);
  set_dense(&made->tensor);
  return made;
}
int aclDestroyTensorDesc(Description *description) { free(description); return SUCCESS; }
int aclSetTensorDescName(Description *description, const char *name) { return SUCCESS; }
int aclSetTensorFormat(Description *description, int format) { return SUCCESS; }
int aclSetTensorShape(Description *description, int rank, const int64_t *shape) { return SUCCESS; }
int aclSetTensorPlaceMent(Description *description, int place) { return SUCCESS; }
int aclSetTensorConst(Description *description, void *bytes, size_t size) {
  description->constant = malloc(size + 1);
  memcpy(description->constant, bytes_at(bytes), size);
  return SUCCESS;
}
size_t aclGetTensorDescNumDims(Description *description) { return description->tensor.rank; }
int64_t aclGetTensorDescDim(Description *description, size_t axis) { return description->tensor.shape[axis]; }
int aclGetTensorDescDimV2(Description *description, size_t axis, int64_t *size) {
  *size = description->tensor.shape[axis];
  return SUCCESS;
}
size_t aclGetTensorDescSize(Description *description) {
  return elements(&description->tensor) * size_of_type(description->tensor.dtype);
}

Buffer *aclCreateDataBuffer(void *address, size_t size) {
  Buffer *made = malloc(sizeof *made);
  *made = (Buffer){address, size};
  return made;
}
int aclDestroyDataBuffer(Buffer *buffer) { free(buffer); return SUCCESS; }
void *aclGetDataBufferAddr(Buffer *buffer) { return buffer->address; }
int aclUpdateDataBuffer(Buffer *buffer, void *address, size_t size) {
  *buffer = (Buffer){address, size};
  return SUCCESS;
}

Attributes *aclopCreateAttr(void) { return calloc(1, sizeof(Attributes)); }
void aclopDestroyAttr(Attributes *attributes) {} /* they stay: a task in a queue may still read them */

static Attribute *added(Attributes *attributes, const char *name) {
  Attribute *made = calloc(1, sizeof *made);
  snprintf(made->name, sizeof made->name, "%s", name);
  made->next = attributes->first;
  attributes->first = made;
  return made;
}
int aclopSetAttrBool(Attributes *to, const char *name, uint8_t value) { added(to, name)->number = value; return SUCCESS; }
int aclopSetAttrInt(Attributes *to, const char *name, int64_t value) { added(to, name)->number = value; return SUCCESS; }
int aclopSetAttrFloat(Attributes *to, const char *name, float value) { added(to, name)->number = value; return SUCCESS; }
int aclopSetAttrDataType(Attributes *to, const char *name, int value) { added(to, name)->number = value; return SUCCESS; }
int aclopSetAttrString(Attributes *to, const char *name, const char *value) {
  snprintf(added(to, name)->text, 256, "%s", value);
  return SUCCESS;
}
int aclopSetAttrListInt(Attributes *to, const char *name, int count, const int64_t *items) {
  Attribute *made = added(to, name);
  made->count = count < 16 ? count : 16;
  memcpy(made->item, items, made->count * sizeof *items);
  return SUCCESS;
}

const Attribute *attribute(const Task *task, const char *name) {
  for (const Attribute *found = task->attributes; found; found = found->next)
    if (!strcmp(found->name, name)) return found;
  return NULL;
}
double attribute_number(const Task *task, const char *name, double otherwise) {
  const Attribute *found = attribute(task, name);
  return found ? found->number : otherwise;
}

static Tensor *of_description(const Description *description, const Buffer *buffer) {
  Tensor *tensor = copy_of(&description->tensor);
  tensor->address = buffer && buffer->address ? buffer->address : description->constant;
  return tensor;
}

int aclopCompileAndExecuteV2(const char *name, int inputs, Description *in[], Buffer *in_buffer[], int outputs,
                             Description *out[], Buffer *out_buffer[], Attributes *attributes, int engine, int flag,
                             const char *path, void *stream) {
  int error = happen(LAUNCH, name);
  record("launch %d %s", stream_number(stream), name);
  if (error) return error;
  const Operator *known = find_operator(name, true);
  if (!known) {
    record("unknown %s", name);
    note(fills_unknown() ? 1 : 0, "the aclop %s is not simulated", name);
    if (!fills_unknown()) return NOT_SIMULATED;
  }
  static const char all_tensors[MAX_ARGUMENTS + 1] =
      "tttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt";
  Task *task = calloc(1, sizeof *task);
  task->name = known ? known->name : "an aclop without a loop";
  task->kernel = known ? known->kernel : fill_outputs;
  task->signature = all_tensors;
  task->count = inputs + outputs;
  task->inputs = inputs;
  task->result = inputs;
  task->attributes = attributes ? attributes->first : NULL;
  for (int k = 0; k < inputs; k++) task->argument[k].tensor = of_description(in[k], in_buffer[k]);
  for (int k = 0; k < outputs; k++) task->argument[inputs + k].tensor = of_description(out[k], out_buffer[k]);
  enqueue(stream, run_task, task);
  return SUCCESS;
}
int aclopCompileAndExecute(const char *name, int inputs, Description *in[], Buffer *in_buffer[], int outputs,
                           Description *out[], Buffer *out_buffer[], Attributes *attributes, int engine, int flag,
                           const char *path, void *stream) {
  return aclopCompileAndExecuteV2(name, inputs, in, in_buffer, outputs, out, out_buffer, attributes, engine, flag,
                                  path, stream);
}
