/* tool_common.c - see tool_common.h. */
#include "tool_common.h"

#include <string.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/job/job.h"
#include "lib/store/db/crypto.h"

struct json_object *tool_runners(struct server *server)
{
	struct job_engine *engine;

	return server_engine(server, &engine, NULL) < 0 ? NULL : job_engine_runners(engine);
}

void tool_print_names(struct buf *out, struct json_object *runner)
{
	struct json_object *aliases = json_get(runner, "aliases", json_type_array);
	const char *name = json_get_string(runner, "name");

	buf_puts(out, name ? name : "");
	for (size_t i = 0; aliases && i < json_object_array_length(aliases); i++)
		buf_printf(out, "%s%s", i ? ", " : " (also ",
			   json_object_get_string(json_object_array_get_idx(aliases, i)));
	if (aliases && json_object_array_length(aliases))
		buf_putc(out, ')');
}

int tool_network_check(const struct tool_call *call, bool asked, struct err *err)
{
	const struct store_token *token = call->token;

	if (asked && call->server->config->network.allow.count == 0)
		return err_set(
			err, ERR_DENIED,
			"network: there is no network on this server (network.allow in its configuration is empty)");
	/* Without an id: standard input, where the caller is the operator. */
	if (!asked || !token->id[0] || (token->scopes & (STORE_SCOPE_NETWORK | STORE_SCOPE_ADMIN)))
		return 0;
	return err_set(
		err, ERR_DENIED,
		"network: this token lacks the scope \"network\" (sallyport token add --scope run,files,network)");
}

void tool_network_describe(const struct config *config, struct buf *out)
{
	const struct bind_strings *allow = &config->network.allow;

	if (!allow->count)
		buf_puts(out, "There is no network on this server.");
	for (size_t i = 0; i < allow->count; i++)
		buf_printf(out, "%s%.*s", i ? ", " : "Default: false. With true a program reaches ",
			   (int)strcspn(allow->items[i], " "), allow->items[i]);
	if (out->overflow) {
		buf_reset(out);
		buf_puts(out, "Default: false. With true a program reaches the hosts that the operator lists");
	}
	if (allow->count)
		buf_puts(out, " and nothing else.");
}

int tool_base64(const struct tool_call *call, const struct bind_text *text, const char *member, struct buf *out,
		struct err *err)
{
	const bool strict = call->server->config->tools.strict;
	struct err own = ERR_INIT;

	if ((strict ? base64_decode : base64_decode_meant)(text->data, text->length, out, &own) == 0)
		return 0;
	return err_member(err, member, "%s", own.text);
}

void tool_hash(const struct tool_call *call, const void *bound, char ret[SHA256_HEX_SIZE])
{
	auto_json struct json_object *arguments = bind_print(call->tool->arguments, bound),
				     *names = json_object_new_array();
	struct json_object *secrets = json_get(arguments, "secrets", json_type_object);
	auto_buf struct buf text = {0};

	if (secrets) {
		json_object_object_foreach(secrets, name, value)
		{
			(void)value;
			json_object_array_add(names, json_object_new_string(name));
		}
		json_add(arguments, "secrets", steal(&names));
	}
	buf_init(&text, SIZE_MAX);
	buf_printf(&text, "%s\n", call->tool->name);
	json_print(&text, arguments);
	sha256_hex(text.data, text.length, ret);
}
