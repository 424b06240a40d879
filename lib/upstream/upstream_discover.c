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
#include "upstream_revision.h"

#define SCOPE_MAX 2048

const char *const upstream_auth_names[] = {"none", "client_secret_basic", "client_secret_post", NULL};

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

/* As the servers themselves: private addresses only where the entry says so. */
static enum oauth_fetch_trust trust_of(const struct upstream_server *server)
{
	return server->is_private ? OAUTH_FETCH_OPERATOR : OAUTH_FETCH_PUBLIC;
}

int upstream_discover_ask(const struct upstream_server *server, const struct oauth_fetch *what, int *ret_status,
			  struct json_object **ret, struct err *err)
{
	struct oauth_fetch fetch = *what;
	auto_fetched struct oauth_fetched fetched = {0};
	auto_json struct json_object *object = NULL;

	fetch.max = UPSTREAM_METADATA_MAX;
	fetch.trust = trust_of(server);
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

/* A document with status 200. ERR_NOT_FOUND: there is none at this place. */
static int get_document(const struct upstream_server *server, const char *url, struct json_object **ret,
			struct err *err)
{
	auto_json struct json_object *object = NULL;
	const struct oauth_fetch what = {.url = url};
	int status = 0, result = upstream_discover_ask(server, &what, &status, &object, err);

	if (status >= 400 && status < 500)
		return err_set(err, ERR_NOT_FOUND, "%.200s: status %d", url, status);
	if (result == 0 && status != 200)
		return err_set(err, ERR_UNAVAILABLE, "%.200s answered with status %d", url, status);
	if (result == 0)
		*ret = steal(&object);
	return result;
}

/* -------- the resource -------------------------------------------------------------------------------- */

/* Is the resource the server itself: the same origin, and a path that the server's begins with? */
static bool names_server(const char *resource, const char *url)
{
	struct host_url named, ours;

	if (host_url_parse(resource, &named) < 0 || host_url_parse(url, &ours) < 0 || !streq(named.host, ours.host) ||
	    named.port != ours.port || str_starts(resource, "https") != str_starts(url, "https"))
		return false;
	const char *path = resource + named.origin, *our_path = url + ours.origin;
	size_t length = strlen(path);

	while (length > 0 && path[length - 1] == '/')
		length--;
	return strncmp(path, our_path, length) == 0 && (our_path[length] == '\0' || strchr("/?", our_path[length]));
}

/* What the server says without a token: its challenge, if any. */
static int probe(const struct upstream_server *server, int *ret_status, struct upstream_challenge *ret, struct err *err)
{
	static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
				   "\"io.modelcontextprotocol/protocolVersion\":\"" UPSTREAM_MODERN "\","
				   "\"io.modelcontextprotocol/clientCapabilities\":{}}}}";
	static const char *const headers[] = {"Accept: application/json, text/event-stream",
					      "MCP-Protocol-Version: " UPSTREAM_MODERN, "Mcp-Method: tools/list", NULL};
	const struct oauth_fetch what = {.url = server->url,
					 .json = body,
					 .headers = headers,
					 .max = UPSTREAM_METADATA_MAX,
					 .trust = trust_of(server)};
	auto_fetched struct oauth_fetched fetched = {0};
	int result = oauth_fetch(&what, &fetched, err);

	if (result < 0)
		return err_wrap(err, "%.200s", server->url), result;
	*ret_status = fetched.status;
	upstream_challenge_parse(fetched.challenge != NULL ? fetched.challenge : "", ret);
	return 0;
}

/* The metadata of the resource: where the challenge says, else below the path of the server, else at the root. */
static int get_resource(const struct upstream_server *server, const struct upstream_challenge *challenge,
			struct json_object **ret, struct err *err)
{
	static const char place[] = "/.well-known/oauth-protected-resource";
	struct host_url url;

	if (challenge->resource_metadata != NULL)
		return get_document(server, challenge->resource_metadata, ret, err);
	if (host_url_parse(server->url, &url) < 0)
		return err_set(err, ERR_INVALID, "%.200s is not an address", server->url);
	const char *path = server->url + url.origin;
	auto_free char *inserted = xasprintf("%.*s%s%.*s", (int)url.origin, server->url, place, (int)strcspn(path, "?"),
					     streq(path, "/") ? "" : path);
	auto_free char *root = xasprintf("%.*s%s", (int)url.origin, server->url, place);
	int result = get_document(server, inserted, ret, err);

