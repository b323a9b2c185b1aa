/* HCCL for ranks on one machine: each rank writes into its own part of shared memory, all wait, each reads the others'. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "kernels.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 8, ROOT_INFO_BYTES = 4108, COLLECTIVE_FAILED = 4 };
static const uint64_t SLOT_BYTES = 256ull << 20; /* of addresses; memory is used when it is written */

/* What ranks share. They only wait for counters, so a rank that dies leaves no lock behind. */
typedef struct {
  volatile uint64_t arrived[MOST_RANKS];
  volatile uint64_t sent[MOST_RANKS][MOST_RANKS], received[MOST_RANKS][MOST_RANKS]; /* from, to */
} Shared;

typedef struct {
  char name[128];
  uint32_t size, rank;
  uint64_t meetings;
  Shared *shared;
  char *slots; /* one for each rank, then one for each pair */
} Group;

typedef enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, SCATTER, ALL_TO_ALL, SEND, RECEIVE, BARRIER } Kind;
static const char *const kind_names[] = {"HcclAllReduce", "HcclAllGather", "HcclReduceScatter", "HcclBroadcast",
                                         "HcclReduce", "HcclScatter", "HcclAlltoAllV", "HcclSend", "HcclRecv",
                                         "HcclBarrier"};
enum { SUM, PRODUCT, MAXIMUM, MINIMUM };

typedef struct {
  Kind kind;
  Group *group;
  const void *from;
  void *to;
  uint64_t count; /* of elements: those that a rank gives, or that it gets where it gets fewer */
  int dtype, operation;
  uint32_t peer; /* the root, or the other rank */
  uint64_t send_counts[MOST_RANKS], send_starts[MOST_RANKS], receive_counts[MOST_RANKS], receive_starts[MOST_RANKS];
} Collective;

/* ---- groups */

int HcclGetRootInfo(void *info) {
  static int made;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  memset(info, 0, ROOT_INFO_BYTES);
  snprintf(info, ROOT_INFO_BYTES, "/ascend_sim_%d_%ld_%d", getpid(), now.tv_nsec, made++);
  return SUCCESS;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec / 1e9;
}

/* Waits until a counter has reached a number; false where it does not in time: a rank has failed. */
static bool reached(volatile uint64_t *counter, uint64_t wanted) {
  const char *chosen = getenv("ASCEND_SIM_TIMEOUT");
  double end = seconds_now() + (chosen ? atof(chosen) : 60);
  for (int turns = 0; __atomic_load_n(counter, __ATOMIC_ACQUIRE) < wanted; turns++) {
    if (turns < 100) sched_yield();
    else if (usleep(100), seconds_now() > end) return false;
  }
  return true;
}

static bool meet(Group *group) {
  uint64_t number = ++group->meetings;
  __atomic_store_n(&group->shared->arrived[group->rank], number, __ATOMIC_RELEASE);
  for (uint32_t rank = 0; rank < group->size; rank++)
    if (!reached(&group->shared->arrived[rank], number)) return false;
  return true;
}

