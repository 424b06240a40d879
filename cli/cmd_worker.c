/*
 * cmd_worker.c - `sallyport worker`: a machine of many that run programs for graders and trainers; and with --front the
 * configuration of an nginx before them. cli/worker_serve.c starts and stops what a worker consists of.
 *
 * There is no register of workers and no queue: they are found by Slurm's names of jobs, by a file that each puts into
 * a shared folder, by Kubernetes, or because somebody wrote their addresses down.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/embed.h"
#include "lib/base/util.h"
#include "lib/store/record/store_token.h"
#include "worker.h"

#define OWNER       "grader"
#define WORKERS_MAX 1024
#define NAME_MAX_   64 /* of a host (HOST_NAME_MAX) */

EMBED(worker_front, "nginx/worker-front.conf.in");

struct options {
	struct cli_common common;
	const char *listen, *dir, *owner, *announce, *name;
	struct bind_strings trust;
	bool front;
};
static const struct cli_option options_table[] = {
	{.name = "listen", .letter = 'l', .type = CLI_STRING, .offset = offsetof(struct options, listen),
	 .value = "ADDRESS",
	 .help = "listen there: \":3333\", \"10.0.0.7:3333\""},
	{.name = "dir", .type = CLI_STRING, .offset = offsetof(struct options, dir), .value = "DIR",
	 .help = "keep record and logs in this folder of a local disk [./worker-PORT]"},
	{.name = "trust", .type = CLI_STRINGS, .offset = offsetof(struct options, trust), .value = "NETWORK",
	 .help = "let clients of this network (10.0.0.0/8) in without a token; repeatable"},
	{.name = "owner", .type = CLI_STRING, .offset = offsetof(struct options, owner), .value = "OWNER",
	 .help = "let them be this owner [" OWNER "]"},
	{.name = "announce", .type = CLI_STRING, .offset = offsetof(struct options, announce), .value = "DIR",
	 .help = "put the address into the file addr_NAME_PORT.txt of this folder while it serves; with --front: read such files"},
	{.name = "name", .type = CLI_STRING, .offset = offsetof(struct options, name), .value = "NAME",
	 .help = "announce this name of the machine [its host name]"},
	{.name = "front", .type = CLI_FLAG, .offset = offsetof(struct options, front),
	 .help = "print an nginx configuration that shares requests among workers"},
	{0},
};
static const struct cli_group groups[] = {{options_table, 0}, {0}};

/* ":3333", "3333" or "HOST:3333"; `any`: the host may be missing. */
static int parse_address(const char *text, bool any, struct worker_address *ret, struct err *err)
{
	const char *port = *text == ':' ? text + 1 : text;
	uint64_t number;

	*ret = (struct worker_address){.port = 0};
	if (any && parse_u64(port, 1, UINT16_MAX, &number) == 0)
		ret->port = (uint16_t)number;
	else if (host_split(text, strlen(text), 0, ret->host, &ret->port) < 0)
		return err_set(err, ERR_INVALID, "\"%.100s\" is no address: write %s", text,
			       any ? ":3333 or 10.0.0.7:3333" : "HOST:PORT");
	return 0;
}

/* -------- --front ------------------------------------------------------------------------------------- */

static int add_server(struct buf *servers, const char *text, size_t *count, struct err *err)
{
	struct worker_address address;
	int result = parse_address(text, false, &address, err);

	if (result < 0)
		return result;
	if (++*count > WORKERS_MAX)
		return err_set(err, ERR_INVALID, "a front has at most %d workers", WORKERS_MAX);
	auto_free char *shown = worker_address_text(&address);

	buf_printf(servers, "%s\t\tserver %s max_fails=3 fail_timeout=3s;", servers->length ? "\n" : "", shown);
	return 0;
}

static int add_announced(const char *folder, struct buf *servers, size_t *count, struct err *err)
{
	DIR *list = opendir(folder);
	const struct dirent *entry;
	int result = list ? 0 : err_errno(err, "the folder %s cannot be read", folder);

	while (result == 0 && (entry = readdir(list))) {
		const size_t length = strlen(entry->d_name);
		auto_free char *text = NULL;
		size_t read = 0;

		if (!str_starts(entry->d_name, "addr_") || length < 4 || !streq(entry->d_name + length - 4, ".txt"))
			continue;
		result = read_file_at(dirfd(list), entry->d_name, HOST_SIZE + 8, &text, &read, err);
		if (result == -ERR_NOT_FOUND) { /* that worker has just ended */
			result = 0;
			continue;
		}
		if (result == 0) {
			text[strcspn(text, " \r\n")] = '\0';
			result = add_server(servers, text, count, err);
		}
		if (result < 0)
			err_wrap(err, "%s/%s", folder, entry->d_name);
	}
	if (list)
		closedir(list);
	return result;
}

