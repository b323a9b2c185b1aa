/* acltdt: the queue from the device to the host, which TensorDump, Print and Summary use. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "kernels.h"
#include <time.h>

enum { MOST_QUEUES = 32, MOST_ITEMS = 64 };
typedef struct { int kind, dtype; size_t rank, size; int64_t shape[MAX_RANK]; void *bytes; } Item;
typedef struct DataSet { size_t count; Item *item[MOST_ITEMS]; char name[256]; struct DataSet *next; } DataSet;
typedef struct {
  char name[128];
  pthread_mutex_t lock;
  pthread_cond_t changed;
  DataSet *first, **end;
  size_t count;
  bool is_stopped;
} Queue;

static Queue *queues[MOST_QUEUES];
static int queue_count;

Queue *acltdtCreateChannelWithCapacity(uint32_t device, const char *name, size_t capacity) {
  Queue *made = calloc(1, sizeof *made);
  snprintf(made->name, sizeof made->name, "%s", name);
  pthread_mutex_init(&made->lock, NULL);
  pthread_cond_init(&made->changed, NULL);
  made->end = &made->first;
  if (queue_count < MOST_QUEUES) queues[queue_count++] = made;
  return made;
}
Queue *acltdtCreateChannel(uint32_t device, const char *name) { return acltdtCreateChannelWithCapacity(device, name, 0); }
int acltdtStopChannel(Queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->is_stopped = true;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  return SUCCESS;
}
int acltdtDestroyChannel(Queue *queue) { return acltdtStopChannel(queue); }
int acltdtQueryChannelSize(Queue *queue, size_t *count) { *count = queue->count; return SUCCESS; }

DataSet *acltdtCreateDataset(void) { return calloc(1, sizeof(DataSet)); }
int acltdtDestroyDataset(DataSet *set) { free(set); return SUCCESS; }
int acltdtAddDataItem(DataSet *set, Item *item) { set->item[set->count++] = item; return SUCCESS; }
Item *acltdtGetDataItem(const DataSet *set, size_t k) { return k < set->count ? set->item[k] : NULL; }
size_t acltdtGetDatasetSize(const DataSet *set) { return set->count; }
const char *acltdtGetDatasetName(const DataSet *set) { return set->name; }

Item *acltdtCreateDataItem(int kind, const int64_t *shape, size_t rank, int dtype, void *bytes, size_t size) {
  Item *made = calloc(1, sizeof *made);
  *made = (Item){.kind = kind, .dtype = dtype, .rank = rank, .size = size, .bytes = malloc(size + 1)};
  memcpy(made->shape, shape, rank * sizeof *shape);
  memcpy(made->bytes, bytes, size);
  return made;
}
int acltdtDestroyDataItem(Item *item) {
  free(item->bytes);
  free(item);
  return SUCCESS;
}
void *acltdtGetDataAddrFromItem(Item *item) { return item->bytes; }
size_t acltdtGetDataSizeFromItem(Item *item) { return item->size; }
int acltdtGetDataTypeFromItem(Item *item) { return item->dtype; }
size_t acltdtGetDimNumFromItem(Item *item) { return item->rank; }
int acltdtGetTensorTypeFromItem(Item *item) { return item->kind; }
int acltdtGetDimsFromItem(Item *item, int64_t *shape, size_t room) {
  memcpy(shape, item->shape, sizeof *shape * (item->rank < room ? item->rank : room));
  return SUCCESS;
}
int acltdtGetSliceInfoFromItem(Item *item, size_t *count, size_t *number) { *count = 1; *number = 0; return SUCCESS; }

int acltdtSendTensor(Queue *queue, DataSet *set, int milliseconds) {
  DataSet *kept = malloc(sizeof *kept);
  *kept = *set;
  kept->next = NULL;
  pthread_mutex_lock(&queue->lock);
  *queue->end = kept;
  queue->end = &kept->next;
  queue->count++;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  return SUCCESS;
}

int acltdtReceiveTensor(Queue *queue, DataSet *set, int milliseconds) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  int64_t nanoseconds = end.tv_nsec + (milliseconds < 0 ? 1000 : milliseconds) * 1000000ll;
  end.tv_sec += nanoseconds / 1000000000;
  end.tv_nsec = nanoseconds % 1000000000;
  pthread_mutex_lock(&queue->lock);
  while (!queue->first && !queue->is_stopped)
    if (pthread_cond_timedwait(&queue->changed, &queue->lock, &end)) break;
  DataSet *found = queue->first;
  if (found) {
    queue->first = found->next;
    if (!queue->first) queue->end = &queue->first;
    queue->count--;
  }
  pthread_mutex_unlock(&queue->lock);
  if (!found) return QUEUE_EMPTY;
  *set = *found;
  free(found);
  return SUCCESS;
}

/* The operator that sends. Its last input is the name; all before it are tensors. */
static int send(Task *task) {
  const Attribute *wanted = attribute(task, "channel_name");
  Queue *queue = NULL;
  for (int k = 0; k < queue_count; k++)
    if (!strcmp(queues[k]->name, wanted ? wanted->text : "ms_tensor_dump")) queue = queues[k];
  if (!queue) return INVALID_ARGUMENT;
  DataSet set = {.count = 0};
  const Tensor *name = tensor(task, task->inputs - 1);
  if (name->address) { /* a text of the device: an offset, a length, then its bytes */
    const int64_t *head = (int64_t *)bytes_at(name->address);
    int length = head[1] > 0 && head[1] < 255 ? head[1] : 255;
    snprintf(set.name, sizeof set.name, "%.*s", length, (const char *)(head + 2));
  }
  for (int k = 0; k < task->inputs - 1 && k < MOST_ITEMS; k++) {
    const Tensor *one = tensor(task, k);
    int64_t size = elements(one) * size_of_type(one->dtype);
    set.item[set.count++] =
        acltdtCreateDataItem(0, one->shape, one->rank, one->dtype, bytes_at(one->address), size);
  }
  return acltdtSendTensor(queue, &set, 0);
}

const Operator queue_aclops[] = {{"OutfeedEnqueueOpV2", "", send, 0}, {"OutfeedEnqueueOp", "", send, 0}, END};
