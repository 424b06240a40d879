/*
 * jailer.c - program sallyport-jailer: makes jails for its clients (see jail.h for what they can ask, wire.h for how).
 *
 *   sallyport-jailer --config PATH     a service on config.jailer.socket
 *   sallyport-jailer --fd 3            private: one client, on an inherited socket
 *
 * Started as root it becomes nobody: it claims a slice of host ids and a directory of cgroups, builds the jails' root
 * as long as it may read everything, and then enters a user namespace of its own, in which it is 0 and on the host an
 * id that owns nothing. Started by a user it does the same with what the user has. After that there is one code path.
 *
 *     porter (outside: writes the maps, sees who connects) ---+
 *                                                              | connections
 *     clients ===== SOCK_SEQPACKET ===== jailer (epoll) =======+====== init of each jail ===== program
 *
 * Single-threaded: one event, then the ticks (deadlines, answers, reaping, groups made ahead). Everything that a guest
 * can make big has a bound. SIGTERM and SIGINT end it: the guests die, the cgroups are removed. SIGKILL ends it too:
 * the guests die by their death signal, and the next start removes the cgroups.
 *
 * Exit status: 0 ended when told to, 1 could not start or go on (the reason is on standard error), 2 wrong options.
 */
#include <errno.h>
#include <getopt.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/init/fence.h"
#include "jail/init/init.h"
#include "jail/init/seccomp.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/base/version.h"
#include "net.h"
#include "porter.h"
#include "root_mount.h"
#include "server.h"
#include "versions.h"

#define OUTER_NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define BUSY_GROUP_US    10000 /* between attempts to remove a group whose last process is not quite gone */
#define MODULES_DEFAULT  "npm" /* below the runners' directory */

struct options {
	const char *config_path;
	int client_fd; /* -1: service */
};

struct jailer {
	struct config config;
	char *modules_dir;
	struct runners runners;
	struct root_mount root; /* of every runner that has none of its own */
	struct identity identity;
	struct cgroup *cgroup;
	int loop;
	int porter;
	struct loop_watch porter_watch, signal_watch;
	struct net net;
	struct cells cells;
	struct server server;
	struct versions versions;
	bool stop;
};

static const char usage[] = "usage: sallyport-jailer [--config PATH] [--fd N]\n"
			    "Makes jails for sallyport's programs: a service on config.jailer.socket, or with --fd for "
			    "one client on socket N.\n"
			    "  --config PATH   configuration file (else SALLYPORT_CONFIG, else defaults)\n"
			    "  --fd N          private mode\n"
			    "  --version, --help\n"
			    "Exit status: 0 ended when told to, 1 could not start, 2 wrong options.\n";

/* -1: go on; else the exit status. */
static int parse_options(int argc, char **argv, struct options *ret)
{
	static const struct option known[] = {
		{"config", required_argument, NULL, 'c'},
		{"fd", required_argument, NULL, 'f'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	uint64_t fd;

	*ret = (struct options){.client_fd = -1};
	for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (option == 'c')
			ret->config_path = optarg;
		else if (option == 'f' && parse_u64(optarg, 3, 1023, &fd) == 0)
			ret->client_fd = (int)fd;
		else if (option == 'v')
			return printf("sallyport-jailer %s\n", SALLYPORT_VERSION) < 0;
		else if (option == 'h')
			return fputs(usage, stdout) < 0;
		else
			return fputs(usage, stderr), 2;
	}
	return optind == argc ? -1 : (fputs(usage, stderr), 2);
}

#define OPEN_FILES_LEAST 256 /* of the jailer; init.c moves descriptors to 64 and above */

static void raise_soft(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resource, &limit);
	}
}

/* Signals that wait are counted for the account that started us and for all jails together: half is theirs. The kernel
 * takes the limit of who makes a user namespace as that of all below it. */
static void halve_signals(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_SIGPENDING, &limit) == 0) {
		limit.rlim_cur /= 2;
		setrlimit(RLIMIT_SIGPENDING, &limit);
	}
}

