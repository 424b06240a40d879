/*
 * config_check.c - checks members of the configuration beyond their type and range, and against each other; parses the
 * entries of network.allow and network.proxy.
 *
 * Each error names one member and says what it must be. The checked values are the final ones: file, variables and
 * defaults together.
 */
#include "config.h"
#include "host.h"
#include "util.h"

/* A default above its cap. */
static int check_caps(const struct config_limits *limits, struct err *err)
{
	const struct {
		const char *name;
		int64_t value;
	} members[] = {
#define LIMIT(member, ...) {#member, limits->member},
#include "limits.def"
	};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		auto_free char *cap = xasprintf("%s_max", members[i].name);
		auto_free char *name = xasprintf("limits.%s", members[i].name);

		for (size_t k = 0; k < ARRAY_SIZE(members); k++)
			if (streq(members[k].name, cap) && members[i].value > members[k].value)
				return err_member(err, name,
						  "is %lld, more than limits.%s (%lld): lower it or raise the cap",
						  (long long)members[i].value, cap, (long long)members[k].value);
	}
	return 0;
}

/* Guests' ids on the host belong to no other account: accounts (and nobody, 65534) are below, and the last id means
 * "none" to the kernel. */
#define IDS_FIRST 65536
#define IDS_LAST  (UINT32_MAX - 1)

static int check_jailer(const struct config *config, struct err *err)
{
	const int64_t base = config->jailer.id_base, count = config->jailer.id_count;

	if ((base == 0) != (count == 0))
		return err_member(err, "jailer.id_base", "must be set together with jailer.id_count: set both or none");
	if (base != 0 && base < IDS_FIRST)
		return err_member(err, "jailer.id_base",
				  "is %lld: guests must not have the ids of accounts, begin at %d or above",
				  (long long)base, IDS_FIRST);
	if (base + count - 1 > (int64_t)IDS_LAST)
		return err_member(err, "jailer.id_count",
				  "%lld ids from %lld go beyond the last one, %u: lower one of them", (long long)count,
				  (long long)base, IDS_LAST);
	if (strchr(config->jailer.cgroup, '/') != NULL || config->jailer.cgroup[0] == '.')
		return err_member(err, "jailer.cgroup", "must be a plain name");
	return 0;
}

static int check_public_base_url(const char *url, struct err *err)
{
	size_t length = strlen(url);

	if (length == 0)
		return 0;
	if (!str_starts(url, "http://") && !str_starts(url, "https://"))
		return err_member(err, "public_base_url", "must begin with http:// or https://");
	if (url[length - 1] == '/' || strpbrk(url, " \t\r\n\"<>?#") != NULL)
		return err_member(err, "public_base_url",
				  "must be scheme, host and perhaps a path, without a slash at the end");
	return 0;
}

bool config_has_set(const struct config *config, const char *name)
{
	return bind_strings_has(&config->tools.sets, name);
}

/* Is `word` one of the words of a sentence such as "content, structured, both or none"? */
static bool among(const char *sentence, const char *word)
{
	for (const char *at = sentence; *at != '\0'; at += strspn(at, ", ")) {
		size_t length = strcspn(at, ", ");

		if (length == strlen(word) && memcmp(at, word, length) == 0)
			return !streq(word, "or");
		at += length;
	}
	return false;
}

#define RESULTS "content, structured, both or none"
#define SETS    "isolator, interpreter, bridge or snippets"

bool config_results_valid(const char *results)
{
	return among(RESULTS, results);
}

bool config_tools_direct(const struct config *config)
{
	return streq(config->tools.upstream, "direct") || streq(config->tools.upstream, "both");
}

