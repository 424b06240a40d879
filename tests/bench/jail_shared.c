/*
 * jail_shared.c - what a guest's locks cost the host: flock, and open with close, of the C library, which every program
 * of the host opens, while a guest holds all the locks that it can get on it, running and frozen.
 *
 *   jail_shared JAILER RUNNERS_DIR
 *
 * Each round measures the host without a guest, with one that runs and with one that is frozen; printed are the
 * medians of the rounds' ratios (aim 1.0). After a lock was refused the kernel needs a moment, because init has then
 * read the list of locks: what is measured begins SETTLE_MS later. Without inodes of the jail's own it was 1,500 us
 * instead of 0.6.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "lib/base/util.h"

#define LIBRARY   "/usr/lib/x86_64-linux-gnu/libc.so.6"
#define ROUNDS    9
#define STRETCHES 50
#define CALLS     200
#define SETTLE_MS 200

/* Takes locks of both kinds until it is refused. "run": says so and stays; else its child stays, and it says so when it
 * ends, so that the child is frozen then. */
static const char source[] =
	"#define _GNU_SOURCE\n"
	"#include <fcntl.h>\n#include <stdio.h>\n#include <string.h>\n#include <sys/file.h>\n#include <unistd.h>\n"
	"int main(int n, char **v) {\n"
	" int ends[2], locks = 0; char byte = 0;\n"
	" if (n < 2 || pipe(ends)) return 2;\n"
	" int stays = !strcmp(v[1], \"run\");\n"
	" if (!stays && fork()) { close(ends[1]); return read(ends[0], &byte, 1) != 1; }\n"
	" int whole = open(\"" LIBRARY "\", O_RDONLY), part = open(\"" LIBRARY "\", O_RDONLY);\n"
	" if (whole < 0 || part < 0 || flock(whole, LOCK_EX | LOCK_NB)) return 3;\n"
	" for (;; locks++) {\n"
	"  struct flock lock = {.l_type = F_RDLCK, .l_start = 2 * locks, .l_len = 1};\n"
	"  if (fcntl(part, F_SETLK, &lock)) break; }\n"
	" printf(\"%d\\n\", locks); fflush(stdout);\n"
	" if (write(ends[1], \"x\", 1) != 1) return 4;\n"
	" for (;;) pause(); }\n";

static struct jail_client *client;
static bool heard, done;
static struct jail_result last;

static _Noreturn void die(const char *text)
{
	fprintf(stderr, "jail_shared: %s\n", text);
	exit(1);
}

static void on_output(void *arg, int64_t out, int64_t error)
{
	(void)arg, (void)out, (void)error;
	heard = true;
}

static void on_done(void *arg, const struct jail_result *result)
{
	(void)arg;
	done = true;
	last = *result;
	last.denied = NULL;
}

static void on_failed(void *arg, const struct err *err)
{
	(void)arg;
	die(err->text);
}

static const struct jail_events events = {.output = on_output, .done = on_done, .failed = on_failed};

/* -------- the host ------------------------------------------------------------------------------------ */
enum figure { FLOCK, OPEN, FIGURES };

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

static void once(enum figure figure, int fd)
{
	if (figure == OPEN) {
		close(open(LIBRARY, O_RDONLY | O_CLOEXEC));
		return;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) || flock(fd, LOCK_UN))
		die("the host's flock is refused");
}

/* Nanoseconds a call: the median of short stretches. */
static void measure(double ret[FIGURES])
{
	auto_close int fd = open(LIBRARY, O_RDONLY | O_CLOEXEC);
	double stretches[STRETCHES];

	for (int figure = 0; figure < FIGURES; figure++) {
		for (size_t i = 0; i < STRETCHES; i++) {
			int64_t begin = clock_monotonic_us();

			for (size_t k = 0; k < CALLS; k++)
				once((enum figure)figure, fd);
			stretches[i] = (double)(clock_monotonic_us() - begin) * 1000 / CALLS;
		}
		ret[figure] = median(stretches, STRETCHES);
	}
}

/* -------- the guest ----------------------------------------------------------------------------------- */
static struct jail *hold(bool frozen, int *ret_locks)
{
	const struct jail_spec spec = {.runner = "c", .live = frozen};
	const char *const args[] = {frozen ? "freeze" : "run", NULL};
	auto_close int code = memfd_with("code", source, sizeof(source) - 1);
	auto_close int out = memfd_create("out", MFD_CLOEXEC);
	const struct jail_program program = {
		.code_fd = code, .args = args, .stdin_fd = -1, .stdout_fd = out, .stderr_fd = -1};
	struct err err = ERR_INIT;
	struct jail *jail;
	char said[32] = "";

	heard = done = false;
	if (jail_open(client, &spec, &events, NULL, &jail, &err) < 0 || jail_run(jail, &program, &err) < 0)
		die(err.text);
	while (!(frozen ? done : heard || done)) {
		struct pollfd poller = {.fd = jail_client_fd(client), .events = POLLIN};

		poll(&poller, 1, -1);
		if (jail_client_dispatch(client, &err) < 0)
			die(err.text);
	}
	if (done && !(frozen && last.verdict == JAIL_OK))
		die(last.message);
	if (pread(out, said, sizeof(said) - 1, 0) <= 0)
		die("the guest says nothing");
	*ret_locks = (int)strtol(said, NULL, 10);
	return jail;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"flock", "open and close"};
	static double with[2][FIGURES][ROUNDS];
	double bare[FIGURES], now[FIGURES], first[FIGURES];
	char config[] = "/tmp/jail_shared.XXXXXX";
	struct err err = ERR_INIT;
	int locks = 0;

	if (argc != 3)
		die("usage: jail_shared JAILER RUNNERS_DIR");
	auto_close int fd = mkostemp(config, O_CLOEXEC);
	dprintf(fd, "{\"jailer\":{\"runners_dir\":\"%s\"}}\n", argv[2]);
	if (jail_client_spawn(argv[1], config, &client, &err) < 0)
		die(err.text);
	for (size_t i = 0; i < ROUNDS; i++)
		for (int frozen = 0; frozen < 2; frozen++) {
			measure(bare);
			struct jail *jail = hold(frozen, &locks);

			poll(NULL, 0, SETTLE_MS);
			measure(now);
			jail_close(jail);
			for (int figure = 0; figure < FIGURES; figure++) {
				with[frozen][figure][i] = now[figure] / bare[figure];
				first[figure] = bare[figure];
			}
		}
	unlink(config);
	for (int figure = 0; figure < FIGURES; figure++)
		printf("the host's %s of its C library: %.0f ns; a guest with %d locks on it runs: ratio %.2f, is "
		       "frozen: %.2f (aim 1.0)\n",
		       names[figure], first[figure], locks, median(with[0][figure], ROUNDS),
		       median(with[1][figure], ROUNDS));
	jail_client_free(client);
	return 0;
}
