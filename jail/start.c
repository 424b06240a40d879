/*
 * start.c - see start.h.
 *
 * In the order of the steps: what needs the rights that we were started with (configuration, runner files, ids, the
 * cgroup's directory, a service's socket) is read and claimed first. The relay and the id-map helper are forked before
 * the namespaces are left, because they stay in the host's. Then the outer user namespace is entered, in which we are 0
 * and on the host an id that owns nothing; the id-map helper writes its maps. The event loop comes last: no client is
 * served before everything is there.
 */
#include "start.h"

#include <errno.h>
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

#include "idmap.h"
#include "jail/init/init.h"
#include "jail/init/landlock.h"
#include "jail/init/seccomp.h"
#include "jail/root/layers.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define OUTER_NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define MODULES_DEFAULT  "npm" /* below the runners' directory */

static bool is_service(const struct jailer *jailer)
{
	return jailer->options.n_clients == 0 && !jailer->options.check;
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

/* What guests' limits are cut out of. Only root can raise a hard limit; where it is lower for a user, doctor says what
 * that means. */
static int raise_limits(struct jailer *jailer, struct err *err)
{
	struct rlimit limit;

	(void)jailer;
	raise_soft(RLIMIT_NOFILE);
	raise_soft(RLIMIT_FSIZE);
	/* Signals that wait are counted for the account that started us and for all jails together: half is theirs. The
	 * kernel takes the limit of the process that makes a user namespace as that of all below it. */
	if (getrlimit(RLIMIT_SIGPENDING, &limit) == 0) {
		limit.rlim_cur /= 2;
		setrlimit(RLIMIT_SIGPENDING, &limit);
	}
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

static int read_config(struct jailer *jailer, struct err *err)
{
	const struct config *config = &jailer->config;
	int result = config_load(jailer->options.config_path, &jailer->config, err);

	if (result < 0)
		return result;
	if (is_service(jailer))
		log_configure(streq(config->log.format, "json"), config->log.level);
	if (is_service(jailer) && !config->jailer.socket[0])
		return err_set(err, ERR_INVALID, "jailer.socket is not set: a service needs one");
	/* The folder itself, as a link cannot be bound. */
	auto_free char *usual = xasprintf("%s/" MODULES_DEFAULT, config->jailer.runners_dir);
	auto_free char *packages = xasprintf("%s/node_modules", usual);
	const char *named = config->jailer.modules_dir, *folder = named[0] ? named : usual;
	const bool none = !named[0] && access(packages, R_OK);

	jailer->modules_dir = none ? xstrdup("") : realpath(folder, NULL);
	return jailer->modules_dir ? net_init(&jailer->net, config, err)
				   : err_errno(err, "jailer.modules_dir: %s", folder);
}

static int read_runners(struct jailer *jailer, struct err *err)
{
	const char *state = jailer->config.data_dir;
	const struct runners_host host = {jailer->modules_dir, state ? state : "", &jailer->config.upstream.binds};
	const char *directory = jailer->config.jailer.runners_dir;
	struct stat st;

	if (stat(directory, &st) == 0 && (st.st_mode & S_IWOTH))
		log_event(LOG_WARN, "every account can change the languages", "jailer.runners_dir", directory, "remedy",
			  "chmod o-w", NULL);
	return runners_load(directory, &host, &jailer->runners, err);
}

static int claim_ids(struct jailer *jailer, struct err *err)
{
	return identity_claim(&jailer->config, &jailer->identity, err);
}

static int claim_cgroup(struct jailer *jailer, struct err *err)
{
	int result = cgroup_open(&jailer->config, &jailer->identity, &jailer->cgroup, err);

	/* A private jailer shares standard error with its command, whose user does not care about an earlier jailer's
	 * remains: debug level. */
	if (result == 0 && jailer->identity.found_dead)
		log_event(is_service(jailer) ? LOG_WARN : LOG_DEBUG, "removed the cgroups of a jailer that was killed",
			  "cgroup", cgroup_kind(jailer->cgroup), NULL);
	return result;
}

static int start_relay(struct jailer *jailer, struct err *err)
{
	return net_start(&jailer->net, &jailer->identity, err);
}

static int start_idmap(struct jailer *jailer, struct err *err)
{
	struct idmap_spec spec = {.identity = &jailer->identity, .listen_fd = -1};
	int result = idmap_users(&jailer->config, &spec, err);

	if (result == 0 && is_service(jailer))
		result = idmap_listen(jailer->config.jailer.socket, &spec.listen_fd, err);
	if (result == 0)
		result = idmap_start(&spec, &jailer->idmap, err);
	if (result < 0 || !is_service(jailer))
		return result;
	/* The socket is ours alone, and so is the file next to it. */
	jailer->answers_fd = answers_open(jailer->config.jailer.socket, jailer->identity.started_uid);
	for (size_t i = 0; i < jailer->runners.count; i++)
		jailer->runners.items[i].answers_key = answers_key(&jailer->runners.items[i]);
	return 0;
}

static int build_roots(struct jailer *jailer, struct err *err)
{
	static const struct bind_strings none = {.count = 0};
	const struct root_plan usual = {.modules_dir = jailer->modules_dir, .binds = &none};
	auto_free char *hosts = egress_hosts(&jailer->net.egress);
	int result = root_mount_begin(hosts, err);

	if (result == 0)
		result = root_mount_add(&usual, &jailer->root, err);
	for (size_t i = 0; result == 0 && i < jailer->runners.count; i++) {
		struct runner *runner = &jailer->runners.items[i];
		const struct root_plan own = {runner->rootfs, jailer->modules_dir, &runner->binds};

		if (runner->root.path[0] && (result = root_mount_add(&own, &runner->root, err)) < 0)
			err_wrap(err, "runner %s", runner->name);
	}
	return result < 0 ? result : root_mount_finish(err);
}

static int build_roots_first(struct jailer *jailer, struct err *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return err_errno(err, "making a mount namespace");
	return build_roots(jailer, err);
}

static int enter_outer_namespaces(struct jailer *jailer, struct err *err)
{
	int result;

	if (unshare(OUTER_NAMESPACES) < 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "this host does not allow user namespaces (%s): see user.max_user_namespaces, "
			       "and AppArmor's kernel.apparmor_restrict_unprivileged_userns",
			       strerror(errno));
	result = idmap_maps(jailer->idmap, err);
	if (result == 0)
		result = identity_become(&jailer->identity, err);
	/* Kept by everything that is started from here on. Mounts can still be made. */
	if (result == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		result = err_errno(err, "no_new_privs");
	/* An empty session keyring: guests inherit ours. Kernels without keys have nothing to inherit. */
	if (result == 0)
		syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return result;
}

static void on_connection(struct loop_watch *watch, uint32_t events)
{
	struct jailer *jailer = container_of(watch, struct jailer, idmap_watch);
	int fd = idmap_receive(watch->fd);

	(void)events;
	if (fd >= 0)
		server_add(&jailer->server, fd);
	else if (errno != EAGAIN) {
		log_event(LOG_ERROR, "the id-map helper is gone", NULL);
		jailer->stop = true;
	}
}

static void on_signal(struct loop_watch *watch, uint32_t events)
{
	struct jailer *jailer = container_of(watch, struct jailer, signal_watch);
	struct signalfd_siginfo info;

	(void)events;
	if (read(watch->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		log_event(LOG_WARN, "SIGHUP is ignored: the configuration is read at the start, restart for another",
			  NULL);
	else
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
	if (!private) {
		sigaddset(&set, SIGINT);
		sigaddset(&set, SIGHUP); /* ignored signals reach a descriptor while they are blocked */
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0 || loop_add(jailer->loop, &jailer->signal_watch, fd, EPOLLIN, on_signal))
		return err_errno(err, "watching signals");
	return 0;
}

static int start_loop(struct jailer *jailer, struct err *err)
{
	bool service = is_service(jailer), filters = service || jailer->options.check;
	int result;

	jailer->loop = loop_open();
	if (jailer->loop < 0)
		return err_errno(err, "making the event loop");
	result = watch_signals(jailer, jailer->options.n_clients > 0, err);
	if (result < 0)
		return result;
	cells_init(&jailer->cells, jailer->loop, &jailer->config, &jailer->identity, jailer->cgroup);
	jailer->cells.root = &jailer->root;
	jailer->cells.first_us = service ? 0 : clock_monotonic_us() + CELLS_FIRST_US;
	result = layers_init(&jailer->cells.layers, &jailer->root, err);
	if (result < 0)
		return result;
	jailer->cells.landlock_abi = landlock_abi();
	jailer->cells.net = &jailer->net;
	jailer->cells.command_line = jailer->options.command_line;
	jailer->cells.command_line_size = jailer->options.command_line_size;
	if (!jailer->options.check)
		cell_join_init(&jailer->cells, runners_warm(&jailer->runners), service);
	result = net_watch(&jailer->net, jailer->loop, err);
	for (size_t i = 0; result == 0 && filters && i < SECCOMP_FAMILIES; i++)
		result = cells_make_filter(&jailer->cells, (enum seccomp_family)i, err);
	if (result < 0)
		return result;
	jailer->server = (struct server){
		.cells = &jailer->cells,
		.runners = &jailer->runners,
		.config = &jailer->config,
		.identity = &jailer->identity,
		.private = !service,
	};
	versions_init(&jailer->versions, &jailer->cells, &jailer->runners, &jailer->config,
		      service || jailer->options.all, steal_fd(&jailer->answers_fd));
	jailer->server.versions = &jailer->versions;
	if (service)
		return loop_add(jailer->loop, &jailer->idmap_watch, jailer->idmap, EPOLLIN, on_connection)
			       ? err_errno(err, "watching the id-map helper")
			       : 0;
	for (size_t i = 0; i < jailer->options.n_clients; i++)
		server_add(&jailer->server, jailer->options.client_fds[i]);
	wait(NULL); /* the id-map helper has done its part */
	return 0;
}

/* -------- the list ------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	int (*take)(struct jailer *jailer, struct err *err);
} steps[START_STEPS] = {
	[START_LIMITS] = {"open files", raise_limits},
	[START_CONFIG] = {"configuration", read_config},
	[START_RUNNERS] = {"runner files", read_runners},
	[START_IDS] = {"guest ids", claim_ids},
	[START_CGROUP] = {"cgroup", claim_cgroup},
	[START_RELAY] = {"egress relay", start_relay},
	[START_IDMAP] = {"id-map helper", start_idmap},
	[START_ROOTS] = {"root mounts", build_roots_first},
	[START_NAMESPACES] = {"user namespace", enter_outer_namespaces},
	[START_USER_ROOTS] = {"root mounts", build_roots},
	[START_LOOP] = {"seccomp", start_loop},
};

const char *start_name(enum start_step step)
{
	return steps[step].name;
}

bool start_wanted(const struct jailer *jailer, enum start_step step)
{
	bool root = jailer->identity.mode == IDENTITY_ROOT;

	return step == START_ROOTS ? root : step == START_USER_ROOTS ? !root : true;
}

int start_take(struct jailer *jailer, enum start_step step, struct err *err)
{
	return steps[step].take(jailer, err);
}

/* First no new client comes in: a client that is not served any more could keep a jail open, for whose end we wait. */
static void stop(struct jailer *jailer)
{
	if (!jailer->server.private) {
		loop_remove(jailer->loop, &jailer->idmap_watch);
		close(jailer->idmap); /* the id-map helper ends */
	}
	versions_clear(&jailer->versions);
	server_clear(&jailer->server);
	cells_clear(&jailer->cells);
}

void start_clear(struct jailer *jailer)
{
	if (jailer->server.cells)
		stop(jailer);
	fd_close(&jailer->answers_fd);
	net_clear(&jailer->net);
	cgroup_close(jailer->cgroup);
	runners_clear(&jailer->runners);
	root_mount_clear(&jailer->root);
	identity_clear(&jailer->identity);
	config_clear(&jailer->config);
	free(jailer->modules_dir);
}
