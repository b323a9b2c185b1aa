/* The memory of the device: addresses that the host may not touch, in front of a file in memory that it may. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "simulator.h"
#include <sys/mman.h>
#include <unistd.h>

static const uint64_t DEVICE_BYTES = 64ull << 30; /* of addresses; memory is used when it is written */
static const uint64_t ALIGNMENT = 512, LARGE_ALIGNMENT = 2 << 20;

typedef struct Block { uint64_t start, size; struct Block *next; } Block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *device_base, *bytes_base;
static uint64_t used, held, most_held;
static Block *in_use, *free_blocks;

static void open_memory(void) {
  if (device_base) return;
  int file = memfd_create("simulated device memory", 0);
  if (file < 0 || ftruncate(file, DEVICE_BYTES)) abort();
  bytes_base = mmap(0, DEVICE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  device_base = mmap(0, DEVICE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes_base == MAP_FAILED || device_base == MAP_FAILED) abort();
}

bool is_on_device(const void *address) {
  const char *place = address;
  return device_base && place >= device_base && place < device_base + DEVICE_BYTES;
}

char *bytes_at(const void *address) {
  return is_on_device(address) ? bytes_base + ((char *)address - device_base) : (char *)address;
}

static uint64_t rounded(uint64_t size, uint64_t unit) { return (size + unit - 1) / unit * unit; }

static void *allocate(uint64_t size) {
  size = size ? rounded(size, ALIGNMENT) : ALIGNMENT;
  pthread_mutex_lock(&lock);
  open_memory();
  Block **place = &free_blocks;
  while (*place && (*place)->size != size) place = &(*place)->next;
  Block *block = *place;
  if (block) {
    *place = block->next;
  } else {
    block = malloc(sizeof *block);
    *block = (Block){.start = used, .size = size};
    used += size;
  }
  block->next = in_use;
  in_use = block;
  held += size;
  if (held > most_held) most_held = held;
  void *found = used <= DEVICE_BYTES ? device_base + block->start : NULL;
  pthread_mutex_unlock(&lock);
  return found;
}

int aclrtMalloc(void **address, size_t size, int policy) {
  int error = happen(ALLOCATE, "aclrtMalloc");
  record("allocate %zu", size);
  *address = error ? NULL : allocate(size);
  return *address ? SUCCESS : OUT_OF_MEMORY;
}
int aclrtMallocAlign32(void **address, size_t size, int policy) { return aclrtMalloc(address, size, policy); }
int aclrtMallocCached(void **address, size_t size, int policy) { return aclrtMalloc(address, size, policy); }

int aclrtFree(void *address) {
  pthread_mutex_lock(&lock);
  for (Block **place = &in_use; *place; place = &(*place)->next) {
    Block *block = *place;
    if (device_base + block->start != (char *)address) continue;
    *place = block->next;
    block->next = free_blocks;
    free_blocks = block;
    held -= block->size;
    madvise(bytes_base + block->start, block->size, MADV_REMOVE);
    break;
  }
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

int aclrtMallocHost(void **address, size_t size) {
  *address = aligned_alloc(64, rounded(size + 1, 64));
  return *address ? SUCCESS : OUT_OF_MEMORY;
}
int aclrtFreeHost(void *address) { free(address); return SUCCESS; }

/* Virtual memory: addresses are reserved at once; all of them have memory behind them, so mapping does nothing. */
int aclrtReserveMemAddress(void **address, size_t size, size_t alignment, void *wanted, uint64_t flags) {
  pthread_mutex_lock(&lock);
  open_memory();
  uint64_t start = rounded(used, LARGE_ALIGNMENT);
  bool fits = start + size <= DEVICE_BYTES;
  if (fits) {
    *address = device_base + start;
    used = start + size;
  }
  pthread_mutex_unlock(&lock);
  return fits ? SUCCESS : OUT_OF_MEMORY;
}
int aclrtReleaseMemAddress(void *address) { return SUCCESS; }
int aclrtMallocPhysical(void **handle, size_t size, const void *properties, uint64_t flags) {
  int error = happen(ALLOCATE, "aclrtMallocPhysical");
  record("allocate %zu", size);
  if (error) return OUT_OF_MEMORY;
  uint64_t *made = malloc(sizeof *made);
  *made = size;
  *handle = made;
  pthread_mutex_lock(&lock);
  held += size;
  if (held > most_held) most_held = held;
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}
int aclrtFreePhysical(void *handle) {
  pthread_mutex_lock(&lock);
  held -= *(uint64_t *)handle;
  pthread_mutex_unlock(&lock);
  free(handle);
  return SUCCESS;
}
int aclrtMapMem(void *address, size_t size, size_t offset, void *handle, uint64_t flags) { return SUCCESS; }
int aclrtUnmapMem(void *address) { return SUCCESS; }
int aclrtGetMemInfo(int kind, size_t *idle, size_t *total) {
  *total = 8ull << 30;
  *idle = *total - (held < *total ? held : *total);
  return SUCCESS;
}
int halHostRegister(void *host, uint64_t size, unsigned flags, unsigned device, void **address) {
  *address = host;
  return SUCCESS;
}
int halHostUnregister(void *host, unsigned device) { return SUCCESS; }
void *aclrtAllocatorCreateDesc(void) { return calloc(1, 64); }

/* For tests, by ctypes. */
uint64_t sim_bytes_held(void) { return held; }
