/*
 * shim.h - what the programs of a deterministic run preload (jail_program.clock_us): /code/.shim.so in their jail,
 * made of the files of this folder.
 *
 * It is between a program and libc. Linking to it changes nothing for the kernel, and it guards nothing: a program
 * can go past it. What is static (Go), asks the kernel by instructions of its own, or reads /proc, sees the machine;
 * sallyport-replay(1) lists it. A namespace or a seccomp listener would not do: time namespaces do not shift the clock
 * of the day, and the kernel does not see clocks that are read in the vDSO.
 *
 * The clock begins at the time of change of this library's file, and advances by STEP_NS whenever it is read and by
 * what a program waited for, never by itself: what a program computes between two looks takes no time. Every thread
 * counts its own looks, so that another thread's cannot change what it sees; a wait that came to its end moves the
 * clocks of all threads and processes. Waiting is real. Deadlines are translated to the kernel's clock.
 *
 * Random bytes are a sequence that begins anew in every process, with its process id as the seed. Directories are read
 * in the order of their names. There is one processor, and it has number 0.
 */
#pragma once

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define SHIM_SECOND_NS INT64_C(1000000000)
#define EXPORT         __attribute__((visibility("default")))

/* The function that ours hides, in a variable of the same type. Some have an older version that dlsym prefers. */
#define REAL_OF(name, version)                                                                                         \
	static __typeof__(name) *real;                                                                                 \
	if (!real) {                                                                                                   \
		void *found = dlvsym(RTLD_NEXT, #name, version);                                                       \
		found = found ? found : dlsym(RTLD_NEXT, #name);                                                       \
		memcpy(&real, &found, sizeof(real));                                                                   \
	}
#define REAL(name) REAL_OF(name, "GLIBC_2.3.2")

/* Since the run began, as far as this thread knows, in nanoseconds; and a look at the clock. */
int64_t shim_passed(void);
/* A wait came to its end then. */
void shim_reach(int64_t at);
/* What a clock shows at the run's beginning. */
int64_t shim_origin(clockid_t id);
/* A thread's clock begins where that of its maker is. */
int64_t shim_own(void);
void shim_begin_thread(int64_t own_ns);
int64_t shim_nanoseconds(const struct timespec *time);
struct timespec shim_timespec(int64_t ns);