int HcclCommInitRootInfo(uint32_t size, const void *info, uint32_t rank, void **communicator) {
  int error = happen(COLLECTIVE, "HcclCommInitRootInfo");
  if (error || size > MOST_RANKS) return COLLECTIVE_FAILED;
  Group *group = calloc(1, sizeof *group);
  group->size = size;
  group->rank = rank;
  snprintf(group->name, sizeof group->name, "%s", (const char *)info);
  int file = shm_open(group->name, O_CREAT | O_RDWR, 0600);
  uint64_t bytes = SLOT_BYTES * (1 + size + size * size);
  if (file < 0 || ftruncate(file, bytes)) return COLLECTIVE_FAILED;
  char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (memory == MAP_FAILED) return COLLECTIVE_FAILED;
  group->shared = (Shared *)memory;
  group->slots = memory + SLOT_BYTES;
  bool all_are_here = meet(group);
  if (rank == 0 || !all_are_here) shm_unlink(group->name); /* it lives as long as somebody has mapped it */
  *communicator = group;
  note(1, "rank %u of %u is in %s", rank, size, group->name);
  return all_are_here ? SUCCESS : COLLECTIVE_FAILED;
}
int HcclCommInitRootInfoConfig(uint32_t size, const void *info, uint32_t rank, const void *config, void **communicator) {
  return HcclCommInitRootInfo(size, info, rank, communicator);
}
int HcclCommDestroy(void *communicator) { return SUCCESS; } /* a task in a queue may still use it */
int HcclGetRankId(void *communicator, uint32_t *rank) { *rank = ((Group *)communicator)->rank; return SUCCESS; }
int HcclGetRankSize(void *communicator, uint32_t *size) { *size = ((Group *)communicator)->size; return SUCCESS; }
int HcclGetCommName(void *communicator, char *name) {
  snprintf(name, 128, "%s", ((Group *)communicator)->name);
  return SUCCESS;
}
int HcclGetCommAsyncError(void *communicator, int *error) { *error = SUCCESS; return SUCCESS; }
const char *HcclGetErrorString(int error) { return error ? "simulated Ascend: a collective failed" : "no error"; }

/* ---- the work of a rank, on its stream */

static char *slot(Group *group, uint32_t rank) { return group->slots + rank * SLOT_BYTES; }
static char *pair_slot(Group *group, uint32_t from, uint32_t to) {
  return group->slots + (group->size + from * group->size + to) * SLOT_BYTES;
}

static double combined(int operation, double one, double other) {
  switch (operation) {
    case PRODUCT: return one * other;
    case MAXIMUM: return fmax(one, other);
    case MINIMUM: return fmin(one, other);
    default: return one + other;
  }
}

/* Combines a range of elements of all ranks, in the order of the ranks. */
static void combine(const Collective *wanted, uint64_t start) {
  int width = size_of_type(wanted->dtype);
  char *target = bytes_at(wanted->to);
  for (uint64_t k = 0; k < wanted->count; k++) {
    double total = load(wanted->dtype, slot(wanted->group, 0) + (start + k) * width);
    for (uint32_t rank = 1; rank < wanted->group->size; rank++)
      total = combined(wanted->operation, total, load(wanted->dtype, slot(wanted->group, rank) + (start + k) * width));
    store(wanted->dtype, target + k * width, total);
  }
}

static bool send_to_peer(const Collective *wanted, uint64_t bytes) {
  Group *group = wanted->group;
  Shared *shared = group->shared;
  uint32_t me = group->rank, peer = wanted->peer;
  if (!reached(&shared->received[me][peer], shared->sent[me][peer])) return false; /* the slot is still full */
  memcpy(pair_slot(group, me, peer), bytes_at(wanted->from), bytes);
  __atomic_add_fetch(&shared->sent[me][peer], 1, __ATOMIC_RELEASE);
  return true;
}
static bool receive_from_peer(const Collective *wanted, uint64_t bytes) {
  Group *group = wanted->group;
  Shared *shared = group->shared;
  uint32_t me = group->rank, peer = wanted->peer;
  if (!reached(&shared->sent[peer][me], shared->received[peer][me] + 1)) return false;
  memcpy(bytes_at(wanted->to), pair_slot(group, peer, me), bytes);
  __atomic_add_fetch(&shared->received[peer][me], 1, __ATOMIC_RELEASE);
  return true;
}

/* How many elements a rank shows to the others. */
static uint64_t shown(const Collective *wanted) {
  Group *group = wanted->group;
  uint64_t total = 0;
  switch (wanted->kind) {
    case REDUCE_SCATTER: return wanted->count * group->size;
    case BROADCAST: return group->rank == wanted->peer ? wanted->count : 0;
    case SCATTER: return group->rank == wanted->peer ? wanted->count * group->size : 0;
    case BARRIER: return 0;
    case ALL_TO_ALL:
      for (uint32_t rank = 0; rank < group->size; rank++) {
        uint64_t end = wanted->send_starts[rank] + wanted->send_counts[rank];
        if (end > total) total = end;
      }
      return total;
    default: return wanted->count;
  }
}

