/*
 * jailer.c - program sallyport-jailer: makes jails for its clients (see jail.h for what they can ask, wire.h for how).
 *
 *   sallyport-jailer --config PATH     a service on config.jailer.socket
 *   sallyport-jailer --fd 3            private: its clients are those on inherited sockets
 *   sallyport-jailer --check           has no clients: starts, runs a program in each language (check.h)
 *
 * Started as root it gives up all rights: it claims a slice of host ids and a directory of cgroups, builds the jails'
 * root as long as it may read everything, and then enters a user namespace of its own, in which it is 0 and on the host
 * an id that owns nothing. Started by a user it does the same with what the user has. After that there is one code
 * path.
 *
 *     id-map helper (outside: writes the maps, sees who connects) ---+
 *                                                              | connections
 *     clients ===== SOCK_SEQPACKET ===== jailer (epoll) =======+====== init of each jail ===== program
 *
 * Single-threaded: one event, then the ticks (deadlines, answers, reaping, groups made ahead). Everything that a guest
 * can make big has a bound. SIGTERM and SIGINT end it: the guests die, the cgroups are removed. SIGHUP changes nothing.
 * SIGKILL ends it: the guests die by their death signal, and the next start removes the cgroups.
 *
 * Exit status: 0 ended by a signal or its last client, 1 could not start or continue (the reason is on standard error),
 * 2 wrong options.
 */
#include <getopt.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/base/version.h"
#include "start.h"

#define BUSY_GROUP_US    10000 /* between attempts to remove a group whose last process is not quite gone */

static const char usage[] = "usage: sallyport-jailer [--config PATH] [--fd N [--all] | --check]\n"
			    "Makes jails for sallyport's programs: a service on config.jailer.socket, or with --fd for "
			    "the client on socket N.\n"
			    "  --config PATH   configuration file; else SALLYPORT_CONFIG, see sallyport.conf(5)\n"
			    "  --fd N          private mode; may be given again, for more clients\n"
			    "  --all           with it: find all versions and libraries first, as a service does\n"
			    "  --check         start, run a program in each language, print one JSON object a step\n"
			    "  --version, --help\n"
			    "Exit status: 0 ended by a signal or its client, 1 could not start, 2 wrong options.\n";

/* -1: start; else the exit status. */
static int parse_options(int argc, char **argv, struct jailer_options *ret)
{
	static const struct option known[] = {
		{"config", required_argument, NULL, 'c'},
		{"fd", required_argument, NULL, 'f'},
		{"all", no_argument, NULL, 'a'},
		{"check", no_argument, NULL, 'k'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	uint64_t fd;

	*ret = (struct jailer_options){.n_clients = 0};
	for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (option == 'c')
			ret->config_path = optarg;
		else if (option == 'f' && ret->n_clients < JAIL_SHARED_MAX && parse_u64(optarg, 3, INT32_MAX, &fd) == 0)
			ret->client_fds[ret->n_clients++] = (int)fd;
		else if (option == 'a')
			ret->all = true;
		else if (option == 'k')
			ret->check = true;
		else if (option == 'v')
			return printf("sallyport-jailer %s\n", SALLYPORT_VERSION) < 0;
		else if (option == 'h')
			return fputs(usage, stdout) < 0;
		else
			return fputs(usage, stderr), 2;
	}
	return optind == argc && (ret->n_clients == 0 || !ret->check) ? -1 : (fputs(usage, stderr), 2);
}

/* Groups and jails are made ahead when no client waits. `idle`: the last wait ended without an event. Returns until
 * when to wait at most. */
static int64_t prepare_ahead(struct jailer *jailer, bool idle)
{
	if (cgroup_prepared(jailer->cgroup) && cells_prepared(&jailer->cells))
		return INT64_MAX;
	if (cells_owed(&jailer->cells)) {
		cells_prepare(&jailer->cells);
		return 0;
	}
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
		notify_tick(&jailer->notify);
		if (jailer->server.gone) /* found out just now: nothing would wake us any more */
			break;
		cells_reap(&jailer->cells);
		int64_t deadline = prepare_ahead(jailer, event == 0);
		deadline = MIN(deadline, jailer->notify.deadline_us);
		event = loop_once(jailer->loop, MIN(deadline, cells_deadline(&jailer->cells)));
	}
}

static void print_line(struct json_object *line)
{
	puts(json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct jailer jailer = JAILER_INIT;
	struct err err = ERR_INIT;
	int status = parse_options(argc, argv, &jailer.options);

	if (fill_standard_fds())
		return err_info(ERR_SYSTEM)->exit; /* there is no standard error to write to */
	if (status >= 0)
		return status;
	jailer.options.command_line = argv[0];
	jailer.options.command_line_size = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
	log_open("jailer", jailer.options.check ? LOG_ERROR : jailer.options.n_clients == 0 ? LOG_INFO : LOG_WARN);
	umask(022);
	/* Guests get the defaults back (init.c). */
	signal(SIGXFSZ, SIG_IGN); /* ulimit -f: EFBIG can be reported */
	signal(SIGHUP, SIG_IGN);  /* of the id-map helper and the relay, too; a service says so (start.c) */
	if (jailer.options.check)
		return check_host(&jailer, print_line) ? 0 : 1;
	if (jailer.options.n_clients == 0)
		notify_open(&jailer.notify);
	int result = 0;
	for (enum start_step step = 0; result == 0 && step < START_STEPS; step++)
		if (start_wanted(&jailer, step))
			result = start_take(&jailer, step, &err);
	if (result < 0) {
		fprintf(stderr, "sallyport-jailer: %s\n", err.text);
		for (size_t i = 0; i < jailer.options.n_clients; i++)
			server_refuse(jailer.options.client_fds[i], &err);
		start_clear(&jailer);
		return 1;
	}
	log_event(LOG_INFO, "started", "mode", identity_mode_text(jailer.identity.mode), "cgroup",
		  cgroup_kind(jailer.cgroup), NULL);
	notify_ready(&jailer.notify);
	serve(&jailer);
	notify_stopping(&jailer.notify);
	log_event(LOG_INFO, "stopping", NULL);
	start_clear(&jailer);
	return 0;
}
