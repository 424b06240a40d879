/*
 * http.c - HTTP rules; see http.h.
 *
 * From where what comes: nginx (or another web server) has parsed the request; we get CGI variables. The path is taken
 * from REQUEST_URI, as the client sent it, because SCRIPT_NAME and PATH_INFO are decoded and normalised already: "%2f"
 * and ".." must be seen here. A plain CGI program may be mounted below a name (SCRIPT_NAME) that is then cut off.
 *
 * Host and Origin: a web page must not reach a server on its user's loopback interface or network by DNS rebinding, so
 * the Host must be public_base_url's, loopback, or one of gateway.allowed_hosts; an Origin, if there is one, likewise.
 * Programs other than browsers send no Origin.
 */
#include "http.h"

#include <strings.h>

#include "lib/base/util.h"

/* Is "name:port" (or "[v6]:port") the loopback interface, whatever the port? */
static bool is_loopback(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t length = strlen(names[i]);

		if (strncasecmp(host, names[i], length) != 0)
			continue;
		if (host[length] == '\0')
			return true;
		if (host[length] == ':' && host[length + 1] &&
		    strspn(host + length + 1, "0123456789") == strlen(host + length + 1))
			return true;
	}
	return false;
}

/* "https://host:port/path" -> what is before the path, and where the host begins in it. */
static size_t origin_length(const char *url, size_t *ret_host)
{
	const char *host = strstr(url, "://");

	if (!host)
		return 0;
	*ret_host = (size_t)(host + 3 - url);
	return *ret_host + strcspn(host + 3, "/?#");
}

bool http_host_base(const struct config *config, const char *host)
{
	size_t begin = 0, end = origin_length(config->public_base_url ? config->public_base_url : "", &begin);

	return host && end > begin && strlen(host) == end - begin &&
	       strncasecmp(host, config->public_base_url + begin, end - begin) == 0;
}

bool http_host_allowed(const struct config *config, const char *host)
{
	if (!host || is_loopback(host) || http_host_base(config, host))
		return true;
	for (size_t i = 0; i < config->gateway.allowed_hosts.count; i++) {
		if (strcasecmp(host, config->gateway.allowed_hosts.items[i]) == 0)
			return true;
	}
	return false;
}

bool http_origin_allowed(const struct config *config, const char *origin)
{
	size_t begin = 0, end = origin_length(config->public_base_url ? config->public_base_url : "", &begin);

	if (!origin)
		return true;
	if (end && strlen(origin) == end && strncasecmp(origin, config->public_base_url, end) == 0)
		return true;
	if (strncasecmp(origin, "http://", 7) == 0 && is_loopback(origin + 7))
		return true;
	if (strncasecmp(origin, "https://", 8) == 0 && is_loopback(origin + 8))
		return true;
	for (size_t i = 0; i < config->gateway.allowed_origins.count; i++) {
		if (strcasecmp(origin, config->gateway.allowed_origins.items[i]) == 0)
			return true;
	}
	return false;
}

/* They send no credentials of a browser: a bearer token in a header is none that a foreign page could use. */
bool http_origin_connector(const struct config *config, const char *origin)
{
	static const char *const known[] = {"https://claude.ai", "https://claude.com", "https://chatgpt.com",
					    "https://vscode.dev", "https://insiders.vscode.dev"};

	for (size_t i = 0; config_oauth(config) != CONFIG_OAUTH_OFF && origin && i < ARRAY_SIZE(known); i++)
		if (strcasecmp(origin, known[i]) == 0)
			return true;
	return false;
}

int http_path(const struct request *request, bool (*known)(const char *path), char ret[HTTP_PATH_MAX], struct err *err)
{
	const char *uri = request_param(request, "REQUEST_URI");
	const char *script = request_param(request, "SCRIPT_NAME");
	const char *info = request_param(request, "PATH_INFO");

	if (!uri)
		return err_set(err, ERR_INVALID,
			       "the web server does not pass REQUEST_URI: add it to its FastCGI or CGI variables");
	if (uri[0] != '/') { /* absolute form: http://host/path */
		size_t host = 0;

		uri += origin_length(uri, &host);
	}
	size_t length = strcspn(uri, "?#"), cut = script ? strlen(script) : 0;

	if (length >= HTTP_PATH_MAX)
		return err_set(err, ERR_INVALID, "the path is longer than %d bytes", HTTP_PATH_MAX - 1);
	memcpy(ret, uri, length);
	ret[length] = '\0';
	/* Mounted below a script's name: with PATH_INFO set, SCRIPT_NAME is the script and not, as with nginx, the
	 * whole path. */
	if (!known(ret) && info && info[0] && cut > 0 && cut < length && str_starts(ret, script) && ret[cut] == '/')
		memmove(ret, ret + cut, length - cut + 1);
	return 0;
}

/* -------- cors ---------------------------------------------------------------------------------------- */

#define CORS_MAX_AGE_SECONDS 7200
#define NAME_MAX_BYTES  64

/* What the protocol's clients send. Mcp-Param-* names depend on the tools: those that are asked for are added. */
static const char cors_headers[] =
	"Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, "
	"MCP-Protocol-Version, Mcp-Session-Id";
static const char cors_param_prefix[] = "mcp-param-";
static const char token_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";

void http_cors_headers(struct reply *reply, const char *origin)
{
	reply_header(reply, "Access-Control-Allow-Origin", "%s", origin);
	reply_header(reply, "Access-Control-Expose-Headers",
		     "Mcp-Session-Id, WWW-Authenticate, Retry-After, X-Request-Id");
	reply_header(reply, "Vary", "Origin");
}

bool http_cors_preflight(struct http_exchange *exchange, const char *allow)
{
	struct reply *reply = exchange->reply;
	const char *asked = request_param(exchange->request, "HTTP_ACCESS_CONTROL_REQUEST_HEADERS");
	auto_buf struct buf list = {0};

	if (!request_param(exchange->request, "HTTP_ORIGIN") ||
	    !request_param(exchange->request, "HTTP_ACCESS_CONTROL_REQUEST_METHOD"))
		return false;
	buf_init(&list, HTTP_HEADER_MAX / 2);
	buf_puts(&list, cors_headers);
	for (const char *p = asked ? asked : ""; *(p += strspn(p, ", \t")); p += strcspn(p, ", \t")) {
		size_t length = strspn(p, token_characters);

		if (length <= NAME_MAX_BYTES && strncasecmp(p, cors_param_prefix, sizeof(cors_param_prefix) - 1) == 0 &&
		    strchr(", \t", p[length]))
			buf_printf(&list, ", %.*s", (int)length, p);
	}
	reply->status = 204;
	reply_header(reply, "Access-Control-Allow-Methods", "%s", allow);
	reply_header(reply, "Access-Control-Allow-Headers", "%s", list.overflow ? cors_headers : list.data);
	reply_header(reply, "Access-Control-Max-Age", "%d", CORS_MAX_AGE_SECONDS);
	return true;
}
