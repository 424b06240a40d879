/* config_network.c - the groups network and upstream of the configuration: their members, and one entry of
 * network.allow. See config.h. */
#include "config.h"

#include "util.h"

#define PRIVATE " private"
#define BELOW   "*."

#define PART(part, name_, type_, min_, max_, text_)                                                                    \
	{                                                                                                              \
		.name = #name_, .type = type_,                                                                         \
		.offset = offsetof(struct config, part.name_) - offsetof(struct config, part), .min = min_,            \
		.max = max_, .description = text_                                                                      \
	}

const struct bind config_network_table[] = {
	PART(network, allow, BIND_STRINGS, 0, CONFIG_HOSTS_MAX,
	     "what programs with network reach, host:port or *.domain:port; empty: nothing"),
	PART(network, proxy, BIND_STRING, 0, 1024,
	     "proxy through which they do: http://[user:password@]host:port; empty: directly"),
	PART(network, proxy_resolves, BIND_BOOL, 0, 0,
	     "give the proxy names instead of the addresses that were checked"),
	PART(network, connections, BIND_INT, 1, 4096, "concurrent connections of one program; more wait"),
	PART(network, mb, BIND_INT, 0, 1000000, "data of one program, both directions together; 0: no limit"),
	{0},
};

#define CALLS_MAX 1000000

const struct bind config_upstream_table[] = {
	PART(upstream, file, BIND_STRING, 0, 4096,
	     "file of the MCP servers whose tools programs may call; empty: none"),
	PART(upstream, secrets_dir, BIND_STRING, 0, 4096,
	     "folder of files that hold the values of variables in upstream.file; empty: the environment has them"),
	PART(upstream, binds, BIND_STRINGS, 0, CONFIG_BINDS_MAX, "folders that jailed servers may see, read-only"),
	PART(upstream, calls, BIND_INT, 1, CALLS_MAX, "calls of one run, refused ones included"),
	PART(upstream, calls_per_minute, BIND_INT, 0, CALLS_MAX, "calls of one owner in a minute; 0: no limit"),
	PART(upstream, in_flight, BIND_INT, 1, 64, "concurrent calls of one run; more wait"),
	PART(upstream, argument_kb, BIND_INT, 1, 2048, "KiB of one call's arguments"),
	PART(upstream, result_kb, BIND_INT, 1, 65536, "KiB of one call's result"),
	{0},
};

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
			       "\"%.*s\" must be HOST:PORT, ADDRESS:PORT or *.DOMAIN:PORT, with \" private\" behind it "
			       "where the address is not "
			       "a public one",
			       (int)MIN(length, (size_t)64), entry);
	host.address = kind == HOST_ADDRESS;
	if (host.below && host.address)
		return err_set(err, ERR_INVALID, "\"*.\" belongs before a domain, not before an address");
	*ret = host;
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

int config_network_check(const struct config *config, struct err *err)
{
	struct config_host host;
	struct config_proxy proxy;

	for (size_t i = 0; i < config->network.allow.count; i++) {
		auto_free char *member = xasprintf("network.allow[%zu]", i);
		struct err own = ERR_INIT;

		if (config_host_parse(config->network.allow.items[i], &host, &own) < 0)
			return err_member(err, member, "%s", own.text);
	}
	return config->network.proxy[0] ? config_proxy_parse(config->network.proxy, &proxy, err) : 0;
}
