/*
 * shim_host.c - what a program sees of its machine in a deterministic run: directories in the order of their names,
 * one processor. See shim.h.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "shim.h"

/* -------- directories ----------------------------------------------------------------------------------- */

struct listing {
	DIR *directory;
	struct dirent *entries;
	size_t count, next;
	struct listing *following;
};
static struct listing *listings;
static pthread_mutex_t listings_lock = PTHREAD_MUTEX_INITIALIZER;

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct dirent *)a)->d_name, ((const struct dirent *)b)->d_name);
}

static void forget_listing(DIR *directory)
{
	pthread_mutex_lock(&listings_lock);
	for (struct listing **link = &listings; *link; link = &(*link)->following) {
		struct listing *listing = *link;

		if (listing->directory != directory)
			continue;
		*link = listing->following;
		free(listing->entries);
		free(listing);
		break;
	}
	pthread_mutex_unlock(&listings_lock);
}

static struct listing *list(DIR *directory, struct dirent *(*real)(DIR *))
{
	struct listing *listing = calloc(1, sizeof(*listing));
	const struct dirent *entry;
	int before = errno;

	if (!listing)
		return NULL;
	listing->directory = directory;
	errno = 0;
	while ((entry = real(directory))) {
		struct dirent *entries = realloc(listing->entries, (listing->count + 1) * sizeof(*entries));

		if (!entries)
			break;
		listing->entries = entries;
		memcpy(&entries[listing->count++], entry,
		       entry->d_reclen < sizeof(*entries) ? entry->d_reclen : sizeof(*entries));
	}
	errno = errno ? errno : before;
	if (listing->count > 0)
		qsort(listing->entries, listing->count, sizeof(*listing->entries), by_name);
	pthread_mutex_lock(&listings_lock);
	listing->following = listings;
	listings = listing;
	pthread_mutex_unlock(&listings_lock);
	return listing;
}

EXPORT struct dirent *readdir(DIR *directory)
{
	REAL(readdir)
	struct listing *listing;

	pthread_mutex_lock(&listings_lock);
	for (listing = listings; listing && listing->directory != directory; listing = listing->following)
		;
	pthread_mutex_unlock(&listings_lock);
	listing = listing ? listing : list(directory, real);
	return listing && listing->next < listing->count ? &listing->entries[listing->next++] : NULL;
}

EXPORT struct dirent64 *readdir64(DIR *directory)
{
	return (struct dirent64 *)readdir(directory); /* they are the same where off_t has 64 bits */
}

EXPORT int closedir(DIR *directory)
{
	REAL(closedir)

	forget_listing(directory);
	return real(directory);
}

EXPORT void rewinddir(DIR *directory)
{
	REAL(rewinddir)

	forget_listing(directory);
	real(directory);
}

/* -------- processors ------------------------------------------------------------------------------------ */

EXPORT long sysconf(int name)
{
	REAL(sysconf)

	return name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF ? 1 : real(name);
}

EXPORT int get_nprocs(void)
{
	return 1;
}

EXPORT int get_nprocs_conf(void)
{
	return 1;
}

EXPORT int sched_getcpu(void)
{
	return 0;
}

EXPORT int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret)
{
	(void)pid;
	CPU_ZERO_S(size, ret);
	CPU_SET_S(0, size, ret);
	return 0;
}

EXPORT int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *ret)
{
	(void)thread;
	return sched_getaffinity(0, size, ret);
}
