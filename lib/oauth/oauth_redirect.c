/* oauth_redirect.c - see oauth_redirect.h. Facts: draft-ietf-oauth-client-id-metadata-document-01, sections 3 and 6;
 * RFC 8252; RFC 8707, section 2. */
#include "oauth_redirect.h"

#include <string.h>
#include <strings.h>

#include "lib/base/host.h"
#include "lib/base/util.h"

#define DOCUMENT_ID_MAX 512
#define PORT_HTTPS      443

/* Where scheme and host end, and a port may begin. */
static size_t host_end(const char *uri)
{
	const char *host = strstr(uri, "://");

	if (host == NULL)
		return 0;
	host += strlen("://");
	if (*host == '[')
		return (size_t)(host - uri) + strcspn(host, "]/?") + 1;
	return (size_t)(host - uri) + strcspn(host, ":/?");
}

bool oauth_redirect_loopback(const char *uri)
{
	static const char *const names[] = {"http://127.0.0.1", "http://[::1]", "http://localhost"};
	const size_t length = host_end(uri);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == length && strncmp(uri, names[i], length) == 0)
			return true;
	return false;
}

/* Nothing that two programs could read differently. */
static bool is_plain(const char *uri)
{
	for (const char *p = uri; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || strchr("\"\\<>^`{|}#", *p) != NULL)
			return false;
	return strlen(uri) <= OAUTH_REDIRECT_MAX;
}

bool oauth_redirect_allowed(const struct config *config, const char *uri)
{
	const struct bind_strings *schemes = &config->oauth.private_schemes;
	struct host_url url;

	if (!is_plain(uri))
		return false;
	for (size_t i = 0; i < schemes->count; i++)
		if (streq(schemes->items[i], uri) && strchr(uri, ':') != NULL &&
		    strncasecmp(uri, "javascript:", 11) != 0 && strncasecmp(uri, "data:", 5) != 0)
			return true;
	return host_url_parse(uri, &url) == 0 && (str_starts(uri, "https://") || oauth_redirect_loopback(uri));
}

bool oauth_redirect_matches(const char *registered, const char *asked)
{
	struct host_url one, other;

	if (streq(registered, asked))
		return true;
	const size_t host = host_end(registered);

	return oauth_redirect_loopback(registered) && host == host_end(asked) &&
	       strncmp(registered, asked, host) == 0 && host_url_parse(registered, &one) == 0 &&
	       host_url_parse(asked, &other) == 0 && is_plain(asked) &&
	       streq(registered + one.origin, asked + other.origin);
}

void oauth_redirect_host(const char *uri, char ret[OAUTH_REDIRECT_HOST])
{
	struct host_url url;
	const char *host = strstr(uri, "://");

	if (host != NULL && host_url_parse(uri, &url) == 0)
		snprintf(ret, OAUTH_REDIRECT_HOST, "%.*s", (int)(url.origin - (size_t)(host + 3 - uri)), host + 3);
	else
		snprintf(ret, OAUTH_REDIRECT_HOST, "%.*s", (int)MIN(strcspn(uri, ":") + 1, (size_t)64), uri);
}

bool oauth_redirect_of_document(const struct config *config, const char *id, const char *uri)
{
	const struct bind_strings *hosts = &config->oauth.redirect_hosts;
	struct host_url document, redirect;

	if (oauth_redirect_loopback(uri))
		return true;
	if (host_url_parse(id, &document) < 0 || host_url_parse(uri, &redirect) < 0)
		return oauth_redirect_allowed(config, uri); /* a private scheme that the operator named */
	if (streq(document.host, redirect.host))
		return true;
	for (size_t i = 0; i < hosts->count; i++)
		if (strcasecmp(hosts->items[i], redirect.host) == 0)
			return true;
	return false;
}

bool oauth_redirect_local(const struct config *config)
{
	struct host_url base;

	return host_url_parse(config->public_base_url, &base) == 0 &&
	       (streq(base.host, "localhost") || streq(base.host, "127.0.0.1") || streq(base.host, "::1"));
}

/* "." or "..", also escaped. */
static bool is_dots(const char *segment, size_t length)
{
	size_t dots = 0;

	for (size_t i = 0; i < length; dots++) {
		if (segment[i] == '.')
			i++;
		else if (length - i >= 3 && strncasecmp(segment + i, "%2e", 3) == 0)
			i += 3;
		else
			return false;
	}
	return dots == 1 || dots == 2;
}

static bool has_dots(const char *path)
{
	for (const char *at = path; *at == '/';) {
		const size_t length = strcspn(++at, "/?");

		if (is_dots(at, length))
			return true;
		at += length;
	}
	return false;
}

int oauth_redirect_document(const struct config *config, const char *id, struct err *err)
{
	struct host_url url, base;

	if (strlen(id) > DOCUMENT_ID_MAX || !is_plain(id) || !str_starts(id, "https://") ||
	    host_url_parse(id, &url) < 0)
		return err_set(err, ERR_INVALID, "client_id must be an https address of at most %d characters",
			       DOCUMENT_ID_MAX);
	if (id[url.origin] != '/' || id[url.origin + 1] == '\0' || has_dots(id + url.origin))
		return err_set(err, ERR_INVALID, "client_id must have a path, without . and .. in it");
	if (host_url_parse(config->public_base_url, &base) == 0 && streq(url.host, base.host) && url.port == base.port)
		return err_set(err, ERR_INVALID, "client_id names this server itself");
	if (url.port != PORT_HTTPS && !oauth_redirect_local(config))
		return err_set(err, ERR_INVALID, "client_id must not have a port");
	return 0;
}

bool oauth_redirect_resource(const struct config *config, const char *resource)
{
	static const char *const paths[] = {"", "/", "/mcp", "/mcp/", "/sse", "/sse/"};
	const char *base = config->public_base_url;
	const size_t length = strlen(base);

	if (strncasecmp(resource, base, length) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (streq(resource + length, paths[i]))
			return true;
	return false;
}
