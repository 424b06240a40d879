/*
 * wipe.c - what the gateway frees is wiped first. Requests carry secrets (`secrets`, environments, tokens), and what
 * reads them leaves copies that nobody else could wipe: libfcgi's buffers, json-c's strings, texts that grew.
 *
 * free and realloc take the place of libc's, also for the libraries; memory is still libc's. With a sanitizer it is
 * that one's.
 */
#include "wipe.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_BYTES (256 * 1024)

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* What glibc exports for programs that put something in their place. */
void *__libc_malloc(size_t size);
void __libc_free(void *memory);
void *__libc_realloc(void *memory, size_t size);

/* The word before the memory: the size with this word, and in its low bits whether it is a mapping of its own
 * (glibc's malloc.c). malloc_usable_size and explicit_bzero would tell and do the same, at the price of two calls more
 * for each of some thousand blocks of a request. */
#define HEAD_BITS   ((size_t)7)
#define HEAD_MAPPED ((size_t)2)

/* Bytes to be wiped; 0: nothing, or a mapping of its own, which goes to the kernel as it is. */
static inline size_t to_wipe(const void *memory)
{
	const size_t head = memory ? ((const size_t *)memory)[-1] : HEAD_MAPPED;

	return (head & HEAD_MAPPED) ? 0 : (head & ~HEAD_BITS) - sizeof(head);
}

static inline void wipe(void *memory, size_t size)
{
	memset(memory, 0, size);
	__asm__ volatile("" : : "r"(memory) : "memory"); /* somebody may look: the compiler must not leave it out */
}

/* Another glibc might have another head: then nothing is served. */
static void check_heads(void)
{
	static const size_t sizes[] = {1, 24, 25, 1000, 100000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *memory = __libc_malloc(sizes[i]);

		if (memory && to_wipe(memory) != malloc_usable_size(memory)) {
			fputs("sallyport-gateway: wiping what is freed does not know this C library\n", stderr);
			abort();
		}
		__libc_free(memory);
	}
}

static void wipe_and_free(void *memory)
{
	const size_t size = to_wipe(memory);

	if (size > 0)
		wipe(memory, size);
	__libc_free(memory);
}

void free(void *memory)
{
	wipe_and_free(memory);
}

void *realloc(void *memory, size_t size)
{
	const size_t had = to_wipe(memory);

	if (size <= had)
		wipe((char *)memory + size, had - size);
	if (size <= had || had == 0)
		return __libc_realloc(memory, size);
	void *more = malloc(size);

	if (!more)
		return NULL;
	memcpy(more, memory, had);
	wipe_and_free(memory);
	return more;
}
#else
static void check_heads(void)
{
}
#endif

void wipe_begin(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES); /* once it is set glibc does not raise it with what is freed */
	check_heads();
}