static void take(const Collective *wanted) {
  Group *group = wanted->group;
  int width = size_of_type(wanted->dtype);
  uint64_t bytes = wanted->count * width;
  char *target = bytes_at(wanted->to);
  switch (wanted->kind) {
    case ALL_REDUCE: combine(wanted, 0); break;
    case REDUCE:
      if (group->rank == wanted->peer) combine(wanted, 0);
      break;
    case REDUCE_SCATTER: combine(wanted, group->rank * wanted->count); break;
    case ALL_GATHER:
      for (uint32_t rank = 0; rank < group->size; rank++) memcpy(target + rank * bytes, slot(group, rank), bytes);
      break;
    case BROADCAST: memcpy(target, slot(group, wanted->peer), bytes); break;
    case SCATTER: memcpy(target, slot(group, wanted->peer) + group->rank * bytes, bytes); break;
    default: break;
  }
}

/* The counts of AllToAll are shown behind the elements, so that every rank finds its part. */
static void show_counts(const Collective *wanted) {
  uint64_t *behind = (uint64_t *)(slot(wanted->group, wanted->group->rank) + SLOT_BYTES / 2);
  memcpy(behind, wanted->send_starts, sizeof wanted->send_starts);
}
static void take_from_all(const Collective *wanted) {
  Group *group = wanted->group;
  int width = size_of_type(wanted->dtype);
  for (uint32_t rank = 0; rank < group->size; rank++) {
    uint64_t start = ((uint64_t *)(slot(group, rank) + SLOT_BYTES / 2))[group->rank];
    memcpy(bytes_at(wanted->to) + wanted->receive_starts[rank] * width, slot(group, rank) + start * width,
           wanted->receive_counts[rank] * width);
  }
}

static void run(void *argument) {
  Collective *wanted = argument;
  const char *name = kind_names[wanted->kind];
  uint64_t bytes = wanted->count * size_of_type(wanted->dtype);
  bool is_done = !happen(RUN, name) && !device_is_broken();
  if (is_done && wanted->kind == SEND) is_done = send_to_peer(wanted, bytes);
  else if (is_done && wanted->kind == RECEIVE) is_done = receive_from_peer(wanted, bytes);
  else if (is_done) {
    uint64_t given = shown(wanted) * size_of_type(wanted->dtype);
    if (given) memcpy(slot(wanted->group, wanted->group->rank), bytes_at(wanted->from), given);
    if (wanted->kind == ALL_TO_ALL) show_counts(wanted);
    is_done = meet(wanted->group);
    if (is_done && wanted->kind == ALL_TO_ALL) take_from_all(wanted);
    else if (is_done) take(wanted);
    is_done = is_done && meet(wanted->group); /* nobody writes the next one before all have read */
  }
  if (!is_done) break_device(TASK_FAILED, name);
  free(wanted);
}

static int to_dtype(int hccl) {
  static const int dtypes[] = {INT8, INT16, INT32, FLOAT16, FLOAT32, INT64, UINT64, UINT8, UINT16, UINT32, FLOAT64, BFLOAT16};
  return hccl >= 0 && hccl < 12 ? dtypes[hccl] : INT8;
}

static int launch(Collective wanted, int hccl_dtype, void *communicator, void *stream) {
  int error = happen(COLLECTIVE, kind_names[wanted.kind]);
  record("collective %d %s", stream_number(stream), kind_names[wanted.kind]);
  if (error) return COLLECTIVE_FAILED;
  wanted.group = communicator;
  wanted.dtype = to_dtype(hccl_dtype);
  if (shown(&wanted) * size_of_type(wanted.dtype) > SLOT_BYTES / 2) return COLLECTIVE_FAILED;
  Collective *kept = malloc(sizeof *kept);
  *kept = wanted;
  enqueue(stream, run, kept);
  return SUCCESS;
}

