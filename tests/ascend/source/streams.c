/* Streams are threads with a queue of tasks; events count how often they were reached. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "simulator.h"
#include <time.h>
#include <unistd.h>

typedef struct Entry { void (*run)(void *); void *argument; struct Entry *next; } Entry;
typedef struct Stream {
  int number;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  Entry *first, **end;
  uint64_t given, done;
  bool is_closing;
  struct Stream *next;
} Stream;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static Stream *streams, *default_stream;
static int made;

static void *work(void *argument) {
  Stream *stream = argument;
  pthread_mutex_lock(&stream->lock);
  while (true) {
    while (!stream->first && !stream->is_closing) pthread_cond_wait(&stream->changed, &stream->lock);
    Entry *entry = stream->first;
    if (!entry) break;
    stream->first = entry->next;
    if (!stream->first) stream->end = &stream->first;
    pthread_mutex_unlock(&stream->lock);
    entry->run(entry->argument);
    free(entry);
    pthread_mutex_lock(&stream->lock);
    stream->done++;
    pthread_cond_broadcast(&stream->changed);
  }
  pthread_mutex_unlock(&stream->lock);
  return NULL;
}

static Stream *open_stream(void) {
  Stream *stream = calloc(1, sizeof *stream);
  pthread_mutex_init(&stream->lock, NULL);
  pthread_cond_init(&stream->changed, NULL);
  stream->end = &stream->first;
  pthread_mutex_lock(&list_lock);
  stream->number = made++;
  stream->next = streams;
  streams = stream;
  pthread_mutex_unlock(&list_lock);
  pthread_create(&stream->thread, NULL, work, stream);
  return stream;
}

static void open_default(void) { default_stream = open_stream(); }

static Stream *chosen(void *stream) {
  static pthread_once_t opened = PTHREAD_ONCE_INIT;
  if (stream) return stream;
  pthread_once(&opened, open_default);
  return default_stream;
}

int stream_number(void *stream) { return chosen(stream)->number; }

void enqueue(void *handle, void (*run)(void *), void *argument) {
  Stream *stream = chosen(handle);
  Entry *entry = malloc(sizeof *entry);
  *entry = (Entry){run, argument, NULL};
  pthread_mutex_lock(&stream->lock);
  *stream->end = entry;
  stream->end = &entry->next;
  stream->given++;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->lock);
}

static void drain(Stream *stream) {
  pthread_mutex_lock(&stream->lock);
  uint64_t wanted = stream->given;
  while (stream->done < wanted) pthread_cond_wait(&stream->changed, &stream->lock);
  pthread_mutex_unlock(&stream->lock);
}

int aclrtCreateStreamWithConfig(void **stream, uint32_t priority, uint32_t flags) {
  *stream = open_stream();
  return SUCCESS;
}
int aclrtCreateStream(void **stream) { return aclrtCreateStreamWithConfig(stream, 0, 0); }

int aclrtDestroyStream(void *handle) {
  Stream *stream = handle;
  pthread_mutex_lock(&stream->lock);
  stream->is_closing = true;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->lock);
  pthread_join(stream->thread, NULL);
  pthread_mutex_lock(&list_lock);
  Stream **place = &streams;
  while (*place && *place != stream) place = &(*place)->next;
  if (*place) *place = stream->next;
  pthread_mutex_unlock(&list_lock);
  return SUCCESS;
}
int aclrtDestroyStreamForce(void *stream) { return aclrtDestroyStream(stream); }

/* ---- waits of the host */

static int wait_for(Stream *stream, const char *name) {
  int error = happen(WAIT, name);
  record("wait %s %d", name, stream->number);
  drain(stream);
  int told = device_error();
  return error ? error : told;
}

int aclrtSynchronizeStream(void *stream) { return wait_for(chosen(stream), "stream"); }
int aclrtSynchronizeStreamWithTimeout(void *stream, int milliseconds) { return wait_for(chosen(stream), "stream"); }

int aclrtSynchronizeDevice(void) {
  int error = happen(WAIT, "device");
  record("wait device");
  for (Stream *stream = streams; stream; stream = stream->next) drain(stream);
  int told = device_error();
  return error ? error : told;
}
int aclrtSynchronizeDeviceWithTimeout(int milliseconds) { return aclrtSynchronizeDevice(); }

