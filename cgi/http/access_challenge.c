/* access_challenge.c - see access.h. Facts: RFC 6750 section 3, RFC 9728 section 5.1; clients read each parameter with
 * a pattern of their own, so all are quoted, and no value has a quote or a backslash. */
#include "access.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/oauth/oauth_who.h"

#define HOST_MAX 256

/* Where OAuth is served, and this request came to the host that the metadata names: how the challenge ends. `scopes` 0:
 * those that are usually wanted. */
static bool put_metadata(const struct http_exchange *exchange, unsigned scopes, struct buf *out)
{
	const struct config *config = exchange->server->config;
	char host[HOST_MAX], names[OAUTH_SCOPES_SIZE];
	const bool sse = exchange->route && (streq(exchange->route, "/sse") || streq(exchange->route, "/messages"));

	if (config_oauth(config) == CONFIG_OAUTH_OFF ||
	    !http_host_base(config, request_header(exchange->request, "HTTP_HOST", host, sizeof(host))))
		return false;
	oauth_who_scopes(config, scopes ? scopes : oauth_who_usual(config), names);
	buf_printf(out, ", resource_metadata=\"%s/.well-known/oauth-protected-resource/%s\", scope=\"%s\"",
		   config->public_base_url, sse ? "sse" : "mcp", names);
	return true;
}

void access_challenge(const struct http_exchange *exchange, const char *error, const char *description)
{
	auto_buf struct buf value = {0};

	buf_init(&value, HTTP_HEADER_MAX / 4);
	buf_puts(&value, "Bearer realm=\"sallyport\"");
	if (error)
		buf_printf(&value, ", error=\"%s\", error_description=\"%s\"", error, description);
	put_metadata(exchange, 0, &value);
	reply_header(exchange->reply, "WWW-Authenticate", "%s", value.data);
}

void access_challenge_scope(const struct http_exchange *exchange, const struct access_refusal *refusal)
{
	auto_buf struct buf value = {0};
	unsigned lacks = 0;

	buf_init(&value, HTTP_HEADER_MAX / 4);
	buf_printf(&value,
		   "Bearer realm=\"sallyport\", error=\"insufficient_scope\", error_description=\"%s is needed\"",
		   refusal->scope);
	/* Clients replace the scopes that they had by those of the challenge. */
	if (!exchange->token.granted || store_scopes_parse(refusal->scope, &lacks, NULL) < 0 ||
	    !put_metadata(exchange, exchange->token.scopes | lacks, &value))
		buf_printf(&value, ", scope=\"%s\"", refusal->scope);
	reply_header(exchange->reply, "WWW-Authenticate", "%s", value.data);
}
