/* The device itself: what it is, who uses it. Settings that change nothing here are stubs (see ../generate.py). */
// Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
#include "simulator.h"
#include <unistd.h>

static __thread int current_device;
static __thread void *current_context;
static int only_context;

int aclInit(const char *file) { return SUCCESS; }
int aclFinalize(void) { return SUCCESS; }
int aclnnInit(const char *file) { return SUCCESS; }
int aclnnFinalize(void) { return SUCCESS; }

int aclrtSetDevice(int device) {
  current_device = device;
  if (!current_context) current_context = &only_context;
  return SUCCESS;
}
int aclrtResetDevice(int device) { return SUCCESS; }
int aclrtGetDevice(int *device) { *device = current_device; return SUCCESS; }
int aclrtGetDeviceCount(uint32_t *count) { *count = 8; return SUCCESS; }
int aclrtCreateContext(void **context, int device) {
  *context = current_context = malloc(8);
  return SUCCESS;
}
int aclrtDestroyContext(void *context) { return SUCCESS; }
int aclrtGetCurrentContext(void **context) {
  *context = current_context ? current_context : &only_context;
  return SUCCESS;
}
int aclrtSetCurrentContext(void *context) { current_context = context; return SUCCESS; }

int aclrtGetRunMode(int *mode) { *mode = 1; return SUCCESS; } /* the program runs on a host with a device */
const char *aclrtGetSocName(void) { return "Ascend910B1"; }
int aclrtDeviceCanAccessPeer(int *can, int device, int peer) { *can = 1; return SUCCESS; }
int aclrtDeviceGetBareTgid(int *process) { *process = getpid(); return SUCCESS; }

/* Kind 0 counts cube cores, kind 1 vector cores. */
int aclrtGetDeviceResLimit(int device, int kind, uint32_t *value) { *value = kind ? 48 : 24; return SUCCESS; }
int aclrtGetStreamResLimit(void *stream, int kind, uint32_t *value) { *value = kind ? 48 : 24; return SUCCESS; }
int aclrtGetResInCurrentThread(int kind, uint32_t *value) { *value = kind ? 48 : 24; return SUCCESS; }

/* Memory that threads keep for arguments: there is none. */
int InitHugeMemThreadLocal(void *unused, bool uninitialized) { return SUCCESS; }
void UnInitHugeMemThreadLocal(void *unused, bool uninitialized) {}
void ReleaseHugeMem(void *unused, bool uninitialized) {}

/* The generated stubs end here: functions that succeed and do nothing. */
long sim_stub(const char *name) {
  note(2, "stub %s", name);
  return SUCCESS;
}