	return result == -ERR_NOT_FOUND && !streq(inserted, root) ? get_document(server, root, ret, err) : result;
}

/* The items of a list of words as one text; NULL: there are none. The caller's. */
static char *join(struct json_object *list)
{
	auto_buf struct buf out = {0};

	buf_init(&out, SCOPE_MAX);
	for (size_t i = 0; list != NULL && i < json_object_array_length(list); i++) {
		struct json_object *item = json_object_array_get_idx(list, i);

		if (json_object_is_type(item, json_type_string))
			buf_printf(&out, "%s%s", out.length > 0 ? " " : "", json_object_get_string(item));
	}
	return out.length > 0 && !out.overflow ? buf_steal(&out, NULL) : NULL;
}

static int take_resource(const struct upstream_server *server, struct json_object *document,
			 struct upstream_issuer *issuer, struct err *err)
{
	const char *resource = json_get_string(document, "resource");
	struct json_object *servers = json_get(document, "authorization_servers", json_type_array);
	struct json_object *first =
		servers != NULL && json_object_array_length(servers) > 0 ? json_object_array_get_idx(servers, 0) : NULL;

	if (resource == NULL || !names_server(resource, server->url))
		return err_set(err, ERR_DENIED,
			       "the resource metadata is about %.200s, not about %.200s: tokens for it go nowhere else",
			       resource != NULL ? resource : "nothing", server->url);
	if (!json_object_is_type(first, json_type_string))
		return err_set(err, ERR_UNAVAILABLE, "the resource metadata names no authorization server");
	issuer->resource = xstrdup(resource);
	issuer->issuer = xstrdup(json_object_get_string(first));
	if (issuer->scope == NULL)
		issuer->scope = join(json_get(document, "scopes_supported", json_type_array));
	return 0;
}

/* -------- the authorization server -------------------------------------------------------------------- */

void upstream_issuer_clear(struct upstream_issuer *issuer)
{
	char **const texts[] = {&issuer->issuer,
				&issuer->resource,
				&issuer->authorization_endpoint,
				&issuer->token_endpoint,
				&issuer->registration_endpoint,
				&issuer->revocation_endpoint,
				&issuer->scope};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(steal(texts[i]));
}

static int get_metadata(const struct upstream_server *server, const char *issuer, struct json_object **ret,
			struct err *err)
{
	struct host_url url;
	size_t length = strlen(issuer);

	if (host_url_parse(issuer, &url) < 0 || !url.secure)
		return err_set(err, ERR_DENIED, "the authorization server %.200s is not an address of https", issuer);
	while (length > url.origin && issuer[length - 1] == '/')
		length--;
	const int origin = (int)url.origin, rest = (int)(length - url.origin);
	const char *path = issuer + url.origin;
	char *const places[] = {
		xasprintf("%.*s/.well-known/oauth-authorization-server%.*s", origin, issuer, rest, path),
		xasprintf("%.*s/.well-known/openid-configuration%.*s", origin, issuer, rest, path),
		rest > 0 ? xasprintf("%.*s/.well-known/openid-configuration", (int)length, issuer) : NULL,
	};
	int result = -ERR_NOT_FOUND;