static int print_front(const struct options *options, const struct worker_address *listen, struct err *err)
{
	auto_buf struct buf servers = {0};
	size_t count = 0;
	int result = 0;

	buf_init(&servers, SIZE_MAX);
	for (size_t i = 0; result == 0 && i < options->common.n_args; i++)
		result = add_server(&servers, options->common.args[i], &count, err);
	if (result == 0 && options->announce)
		result = add_announced(options->announce, &servers, &count, err);
	if (result == 0 && count == 0)
		result = err_set(err, ERR_INVALID,
				 "no workers: give their addresses, or --announce and a folder with some");
	if (result < 0)
		return result;
	auto_free char *place = worker_address_text(listen);
	const char *const values[] = {"SERVERS", servers.data, "LISTEN", place, NULL};
	auto_free char *text = worker_fill(worker_front, values);

	fputs(text, stdout);
	return CLI_OK;
}

/* -------- a worker ------------------------------------------------------------------------------------ */

static int take_trust(const struct options *options, struct buf *ret, struct err *err)
{
	const char *owner = options->owner ? options->owner : OWNER;

	if (options->owner && options->trust.count == 0)
		return err_set(err, ERR_INVALID, "--owner belongs to --trust");
	if (!store_owner_valid(owner))
		return err_set(err, ERR_INVALID, "--owner: %s", STORE_OWNER_WANTED);
	for (size_t i = 0; i < options->trust.count; i++) {
		struct host_network network;

		if (host_network_parse(options->trust.items[i], &network) < 0)
			return err_set(err, ERR_INVALID,
				       "--trust: \"%.64s\" must be an address or a network, as 10.0.0.0/8",
				       options->trust.items[i]);
		buf_printf(ret, "%s%s -> %s", i ? "," : "", options->trust.items[i], owner);
	}
	return 0;
}

static int make_dir(const char *path, char **ret, struct err *err)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_errno(err, "the folder %s cannot be made", path);
	*ret = realpath(path, NULL);
	return *ret ? 0 : err_errno(err, "the folder %s cannot be used", path);
}

static int run(void *arg, struct err *err)
{
	const struct options *options = arg;
	auto_free char *standard = NULL, *dir = NULL;
	auto_buf struct buf trusted = {0};
	char name[NAME_MAX_ + 1] = "localhost";
	struct worker worker = {.config = options->common.config, .announce = options->announce};

	if (!options->listen)
		return err_set(err, ERR_INVALID, "where? Give --listen, as :3333");
	int result = parse_address(options->listen, true, &worker.listen, err);

	if (result == 0 && options->front)
		return print_front(options, &worker.listen, err);
	if (result == 0 && options->common.n_args > 0)
		result = err_set(err, ERR_INVALID, "addresses of workers belong to --front");
	buf_init(&trusted, SIZE_MAX);
	if (result == 0)
		result = take_trust(options, &trusted, err);
	standard = xasprintf("worker-%u", worker.listen.port);
	if (result == 0)
		result = make_dir(options->dir ? options->dir : standard, &dir, err);
	if (result < 0)
		return result;
	gethostname(name, sizeof(name) - 1);
	worker.dir = dir;
	worker.name = options->name ? options->name : name;
	worker.trusted = trusted.length ? trusted.data : NULL;
	result = worker_serve(&worker, err);
	return result < 0 ? result : CLI_OK;
}

const struct cli_command cmd_worker = {
	.name = "worker",
	.summary = "Run programs for graders on one machine of many",
	.arguments = "[ADDRESS…]",
	.help = "Serves the APIs of SandboxFusion, ScaleBox and Piston (docs/doors.md) under the addresses that their clients expect: /run_code, /common_evaluate_batch, /api/v2/execute and so on. "
		"It starts a jailer, a gateway with the profile grader, and an nginx, and stops with the first of them that ends by itself. "
		"GET / answers 200, and /readyz says whether it takes work. "
		"A 503 means that nothing has begun, so that another worker can take it.\n\n"
		"Each worker has a record of its own: `sallyport export --since` there and `sallyport import` elsewhere bring them together.\n\n"
		"--front prints an nginx configuration that gives each request to the worker with the fewest.",
	.examples = "sallyport worker --listen :3333 --dir /local/worker --trust 10.0.0.0/8\n"
		"sbatch --job-name=piston-worker-3333 --wrap 'sallyport worker --listen :3333 --dir /local/worker --trust 10.0.0.0/8'\n"
		"sallyport worker --listen :3333 --trust 10.0.0.0/8 --announce /shared/workers\n"
		"mkdir -p front && sallyport worker --front --listen :8080 --announce /shared/workers >front/nginx.conf && nginx -p front -c nginx.conf\n",
	.exits = "0 a signal stopped it\n"
		"3 a service did not start, or ended by itself\n",
	.groups = groups,
	.size = sizeof(struct options),
	.max_args = SIZE_MAX,
	.run = run,
};
