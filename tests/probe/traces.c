/* traces.c - probes X01 to X09, E02, E02b, C01, C03, D04, K11 to K18, N09 to N14: what others left or show, clocks, the
 * rest of the kernel.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <mqueue.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "probe.h"

#define PORT 45454

/* -------- files, System V and POSIX objects, keys, the network's state -------------------------------- */
static const char *const left_files[] = {"/tmp/" PROBE_MARK "-x", "/dev/shm/" PROBE_MARK "-x",
					 "/var/tmp/" PROBE_MARK "-x", "/data/" PROBE_MARK "-x", PROBE_MARK "-x"};

static void leave_files(void)
{
	for (size_t i = 0; i < sizeof(left_files) / sizeof(left_files[0]); i++)
		holds(open(left_files[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0666) >= 0, "cannot write %s", left_files[i]);
}

static void find_files(void)
{
	static const char *const dirs[] = {"/tmp", "/dev/shm"};

	for (size_t i = 0; i < sizeof(left_files) / sizeof(left_files[0]); i++)
		refused_with(access(left_files[i], F_OK), ENOENT, "%s of another run is there", left_files[i]);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		DIR *list = opendir(dirs[i]);

		for (struct dirent *entry; list && (entry = readdir(list));)
			holds(entry->d_name[0] == '.', "%s/%s is there", dirs[i], entry->d_name);
	}
}

/* At least one kind must be there to be left: a filter may refuse the others. */
static void leave_objects(void)
{
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 1};
	int made = shmget(PROBE_KEY, 4096, IPC_CREAT | 0666) >= 0;

	made += semget(PROBE_KEY, 1, IPC_CREAT | 0666) >= 0;
	made += msgget(PROBE_KEY, IPC_CREAT | 0666) >= 0;
	made += syscall(SYS_mq_open, PROBE_MARK "-x", O_CREAT | O_RDWR, 0666, &attributes) >= 0;
	holds(made > 0, "no object could be made");
}

static void find_objects(void)
{
	refused(shmget(PROBE_KEY, 0, 0), "System V memory of another run");
	refused(semget(PROBE_KEY, 0, 0), "System V semaphores of another run");
	refused(msgget(PROBE_KEY, 0), "a System V queue of another run");
	refused(syscall(SYS_mq_open, PROBE_MARK "-x", O_RDWR, 0, NULL), "a POSIX queue of another run");
	for (int id = 0; id < 1000; id++)
		refused((long)shmat(id, NULL, SHM_RDONLY), "System V memory number %d", id);
}

static void leave_keys(void)
{
	for (long ring = -5; ring < 0; ring++)
		syscall(SYS_add_key, "user", PROBE_MARK, "x", 1, ring);
}

static void find_keys(void)
{
	refused(syscall(SYS_request_key, "user", PROBE_MARK, NULL, 0), "a key of another run");
	for (long ring = -5; ring < 0; ring++)
		refused(syscall(SYS_keyctl, 10 /* SEARCH */, ring, "user", PROBE_MARK, 0),
			"a key of another run in ring %ld", ring);
}

static socklen_t abstract_name(struct sockaddr_un *address)
{
	static const char name[] = "\0" PROBE_MARK "-x";

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, name, sizeof(name) - 1);
	return sizeof(sa_family_t) + sizeof(name) - 1;
}

static const struct sockaddr_in own_port = {.sin_family = AF_INET};

static void leave_network(void)
{
	struct sockaddr_in address = own_port;
	struct sockaddr_un name;
	socklen_t length = abstract_name(&name);
	int one = 1, tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_port = htons(PORT);
	setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	holds(bind(tcp, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(tcp, 1) == 0,
	      "no server on port %d", PORT);
	holds(bind(local, (struct sockaddr *)&name, length) == 0 && listen(local, 1) == 0, "no abstract socket");
	struct ifreq request = {.ifr_name = "lo:1"};
	refused(ioctl(tcp, SIOCSIFADDR, &request), "an address more for loopback");
}

static void find_network(void)
{
	struct sockaddr_in address = own_port;
	struct sockaddr_un name;
	socklen_t length = abstract_name(&name);
	char text[8192];

	address.sin_port = htons(PORT);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	refused_with(
		connect(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), (struct sockaddr *)&address, sizeof(address)),
		ECONNREFUSED, "a server of another run");
	refused_with(connect(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), (struct sockaddr *)&name, length),
		     ECONNREFUSED, "an abstract socket of another run");
	int fd = open("/proc/net/route", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	char *line = strchr(text, '\n');
	holds(!line || line[1] == '\0', "there is a route: %s", line);
	fd = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	holds(!strstr(text, "@" PROBE_MARK), "sockets of others are listed");
}