	for (size_t i = 0; result == -ERR_NOT_FOUND && i < ARRAY_SIZE(places) && places[i] != NULL; i++)
		result = get_document(server, places[i], ret, err);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		free(places[i]);
	return result;
}

static bool list_has(struct json_object *document, const char *member, const char *word)
{
	return json_list_has(json_get(document, member, json_type_array), word);
}

/* An endpoint, which must be of https; *ret stays NULL where it is not there. */
static int take_endpoint(struct json_object *document, const char *name, char **ret, struct err *err)
{
	const char *endpoint = json_get_string(document, name);
	struct host_url url;

	if (endpoint == NULL)
		return 0;
	if (host_url_parse(endpoint, &url) < 0 || !url.secure)
		return err_set(err, ERR_DENIED, "%s of the authorization server, %.200s, is not an address of https",
			       name, endpoint);
	*ret = xstrdup(endpoint);
	return 0;
}

static bool is_true(struct json_object *document, const char *member)
{
	return json_object_get_boolean(json_get(document, member, json_type_boolean));
}

static int take_metadata(struct json_object *document, struct upstream_issuer *issuer, struct err *err)
{
	int result = take_endpoint(document, "authorization_endpoint", &issuer->authorization_endpoint, err);

	if (result == 0)
		result = take_endpoint(document, "token_endpoint", &issuer->token_endpoint, err);
	if (result == 0)
		result = take_endpoint(document, "registration_endpoint", &issuer->registration_endpoint, err);
	if (result == 0)
		result = take_endpoint(document, "revocation_endpoint", &issuer->revocation_endpoint, err);
	if (result < 0)
		return result;
	if (issuer->authorization_endpoint == NULL || issuer->token_endpoint == NULL)
		return err_set(err, ERR_UNAVAILABLE, "the metadata of %.200s lacks an endpoint", issuer->issuer);
	if (!list_has(document, "code_challenge_methods_supported", "S256"))
		return err_set(err, ERR_DENIED,
			       "%.200s does not offer PKCE with S256, without which a code can be stolen",
			       issuer->issuer);
	for (size_t i = 0; upstream_auth_names[i] != NULL; i++)
		if (list_has(document, "token_endpoint_auth_methods_supported", upstream_auth_names[i]))
			issuer->auth |= 1u << i;
	if (json_get(document, "token_endpoint_auth_methods_supported", json_type_array) == NULL)
		issuer->auth = UPSTREAM_AUTH_BASIC; /* RFC 8414 */
	issuer->takes_urls = is_true(document, "client_id_metadata_document_supported");
	issuer->sends_iss = is_true(document, "authorization_response_iss_parameter_supported");
	issuer->offline = list_has(document, "scopes_supported", "offline_access");
	return 0;
}

/* Revision 2025-03-26: the server's origin is the issuer, with endpoints of fixed names if it has no metadata. */
static int take_origin(const struct upstream_server *server, struct upstream_issuer *issuer, struct err *err)
{
	auto_json struct json_object *document = NULL;
	struct host_url url;

	if (host_url_parse(server->url, &url) < 0)
		return err_set(err, ERR_INVALID, "%.200s is not an address", server->url);
	auto_free char *origin = xasprintf("%.*s", (int)url.origin, server->url);
	int result = get_metadata(server, origin, &document, err);

	issuer->resource = xstrdup(server->url);
	if (result == 0) {
		const char *named = json_get_string(document, "issuer");
		const size_t length = strlen(origin);

		if (named == NULL || !str_starts(named, origin) ||
		    (named[length] != '\0' && !streq(named + length, "/")))
			return err_set(err, ERR_DENIED, "the metadata of %.200s says that it is %.200s", origin,
				       named != NULL ? named : "nobody");
		issuer->issuer = xstrdup(named);
		return take_metadata(document, issuer, err);
	}
	if (result != -ERR_NOT_FOUND)
		return result;
	issuer->issuer = steal(&origin);
	issuer->authorization_endpoint = xasprintf("%s/authorize", issuer->issuer);
	issuer->token_endpoint = xasprintf("%s/token", issuer->issuer);
	issuer->registration_endpoint = xasprintf("%s/register", issuer->issuer);
	issuer->auth = UPSTREAM_AUTH_NONE | UPSTREAM_AUTH_POST;
	return 0;
}

static int discover(const struct upstream_server *server, struct upstream_issuer *issuer, struct err *err)
{
	auto_challenge struct upstream_challenge challenge = {0};
	auto_json struct json_object *document = NULL;
	int status = 0, result = probe(server, &status, &challenge, err);

	if (result < 0)
		return result;
	issuer->scope = steal(&challenge.scope);
	result = get_resource(server, &challenge, &document, err);
	if (result == -ERR_NOT_FOUND && challenge.resource_metadata == NULL) {
		if (status != 401)
			return err_set(err, ERR_NOT_FOUND,
				       "%s does not ask for a sign-in: it answered with status %d without a token",
				       server->name, status);
		return take_origin(server, issuer, err);
	}
	if (result == 0)
		result = take_resource(server, document, issuer, err);
	if (result < 0)
		return result;
	json_put_pointer(&document);
	document = NULL;
	result = get_metadata(server, issuer->issuer, &document, err);
	if (result < 0)
		return result;
	const char *named = json_get_string(document, "issuer");

	if (named == NULL || !streq(named, issuer->issuer))
		return err_set(err, ERR_DENIED,
			       "%s names the authorization server %.200s, and its metadata says %.200s: they must be "
			       "the same to the last character",
			       server->name, issuer->issuer, named != NULL ? named : "nothing");
	return take_metadata(document, issuer, err);
}

int upstream_discover(const struct upstream_server *server, struct upstream_issuer *ret, struct err *err)
{
	auto_issuer struct upstream_issuer issuer = {0};
	int result = discover(server, &issuer, err);

	if (result < 0)
		return result;
	*ret = issuer;
	issuer = (struct upstream_issuer){0};
	return 0;
}
