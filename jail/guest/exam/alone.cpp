// alone.cpp - main of a C++ program of code and tests. See alone.py; a translation unit of its own, so that the code cannot name what is
// in it. A failed assertion of <assert.h> arrives here and says so with the nonce.
//
// The nonce is read before any constructor runs (this file is the first of the program), by system calls of our own, which no function of
// the code's can stand in for, and is kept under a mask, so that it is not found by what it looks like. What else of the code could run
// earlier, or stand in for what the tests use: seal.sh.
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#define DENY_CHANGED_CODE 65 /* PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN: no memory that was written is ever executed */

void sallyport_tests_run();

static unsigned char nonce[32];
static unsigned long seed[2];
static long out = -1, self;

#ifdef __x86_64__
static inline __attribute__((always_inline)) long call(long number, long a, long b, long c)
{
	register long d __asm__("r10") = 0, e __asm__("r8") = 0;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e) : "rcx", "r11", "memory");
	return result;
}
#else
static inline __attribute__((always_inline)) long call(long number, long a, long b, long c)
{
	return syscall(number, a, b, c);
}
#endif

/* What a byte of the nonce is hidden by. */
static inline __attribute__((always_inline)) unsigned char mask(size_t i)
{
	unsigned long x = (seed[0] + i) * 6364136223846793005u + seed[1];

	x ^= x >> 31;
	return (unsigned char)(x * 1442695040888963407u >> 56);
}

static void begin()
{
	static const char null_path[] = "/dev/null";

	if (call(SYS_read, 0, (long)nonce, sizeof(nonce)) != (long)sizeof(nonce) ||
	    call(SYS_getrandom, (long)seed, sizeof(seed), 0) != (long)sizeof(seed))
		call(SYS_exit_group, 2, 0, 0);
	for (size_t i = 0; i < sizeof(nonce); i++)
		nonce[i] ^= mask(i);
	self = call(SYS_getpid, 0, 0, 0);
	out = call(SYS_fcntl, 1, F_DUPFD_CLOEXEC, 100 + (long)(seed[0] % 900));
	long null = call(SYS_openat, AT_FDCWD, (long)null_path, O_RDONLY);
	call(SYS_dup3, null, 0, 0);
	call(SYS_dup3, 2, 1, 0);
	call(SYS_prctl, DENY_CHANGED_CODE, 1, 0); /* what an older kernel has no word for it does not do */
}
__attribute__((section(".preinit_array"), used)) static void (*const first)() = begin;

static void end(const char *word, const char *why)
{
	char text[400];
	size_t length = sizeof(nonce);

	for (size_t i = 0; i < length; i++)
		text[i] = (char)(nonce[i] ^ mask(i));
	for (const char *part : {word, why})
		for (; *part && length < sizeof(text); part++)
			text[length++] = *part;
	/* A copy of this process could try what the tests say to another answer. */
	if (call(SYS_getpid, 0, 0, 0) != self || call(SYS_write, out, (long)text, (long)length) < 0)
		call(SYS_exit_group, 2, 0, 0);
}

extern "C" void __assert_fail(const char *expression, const char *, unsigned, const char *) noexcept
{
	end("wrong\n", expression);
	for (;;)
		call(SYS_exit_group, 1, 0, 0);
}

int main()
{
	sallyport_tests_run();
	end("passed\n", "");
	return 1; /* as where they fail: what waits for this process learns nothing */
}
