/*
 * oauth_fetch.c - see oauth_fetch.h.
 *
 * One easy handle of libcurl for each fetch, used once. Which addresses may be connected to is decided where the socket
 * is opened: there is the address itself, after the name was resolved. A stranger's address is refused there, whatever
 * its name or the spelling of its number.
 *
 * Facts: libcurl 7.88; RFC 6749 section 2.3.1 and appendix B (forms).
 */
#include "oauth_fetch.h"

#include <ctype.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "lib/base/host.h"
#include "lib/base/util.h"

#define CONNECT_MS 3000L
#define ALL_MS     5000L
#define AGE_MAX    (24 * 3600)
#define USER_AGENT "sallyport"
#define PORT_HTTPS 443

struct transfer {
	const struct oauth_fetch *what;
	struct oauth_fetched *fetched;
	bool refused; /* an address that is not to be connected to */
};

void oauth_fetched_clear(struct oauth_fetched *fetched)
{
	buf_clear(&fetched->body);
	free(steal(&fetched->challenge));
}

void oauth_fetch_begin(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

void oauth_fetch_encode(struct buf *out, const char *text)
{
	for (const char *p = text; *p != '\0'; p++) {
		if (isalnum((unsigned char)*p) || strchr("-._~", *p) != NULL)
			buf_putc(out, *p);
		else
			buf_printf(out, "%%%02X", (unsigned char)*p);
	}
}

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	struct transfer *transfer = arg;

	buf_add(&transfer->fetched->body, data, size * count);
	return transfer->fetched->body.overflow ? 0 : size * count;
}

/* Cache-Control: max-age=N. */
static void take_age(struct oauth_fetched *fetched, const char *value)
{
	static const char age[] = "max-age=";
	const char *at = strcasestr(value, age);
	uint64_t seconds;

	if (at == NULL)
		return;
	at += sizeof(age) - 1;
	auto_free char *digits = xstrndup(at, strspn(at, "0123456789"));

	if (parse_u64(digits, 0, INT32_MAX, &seconds) == 0)
		fetched->max_age_seconds = (int64_t)MIN(seconds, (uint64_t)AGE_MAX);
}

static size_t take_header(char *data, size_t size, size_t count, void *arg)
{
	struct oauth_fetched *fetched = ((struct transfer *)arg)->fetched;
	const size_t length = size * count;
	auto_free char *line = xstrndup(data, length);
	char *value = strchr(line, ':');

	if (value == NULL)
		return length;
	*value++ = '\0';
	value += strspn(value, " \t");
	value[strcspn(value, "\r\n")] = '\0';
	if (!strcasecmp(line, "cache-control"))
		take_age(fetched, value);
	else if (!strcasecmp(line, "www-authenticate") && fetched->challenge == NULL &&
		 strcasestr(value, "bearer") != NULL)
		fetched->challenge = xstrdup(value);
	return length;
}

static bool is_loopback(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;

	if (address->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static unsigned port_of(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;

	return ntohs(address->sa_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
}

static bool may_connect(enum oauth_fetch_trust trust, const struct sockaddr *address)
{
	if (trust == OAUTH_FETCH_OPERATOR || (trust == OAUTH_FETCH_STRANGER_HERE && is_loopback(address)))
		return true;
	return host_public(address) && (trust == OAUTH_FETCH_PUBLIC || port_of(address) == PORT_HTTPS);
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct transfer *transfer = arg;

	(void)purpose;
	if (!may_connect(transfer->what->trust, &address->addr)) {
		transfer->refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int look_for_stop(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	const struct transfer *transfer = arg;

	(void)down_all, (void)down, (void)up_all, (void)up;
	return transfer->what->stop != NULL && *transfer->what->stop;
}

static int check_url(const struct oauth_fetch *what, struct err *err)
{
	struct host_url url;

	if (host_url_parse(what->url, &url) < 0 || !url.secure ||
	    (what->trust >= OAUTH_FETCH_STRANGER && !str_starts(what->url, "https://")))
		return err_set(err, ERR_DENIED, "the address must begin with https://");
	return 0;
}

/* What the request is; *ret_credentials is the caller's. */
static void set_request(CURL *curl, const struct oauth_fetch *what, char **ret_credentials)
{
	auto_buf struct buf credentials = {0};

	curl_easy_setopt(curl, CURLOPT_URL, what->url);
	const char *body = what->form != NULL ? what->form : what->json;

	if (body != NULL) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
	}
	if (what->user != NULL) {
		buf_init(&credentials, SIZE_MAX / 2);
		oauth_fetch_encode(&credentials, what->user);
		buf_putc(&credentials, ':');
		oauth_fetch_encode(&credentials, what->password != NULL ? what->password : "");
		*ret_credentials = buf_steal(&credentials, NULL);
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(curl, CURLOPT_USERPWD, *ret_credentials);
	}
	if (what->ca_file != NULL && what->ca_file[0] != '\0')
		curl_easy_setopt(curl, CURLOPT_CAINFO, what->ca_file);
}

static void set_rules(CURL *curl, struct transfer *transfer)
{
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, ALL_MS);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, USER_AGENT);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, transfer);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, transfer);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_for_stop);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
}

static struct curl_slist *header_lines(const struct oauth_fetch *what)
{
	struct curl_slist *lines = NULL;

	for (size_t i = 0; what->headers != NULL && what->headers[i] != NULL; i++)
		lines = curl_slist_append(lines, what->headers[i]);
	if (lines == NULL)
		lines = curl_slist_append(NULL, "Accept: application/json");
	if (what->json != NULL)
		lines = curl_slist_append(lines, "Content-Type: application/json");
	if (lines == NULL)
		abort();
	return lines;
}

int oauth_fetch(const struct oauth_fetch *what, struct oauth_fetched *ret, struct err *err)
{
	struct transfer transfer = {.what = what, .fetched = ret};
	auto_free char *credentials = NULL;
	long status = 0;

	*ret = (struct oauth_fetched){.max_age_seconds = -1};
	buf_init(&ret->body, what->max);
	int result = check_url(what, err);

	if (result < 0)
		return result;
	CURL *curl = curl_easy_init();
	struct curl_slist *headers = header_lines(what);

	if (curl == NULL)
		abort();
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	set_rules(curl, &transfer);
	set_request(curl, what, &credentials);
	const CURLcode code = curl_easy_perform(curl);

	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	if (credentials != NULL)
		explicit_bzero(credentials, strlen(credentials));
	ret->status = (int)status;
	if (transfer.refused && code != CURLE_OK)
		return err_set(err, ERR_DENIED, "its host has an address that is not the internet's");
	if (ret->body.overflow)
		return err_set(err, ERR_UNAVAILABLE, "the answer has more than %zu bytes", what->max);
	return code == CURLE_OK ? 0 : err_set(err, ERR_UNAVAILABLE, "%s", curl_easy_strerror(code));
}