static void leave_processes(void)
{
	for (int i = 0; i < 5; i++)
		if (fork() == 0)
			for (;;)
				pause();
}

static void find_processes(void)
{
	DIR *list = opendir("/proc");
	char path[300], text[4096];

	for (struct dirent *entry; list && (entry = readdir(list));) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = '\0';
		holds(n <= 0 || text[0] == '\0' || atoi(entry->d_name) == getpid(), "process %s is seen: %s",
		      entry->d_name, text);
		close(fd);
	}
}

/* /usr is the host's, and all runs': who could watch it would see what the host and they start and read. */
static void watch_others(void)
{
	static const char *const dirs[] = {"/usr/bin", "/usr/lib", "/etc", "/dev"};
	int watch = inotify_init1(IN_CLOEXEC);

	refused_with(watch, EPERM, "inotify_init1");
	refused_with(syscall(SYS_inotify_init), EPERM, "inotify_init");
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		int fd = open(dirs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		refused(inotify_add_watch(watch, dirs[i], IN_OPEN | IN_ACCESS), "watch %s", dirs[i]);
		refused_with(fcntl(fd, F_NOTIFY, DN_ACCESS | DN_MULTISHOT), EPERM, "be told of %s", dirs[i]);
		refused_with(syscall(SYS_fcntl, (long)fd, F_NOTIFY | 1L << 40, (long)DN_ACCESS), EPERM,
			     "be told of %s, high bits", dirs[i]);
		refused_with(fcntl(fd, F_SETLEASE, F_RDLCK), EPERM, "a lease on %s", dirs[i]);
		close(fd);
	}
}

/* Numbers that say how much others do: a process has small ones of its own. What stays the host's is in
 * docs/security.md. */
static void counters(void)
{
	char text[256];
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	char *last = strrchr(text, ' ');
	holds(getpid() < 64, "its number is %d", getpid());
	holds(last && atoi(last) < 64, "the last number of a process is %s", last);
	struct stat st;
	holds(stat("/tmp", &st) == 0 && st.st_nlink < 4, "/tmp has %lu links", (unsigned long)st.st_nlink);
}

static void random_bytes(void)
{
	unsigned char bytes[16] = {0};

	holds(getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes), "no random bytes");
	for (size_t i = 0; i < sizeof(bytes); i++)
		printf("%02x", bytes[i]);
	putchar('\n');
}

static void random_addresses(void)
{
	int on_stack;

	holds(getauxval(AT_RANDOM), "the kernel gave no random bytes");
	void *mapped = malloc(1 << 20);
	printf("%p %p\n", (void *)&on_stack, mapped);
	free(mapped);
}

/* -------- clocks -------------------------------------------------------------------------------------- */
static void set_time(void)
{
	struct timespec now;
	struct timeval day;
	struct timex adjust = {.modes = ADJ_FREQUENCY};

	clock_gettime(CLOCK_REALTIME, &now);
	gettimeofday(&day, NULL);
	refused(clock_settime(CLOCK_REALTIME, &now), "clock_settime");
	refused(settimeofday(&day, NULL), "settimeofday");
	refused(adjtimex(&adjust), "adjtimex");
	refused(clock_adjtime(CLOCK_REALTIME, &adjust), "clock_adjtime");
	refused(timerfd_create(8 /* REALTIME_ALARM */, TFD_CLOEXEC), "a timer that wakes the machine");
	refused(timerfd_create(9 /* BOOTTIME_ALARM */, TFD_CLOEXEC), "a timer that wakes the machine");
	refused(open("/dev/rtc0", O_RDONLY | O_CLOEXEC), "the hardware clock");
}

/* Without deterministic mode the clocks are the host's, all of them, and agree. */
static void clocks_agree(void)
{
	struct timespec boot, monotonic, real;

	holds(clock_gettime(CLOCK_BOOTTIME, &boot) == 0 && clock_gettime(CLOCK_MONOTONIC, &monotonic) == 0 &&
		      clock_gettime(CLOCK_REALTIME, &real) == 0,
	      "a clock cannot be read");
	holds(boot.tv_sec + 1 >= monotonic.tv_sec && real.tv_sec > 1700000000, "clocks that cannot be");
}

static void counters_of_the_processor(void)
{
	int status = 0;
	unsigned long long before = __rdtsc();
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	holds(__rdtsc() >= before, "the counter of cycles goes backwards");
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		__rdpmc(0);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	holds(WIFSIGNALED(status), "rdpmc works: performance counters can be read");
}

/* -------- descriptors --------------------------------------------------------------------------------- */
static void kinds_of_descriptors(void)
{
	char path[64], target[256];

	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		holds(n < 0 || strncmp(target, "pipe:", 5) == 0 || strcmp(target, "/dev/null") == 0,
		      "descriptor %d is %s", fd, target);
		holds(n < 0 || fd < 3, "descriptor %d is open", fd);
	}
}

