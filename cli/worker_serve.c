/*
 * worker_serve.c - the services of a worker: jailer, gateway, nginx; see worker.h.
 *
 * They are children of this process, get their settings as SALLYPORT_ variables, and die with it (PDEATHSIG). They are
 * started in this order, each when the one before answers. When one ends by itself all do: what started the worker
 * (Slurm, Kubernetes, systemd) starts a new one, and a front takes its requests elsewhere. A signal stops them the
 * other way round: nginx takes nothing more and waits for what is under way, the gateway refuses what has not begun and
 * drains, the jailer ends last.
 *
 * Started as root nothing but the jailer stays root: gateway and nginx are ACCOUNT's. Sockets are in a scratch folder,
 * because their paths must be short, and because that of the record may be on any disk.
 */
#include "worker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/embed.h"
#include "lib/base/util.h"

#define ACCOUNT       "www-data"
#define READY_SECONDS 120
#define DRAIN_SECONDS 40 /* a gateway takes 30 */
#define STOP_SECONDS  10
#define LOOK_US       50000

EMBED(worker_nginx, "nginx/worker.conf.in");

enum { JAILER, GATEWAY, NGINX, SERVICES };
static const char *const service_names[] = {"jailer", "gateway", "nginx"};

struct serving {
	const struct worker *worker;
	char *run; /* the scratch folder */
	char *announced; /* the file; NULL: none */
	pid_t pids[SERVICES]; /* 0: does not run */
	uid_t user;
	gid_t group; /* of ACCOUNT; both 0: nobody has to be another */
	sigset_t signals, before;
};

/* -------- texts --------------------------------------------------------------------------------------- */

char *worker_address_text(const struct worker_address *address)
{
	const bool v6 = strchr(address->host, ':');

	return *address->host ? xasprintf("%s%s%s:%u", v6 ? "[" : "", address->host, v6 ? "]" : "", address->port)
			      : xasprintf("%u", address->port);
}

char *worker_fill(const char *text, const char *const *values)
{
	struct buf out;

	buf_init(&out, SIZE_MAX);
	while (*text) {
		const char *at = strchr(text, '@'), *end = at ? strchr(at + 1, '@') : NULL;
		const char *const *value = values;
		const size_t length = end ? (size_t)(end - at) - 1 : 0;

		for (; end && *value; value += 2)
			if (strlen(*value) == length && memcmp(*value, at + 1, length) == 0)
				break;
		if (end && *value) {
			buf_add(&out, text, (size_t)(at - text));
			buf_puts(&out, value[1]);
			text = end + 1;
		} else {
			const size_t plain = at ? (size_t)(at - text) + 1 : strlen(text);

			buf_add(&out, text, plain);
			text += plain;
		}
	}
	return buf_steal(&out, NULL);
}

/* -------- settings ------------------------------------------------------------------------------------ */

