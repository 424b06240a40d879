/*
 * secret.h - memory for what must not outlive its use: it is empty in every process that is forked, left out of core
 * dumps, and given back to the kernel, which clears it, when it is freed. For environments and arguments of programs,
 * which a jail that is made meanwhile would inherit with the rest of the heap.
 */
#pragma once

#include <stddef.h>

/* Zeroed. There is memory or the program aborts, as of xmalloc; also where the kernel cannot keep it from children
 * (before Linux 4.14). Secrets are small: each takes whole pages. */
void *secret_alloc(size_t size) __attribute__((returns_nonnull));
void secret_free(void *memory); /* NULL: nothing */
void secret_free_unused(void *memory); /* nothing was written to it: there is nothing to clear */
void secret_free_pointer(void *pointer_to_pointer);
#define auto_secret __attribute__((cleanup(secret_free_pointer)))
