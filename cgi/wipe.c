/*
 * wipe.c - what the gateway frees is wiped first. Requests carry secrets (`secrets`, environments, tokens), and what
 * reads them leaves copies that nobody else could wipe: libfcgi's buffers, json-c's strings, texts that grew.
 *
 * free and realloc take the place of libc's, also for the libraries; memory is still libc's. With a sanitizer it is
 * that one's.
 */
#include "wipe.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_BYTES (256 * 1024)

void wipe_begin(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES); /* once it is set glibc does not raise it with what is freed */
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* What glibc exports for programs that put something in their place. */
void __libc_free(void *memory);
void *__libc_realloc(void *memory, size_t size);

/* Bytes to be wiped; 0: nothing, or a mapping of its own, which goes to the kernel as it is. The bit stands before the
 * memory (IS_MMAPPED of glibc's malloc.c). */
static size_t to_wipe(void *memory)
{
	return memory && !(((const size_t *)memory)[-1] & 2) ? malloc_usable_size(memory) : 0;
}

static void wipe_and_free(void *memory)
{
	explicit_bzero(memory, to_wipe(memory));
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
		explicit_bzero((char *)memory + size, had - size);
	if (size <= had || had == 0)
		return __libc_realloc(memory, size);
	void *more = malloc(size);

	if (!more)
		return NULL;
	memcpy(more, memory, had);
	wipe_and_free(memory);
	return more;
}
#endif
