/*
 * bridge_cassette.c - see bridge_cassette.h.
 *
 * The lists of tools are made again from the definitions that the run saw, so what a program reads about its tools is
 * what it read then. Calls that the bridge itself refuses (too many, arguments that do not fit) are refused again and
 * never get here.
 */
#include "bridge_cassette.h"

#include <stdio.h>
#include <string.h>

#include "bridge_files.h"
#include "lib/base/util.h"
#include "lib/upstream/upstream_list.h"

#define SHOWN 160 /* bytes of arguments in a sentence */

struct cassette {
	struct job_tools job;
	struct bridge *bridge;
	const struct config *config;
	struct store_tools recorded;
	struct upstream_server *servers;
	struct upstream_list **lists;
	size_t count;
	struct bridge_files files;
	struct bridge_run *run;
	char (*asked)[SHA256_HEX_SIZE]; /* arguments of the calls so far, each with … */
	const struct upstream_tool **tools;
	size_t n_asked;
};

static void cassette_free(struct job_tools *job)
{
	struct cassette *cassette = container_of(job, struct cassette, job);

	for (size_t i = 0; i < cassette->count; i++)
		upstream_list_free(cassette->lists[i]);
	bridge_files_clear(&cassette->files);
	store_tools_clear(&cassette->recorded);
	free(cassette->lists);
	free(cassette->servers);
	free(cassette->asked);
	free(cassette->tools);
	free(cassette);
}

/* -------- the provider -------------------------------------------------------------------------------- */

/* Of a read: the uri. */
static const char *name_of(const struct bridge_call *call)
{
	return call->tool ? call->tool->name : call->uri;
}

/* The same call among others: by server, tool, hash of its arguments and occurrence. */
static const struct store_tool_call *same_call(const struct store_tools *tools, const struct store_tool_call *call)
{
	for (size_t i = 0; i < tools->n_calls; i++) {
		const struct store_tool_call *one = &tools->calls[i];

		if (one->occurrence == call->occurrence && streq(one->server, call->server) &&
		    streq(one->tool, call->tool) && streq(one->arguments_hash, call->arguments_hash))
			return one;
	}
	return NULL;
}

static void miss(const struct cassette *cassette, struct bridge_call *call)
{
	const struct store_tool_call *near = NULL;

	for (size_t i = 0; i < cassette->recorded.n_calls && !near; i++)
		if (streq(cassette->recorded.calls[i].server, call->list->server->name) &&
		    streq(cassette->recorded.calls[i].tool, name_of(call)))
			near = &cassette->recorded.calls[i];
	auto_free char *text =
		near ? xasprintf("call %lld is not in the record: this tool was called with %.*s", (long long)call->seq,
				 SHOWN, near->arguments)
		     : xasprintf("call %lld is not in the record: this tool was not called", (long long)call->seq);

	bridge_answer(call, &(struct bridge_answer){.kind = "replay", .text = text});
}

static void serve(void *arg, struct bridge_call *call)
{
	struct cassette *cassette = arg;
	struct store_tool_call wanted = {.server = unconst(call->list->server->name), .tool = unconst(name_of(call))};

	bridge_record_hash(call->arguments, call->length, wanted.arguments_hash);
	for (size_t i = 0; i < cassette->n_asked; i++)
		wanted.occurrence +=
			cassette->tools[i] == call->tool && streq(cassette->asked[i], wanted.arguments_hash);
	cassette->asked = xrealloc(cassette->asked, cassette->n_asked + 1, sizeof(*cassette->asked));
	cassette->tools = xrealloc(cassette->tools, cassette->n_asked + 1, sizeof(*cassette->tools));
	memcpy(cassette->asked[cassette->n_asked], wanted.arguments_hash, SHA256_HEX_SIZE);
	cassette->tools[cassette->n_asked++] = call->tool;
	const struct store_tool_call *found = same_call(&cassette->recorded, &wanted);
	if (!found || streq(found->state, "cancelled"))
		return miss(cassette, call);
	const bool is_result = streq(found->kind, "result");
	bridge_answer(call, &(struct bridge_answer){.kind = found->kind,
						    .is_error = found->is_error,
						    .result = is_result ? found->result : NULL,
						    .length = is_result ? found->result_length : 0,
						    .text = found->result,
						    .decision = found->decision,
						    .rule = found->rule,
						    .decided_by = found->decided_by,
						    .protocol = found->protocol});
}

/* It is answered already. */
static void cancel(void *arg, struct bridge_call *call)
{
	(void)arg;
	(void)call;
}

static void release(void *arg)
{
	struct cassette *cassette = arg;
	struct job_tools *job = &cassette->job;

	job_tools_release(&job);
}

static const struct bridge_provider provider = {.call = serve, .cancel = cancel, .release = release};

/* -------- for the job --------------------------------------------------------------------------------- */

static int open_run(struct job_tools *job, const struct job_tools_run *run, struct job_tools_given *ret,
		    struct err *err)
{
	struct cassette *cassette = container_of(job, struct cassette, job);
	struct bridge_spec spec = {
		.lists = cassette->lists, .count = cassette->count, .provider = &provider, .arg = cassette};

	(void)run;
	bridge_caps(cassette->config, &spec.caps);
	job->references++;
	int result = bridge_open(cassette->bridge, &spec, &cassette->run, err);
	if (result < 0)
		return result;
	*ret = (struct job_tools_given){.env = bridge_environment, .socket = bridge_run_socket(cassette->run)};
	return 0;
}

