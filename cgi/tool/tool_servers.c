/*
 * tool_servers.c - the servers of a run_code: from names in an argument to what the job engine is given.
 *
 * The pool of servers and the bridge are started with the first program that needs them.
 */
#include "cgi/mcp/mcp_stream.h"
#include "lib/base/util.h"
#include "lib/bridge/bridge_tools.h"
#include "tool_common.h"
#include "tool_direct.h"

/* Who has no token is the account that started the gateway over standard input and output. */
const char *tool_grant(const struct store_token *token)
{
	if (!token->id[0] || (token->scopes & STORE_SCOPE_ADMIN))
		return "*";
	return token->servers[0] ? token->servers : NULL;
}

/* The network is an exit that no tool's policy sees. */
static int check(const struct tool_call *call, bool network, struct err *err)
{
	if (!call->server->config->upstream.file || !*call->server->config->upstream.file)
		return err_set(err, ERR_UNAVAILABLE,
			       "servers: this server has no tools for programs (upstream.file in its configuration)");
	return network ? err_member(err, "servers", "cannot be combined with network: true") : 0;
}

static int check_code(const struct tool_call *call, struct err *err)
{
	if (!tool_servers_code(call->server->config) && call->server->tables.provider)
		return err_member(err, "servers", "programs call nothing here: tools.upstream is direct");
	return 0;
}

bool tool_servers_code(const struct config *config)
{
	return config->upstream.file && *config->upstream.file && !streq(config->tools.upstream, "direct");
}

static int start(struct server *server, struct err *err)
{
	int result = 0;

	pthread_mutex_lock(&server->lock);
	if (server->stopping)
		result = err_set(err, ERR_UNAVAILABLE, "the server is stopping");
	if (result == 0 && !server->upstream) {
		if ((result = upstream_open(server->config, &server->upstream, err)) == 0 && server->upstream)
			tool_direct_watch(server);
	}
	if (result == 0 && !server->bridge)
		result = bridge_start(server->upstream, &server->bridge, err);
	pthread_mutex_unlock(&server->lock);
	return result;
}

int tool_upstream(struct server *server, struct upstream **ret, struct err *err)
{
	int result = start(server, err);

	if (result == 0)
		*ret = server->upstream;
	return result;
}

static int make(const struct tool_call *call, const struct bind_strings *servers, const char *runner,
		struct job_tools **ret, struct err *err)
{
	const struct bridge_tools_spec spec = {.bridge = call->server->bridge,
					       .upstream = call->server->upstream,
					       .config = call->server->config,
					       .store = call->server->store,
					       .traced = true,
					       .owner = call->token->owner,
					       .grant = tool_grant(call->token),
					       .servers = *servers,
					       .runner = runner,
					       .refusal = call->mcp ? mcp_cannot_elicit(call->mcp)
								    : "nobody can be asked here",
					       .progress = call->mcp && mcp_progress_token(call->mcp)};

	return bridge_tools_new(&spec, ret, err);
}

int tool_servers(const struct tool_call *call, const struct bind_strings *servers, const char *language, bool network,
		 struct job_tools **ret, struct err *err)
{
	*ret = NULL;
	if (servers->count == 0)
		return 0;
	if (check_code(call, err) < 0)
		return -ERR_INVALID;
	return tool_servers_named(call, servers, language, network, ret, err);
}

int tool_servers_named(const struct tool_call *call, const struct bind_strings *servers, const char *language,
		       bool network, struct job_tools **ret, struct err *err)
{
	struct job_engine *engine;
	int result;

	if ((result = check(call, network, err)) < 0 || (result = start(call->server, err)) < 0)
		return result;
	auto_free char *name =
		server_engine(call->server, &engine, NULL) < 0 ? NULL : job_engine_runner_name(engine, language);

	return make(call, servers, name ? name : language, ret, err);
}

int tool_servers_python(const struct tool_call *call, const struct bind_strings *servers, struct job_tools **ret,
			struct err *err)
{
	int result = servers->count > 0 ? check_code(call, err) : 0;

	if (result == 0 && servers->count > 0)
		result = check(call, false, err);
	if (result == 0)
		result = start(call->server, err);
	return result < 0 ? result : make(call, servers, "python", ret, err);
}

struct json_object *tool_servers_names(struct server *server)
{
	struct json_object *names;
	struct err err = ERR_INIT;
	size_t count;

	if (!tool_servers_code(server->config) || start(server, &err) < 0 || !server->upstream)
		return NULL;
	const struct upstream_server *servers = upstream_servers(server->upstream, &count);
	names = json_object_new_array();
	for (size_t i = 0; i < count; i++)
		if (!servers[i].disabled)
			json_object_array_add(names, json_object_new_string(servers[i].name));
	return names;
}
