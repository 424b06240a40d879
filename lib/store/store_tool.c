/* store_tool.c - see store_tool.h. */
#include "store_tool.h"

#include <string.h>

#include "lib/base/util.h"
#include "store_txn.h"

#define ROW_BYTES 256 /* of a row, besides its texts */

#define ROW struct store_tool_call
static const struct column call_columns[] = {STORE_TOOL_CALL_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW
#define ROW struct store_tool_server
static const struct column server_columns[] = {STORE_TOOL_SERVER_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

void store_tools_clear(struct store_tools *tools)
{
	for (size_t i = 0; i < tools->n_servers; i++) {
		struct store_tool_server *server = &tools->servers[i];

		free(server->name);
		free(server->alias);
		free(server->description);
		free(server->definitions);
	}
	for (size_t i = 0; i < tools->n_calls; i++) {
		struct store_tool_call *call = &tools->calls[i];

		free(call->server);
		free(call->tool);
		free(call->arguments);
		free(call->decision);
		free(call->rule);
		free(call->decided_by);
		free(call->result);
	}
	free(tools->servers);
	free(tools->calls);
	*tools = (struct store_tools){0};
}

static int add_server(struct store_txn *txn, const char *execution, size_t position,
		      const struct store_tool_server *server, struct err *err)
{
	auto_query struct query list = query_begin(txn->conn, SQL_TOOL_LIST_ADD);

	query_bind_text(&list, ":hash", server->list);
	query_bind_text(&list, ":definitions", server->definitions);
	query_bind_int(&list, ":now", store_txn_now(txn));
	int result = query_run(&list, NULL, err);
	if (result < 0)
		return result;
	auto_query struct query q = query_begin(txn->conn, SQL_TOOL_SERVER_ADD);

	query_bind_text(&q, ":execution", execution);
	query_bind_int(&q, ":position", (int64_t)position);
	query_bind_text(&q, ":name", server->name);
	query_bind_text(&q, ":alias", server->alias);
	query_bind_text(&q, ":description", server->description);
	query_bind_text(&q, ":list", server->list);
	return query_run(&q, NULL, err);
}

static int add_call(struct store_txn *txn, const char *execution, const struct store_tool_call *call, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_TOOL_CALL_ADD);

	query_bind_text(&q, ":execution", execution);
	query_bind_int(&q, ":seq", call->seq);
	query_bind_int(&q, ":connection", call->connection);
	query_bind_text(&q, ":server", call->server);
	query_bind_text(&q, ":tool", call->tool);
	query_bind_int(&q, ":is_read", call->is_read);
	query_bind_some(&q, ":definition", call->definition);
	query_bind_text(&q, ":arguments", call->arguments);
	query_bind_text(&q, ":arguments_hash", call->arguments_hash);
	query_bind_int(&q, ":occurrence", call->occurrence);
	query_bind_text(&q, ":decision", call->decision);
	query_bind_text(&q, ":rule", call->rule);
	query_bind_text(&q, ":decided_by", call->decided_by);
	query_bind_text(&q, ":state", call->state);
	query_bind_text(&q, ":kind", call->kind);
	query_bind_int(&q, ":is_error", call->is_error);
	query_bind_text(&q, ":result", call->result);
	query_bind_some(&q, ":protocol", call->protocol);
	query_bind_int(&q, ":attempts", call->attempts);
	query_bind_int(&q, ":approval", call->approval_us);
	query_bind_int(&q, ":queued", call->queued_us);
	query_bind_int(&q, ":started", call->started_us);
	query_bind_int(&q, ":finished", call->finished_us);
	int result = query_run(&q, NULL, err);

	return result < 0 ? result : store_txn_audit_call(txn, execution, call->seq, err);
}

int store_txn_tools_add(struct store_txn *txn, const char *execution, const struct store_tools *tools, struct err *err)
{
	int64_t bytes = 0;
	int result = 0;

	for (size_t i = 0; i < tools->n_servers && result == 0; i++) {
		result = add_server(txn, execution, i, &tools->servers[i], err);
		bytes += ROW_BYTES;
	}
	for (size_t i = 0; i < tools->n_calls && result == 0; i++) {
		result = add_call(txn, execution, &tools->calls[i], err);
		bytes +=
			ROW_BYTES + (int64_t)strlen(tools->calls[i].arguments) + (int64_t)tools->calls[i].result_length;
	}
	if (result < 0 || bytes == 0)
		return result;
	auto_query struct query q = query_begin(txn->conn, SQL_TOOL_BYTES);

	query_bind_int(&q, ":bytes", bytes);
	query_bind_text(&q, ":execution", execution);
	return query_run(&q, NULL, err);
}

int store_tools_load(struct store *store, const char *execution, struct store_tools *ret, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	struct store_tools tools = {0};
	int found = store_reader_take(store, &reader, err);

	if (found < 0)
		return found;
	auto_query struct query servers = query_begin(reader.conn, SQL_TOOL_SERVERS);
	auto_query struct query calls = query_begin(reader.conn, SQL_TOOL_CALLS);

	query_bind_text(&servers, ":execution", execution);
	query_bind_text(&calls, ":execution", execution);
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
		call->result_length = call->result ? strlen(call->result) : 0;
		found = 0;
	}
	if (found < 0)
		store_tools_clear(&tools);
	else
		*ret = tools;
	return MIN(found, 0);
}