static void set(const char *name, bool always, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void set(const char *name, bool always, const char *format, ...)
{
	char value[8192];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	setenv(name, value, always);
}

static void set_environment(const struct serving *serving)
{
	const struct worker *worker = serving->worker;

	set("SALLYPORT_PROFILE", false, "grader");
	set("SALLYPORT_PUBLIC_BASE_URL", true, "http://%s:%u", worker->name, worker->listen.port);
	set("SALLYPORT_DATA_DIR", true, "%s/data", worker->dir);
	set("SALLYPORT_GATEWAY_SOCKET", true, "%s/gateway.sock", serving->run);
	set("SALLYPORT_GATEWAY_ACCEL_PREFIX", true, "%s", "");
	set("SALLYPORT_JAILER_SOCKET", true, "%s/jail/jailer.sock", serving->run);
	if (serving->user)
		set("SALLYPORT_JAILER_ALLOWED_USERS", false, ACCOUNT);
	if (worker->trusted)
		set("SALLYPORT_DOORS_TRUSTED", true, "%s", worker->trusted);
}

static int find_account(struct serving *serving, struct err *err)
{
	const struct passwd *account = geteuid() == 0 ? getpwnam(ACCOUNT) : NULL;

	if (geteuid() != 0)
		return 0;
	if (!account)
		return err_set(err, ERR_UNAVAILABLE,
			       "the account %s is missing, and nothing serves as root: install Debian's base-passwd",
			       ACCOUNT);
	serving->user = account->pw_uid;
	serving->group = account->pw_gid;
	return 0;
}

static int make_folder(const char *path, mode_t mode, const struct serving *owner, struct err *err)
{
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return err_errno(err, "the folder %s cannot be made", path);
	if (owner && owner->user && chown(path, owner->user, owner->group) < 0)
		return err_errno(err, "the folder %s cannot be given to " ACCOUNT, path);
	return 0;
}

static int make_folders(struct serving *serving, struct err *err)
{
	const char *dir = serving->worker->dir;
	auto_free char *data = xasprintf("%s/data", dir), *log = xasprintf("%s/log", dir),
		       *jail = xasprintf("%s/jail", serving->run);
	int result = make_folder(data, 0700, serving, err);

	if (result == 0)
		result = make_folder(log, 0755, NULL, err);
	if (result == 0)
		result = make_folder(jail, 0755, NULL, err);
	if (result == 0 && serving->user &&
	    (chown(serving->run, serving->user, serving->group) < 0 || chmod(serving->run, 0755) < 0))
		result = err_errno(err, "the folder %s cannot be given to " ACCOUNT, serving->run);
	return result;
}

static int write_nginx(const struct serving *serving, const char *path, const char *log, struct err *err)
{
	auto_free char *place = worker_address_text(&serving->worker->listen);
	const char *const values[] = {"LISTEN", place, "RUN", serving->run, "LOG", log, NULL};
	auto_free char *text = worker_fill(worker_nginx, values);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	return fd < 0 || write_all(fd, text, strlen(text)) < 0 ? err_errno(err, "%s cannot be written", path) : 0;
}

/* -------- one service --------------------------------------------------------------------------------- */

static char *find_nginx(void)
{
	static const char *const folders[] = {"/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"};

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		char *path = xasprintf("%s/nginx", folders[i]);

		if (access(path, X_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

_Noreturn static void become(const struct serving *serving, int service, int log, const char *const *argv)
{
	const bool drops = service != JAILER && serving->user;

	if (dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0 || /* inherited by the service */
	    setsid() < 0 || sigprocmask(SIG_SETMASK, &serving->before, NULL) < 0 ||
	    (drops && (setgroups(0, NULL) < 0 || setresgid(serving->group, serving->group, serving->group) < 0 ||
		       setresuid(serving->user, serving->user, serving->user) < 0)) ||
	    (service != JAILER && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		_exit(127);
	execv(argv[0], (char *const *)(const void *)argv);
	_exit(127);
}

static int start(struct serving *serving, int service, const char *const *argv, struct err *err)
{
	auto_free char *path = xasprintf("%s/log/%s.log", serving->worker->dir, service_names[service]);
	auto_close int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (log < 0)
		return err_errno(err, "%s cannot be written", path);
	const pid_t pid = fork();

	if (pid < 0)
		return err_errno(err, "the %s cannot be started", service_names[service]);
	if (pid == 0)
		become(serving, service, log, argv);
	serving->pids[service] = pid;
	return 0;
}

/* Takes the ends of children; the first service that has ended, or -1. */
static int reap(struct serving *serving)
{
	int ended = -1;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (int i = 0; i < SERVICES; i++)
			if (serving->pids[i] == pid) {
				serving->pids[i] = 0;
				ended = ended < 0 ? i : ended;
			}
	return ended;
}

/* Does something listen on the service's socket? */
static bool answers(const struct serving *serving, int service)
{
	const struct worker_address *listen = &serving->worker->listen;
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(listen->port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(listen->port)};
	const bool is_v6 = strchr(listen->host, ':');
	auto_close int fd = socket(service != NGINX ? AF_UNIX : is_v6 ? AF_INET6 : AF_INET,
				   (service == JAILER ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC, 0);

	if (service != NGINX) {
		snprintf(local.sun_path, sizeof(local.sun_path), "%s/%s.sock", serving->run,
			 service == JAILER ? "jail/jailer" : "gateway");
		return connect(fd, (struct sockaddr *)&local, sizeof(local)) == 0;
	}
	inet_pton(is_v6 ? AF_INET6 : AF_INET, *listen->host ? listen->host : "127.0.0.1",
		  is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr);
	return (is_v6 ? connect(fd, (struct sockaddr *)&v6, sizeof(v6))
		      : connect(fd, (struct sockaddr *)&v4, sizeof(v4))) == 0;
}

static int failed(const struct serving *serving, int service, const char *what, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "the %s %s: %s/log/%s.log says why", service_names[service], what,
		       serving->worker->dir, service_names[service]);
}

/* 1: a signal to stop came; 0: it answers. */
static int await(struct serving *serving, int service, struct err *err)
{
	const int64_t until_us = clock_monotonic_us() + READY_SECONDS * INT64_C(1000000);
	const struct timespec pause = {.tv_nsec = LOOK_US * 1000};

	while (!answers(serving, service)) {
		const int signal = sigtimedwait(&serving->signals, NULL, &pause);

		if (signal > 0 && signal != SIGCHLD)
			return 1;
		const int ended = reap(serving);

		if (ended >= 0)
			return failed(serving, ended, "did not start", err);
		if (clock_monotonic_us() > until_us)
			return failed(serving, service, "does not answer", err);
	}
	return 0;
}

/* -------- all of them --------------------------------------------------------------------------------- */

static int start_program(struct serving *serving, int service, struct err *err)
{
	auto_free char *folder = config_program_dir(), *config = NULL,
		       *program = xasprintf("%s/sallyport-%s", folder, service_names[service]);
	const char *const argv[] = {program, serving->worker->config ? "--config" : NULL, serving->worker->config,
				    NULL};

	return start(serving, service, argv, err);
}

static int start_nginx(struct serving *serving, struct err *err)
{
	auto_free char *program = find_nginx(), *path = xasprintf("%s/nginx.conf", serving->run),
		       *log = xasprintf("%s/log/nginx.log", serving->worker->dir);
	const char *const argv[] = {program, "-e", log, "-c", path, NULL};

	if (!program)
		return err_set(err, ERR_UNAVAILABLE, "nginx is not installed: apt-get install nginx-light");
	int result = write_nginx(serving, path, log, err);
	auto_close int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (result == 0 && (fd < 0 || (serving->user && fchown(fd, serving->user, serving->group) < 0)))
		result = err_errno(err, "%s cannot be written", log);
	return result < 0 ? result : start(serving, NGINX, argv, err);
}

static int announce(struct serving *serving, struct err *err)
{
	const struct worker *worker = serving->worker;
	auto_free char *line = xasprintf("%s:%u\n", worker->name, worker->listen.port);

	if (!worker->announce)
		return 0;
	auto_free char *path = xasprintf("%s/addr_%s_%u.txt", worker->announce, worker->name, worker->listen.port),
		       *part = xasprintf("%s.part", path);
	auto_close int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write_all(fd, line, strlen(line)) < 0 || rename(part, path) < 0)
		return err_errno(err, "%s cannot be written", path);
	serving->announced = steal(&path);
	return 0;
}

/* 1: a signal to stop came before all of them answered. */
static int start_all(struct serving *serving, struct err *err)
{
	int result = 0;

	for (int service = JAILER; result == 0 && service < SERVICES; service++) {
		result = service == NGINX ? start_nginx(serving, err) : start_program(serving, service, err);
		if (result == 0)
			result = await(serving, service, err);
	}
	return result;
}

/* A signal, and at the end of its patience a hard one. */
static void stop_one(struct serving *serving, int service, int signal, int seconds)
{
	const int64_t until_us = clock_monotonic_us() + seconds * INT64_C(1000000);
	const struct timespec pause = {.tv_nsec = LOOK_US * 1000};

	if (serving->pids[service] && signal)
		kill(serving->pids[service], signal);
	while (serving->pids[service] && clock_monotonic_us() < until_us) {
		sigtimedwait(&serving->signals, NULL, &pause);
		reap(serving);
	}
	if (!serving->pids[service])
		return;
	kill(-serving->pids[service], SIGKILL); /* it leads a session */
	waitpid(serving->pids[service], NULL, 0);
	serving->pids[service] = 0;
}

static void stop_all(struct serving *serving)
{
	if (serving->announced)
		unlink(serving->announced);
	if (serving->pids[NGINX])
		kill(serving->pids[NGINX], SIGQUIT);
	stop_one(serving, GATEWAY, SIGTERM, DRAIN_SECONDS);
	stop_one(serving, NGINX, 0, STOP_SECONDS);
	stop_one(serving, JAILER, SIGTERM, STOP_SECONDS);
	free(serving->announced);
}

static int wait_for_end(struct serving *serving, struct err *err)
{
	for (;;) {
		const int signal = sigwaitinfo(&serving->signals, NULL);

		if (signal > 0 && signal != SIGCHLD)
			return 0;
		const int ended = reap(serving);

		if (ended >= 0)
			return failed(serving, ended, "has ended", err);
	}
}

static void block_signals(struct serving *serving)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};

	sigemptyset(&serving->signals);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&serving->signals, signals[i]);
	sigprocmask(SIG_BLOCK, &serving->signals, &serving->before);
}

int worker_serve(const struct worker *worker, struct err *err)
{
	struct serving serving = {.worker = worker};
	int result = find_account(&serving, err);

	if (result == 0)
		result = cli_scratch(&serving.run, err);
	auto_free char *run = serving.run;

	if (result == 0)
		result = make_folders(&serving, err);
	if (result < 0)
		return result;
	set_environment(&serving);
	block_signals(&serving);
	result = start_all(&serving, err);
	if (result == 0)
		result = announce(&serving, err);
	if (result == 0) {
		printf("worker: %s:%u serves; its record is in %s/data\n", worker->name, worker->listen.port,
		       worker->dir);
		fflush(stdout);
		result = wait_for_end(&serving, err);
	}
	stop_all(&serving);
	return MIN(result, 0);
}
