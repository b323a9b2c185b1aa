/* Planned failures and delays. ../README.md has the grammar of a plan. */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "simulator.h"
#include <unistd.h>

static const char *const place_names[PLACES] = {
    "prepare", "launch", "run", "copy", "fill", "allocate", "event", "wait", "collective"};
static const int place_errors[PLACES] = {
    NOT_SIMULATED, LAUNCH_REFUSED, TASK_FAILED, TASK_FAILED, TASK_FAILED, OUT_OF_MEMORY, TASK_FAILED, TASK_FAILED, 4};

/* A rule: from the `first` occurrence at a place, by this name or any, `count` of them fail or are delayed. */
typedef struct {
  char action[16], place[16], name[64];
  int64_t first, count, seen;
  int microseconds;
} Rule;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Rule rules[64];
static int rule_count = -1;
static __thread int wrong;
static uint64_t counts[PLACES];
static int broken;
static bool is_forgotten_when_told;
static char broken_by[64];

/* Reads "action place name first count [microseconds]; …". Returns how many rules were read. */
static int read_plan(const char *plan) {
  rule_count = 0;
  while (plan && *plan && rule_count < 64) {
    Rule rule = {.first = 1, .count = 1};
    int read = sscanf(plan, " %15s %15s %63[^ ;] %ld %ld %d", rule.action, rule.place, rule.name, &rule.first,
                      &rule.count, &rule.microseconds);
    if (read >= 3) rules[rule_count++] = rule;
    else note(0, "this rule of a plan cannot be read: %s", plan);
    plan = strchr(plan, ';');
    if (plan) plan++;
  }
  return rule_count;
}

int happen(Place place, const char *name) {
  int error = SUCCESS, sleep = 0;
  wrong = 0;
  pthread_mutex_lock(&lock);
  if (rule_count < 0) read_plan(getenv("ASCEND_SIM_PLAN"));
  counts[place]++;
  for (Rule *rule = rules; rule < rules + rule_count; rule++) {
    if (strcmp(rule->place, place_names[place]) || (strcmp(rule->name, "*") && strcmp(rule->name, name))) continue;
    int64_t number = ++rule->seen;
    if (number < rule->first || (rule->count >= 0 && number >= rule->first + rule->count)) continue;
    if (!strcmp(rule->action, "delay")) {
      sleep += rule->microseconds;
      continue;
    }
    if (!strcmp(rule->action, "wrong")) {
      wrong = rule->microseconds;
      continue;
    }
    error = place_errors[place];
    is_forgotten_when_told = !strcmp(rule->action, "fail-once");
    snprintf(broken_by, sizeof broken_by, "%s %.40s", place_names[place], name);
    note(1, "planned failure: %s", broken_by);
  }
  pthread_mutex_unlock(&lock);
  if (sleep) usleep(sleep);
  return error;
}

int wrong_by(void) { return wrong; }

void break_device(int error, const char *name) {
  pthread_mutex_lock(&lock);
  if (!broken) {
    broken = error;
    snprintf(broken_by, sizeof broken_by, "%.60s", name);
    record("broken %s", name);
  }
  pthread_mutex_unlock(&lock);
}

bool device_is_broken(void) { return broken != SUCCESS; }

int device_error(void) {
  pthread_mutex_lock(&lock);
  int error = broken;
  if (is_forgotten_when_told) broken = SUCCESS;
  pthread_mutex_unlock(&lock);
  return error;
}

const char *aclGetRecentErrMsg(void) {
  static __thread char text[128];
  if (!broken_by[0]) return "";
  snprintf(text, sizeof text, "simulated Ascend: %s failed", broken_by);
  return text;
}
int aclrtGetLastError(int level) { return device_error(); }
int aclrtPeekAtLastError(int level) { return broken; }

/* ---- for tests, by ctypes */

int sim_plan(const char *plan) {
  pthread_mutex_lock(&lock);
  int read = read_plan(plan);
  broken = SUCCESS;
  is_forgotten_when_told = false;
  broken_by[0] = 0;
  pthread_mutex_unlock(&lock);
  return read;
}

uint64_t sim_count(const char *place) {
  for (int k = 0; k < PLACES; k++)
    if (!strcmp(place, place_names[k])) return counts[k];
  return UINT64_MAX;
}
