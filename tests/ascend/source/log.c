/* Texts for people, and the record of what was asked of the device. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "simulator.h"
#include <stdarg.h>

static int chosen_level = -1;

void note(int level, const char *format, ...) {
  if (chosen_level < 0) {
    const char *chosen = getenv("ASCEND_SIM_LOG");
    chosen_level = chosen ? atoi(chosen) : 0;
  }
  if (level > chosen_level) return;
  char text[2048];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  fprintf(stderr, "[simulated Ascend] %s\n", text);
}

/* ---- the record: a text that grows while a test asks for it */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *lines;
static size_t used, room;
static volatile bool is_recording;

void record(const char *format, ...) {
  if (!is_recording) return;
  char text[512];
  va_list values;
  va_start(values, format);
  int length = vsnprintf(text, sizeof text - 1, format, values);
  va_end(values);
  if (length > (int)sizeof text - 2) length = sizeof text - 2;
  text[length++] = '\n';
  pthread_mutex_lock(&lock);
  if (used + length + 1 > room) lines = realloc(lines, room = 2 * room + 65536);
  memcpy(lines + used, text, length);
  lines[used += length] = 0;
  pthread_mutex_unlock(&lock);
}

/* For tests, by ctypes: start a new record; stop it and return its lines. */
void sim_record_start(void) {
  pthread_mutex_lock(&lock);
  used = 0;
  if (lines) lines[0] = 0;
  is_recording = true;
  pthread_mutex_unlock(&lock);
}

const char *sim_record_stop(void) {
  is_recording = false;
  return lines ? lines : "";
}
