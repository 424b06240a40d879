/* thread.h - the gateway's threads: there may be hundreds, so their stacks are small. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/* Runs, uploads and JSON at its depth limit touch 20 KiB of it (smaps of a gateway under the end-to-end tests).
 * Sanitizers need more. */
#ifdef __SANITIZE_ADDRESS__
#define THREAD_STACK_SIZE (2 * 1024 * 1024)
#else
#define THREAD_STACK_SIZE (128 * 1024)
#endif

/* 0, or the error's number, as of pthread_create(3). */
int thread_start(pthread_t *ret, bool detached, void *(*work)(void *arg), void *arg);