/* What guests' limits are cut out of. Only root can raise a hard limit; where it is lower for a user, doctor says what
 * that means. */
static int raise_limits(struct err *err)
{
	struct rlimit limit;

	raise_soft(RLIMIT_NOFILE);
	raise_soft(RLIMIT_FSIZE);
	halve_signals();
	if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max < INIT_CORE_BYTES) {
		limit.rlim_max = INIT_CORE_BYTES;
		setrlimit(RLIMIT_CORE, &limit);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < OPEN_FILES_LEAST)
		return err_set(err, ERR_UNAVAILABLE,
			       "%llu open files are too few for a jailer: raise the limit to %d or more (ulimit -Hn, "
			       "LimitNOFILE=)",
			       (unsigned long long)limit.rlim_cur, OPEN_FILES_LEAST);
	return 0;
}

/* The folder itself, as a link cannot be bound. */
static int find_modules(const struct config *config, char **ret, struct err *err)
{
	auto_free char *usual = xasprintf("%s/" MODULES_DEFAULT, config->jailer.runners_dir);
	auto_free char *packages = xasprintf("%s/node_modules", usual);
	const char *named = config->jailer.modules_dir, *folder = named[0] ? named : usual;

	if (!named[0] && access(packages, R_OK)) {
		*ret = xstrdup("");
		return 0;
	}
	*ret = realpath(folder, NULL);
	return *ret ? 0 : err_errno(err, "jailer.modules_dir: %s", folder);
}

/* What must be read or claimed while we are still who started us. */
static int prepare(struct jailer *jailer, const struct options *options, struct err *err)
{
	int result = config_load(options->config_path, &jailer->config, err);

	if (result)
		return result;
	if (options->client_fd < 0 && !jailer->config.jailer.socket[0])
		return err_set(err, ERR_INVALID, "jailer.socket is not set: a service needs one");
	result = find_modules(&jailer->config, &jailer->modules_dir, err);
	if (!result)
		result = net_init(&jailer->net, &jailer->config, err);
	if (result)
		return result;
	const char *state = jailer->config.data_dir;
	const struct runners_host host = {jailer->modules_dir, state ? state : ""};

	result = runners_load(jailer->config.jailer.runners_dir, &host, &jailer->runners, err);
	if (!result)
		result = identity_claim(&jailer->config, &jailer->identity, err);
	if (!result)
		result = cgroup_open(&jailer->config, &jailer->identity, &jailer->cgroup, err);
	/* The standard error of a private one is that of its command: whose remains it met there is nobody's news. */
	if (!result && jailer->identity.found_dead)
		log_event(options->client_fd < 0 ? LOG_WARN : LOG_DEBUG, "cleared what a jailer left that was killed",
			  "cgroup", cgroup_kind(jailer->cgroup), NULL);
	return result;
}

static int start_porter(struct jailer *jailer, const struct options *options, struct err *err)
{
	struct porter_spec spec = {.identity = &jailer->identity, .listen_fd = -1};
	int result = porter_users(&jailer->config, &spec, err);

	if (!result && options->client_fd < 0)
		result = porter_listen(jailer->config.jailer.socket, &spec.listen_fd, err);
	return result ? result : porter_start(&spec, &jailer->porter, err);
}

static int build_roots(struct jailer *jailer, struct err *err)
{
	static const struct bind_strings none = {.count = 0};
	const struct root_plan usual = {.modules_dir = jailer->modules_dir, .binds = &none};
	auto_free char *hosts = egress_hosts(&jailer->net.egress);
	int result = root_mount_begin(hosts, err);

	if (!result)
		result = root_mount_add(&usual, &jailer->root, err);
	for (size_t i = 0; !result && i < jailer->runners.count; i++) {
		struct runner *runner = &jailer->runners.items[i];
		const struct root_plan own = {runner->rootfs, jailer->modules_dir, &runner->binds};

		if (runner->root.path[0] && (result = root_mount_add(&own, &runner->root, err)))
			err_wrap(err, "runner %s", runner->name);
	}
	return result ? result : root_mount_finish(err);
}