int aclrtStreamQuery(void *handle, int *status) {
  Stream *stream = chosen(handle);
  pthread_mutex_lock(&stream->lock);
  *status = stream->done < stream->given;
  pthread_mutex_unlock(&stream->lock);
  return SUCCESS;
}

/* ---- events */

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t given, done, nanoseconds;
} Event;
typedef struct { Event *event; uint64_t wanted; } Condition;

int aclrtCreateEvent(void **handle) {
  Event *event = calloc(1, sizeof *event);
  pthread_mutex_init(&event->lock, NULL);
  pthread_cond_init(&event->changed, NULL);
  *handle = event;
  return SUCCESS;
}
int aclrtCreateEventWithFlag(void **event, uint32_t flag) { return aclrtCreateEvent(event); }
int aclrtCreateEventExWithFlag(void **event, uint32_t flag) { return aclrtCreateEvent(event); }
int aclrtDestroyEvent(void *event) { return SUCCESS; } /* it stays: a task in a queue may still name it */

static void reach(void *argument) {
  Event *event = argument;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  pthread_mutex_lock(&event->lock);
  event->done++;
  event->nanoseconds = now.tv_sec * 1000000000ull + now.tv_nsec;
  pthread_cond_broadcast(&event->changed);
  pthread_mutex_unlock(&event->lock);
}

static Condition condition_now(Event *event) {
  pthread_mutex_lock(&event->lock);
  Condition condition = {event, event->given};
  pthread_mutex_unlock(&event->lock);
  return condition;
}

static void await_condition(Condition condition) {
  Event *event = condition.event;
  pthread_mutex_lock(&event->lock);
  while (event->done < condition.wanted) pthread_cond_wait(&event->changed, &event->lock);
  pthread_mutex_unlock(&event->lock);
}

static void await_in_stream(void *argument) {
  await_condition(*(Condition *)argument);
  free(argument);
}

int aclrtRecordEvent(void *handle, void *stream) {
  int error = happen(EVENT, "record");
  if (error) return error;
  Event *event = handle;
  pthread_mutex_lock(&event->lock);
  event->given++;
  pthread_mutex_unlock(&event->lock);
  enqueue(stream, reach, event);
  return SUCCESS;
}

int aclrtStreamWaitEvent(void *stream, void *event) {
  int error = happen(EVENT, "stream wait");
  if (error) return error;
  Condition *kept = malloc(sizeof *kept);
  *kept = condition_now(event);
  enqueue(stream, await_in_stream, kept);
  return SUCCESS;
}

int aclrtSynchronizeEvent(void *event) {
  int error = happen(WAIT, "event");
  record("wait event");
  await_condition(condition_now(event));
  int told = device_error();
  return error ? error : told;
}

int aclrtQueryEventStatus(void *handle, int *status) {
  Event *event = handle;
  pthread_mutex_lock(&event->lock);
  *status = event->done >= event->given;
  pthread_mutex_unlock(&event->lock);
  return SUCCESS;
}
int aclrtResetEvent(void *event, void *stream) { return SUCCESS; }
int aclrtEventElapsedTime(float *milliseconds, void *start, void *end) {
  *milliseconds = (double)(((Event *)end)->nanoseconds - ((Event *)start)->nanoseconds) / 1e6;
  return SUCCESS;
}
int aclrtEventGetTimestamp(void *event, uint64_t *microseconds) {
  *microseconds = ((Event *)event)->nanoseconds / 1000;
  return SUCCESS;
}

/* ---- callbacks on a stream */

typedef struct { void (*function)(void *); void *argument; } Callback;

static void call(void *argument) {
  Callback *callback = argument;
  callback->function(callback->argument);
  free(callback);
}
int aclrtLaunchCallback(void (*function)(void *), void *argument, int blocks, void *stream) {
  Callback *kept = malloc(sizeof *kept);
  *kept = (Callback){function, argument};
  enqueue(stream, call, kept);
  return SUCCESS;
}
int aclrtSubscribeReport(uint64_t thread, void *stream) { return SUCCESS; }
int aclrtProcessReport(int milliseconds) { usleep(1000); return SUCCESS; }
int aclrtSetStreamFailureMode(void *stream, uint64_t mode) { return SUCCESS; }
int aclrtDeviceGetStreamPriorityRange(int *least, int *greatest) { *least = 7; *greatest = 0; return SUCCESS; }
