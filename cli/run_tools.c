/* run_tools.c - MCP servers for one run, see run.h. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/bridge/bridge_tools.h"

#define SERVERS_MAX 16

void run_tools_step(struct run_tools *tools, struct jail *jail)
{
	job_tools_wait_step(&tools->wait, jail);
}

static int connect_all(struct run_tools *ret, const struct run_tools_spec *spec, const struct bind_strings *names,
		       struct err *err)
{
	int result = upstream_open(spec->config, &ret->upstream, err);

	if (result == 0 && !ret->upstream)
		return err_set(
			err, ERR_INVALID,
			"--servers: there is no list of servers: name its file with --upstream, or by upstream.file in the configuration");
	if (result == 0)
		result = bridge_start(ret->upstream, &ret->bridge, err);
	if (result < 0)
		return result;
	const struct bridge_tools_spec tools = {.bridge = ret->bridge,
						.upstream = ret->upstream,
						.config = spec->config,
						.owner = STORE_OWNER_LOCAL,
						.grant = "*",
						.servers = *names,
						.runner = spec->runner,
						.refusal = "nobody can be asked here"};

	result = bridge_tools_new(&tools, &ret->job, err);
	return result < 0 ? err_wrap(err, "--servers") : job_tools_wait_begin(&ret->wait, err);
}

int run_tools_begin(struct run_tools *ret, const struct run_tools_spec *spec, struct err *err)
{
	char id[ID_SIZE];
	auto_free char *list = spec->servers ? xstrdup(spec->servers) : NULL;
	const char *names[SERVERS_MAX];
	struct bind_strings servers = {.items = names};
	char *rest = list;

	*ret = (struct run_tools){.wait = {.event = -1}, .given = {.socket = -1}};
	if (!list)
		return 0;
	for (char *name; (name = strsep(&rest, ","));) {
		if (!*name)
			return err_set(err, ERR_INVALID, "--servers: a name is empty");
		if (servers.count == SERVERS_MAX)
			return err_set(err, ERR_LIMIT, "--servers: more than %d", SERVERS_MAX);
		names[servers.count++] = name;
	}
	int result = connect_all(ret, spec, &servers, err);

	if (result < 0)
		return result;
	id_new(id);
	const struct job_tools_run run = {.execution = id, .waits = job_tools_wait_note, .arg = &ret->wait};

	result = ret->job->open(ret->job, &run, &ret->given, err);
	ret->open = result == 0;
	return result;
}

void run_tools_stop(struct run_tools *tools)
{
	if (tools->open)
		tools->job->close(tools->job, &tools->calls);
	tools->open = false;
	job_tools_release(&tools->job);
	bridge_stop(steal(&tools->bridge));
	upstream_close(steal(&tools->upstream));
}

void run_tools_clear(struct run_tools *tools)
{
	run_tools_stop(tools);
	store_tools_clear(&tools->calls);
	if (tools->wait.event > 0)
		job_tools_wait_clear(&tools->wait);
	*tools = (struct run_tools){.wait = {.event = -1}, .given = {.socket = -1}};
}
