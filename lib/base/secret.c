/* secret.c - see secret.h. Mappings of the usual size are kept, empty, for the next one: a run takes several. */
#include "secret.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util.h"

#define PAGE       ((size_t)4096)
#define USUAL_SIZE (36 * PAGE) /* what init gets of a run, the longest; only what is touched is there */
#define KEPT       4

struct block {
	size_t size; /* of the mapping */
	_Alignas(16) char memory[];
};

static _Atomic(struct block *) kept[KEPT];

void *secret_alloc(size_t size)
{
	size_t need = (sizeof(struct block) + size + PAGE - 1) / PAGE * PAGE, whole = MAX(need, USUAL_SIZE);
	struct block *block = NULL;

	for (size_t i = 0; whole == USUAL_SIZE && i < KEPT && !block; i++)
		block = atomic_exchange(&kept[i], NULL);
	if (!block) {
		block = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (block == MAP_FAILED || madvise(block, whole, MADV_WIPEONFORK) ||
		    madvise(block, whole, MADV_DONTDUMP))
			abort();
	}
	block->size = whole;
	return block->memory;
}

static struct block *block_of(void *memory)
{
	return (struct block *)((char *)memory - offsetof(struct block, memory));
}

static void keep(struct block *block, size_t size)
{
	for (size_t i = 0; i < KEPT; i++) {
		struct block *none = NULL;

		if (atomic_compare_exchange_strong(&kept[i], &none, block))
			return;
	}
	munmap(block, size);
}

void secret_free(void *memory)
{
	if (!memory)
		return;
	struct block *block = block_of(memory);
	size_t size = block->size;

	if (size == USUAL_SIZE && madvise(block, size, MADV_DONTNEED) == 0)
		keep(block, size);
	else
		munmap(block, size);
}

void secret_free_unused(void *memory)
{
	struct block *block = block_of(memory);

	if (block->size == USUAL_SIZE)
		keep(block, USUAL_SIZE);
	else
		munmap(block, block->size);
}

void secret_free_pointer(void *pointer_to_pointer)
{
	void **pointer = pointer_to_pointer;

	secret_free(*pointer);
	*pointer = NULL;
}