/* Members that are one of a few words. */
static int check_words(const struct config *config, struct err *err)
{
	const struct {
		const char *member, *value, *words;
	} rows[] = {
		{"tools.text", config->tools.text, "plain or json"},
		{"tools.upstream", config->tools.upstream, "code, direct or both"},
		{"tools.bridge_output", config->tools.bridge_output, "compact or toon"},
		{"jailer.warm", config->jailer.warm, "off, on or exec"},
		{"retention.when_full", config->retention.when_full, "refuse or oldest"},
		{"gateway.client_addresses", config->gateway.client_addresses, "full, network or none"},
		{"oauth.mode", config->oauth.mode, "off, builtin or external"},
		{"oauth.typ", config->oauth.typ, "at+jwt or any"},
		{"log.format", config->log.format, "text or json"},
		{"log.level", config->log.level, "debug, info, warn or error"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!among(rows[i].words, rows[i].value))
			return err_member(err, rows[i].member, "must be %s", rows[i].words);
	for (size_t i = 0; i < config->tools.sets.count; i++)
		if (!among(SETS, config->tools.sets.items[i]))
			return err_member(err, "tools.sets", "\"%s\" is not a tool set; use " SETS,
					  config->tools.sets.items[i]);
	return 0;
}

#define PRIVATE " private"
#define BELOW   "*."

int config_host_parse(const char *entry, struct config_host *ret, struct err *err)
{
	struct config_host host = {.port = 0};
	size_t length = strlen(entry);

	if (length > strlen(PRIVATE) && streq(entry + length - strlen(PRIVATE), PRIVATE)) {
		host.is_private = true;
		length -= strlen(PRIVATE);
	}
	if (str_starts(entry, BELOW)) {
		host.below = true;
		entry += strlen(BELOW);
		length -= strlen(BELOW);
	}
	int kind = host_split(entry, length, 0, host.host, &host.port);
	if (kind < 0)
		return err_set(err, ERR_INVALID,
			       "\"%.*s\" must be HOST:PORT, ADDRESS:PORT or *.DOMAIN:PORT, followed by \" private\" "
			       "where the address is not a public one",
			       (int)MIN(length, (size_t)64), entry);
	host.address = kind == HOST_ADDRESS;
	if (host.below && host.address)
		return err_set(err, ERR_INVALID, "\"*.\" belongs before a domain, not before an address");
	*ret = host;
	return 0;
}

int config_trusted_parse(const char *entry, struct config_trusted *ret, struct err *err)
{
	static const char arrow[] = " -> ";
	const char *at = strstr(entry, arrow);
	char network[HOST_SIZE];
	struct config_trusted trusted = {.owner = at ? at + strlen(arrow) : ""};

	snprintf(network, sizeof(network), "%.*s", at ? (int)MIN(at - entry, HOST_SIZE - 1) : 0, entry);
	if (!*trusted.owner || host_network_parse(network, &trusted.network) < 0)
		return err_member(err, "doors.trusted",
				  "\"%.64s\" must be \"NETWORK -> OWNER\", as \"10.0.0.0/8 -> trainer\"", entry);
	*ret = trusted;
	return 0;
}

int config_proxy_parse(const char *url, struct config_proxy *ret, struct err *err)
{
	static const char scheme[] = "http://";
	struct config_proxy proxy = {.credentials = NULL};
	const char *at = strrchr(url, '@'), *host = url + strlen(scheme);

	if (!str_starts(url, scheme))
		return err_member(err, "network.proxy", "must begin with http://");
	if (at && at > host) {
		proxy.credentials = host;
		proxy.n_credentials = (size_t)(at - host);
		host = at + 1;
	}
	size_t length = strcspn(host, "/");
	if (host[length] != '\0' && host[length + 1] != '\0')
		return err_member(err, "network.proxy", "must end with the port, without a path");
	if (host_split(host, length, 0, proxy.host, &proxy.port) < 0)
		return err_member(err, "network.proxy", "must be http://[user:password@]host:port");
	*ret = proxy;
	return 0;
}

static int check_network(const struct config *config, struct err *err)
{
	struct config_host host;
	struct config_proxy proxy;

	for (size_t i = 0; i < config->network.allow.count; i++) {
		auto_free char *member = xasprintf("network.allow[%zu]", i);
		struct err own = ERR_INIT;

		if (config_host_parse(config->network.allow.items[i], &host, &own) < 0)
			return err_member(err, member, "%s", own.text);
	}
	for (size_t i = 0; i < config->gateway.trusted_proxies.count; i++) {
		struct host_network network;

		if (host_network_parse(config->gateway.trusted_proxies.items[i], &network) < 0)
			return err_member(err, "gateway.trusted_proxies",
					  "\"%.64s\" must be an address or a network, as 10.0.0.0/8",
					  config->gateway.trusted_proxies.items[i]);
	}
	for (size_t i = 0; i < config->doors.trusted.count; i++) {
		struct config_trusted trusted;

		if (config_trusted_parse(config->doors.trusted.items[i], &trusted, err) < 0)
			return -ERR_INVALID;
	}
	return config->network.proxy[0] ? config_proxy_parse(config->network.proxy, &proxy, err) : 0;
}

enum config_oauth config_oauth(const struct config *config)
{
	const char *mode = config->oauth.mode ? config->oauth.mode : "off";

	if (streq(mode, "builtin"))
		return CONFIG_OAUTH_BUILTIN;
	return streq(mode, "external") ? CONFIG_OAUTH_EXTERNAL : CONFIG_OAUTH_OFF;
}

/* Clients find the documents of OAuth at the root of the host; anywhere else they would not look. */
static int check_oauth(const struct config *config, struct err *err)
{
	struct host_url url;

	if (config_oauth(config) == CONFIG_OAUTH_OFF)
		return 0;
	if (host_url_parse(config->public_base_url, &url) < 0 || !url.secure ||
	    config->public_base_url[url.origin] != '\0')
		return err_member(err, "public_base_url",
				  "must be https:// and a host, without a path, where oauth.mode is %s (http for this "
				  "machine alone)",
				  config->oauth.mode);
	return 0;
}

int config_check(const struct config *config, struct err *err)
{
	const char *prefix = config->gateway.accel_prefix;

	if (check_caps(&config->limits, err) < 0)
		return -ERR_INVALID;
	if (config->limits.synchronous_seconds && config->limits.synchronous_seconds < config->limits.wall_seconds)
		return err_member(
			err, "limits.synchronous_seconds",
			"must be 0, or at least limits.wall_seconds: a call that names no time would be refused");
	if (config->limits.cpu_percent == 0)
		return err_member(err, "limits.cpu_percent", "must be at least 1, or -1 for no limit");
	if (check_jailer(config, err) < 0)
		return -ERR_INVALID;
	if (prefix[0] != '\0' && (prefix[0] != '/' || prefix[strlen(prefix) - 1] != '/'))
		return err_member(err, "gateway.accel_prefix", "must begin and end with a slash, as \"/_blobs/\"");
	if (check_words(config, err) < 0 || check_network(config, err) < 0)
		return -ERR_INVALID;
	if (config->health.disk_mb && config->health.disk_mb < config->retention.free_mb)
		return err_member(err, "health.disk_mb",
				  "is %lld: /readyz must warn before nothing runs, so it must be 0 or at least "
				  "retention.free_mb (%lld)",
				  (long long)config->health.disk_mb, (long long)config->retention.free_mb);
	if (check_oauth(config, err) < 0)
		return -ERR_INVALID;
	return check_public_base_url(config->public_base_url, err);
}
