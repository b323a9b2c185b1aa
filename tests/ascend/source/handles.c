/* aclTensor, aclScalar, arrays and lists: what MindSpore describes its arguments with. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "simulator.h"
#include <sys/mman.h>

/* Tensors lie in one range of addresses, so that an argument can be recognised as one. */
enum { MOST_TENSORS = 1 << 20, MOST_LISTS = 1 << 16 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Tensor *tensors, *unused;
static int taken;

static void open_range(void) {
  tensors = mmap(0, MOST_TENSORS * sizeof(Tensor), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

Tensor *new_tensor(void) {
  pthread_mutex_lock(&lock);
  if (!tensors) open_range();
  Tensor *tensor = unused;
  if (tensor) memcpy(&unused, &tensor->address, sizeof unused);
  else if (taken < MOST_TENSORS) tensor = tensors + taken++;
  else abort();
  pthread_mutex_unlock(&lock);
  memset(tensor, 0, sizeof *tensor);
  tensor->users = 1;
  return tensor;
}

Tensor *copy_of(const Tensor *tensor) {
  if (!tensor) return NULL;
  Tensor *copy = new_tensor();
  *copy = *tensor;
  copy->users = 1;
  return copy;
}

void release(Tensor *tensor) {
  if (!tensor || __sync_sub_and_fetch(&tensor->users, 1)) return;
  pthread_mutex_lock(&lock);
  memcpy(&tensor->address, &unused, sizeof unused);
  unused = tensor;
  pthread_mutex_unlock(&lock);
}

bool is_tensor(const void *address) {
  const Tensor *tensor = address;
  return tensors && tensor >= tensors && tensor < tensors + taken &&
         ((const char *)address - (const char *)tensors) % sizeof(Tensor) == 0 && tensor->users > 0;
}

void set_dense(Tensor *tensor) {
  int64_t step = 1;
  for (int axis = tensor->rank - 1; axis >= 0; axis--) {
    tensor->stride[axis] = step;
    step *= tensor->shape[axis];
  }
}

Tensor *aclCreateTensor(const int64_t *shape, uint64_t rank, int dtype, const int64_t *stride, int64_t offset,
                        int format, const int64_t *storage, uint64_t storage_rank, void *address) {
  Tensor *tensor = new_tensor();
  tensor->rank = rank;
  tensor->dtype = dtype;
  tensor->offset = offset;
  tensor->address = address;
  memcpy(tensor->shape, shape, rank * sizeof *shape);
  if (stride) memcpy(tensor->stride, stride, rank * sizeof *stride);
  else set_dense(tensor);
  return tensor;
}
int aclDestroyTensor(Tensor *tensor) { release(tensor); return SUCCESS; }

int aclGetViewShape(const Tensor *tensor, int64_t **shape, uint64_t *rank) {
  *rank = tensor->rank;
  *shape = malloc((tensor->rank + 1) * sizeof **shape);
  memcpy(*shape, tensor->shape, tensor->rank * sizeof **shape);
  return SUCCESS;
}

Scalar *aclCreateScalar(void *value, int dtype) {
  Scalar *scalar = malloc(sizeof *scalar);
  *scalar = (Scalar){dtype, load(dtype, value)};
  return scalar;
}
int aclDestroyScalar(Scalar *scalar) { return SUCCESS; } /* it stays: a task in a queue may still read it */

#define ARRAY(Type, Item)                                          \
  Type *made = malloc(sizeof *made + count * sizeof *made->item);  \
  made->count = count;                                             \
  for (uint64_t k = 0; k < count; k++) made->item[k] = items[k];   \
  return made;
IntArray *aclCreateIntArray(const int64_t *items, uint64_t count) { ARRAY(IntArray, int64_t) }
IntArray *aclCreateBoolArray(const bool *items, uint64_t count) { ARRAY(IntArray, int64_t) }
FloatArray *aclCreateFloatArray(const float *items, uint64_t count) { ARRAY(FloatArray, double) }
int aclDestroyIntArray(IntArray *array) { return SUCCESS; }
int aclDestroyBoolArray(IntArray *array) { return SUCCESS; }
int aclDestroyFloatArray(FloatArray *array) { return SUCCESS; }

/* The newest lists are remembered, so that an argument can be recognised as one. */
static TensorList *lists[MOST_LISTS];
static unsigned list_count;

TensorList *aclCreateTensorList(Tensor *const *items, uint64_t count) {
  TensorList *list = malloc(sizeof *list + count * sizeof *items);
  list->users = 1;
  list->count = count;
  memcpy(list->item, items, count * sizeof *items);
  lists[__sync_fetch_and_add(&list_count, 1) % MOST_LISTS] = list;
  return list;
}
int aclDestroyTensorList(TensorList *list) {
  if (!list) return SUCCESS;
  for (uint64_t k = 0; k < list->count; k++) release(list->item[k]);
  free(list);
  return SUCCESS;
}
bool is_tensor_list(const void *address) {
  for (unsigned back = 1; back <= 64 && back <= list_count; back++)
    if (lists[(list_count - back) % MOST_LISTS] == address) return true;
  return false;
}

/* A repeatable executor gets new addresses instead of new tensors. */
int aclSetAclOpExecutorRepeatable(Task *task) { task->is_repeatable = true; return SUCCESS; }
int aclDestroyAclOpExecutor(Task *task) { return SUCCESS; }
int aclSetTensorAddr(Task *task, size_t place, Tensor *tensor, void *address) {
  tensor->address = address;
  return SUCCESS;
}
int aclSetDynamicTensorAddr(Task *task, size_t place, size_t item, TensorList *list, void *address) {
  list->item[item]->address = address;
  return SUCCESS;
}