/* ---- HCCL's functions */

int HcclAllReduce(void *from, void *to, uint64_t count, int dtype, int operation, void *group, void *stream) {
  return launch((Collective){ALL_REDUCE, .from = from, .to = to, .count = count, .operation = operation}, dtype, group, stream);
}
int HcclReduce(void *from, void *to, uint64_t count, int dtype, int operation, uint32_t root, void *group, void *stream) {
  return launch((Collective){REDUCE, .from = from, .to = to, .count = count, .operation = operation, .peer = root}, dtype,
                group, stream);
}
int HcclReduceScatter(void *from, void *to, uint64_t count, int dtype, int operation, void *group, void *stream) {
  return launch((Collective){REDUCE_SCATTER, .from = from, .to = to, .count = count, .operation = operation}, dtype, group,
                stream);
}
int HcclAllGather(void *from, void *to, uint64_t count, int dtype, void *group, void *stream) {
  return launch((Collective){ALL_GATHER, .from = from, .to = to, .count = count}, dtype, group, stream);
}
int HcclBroadcast(void *both, uint64_t count, int dtype, uint32_t root, void *group, void *stream) {
  return launch((Collective){BROADCAST, .from = both, .to = both, .count = count, .peer = root}, dtype, group, stream);
}
int HcclScatter(void *from, void *to, uint64_t count, int dtype, uint32_t root, void *group, void *stream) {
  return launch((Collective){SCATTER, .from = from, .to = to, .count = count, .peer = root}, dtype, group, stream);
}
int HcclSend(void *from, uint64_t count, int dtype, uint32_t peer, void *group, void *stream) {
  return launch((Collective){SEND, .from = from, .count = count, .peer = peer}, dtype, group, stream);
}
int HcclRecv(void *to, uint64_t count, int dtype, uint32_t peer, void *group, void *stream) {
  return launch((Collective){RECEIVE, .to = to, .count = count, .peer = peer}, dtype, group, stream);
}
int HcclBarrier(void *group, void *stream) {
  return launch((Collective){BARRIER}, 0, group, stream);
}

typedef struct { int is_receive; void *buffer; uint64_t count; int dtype; uint32_t peer; } SendOrReceive;
int HcclBatchSendRecv(SendOrReceive *items, uint32_t count, void *group, void *stream) {
  int error = SUCCESS;
  for (int receives = 0; receives < 2; receives++) /* sends first: nobody waits for a peer that waits */
    for (SendOrReceive *item = items; item < items + count && !error; item++)
      if (item->is_receive == receives)
        error = receives ? HcclRecv(item->buffer, item->count, item->dtype, item->peer, group, stream)
                         : HcclSend(item->buffer, item->count, item->dtype, item->peer, group, stream);
  return error;
}

int HcclAlltoAllV(const void *from, const void *send_counts, const void *send_starts, int send_dtype, const void *to,
                  const void *receive_counts, const void *receive_starts, int dtype, void *group, void *stream) {
  Collective wanted = {ALL_TO_ALL, .group = group, .from = from, .to = (void *)to};
  uint64_t bytes = ((Group *)group)->size * sizeof(uint64_t);
  memcpy(wanted.send_counts, send_counts, bytes);
  memcpy(wanted.send_starts, send_starts, bytes);
  memcpy(wanted.receive_counts, receive_counts, bytes);
  memcpy(wanted.receive_starts, receive_starts, bytes);
  return launch(wanted, dtype, group, stream);
}
int HcclAlltoAll(const void *from, uint64_t send_count, int send_dtype, const void *to, uint64_t count, int dtype,
                 void *group, void *stream) {
  uint64_t counts[MOST_RANKS], starts[MOST_RANKS];
  for (uint32_t rank = 0; rank < MOST_RANKS; rank++) counts[rank] = count, starts[rank] = rank * count;
  return HcclAlltoAllV(from, counts, starts, send_dtype, to, counts, starts, dtype, group, stream);
}
