/*
 * upstream_discover.c - see upstream_discover.h.
 *
 * Three documents after each other, each named by the one before. The server is asked as somebody without a token, by a
 * request that any server understands or refuses: what matters is the challenge of its 401. The challenge names the
 * metadata of the resource; where it does not, they are looked for below the server's path, then at the root. They
 * name the issuer, whose metadata stand at up to three places, those of OAuth before those of OpenID Connect. A place
 * that answers with 4xx has nothing, and the next one is asked; any other failure ends the search, so that nobody gets
 * an answer of ours by keeping the right one away. The first issuer of the list counts, as for all clients.
 *
 * Facts: MCP 2026-07-28, authorization server discovery; RFC 9728 section 3; RFC 8414 section 3.
 */
#include "upstream_discover.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "lib/base/host.h"
#include "lib/base/json.h"
#include "lib/base/util.h"

#define SCOPE_MAX 2048


/* -------- the challenge ------------------------------------------------------------------------------- */

void upstream_challenge_clear(struct upstream_challenge *challenge)
{
	free(steal(&challenge->resource_metadata));
	free(steal(&challenge->scope));
	free(steal(&challenge->error));
}

/* A token or a quoted string at *at, which is moved behind it; the caller's. */
static char *read_value(const char **at)
{
	auto_buf struct buf value = {0};
	const char *p = *at;

	buf_init(&value, SCOPE_MAX);
	if (*p != '"') {
		for (; *p != '\0' && strchr(" \t,", *p) == NULL; p++)
			buf_putc(&value, *p);
	} else {
		for (p++; *p != '\0' && *p != '"'; p++) {
			if (*p == '\\' && p[1] != '\0')
				p++;
			buf_putc(&value, *p);
		}
		p += *p == '"';
	}
	*at = p;
	return value.overflow ? NULL : buf_steal(&value, NULL);
}

void upstream_challenge_parse(const char *header, struct upstream_challenge *ret)
{
	bool bearer = false;

	*ret = (struct upstream_challenge){0};
	for (const char *at = header; *at != '\0';) {
		at += strspn(at, " \t,");
		const size_t length = strcspn(at, " \t,=");
		auto_free char *word = xstrndup(at, length);

		at += length;
		if (*at != '=') { /* the name of a scheme, or nothing */
			if (length > 0 && bearer)
				return;
			bearer = !strcasecmp(word, "Bearer");
			continue;
		}
		at++;
		char *value = read_value(&at);
		char **to = !bearer                                  ? NULL
			    : !strcasecmp(word, "resource_metadata") ? &ret->resource_metadata
			    : !strcasecmp(word, "scope")             ? &ret->scope
			    : !strcasecmp(word, "error")             ? &ret->error
								     : NULL;

		if (to != NULL && *to == NULL)
			*to = steal(&value);
		free(value);
	}
}

/* -------- fetching ------------------------------------------------------------------------------------ */

int upstream_discover_ask(const struct upstream_server *server, const struct oauth_fetch *what, int *ret_status,
			  struct json_object **ret, struct err *err)
{
	struct oauth_fetch fetch = *what;
	auto_fetched struct oauth_fetched fetched = {0};
	auto_json struct json_object *object = NULL;

	fetch.max = UPSTREAM_METADATA_MAX;
	fetch.public_only = !server->is_private;
	int result = oauth_fetch(&fetch, &fetched, err);

	if (result < 0)
		return err_wrap(err, "%.200s", what->url), result;
	*ret_status = fetched.status;
	if (json_parse_received(fetched.body.data, fetched.body.length, &object, NULL) < 0 ||
	    !json_object_is_type(object, json_type_object))
		return err_set(err, ERR_UNAVAILABLE, "%.200s answered with status %d, and not with a JSON object",
			       what->url, fetched.status);
	*ret = steal(&object);
	return 0;
}