static void close_run(struct job_tools *job, struct store_tools *ret)
{
	struct cassette *cassette = container_of(job, struct cassette, job);
	struct bridge_report report;

	bridge_close(steal(&cassette->run), &report);
	bridge_record(cassette->lists, cassette->count, &report, ret);
}

int bridge_cassette_new(struct bridge *bridge, const struct config *config, struct store_tools *recorded,
			const char *runner, struct job_tools **ret, struct err *err)
{
	struct cassette *cassette = xcalloc(1, sizeof(*cassette));
	int result = 0;

	*cassette =
		(struct cassette){.job = {.references = 1, .open = open_run, .close = close_run, .free = cassette_free},
				  .bridge = bridge,
				  .config = config,
				  .recorded = *recorded};
	*recorded = (struct store_tools){0};
	cassette->servers = xcalloc(cassette->recorded.n_servers + 1, sizeof(*cassette->servers));
	cassette->lists = xcalloc(cassette->recorded.n_servers + 1, sizeof(*cassette->lists));
	for (size_t i = 0; i < cassette->recorded.n_servers && result == 0; i++) {
		const struct store_tool_server *server = &cassette->recorded.servers[i];
		const struct raw definitions = raw_value(server->definitions, strlen(server->definitions));
		struct upstream_list *list = cassette->lists[i] = upstream_list_new(&cassette->servers[i]);
		struct raw one;

		cassette->count++;
		cassette->servers[i] =
			(struct upstream_server){.name = server->name, .description = server->description};
		snprintf(cassette->servers[i].alias, sizeof(cassette->servers[i].alias), "%s", server->alias);
		for (size_t at = 0; result == 0 && raw_item(definitions, &at, &one);)
			result = upstream_list_add(list, one, err);
		upstream_list_seal(list, NULL, NULL, NULL);
	}
	const struct bridge_files_spec spec = {.lists = cassette->lists, .count = cassette->count, .runner = runner};
	if (result == 0)
		result = bridge_files_make(&spec, &cassette->files, err);
	if (result < 0) {
		cassette_free(&cassette->job);
		return result;
	}
	cassette->job.files = cassette->files.files;
	cassette->job.n_files = cassette->files.count;
	*ret = &cassette->job;
	return 0;
}

/* -------- the difference ------------------------------------------------------------------------------ */

char *bridge_cassette_difference(const struct store_tools *recorded, const struct store_tools *now)
{
	for (size_t i = 0; i < now->n_calls; i++) {
		const struct store_tool_call *call = &now->calls[i];

		if (!same_call(recorded, call))
			return xasprintf("call %lld, %s.%s with %.*s, was not made then", (long long)call->seq,
					 call->server, call->tool, SHOWN, call->arguments);
	}
	for (size_t i = 0; i < recorded->n_calls; i++) {
		const struct store_tool_call *call = &recorded->calls[i];

		if (!same_call(now, call))
			return xasprintf("call %lld of the record, %s.%s with %.*s, is not made now",
					 (long long)call->seq, call->server, call->tool, SHOWN, call->arguments);
	}
	return NULL;
}

/* -------- other answers ------------------------------------------------------------------------------- */

/* As it is compared: a result without what says nothing about it (order of members, blanks). The sentence of a refusal
 * is ours, not the server's. */
static void print_answer(struct buf *out, const struct store_tool_call *call)
{
	buf_init(out, 2 * call->result_length + 64);
	buf_printf(out, "%s%s: ", call->kind, call->is_error ? ", the tool failed" : "");
	if (streq(call->kind, "result"))
		raw_canonical(out, raw_value(call->result, call->result_length));
	else if (!streq(call->state, "refused"))
		buf_puts(out, call->result);
}

/* A part of the text, from a little before the byte `at`. */
static char *part(const struct buf *text, size_t at)
{
	const size_t from = at > SHOWN / 2 ? at - SHOWN / 2 : 0;

	return xasprintf("%s%.*s%s", from > 0 ? "…" : "", (int)MIN(text->length - from, (size_t)SHOWN),
			 text->data + from, text->length - from > SHOWN ? "…" : "");
}

/* Is it another answer? Then the texts are the caller's. */
static bool differs(const struct store_tool_call *was, const struct store_tool_call *now,
		    struct bridge_cassette_answer *ret)
{
	auto_buf struct buf then_text = {0}, now_text = {0};
	size_t at = 0;

	print_answer(&then_text, was);
	print_answer(&now_text, now);
	while (at < then_text.length && at < now_text.length && then_text.data[at] == now_text.data[at])
		at++;
	if (at == then_text.length && at == now_text.length)
		return false;
	if (ret->count == 0) {
		ret->now = now;
		ret->was_text = part(&then_text, at);
		ret->now_text = part(&now_text, at);
	}
	return true;
}

bool bridge_cassette_answers(const struct store_tools *recorded, const struct store_tools *now,
			     struct bridge_cassette_answer *ret)
{
	*ret = (struct bridge_cassette_answer){0};
	for (size_t i = 0; i < now->n_calls; i++) {
		const struct store_tool_call *was = same_call(recorded, &now->calls[i]);

		ret->count += was && differs(was, &now->calls[i], ret);
	}
	return ret->count > 0;
}
