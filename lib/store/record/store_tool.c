/*
 * store_tool.c - see store_tool.h.
 *
 * The rows of a run and those of a later generation of what is expected of it (store_baseline.h) have the same columns,
 * in tables of their own: the run's are counted as its owner's bytes and have entries of the audit log, the others are
 * an operator's.
 *
 * A long text (arguments, result) is a content, as output of runs is. Its row has a text in its place that no reader
 * may take for it: `null` (arguments are an object), and an empty one (a result never is).
 */
#include "store_tool.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_audit_internal.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/blob/store_blob_internal.h"
#include "lib/store/db/store_txn.h"
#include "store_execution.h"

#define NO_ARGUMENTS "null" /* in the row, where they are a content; of a result: "" */

#define ROW struct store_tool_call
static const struct column call_columns[] = {STORE_TOOL_CALL_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW
#define ROW struct store_tool_server
static const struct column server_columns[] = {STORE_TOOL_SERVER_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

void store_tool_call_clear(struct store_tool_call *call)
{
	free(call->server);
	free(call->tool);
	free(call->arguments);
	free(call->decision);
	free(call->rule);
	free(call->decided_by);
	free(call->result);
}

void store_tools_clear(struct store_tools *tools)
{
	for (size_t i = 0; i < tools->n_servers; i++) {
		struct store_tool_server *server = &tools->servers[i];

		free(server->name);
		free(server->alias);
		free(server->description);
		free(server->definitions);
	}
	for (size_t i = 0; i < tools->n_calls; i++)
		store_tool_call_clear(&tools->calls[i]);
	free(tools->servers);
	free(tools->calls);
	*tools = (struct store_tools){0};
}

static char *copy(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

void store_tools_copy(const struct store_tools *tools, struct store_tools *ret)
{
	*ret = *tools;
	ret->servers = xcalloc(tools->n_servers + 1, sizeof(*ret->servers));
	ret->calls = xcalloc(tools->n_calls + 1, sizeof(*ret->calls));
	for (size_t i = 0; i < tools->n_servers; i++) {
		const struct store_tool_server *server = &tools->servers[i];

		ret->servers[i] = *server;
		ret->servers[i].name = copy(server->name);
		ret->servers[i].alias = copy(server->alias);
		ret->servers[i].description = copy(server->description);
		ret->servers[i].definitions = copy(server->definitions);
	}
	for (size_t i = 0; i < tools->n_calls; i++) {
		const struct store_tool_call *call = &tools->calls[i];

		ret->calls[i] = *call;
		ret->calls[i].server = copy(call->server);
		ret->calls[i].tool = copy(call->tool);
		ret->calls[i].arguments = copy(call->arguments);
		ret->calls[i].decision = copy(call->decision);
		ret->calls[i].rule = copy(call->rule);
		ret->calls[i].decided_by = copy(call->decided_by);
		ret->calls[i].result = copy(call->result);
	}
}

/* -------- contents ------------------------------------------------------------------------------------ */

bool store_tools_inline(const struct store_tools *tools)
{
	for (size_t i = 0; i < tools->n_calls; i++)
		if (strlen(tools->calls[i].arguments) > STORE_INLINE_MAX ||
		    tools->calls[i].result_length > STORE_INLINE_MAX)
			return false;
	return true;
}

static int keep(struct store *store, const char *text, size_t length, char ret_blob[SHA256_HEX_SIZE], struct err *err)
{
	int64_t size;

	if (length <= STORE_INLINE_MAX)
		return 0;
	auto_close int fd = memfd_with("call", text, length);

	return fd < 0 ? err_errno(err, "keeping a call of a tool")
		      : store_blob_put_output(store, fd, ret_blob, &size, err);
}

int store_tools_keep(struct store *store, struct store_tools *tools, struct err *err)
{
	int result = 0;

	for (size_t i = 0; i < tools->n_calls && result == 0; i++) {
		struct store_tool_call *call = &tools->calls[i];

		result = keep(store, call->arguments, strlen(call->arguments), call->arguments_blob, err);
		if (result == 0)
			result = keep(store, call->result, call->result_length, call->result_blob, err);
	}
	return result;
}

/* The text in the place of what the row has; that is the call's. */
static int fetch(struct store *store, const char *blob, char **text, struct err *err)
{
	struct store_text content = {0};
	size_t length;
	char *data;

	if (*blob == '\0')
		return 0;
	snprintf(content.blob, sizeof(content.blob), "%s", blob);
	int result = store_text_read(store, &content, &data, &length, err);

	if (result < 0)
		return result;
	free(*text);
	*text = data;
	return 0;
}

/* -------- writing ------------------------------------------------------------------------------------- */

/* Whose rows: a run's (generation 1), or those of a later generation. */
struct whose {
	const char *execution;
	int64_t generation;
};

static int add_server(struct store_txn *txn, const struct whose *whose, size_t position,
		      const struct store_tool_server *server, struct err *err)
{
	const bool recorded = whose->generation <= 1;
	auto_query struct query list = query_begin(txn->conn, SQL_TOOL_LIST_ADD);

	query_bind_text(&list, ":hash", server->list);
	query_bind_text(&list, ":definitions", server->definitions);
	query_bind_int(&list, ":now", store_txn_now(txn));
	int result = query_run(&list, NULL, err);
	if (result < 0)
		return result;
	auto_query struct query q = query_begin(txn->conn, recorded ? SQL_TOOL_SERVER_ADD : SQL_BASELINE_SERVER_ADD);

	query_bind_text(&q, ":execution", whose->execution);
	if (!recorded)
		query_bind_int(&q, ":generation", whose->generation);
	query_bind_int(&q, ":position", (int64_t)position);
	query_bind_text(&q, ":name", server->name);
	query_bind_text(&q, ":alias", server->alias);
	query_bind_text(&q, ":description", server->description);
	query_bind_text(&q, ":list", server->list);
	return query_run(&q, NULL, err);
}

/* The content of a text gets its row; a long text without one is the caller's mistake. */
static int claim(struct store_txn *txn, const char *blob, size_t length, const char *what, struct err *err)
{
	if (*blob)
		return store_txn_blob(txn, blob, (int64_t)length, err);
	return length > STORE_INLINE_MAX
		       ? err_set(err, ERR_INTERNAL, "%s of %zu bytes belong into a content", what, length)
		       : 0;
}

static int add_call(struct store_txn *txn, const struct whose *whose, const struct store_tool_call *call,
		    struct err *err)
{
	const bool recorded = whose->generation <= 1;
	int result = claim(txn, call->arguments_blob, strlen(call->arguments), "arguments", err);

	if (result == 0)
		result = claim(txn, call->result_blob, call->result_length, "the bytes of a result:", err);
	if (result < 0)
		return result;
	auto_query struct query q = query_begin(txn->conn, recorded ? SQL_TOOL_CALL_ADD : SQL_BASELINE_CALL_ADD);

	query_bind_text(&q, ":execution", whose->execution);
	if (!recorded)
		query_bind_int(&q, ":generation", whose->generation);
	query_bind_int(&q, ":seq", call->seq);
	query_bind_int(&q, ":connection", call->connection);
	query_bind_text(&q, ":server", call->server);
	query_bind_text(&q, ":tool", call->tool);
	query_bind_int(&q, ":is_read", call->is_read);
	query_bind_some(&q, ":definition", call->definition);
	query_bind_text(&q, ":arguments", *call->arguments_blob ? NO_ARGUMENTS : call->arguments);
	query_bind_some(&q, ":arguments_blob", call->arguments_blob);
	query_bind_text(&q, ":arguments_hash", call->arguments_hash);
	query_bind_int(&q, ":occurrence", call->occurrence);
	query_bind_text(&q, ":decision", call->decision);
	query_bind_text(&q, ":rule", call->rule);
	query_bind_text(&q, ":decided_by", call->decided_by);
	query_bind_text(&q, ":state", call->state);
	query_bind_text(&q, ":kind", call->kind);
	query_bind_int(&q, ":is_error", call->is_error);
	query_bind_text(&q, ":result", *call->result_blob ? "" : call->result);
	query_bind_some(&q, ":result_blob", call->result_blob);
	query_bind_some(&q, ":protocol", call->protocol);
	query_bind_int(&q, ":attempts", call->attempts);
	query_bind_int(&q, ":approval", call->approval_us);
	query_bind_int(&q, ":queued", call->queued_us);
	query_bind_int(&q, ":started", call->started_us);
	query_bind_int(&q, ":finished", call->finished_us);
	result = query_run(&q, NULL, err);
	return result < 0 || !recorded ? result : store_txn_audit_call(txn, whose->execution, call->seq, err);
}

static int add_all(struct store_txn *txn, const struct whose *whose, const struct store_tools *tools, struct err *err)
{
	int result = 0;

	for (size_t i = 0; i < tools->n_servers && result == 0; i++)
		result = add_server(txn, whose, i, &tools->servers[i], err);
	for (size_t i = 0; i < tools->n_calls && result == 0; i++)
		result = add_call(txn, whose, &tools->calls[i], err);
	return result;
}

int store_txn_tools_add(struct store_txn *txn, const char *execution, const struct store_tools *tools, struct err *err)
{
	return add_all(txn, &(struct whose){execution, 1}, tools, err);
}

int store_txn_tools_expect(struct store_txn *txn, const char *execution, int64_t generation,
			   const struct store_tools *tools, struct err *err)
{
	return add_all(txn, &(struct whose){execution, generation}, tools, err);
}

/* -------- reading ------------------------------------------------------------------------------------- */

static int load_rows(struct store *store, const struct whose *whose, struct store_tools *ret, struct err *err)
{
	const bool recorded = whose->generation <= 1;
	auto_reader struct store_reader reader = {0};
	struct store_tools tools = {0};
	int found = store_reader_take(store, &reader, err);

	if (found < 0)
		return found;
	auto_query struct query servers =
		query_begin(reader.conn, recorded ? SQL_TOOL_SERVERS : SQL_BASELINE_SERVERS);
	auto_query struct query calls = query_begin(reader.conn, recorded ? SQL_TOOL_CALLS : SQL_BASELINE_CALLS);

	query_bind_text(&servers, ":execution", whose->execution);
	query_bind_text(&calls, ":execution", whose->execution);
	if (!recorded) {
		query_bind_int(&servers, ":generation", whose->generation);
		query_bind_int(&calls, ":generation", whose->generation);
	}
	while ((found = query_next(&servers, err)) > 0) {
		tools.servers = xrealloc(tools.servers, tools.n_servers + 1, sizeof(*tools.servers));
		tools.servers[tools.n_servers] = (struct store_tool_server){0};
		query_read(&servers, server_columns, ARRAY_SIZE(server_columns), &tools.servers[tools.n_servers++]);
	}
	while (found == 0 && (found = query_next(&calls, err)) > 0) {
		tools.calls = xrealloc(tools.calls, tools.n_calls + 1, sizeof(*tools.calls));
		struct store_tool_call *call = &tools.calls[tools.n_calls++];

		*call = (struct store_tool_call){0};
		query_read(&calls, call_columns, ARRAY_SIZE(call_columns), call);
		found = 0;
	}
	*ret = tools;
	return MIN(found, 0);
}

static int load(struct store *store, const struct whose *whose, struct store_tools *ret, struct err *err)
{
	struct store_tools tools = {0};
	int result = load_rows(store, whose, &tools, err);

	for (size_t i = 0; i < tools.n_calls && result == 0; i++) {
		struct store_tool_call *call = &tools.calls[i];

		result = fetch(store, call->arguments_blob, &call->arguments, err);
		if (result == 0)
			result = fetch(store, call->result_blob, &call->result, err);
		call->result_length = strlen(call->result);
	}
	if (result < 0)
		store_tools_clear(&tools);
	else
		*ret = tools;
	return result;
}

int store_tools_load(struct store *store, const char *execution, struct store_tools *ret, struct err *err)
{
	return load(store, &(struct whose){execution, 1}, ret, err);
}

int store_tools_expected(struct store *store, const char *execution, int64_t generation, struct store_tools *ret,
			 struct err *err)
{
	int result = generation > 1 ? load(store, &(struct whose){execution, generation}, ret, err) : 0;

	return result < 0 || (generation > 1 && ret->n_servers > 0) ? result
								    : store_tools_load(store, execution, ret, err);
}