/* Out of the host: root builds the root mounts first, while it may still read everything (a checkout below a closed
 * home); a user can mount only inside its user namespace. From the second unshare on every mount is locked. */
static int enter_outer_namespaces(struct jailer *jailer, struct err *err)
{
	bool root = jailer->identity.mode == IDENTITY_ROOT;
	int result = 0;

	if (root && unshare(CLONE_NEWNS))
		return err_errno(err, "making a mount namespace");
	if (root)
		result = build_roots(jailer, err);
	if (!result && unshare(OUTER_NAMESPACES))
		result = err_set(err, ERR_UNAVAILABLE,
				 "this host does not let us make user namespaces (%s): see user.max_user_namespaces, "
				 "and AppArmor's "
				 "kernel.apparmor_restrict_unprivileged_userns",
				 strerror(errno));
	if (!result)
		result = porter_maps(jailer->porter, err);
	if (!result)
		result = identity_become(&jailer->identity, err);
	if (!result && !root)
		result = build_roots(jailer, err);
	if (!result && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		result = err_errno(err, "no_new_privs");
	/* An empty session keyring: guests inherit ours. Kernels without keys have nothing to inherit. */
	if (!result)
		syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return result;
}

static void on_connection(struct loop_watch *watch, uint32_t events)
{
	struct jailer *jailer = loop_owner(watch, struct jailer, porter_watch);
	int fd = porter_receive(watch->fd);

	(void)events;
	if (fd >= 0)
		server_add(&jailer->server, fd);
	else if (errno != EAGAIN) {
		log_event(LOG_ERROR, "the porter is gone", NULL);
		jailer->stop = true;
	}
}

static void on_signal(struct loop_watch *watch, uint32_t events)
{
	struct jailer *jailer = loop_owner(watch, struct jailer, signal_watch);
	struct signalfd_siginfo info;

	(void)events;
	if (read(watch->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		jailer->stop = true;
}

static int watch_signals(struct jailer *jailer, bool private, struct err *err)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* A terminal's Ctrl-C reaches us too, but it is the client that decides what it means. */
	if (private)
		signal(SIGINT, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (!private)
		sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0 || loop_add(jailer->loop, &jailer->signal_watch, fd, EPOLLIN, on_signal))
		return err_errno(err, "watching signals");
	return 0;
}

static int start_loop(struct jailer *jailer, const struct options *options, struct err *err)
{
	bool private = options->client_fd >= 0;

	jailer->loop = loop_open();
	if (jailer->loop < 0)
		return err_errno(err, "making the event loop");
	int result = watch_signals(jailer, private, err);
	if (result)
		return result;
	cells_init(&jailer->cells, jailer->loop, &jailer->config, &jailer->identity, jailer->cgroup);
	jailer->cells.root = &jailer->root;
	jailer->cells.fence_abi = fence_abi();
	jailer->cells.net = &jailer->net;
	result = net_watch(&jailer->net, jailer->loop, err);
	for (size_t i = 0; !result && !private && i < SECCOMP_FAMILIES; i++)
		result = cells_make_filter(&jailer->cells, (enum seccomp_family)i, err);
	if (result)
		return result;
	jailer->server = (struct server){
		.cells = &jailer->cells,
		.runners = &jailer->runners,
		.config = &jailer->config,
		.identity = &jailer->identity,
		.private = private,
	};
	versions_init(&jailer->versions, &jailer->cells, &jailer->runners, &jailer->config, !private);
	jailer->server.versions = &jailer->versions;
	if (private) {
		server_add(&jailer->server, options->client_fd);
		wait(NULL); /* the porter has done its part */
		return 0;
	}
	if (loop_add(jailer->loop, &jailer->porter_watch, jailer->porter, EPOLLIN, on_connection))
		return err_errno(err, "watching the porter");
	return 0;
}

/* Groups and jails are made ahead when nobody waits. `idle`: the last wait ended without an event. Returns until when
 * to wait at most. */
static int64_t prepare_ahead(struct jailer *jailer, bool idle)
{
	if (cgroup_prepared(jailer->cgroup) && cells_prepared(&jailer->cells))
		return INT64_MAX;
	const int64_t awaited = cells_awaited(&jailer->cells);
	if (awaited > clock_monotonic_us())
		return awaited;
	if (!idle)
		return 0;
	bool groups_done = cgroup_prepare(jailer->cgroup);
	if (!cells_prepared(&jailer->cells)) {
		cells_prepare(&jailer->cells);
		return 0;
	}
	return groups_done ? INT64_MAX : clock_monotonic_us() + BUSY_GROUP_US;
}

static void serve(struct jailer *jailer)
{
	int event = 0;

	while (!jailer->stop && !jailer->server.gone && event >= 0) {
		cells_tick(&jailer->cells);
		versions_tick(&jailer->versions);
		server_tick(&jailer->server);
		if (jailer->server.gone) /* found out just now: nothing would wake us any more */
			break;
		cells_reap(&jailer->cells);
		int64_t deadline = prepare_ahead(jailer, event == 0);
		event = loop_once(jailer->loop, MIN(deadline, cells_deadline(&jailer->cells)));
	}
}

static void clear_prepared(struct jailer *jailer)
{
	net_clear(&jailer->net);
	cgroup_close(jailer->cgroup);
	runners_clear(&jailer->runners);
	root_mount_clear(&jailer->root);
	identity_clear(&jailer->identity);
	config_clear(&jailer->config);
	free(jailer->modules_dir);
}

/* First of all nobody new comes in: a client that is not served any more could keep a jail, for whose end we wait,
 * open. */
static void clear(struct jailer *jailer)
{
	if (!jailer->server.private) {
		loop_remove(jailer->loop, &jailer->porter_watch);
		close(jailer->porter); /* the porter ends */
	}
	versions_clear(&jailer->versions);
	server_clear(&jailer->server);
	cells_clear(&jailer->cells);
	clear_prepared(jailer);
}

int main(int argc, char **argv)
{
	struct jailer jailer = {
		.identity = IDENTITY_INIT, .porter = -1, .net = NET_INIT, .root = {.path = ROOT_MOUNT_PATH}};
	struct options options;
	struct err err = ERR_INIT;
	int status = parse_options(argc, argv, &options);

	if (fill_standard_fds())
		return err_info(ERR_SYSTEM)->exit; /* nobody to tell */
	if (status >= 0)
		return status;
	log_open("jailer", options.client_fd < 0 ? LOG_INFO : LOG_WARN);
	umask(022);
	signal(SIGXFSZ,
	       SIG_IGN); /* ulimit -f: a write that says EFBIG can be told of. Guests get the default back (init.c) */
	int result = raise_limits(&err);
	if (!result)
		result = prepare(&jailer, &options, &err);
	if (!result)
		result = net_start(&jailer.net, &jailer.identity, &err);
	if (!result)
		result = start_porter(&jailer, &options, &err);
	if (!result)
		result = enter_outer_namespaces(&jailer, &err);
	if (!result)
		result = start_loop(&jailer, &options, &err);
	jailer.cells.command_line = argv[0];
	jailer.cells.command_line_size = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
	if (result) {
		fprintf(stderr, "sallyport-jailer: %s\n", err.text);
		clear_prepared(&jailer);
		return 1;
	}
	log_event(LOG_INFO, "started", "mode", identity_mode_text(jailer.identity.mode), "cgroup",
		  cgroup_kind(jailer.cgroup), NULL);
	serve(&jailer);
	log_event(LOG_INFO, "stopping", NULL);
	clear(&jailer);
	return 0;
}
