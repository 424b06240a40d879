/*
 * tool_servers.c - the servers of a run_code: from names in an argument to what the job engine is given.
 *
 * The pool of servers and the bridge are started with the first program that needs them.
 */
#include "cgi/bridge/bridge_tools.h"
#include "jail/client/client_runners.h"
#include "lib/base/util.h"
#include "tool_common.h"

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

static int start(struct server *server, struct err *err)
{
	int result = 0;

	pthread_mutex_lock(&server->lock);
	if (server->stopping)
		result = err_set(err, ERR_UNAVAILABLE, "the server is stopping");
	if (result == 0 && !server->upstream)
		result = upstream_open(server->config, &server->upstream, err);
	if (result == 0 && !server->bridge)
		result = bridge_start(&server->bridge, err);
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

int tool_servers(const struct tool_call *call, const struct bind_strings *servers, const char *language, bool network,
		 struct job_tools **ret, struct err *err)
{
	auto_json struct json_object *runners = NULL;
	int result;

	*ret = NULL;
	if (servers->count == 0)
		return 0;
	if ((result = check(call, network, err)) < 0 || (result = start(call->server, err)) < 0)
		return result;
	runners = tool_runners(call->server);
	struct json_object *runner = runners ? jail_runner_named(runners, language) : NULL;
	const char *name = runner ? json_get_string(runner, "name") : NULL;
	const struct bridge_tools_spec spec = {.bridge = call->server->bridge,
					       .upstream = call->server->upstream,
					       .config = call->server->config,
					       .store = call->server->store,
					       .owner = call->token->owner,
					       .grant = tool_grant(call->token),
					       .servers = *servers,
					       .runner = name ? name : language};

	return bridge_tools_new(&spec, ret, err);
}

struct json_object *tool_servers_names(struct server *server)
{
	struct json_object *names;
	struct err err = ERR_INIT;
	size_t count;

	if (!server->config->upstream.file || !*server->config->upstream.file || start(server, &err) < 0 ||
	    !server->upstream)
		return NULL;
	const struct upstream_server *servers = upstream_servers(server->upstream, &count);
	names = json_object_new_array();
	for (size_t i = 0; i < count; i++)
		if (!servers[i].disabled)
			json_object_array_add(names, json_object_new_string(servers[i].name));
	return names;
}
