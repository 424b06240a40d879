/* ends.c - probes P01 to P20: how a program ends, and what would outlive it. That nothing did is for the host's eye. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static _Noreturn void sleep_for_ever(void)
{
	for (;;)
		pause();
}

static void fork_bomb(void)
{
	for (;;)
		fork();
}

static void *idle(void *arg)
{
	sleep_for_ever();
	return arg;
}

static void *spin(void *arg)
{
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static void thread_bomb(void)
{
	pthread_t thread;
	int made = 0;

	for (int refusals = 0; refusals < 1000; refusals++)
		while (pthread_create(&thread, NULL, idle, NULL) == 0)
			made++;
	holds(made < 64, "%d threads were made", made);
	for (;;)
		if (pthread_create(&thread, NULL, spin, NULL) == 0)
			holds(false, "a thread more than the limit");
}

static void ignore_signals(void)
{
	sigset_t all;

	for (int number = 1; number < 65; number++)
		signal(number, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
}

static void daemonize(void)
{
	for (int i = 0; i < 5; i++)
		if (fork() == 0) {
			setsid();
			ignore_signals();
			if (fork())
				_exit(0);
			for (int fd = 0; fd < 16; fd++)
				close(fd);
			sleep_for_ever();
		}
	while (wait(NULL) > 0)
		;
}

static void refill(int number)
{
	(void)number;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			setsid();
			if (i)
				_exit(0);
			sleep_for_ever();
		}
}

static void respawn(void)
{
	signal(SIGCHLD, refill);
	refill(0);
	for (int i = 0; i < 100; i++)
		if (vfork() == 0)
			_exit(0);
}

static void stop_itself(void)
{
	pid_t pid = fork();

	ignore_signals();
	if (pid == 0)
		for (;;)
			raise(SIGTTOU);
	kill(pid, SIGSTOP);
	raise(SIGSTOP);
	sleep_for_ever(); /* somebody has sent SIGCONT */
}

static void do_abort(void)
{
	abort();
}

static void do_terminate(void)
{
	raise(SIGTERM);
}

static void do_kill(void)
{
	raise(SIGKILL);
}

static void *write_lines(void *arg)
{
	for (;;)
		if (write(1, "a line\n", 7) < 0)
			break;
	return arg;
}

static void exit_race(void)
{
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, write_lines, NULL);
	_exit(7);
}

static void *exec_another(void *arg)
{
	execl("/proc/self/exe", "probe", "O10", NULL);
	return arg;
}

static void exec_in_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exec_another, NULL);
	sleep_for_ever();
}

static void hanging_vfork(void)
{
	if (vfork() == 0)
		sleep_for_ever();
}

/* Allowed: it is code like any other. It gains nothing by it. */
static void exec_memory(void)
{
	char path[64];
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = memfd_create("code", 0);
	struct stat st;
	off_t offset = 0;
	int status = 0;

	holds(fstat(self, &st) == 0 && sendfile(fd, self, &offset, (size_t)st.st_size) == st.st_size,
	      "no copy of this program in memory");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		char *const arguments[] = {(char[]){"probe"}, (char[]){"P18"}, NULL}, *const none[] = {NULL};

		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 1);
		syscall(SYS_execveat, fd, "", arguments, none, AT_EMPTY_PATH);
		execve(path, arguments, none);
		_exit(errno == EPERM || errno == EACCES ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	holds(status == 0, "what was run from memory ended with %#x: it gained something, or was refused in an odd way",
	      status);
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED) {
		memcpy(memory, "\xb8\x2a\x00\x00\x00\xc3", 6); /* mov eax, 42; ret */
		holds(((int (*)(void))memory)() == 42, "code in memory does something else");
	}
}

static void *recurse(void *depth)
{
	volatile char frame[4096];

	frame[0] = (char)(long)depth;
	return frame[0] == 127 ? NULL : (char *)recurse((void *)((long)depth & 63)) + frame[0];
}

static void deep_stack(void)
{
	recurse(NULL);
}

static void big_stacks(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int made = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 8 << 20);
	while (made < 10000 && pthread_create(&thread, &attributes, idle, NULL) == 0)
		made++;
	holds(made < 64, "%d threads with stacks of 8 MiB", made);
}

const struct probe probes_ends[] = {
	PROBE_TERMS("P01a", "fork without end", fork_bomb, "ends=TO:wall also=ML wall_ms=300 cpu_ms=60000 pids=64"),
	PROBE_TERMS("P01b", "threads without end", thread_bomb, "ends=TO:wall wall_ms=300 cpu_ms=60000 pids=64"),
	PROBE("P02", "processes that leave the session and stay", daemonize),
	PROBE_TERMS("P03", "children that are made again when they end", respawn, "pids=64"),
	PROBE_TERMS("P04", "ignore all signals, stop itself", stop_itself, "ends=TO:wall wall_ms=200 cpu_ms=60000"),
	PROBE_TERMS("P08a", "end by abort", do_abort, "ends=SG:6"),
	PROBE_TERMS("P08b", "end by SIGTERM", do_terminate, "ends=SG:15"),
	PROBE_TERMS("P08c", "end by SIGKILL", do_kill, "ends=SG:9"),
	PROBE_TERMS("P09a", "exit while threads write", exit_race, "ends=RE:7"),
	PROBE("P09b", "exec in a thread", exec_in_thread),
	PROBE_TERMS("P12", "a vfork whose child never ends", hanging_vfork,
		    "ends=TO:wall wall_ms=200 cpu_below_ms=150"),
	PROBE("P19", "run code from memory", exec_memory),
	PROBE_TERMS("R06a", "recursion without end", deep_stack, "ends=SG:11"),
	PROBE_TERMS("R06b", "10,000 threads with big stacks", big_stacks, "pids=64"),
	{0},
};