static void receive_descriptors(void)
{
	char byte, control[256];
	struct iovec vector = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};

	for (int fd = 0; fd < 1024; fd++)
		refused(recvmsg(fd, &message, MSG_DONTWAIT), "receive a message on descriptor %d", fd);
}

/* -------- the kernel ---------------------------------------------------------------------------------- */
static void packets(void)
{
	struct sock_filter instruction = BPF_STMT(BPF_RET | BPF_K, 0xffff);
	struct sock_fprog program = {1, &instruction};
	int number = 0;

	refused(socket(AF_INET, SOCK_PACKET, 0x0300), "the old packet socket");
	refused(socket(AF_PACKET, SOCK_DGRAM, 0), "packet socket");
	refused(socket(44 /* AF_XDP */, SOCK_RAW, 0), "XDP socket");
	refused(syscall(SYS_bpf, 5 /* PROG_LOAD */, &program, sizeof(program)), "load a program");
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	refused(setsockopt(fd, SOL_SOCKET, 50 /* SO_ATTACH_BPF */, &number, sizeof(number)), "attach a loaded program");
	refused(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "eth0", 5), "bind to a device");
	refused(setsockopt(fd, SOL_SOCKET, SO_MARK, &number, sizeof(number)), "mark packets");
}

static void writable_below(const char *path, int depth)
{
	DIR *list = opendir(path);
	char name[512];
	struct stat st;

	for (struct dirent *entry; list && (entry = readdir(list));) {
		if (entry->d_name[0] == '.' ||
		    (size_t)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) >= sizeof(name) ||
		    lstat(name, &st))
			continue;
		if (S_ISDIR(st.st_mode) && depth < 8)
			writable_below(name, depth + 1);
		else if (S_ISREG(st.st_mode))
			refused(open(name, O_WRONLY | O_CLOEXEC), "open %s for writing", name);
	}
	if (list)
		closedir(list);
}

static void network_settings(void)
{
	writable_below("/proc/sys/net", 0);
	refused(open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC), "open ip_forward for writing");
	refused(open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_RDWR | O_CLOEXEC),
		"open ip_unprivileged_port_start for writing");
}

/* Nobody can be traced, so nobody can change the number of a call after the filter has seen it. */
static void change_number(void)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		long traced = ptrace(PTRACE_TRACEME, 0, 0, 0);

		_exit(traced == -1 ? 0 : 1);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	holds(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child lets itself be traced: %#x", status);
	refused(ptrace(PTRACE_SEIZE, getppid(), 0, 0), "trace the parent");
	refused(syscall(SYS_seccomp, 1 /* SET_MODE_FILTER */, 8 /* NEW_LISTENER */, NULL), "a listener of its own");
}

static void kernel_log(void)
{
	char text[64];
	static const char *const files[] = {"/dev/kmsg", "/proc/kmsg", "/var/log/kern.log", "/var/log/dmesg"};

	for (long action = 0; action < 11; action++)
		refused(syscall(SYS_syslog, action, text, sizeof(text)), "syslog action %ld", action);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		refused(open(files[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC), "read %s", files[i]);
		refused(open(files[i], O_WRONLY | O_CLOEXEC), "write %s", files[i]);
	}
}

const struct probe probes_traces[] = {
	PROBE("C01", "set the clock", set_time),
	PROBE("C03", "read the clocks", clocks_agree),
	PROBE("D04", "kinds of inherited descriptors", kinds_of_descriptors),
	PROBE_AFTER("E02", "command lines of others", leave_processes, find_processes),
	PROBE("E02b", "files that others open", watch_others),
	PROBE("K11", "trace itself to change a system call", change_number),
	PROBE("K14", "the kernel's log", kernel_log),
	PROBE("K18", "counters of the processor", counters_of_the_processor),
	PROBE("N09", "sniff and inject packets", packets),
	PROBE("N10", "receive descriptors", receive_descriptors),
	PROBE("N14", "settings of the network", network_settings),
	PROBE_AFTER("X01", "files that another run left", leave_files, find_files),
	PROBE_AFTER("X02", "System V and POSIX objects of another run", leave_objects, find_objects),
	PROBE_AFTER("X03", "keys of another run", leave_keys, find_keys),
	PROBE_AFTER("X05", "servers and routes of another run", leave_network, find_network),
	PROBE("X08", "numbers that tell what others do", counters),
	PROBE_TERMS("X09a", "random bytes are the same twice", random_bytes, "twice=differs"),
	PROBE_TERMS("X09b", "addresses are the same twice", random_addresses, "twice=differs"),
	{0},
};
