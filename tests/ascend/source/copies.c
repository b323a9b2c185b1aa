/* Copies between host and device, and fills. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "simulator.h"

static const char *const directions[] = {"host to host", "host to device", "device to host", "device to device"};

typedef struct { void *to; const void *from; size_t size; int value; } Transfer; /* no `from`: a fill */

static const char *direction(const void *to, const void *from) {
  return directions[2 * is_on_device(from) + is_on_device(to)];
}

static void transfer(void *argument) {
  Transfer *wanted = argument;
  if (!device_is_broken()) {
    if (wanted->from) memmove(bytes_at(wanted->to), bytes_at(wanted->from), wanted->size);
    else memset(bytes_at(wanted->to), wanted->value, wanted->size);
  }
  free(wanted);
}

static void enqueue_transfer(void *stream, Transfer wanted) {
  Transfer *kept = malloc(sizeof *kept);
  *kept = wanted;
  enqueue(stream, transfer, kept);
}

int aclrtMemcpy(void *to, size_t room, const void *from, size_t size, int kind) {
  int error = happen(COPY, direction(to, from));
  record("copy now %s %zu", direction(to, from), size);
  if (error) return error;
  if (size > room) return INVALID_ARGUMENT;
  memmove(bytes_at(to), bytes_at(from), size);
  return SUCCESS;
}

int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t size, int kind, void *stream) {
  int error = happen(COPY, direction(to, from));
  record("copy %d %s %zu", stream_number(stream), direction(to, from), size);
  if (error) return error;
  if (size > room) return INVALID_ARGUMENT;
  if (size) enqueue_transfer(stream, (Transfer){to, from, size, 0});
  return SUCCESS;
}

int aclrtMemset(void *to, size_t room, int value, size_t size) {
  int error = happen(FILL, "aclrtMemset");
  if (!error) memset(bytes_at(to), value, size);
  return error;
}

int aclrtMemsetAsync(void *to, size_t room, int value, size_t size, void *stream) {
  int error = happen(FILL, "aclrtMemsetAsync");
  record("fill %d %zu", stream_number(stream), size);
  if (!error) enqueue_transfer(stream, (Transfer){to, NULL, size, value});
  return error;
}
