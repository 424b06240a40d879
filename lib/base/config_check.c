/*
 * config_check.c - what members of the configuration must be to themselves and to each other, beyond their type and
 * range.
 *
 * Each error names one member and says what it must be. The values are those that count: file, variables and defaults
 * together.
 */
#include "config.h"
#include "log.h"
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

/* Guests' ids on the host: nobody else's. Below are accounts (and nobody, 65534), the last one means "none" to the
 * kernel. */
#define IDS_FIRST 65536
#define IDS_LAST  (UINT32_MAX - 1)

static int check_ids(int64_t base, int64_t count, struct err *err)
{
	if ((base == 0) != (count == 0))
		return err_member(err, "jailer.id_base", "and jailer.id_count belong together: set both or none");
	if (base != 0 && base < IDS_FIRST)
		return err_member(err, "jailer.id_base",
				  "is %lld: guests must not have the ids of accounts, begin at %d or above",
				  (long long)base, IDS_FIRST);
	if (base + count - 1 > (int64_t)IDS_LAST)
		return err_member(err, "jailer.id_count",
				  "%lld ids from %lld go beyond the last one, %u: lower one of them", (long long)count,
				  (long long)base, IDS_LAST);
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

/* The fixtures come without authentication, so they must not be reachable from elsewhere. */
static int check_profile(const struct config *config, struct err *err)
{
	static const char *const loopback[] = {"http://127.0.0.1:", "http://localhost:", "http://[::1]:"};

	if (streq(config->gateway.profile, "production"))
		return 0;
	if (!streq(config->gateway.profile, "conformance"))
		return err_member(err, "gateway.profile", "must be production or conformance");
	if (config->gateway.allowed_hosts.count || config->gateway.allowed_origins.count)
		return err_member(err, "gateway.profile",
				  "conformance asks for no token: allowed_hosts and allowed_origins must be empty");
	for (size_t i = 0; i < ARRAY_SIZE(loopback); i++)
		if (str_starts(config->public_base_url, loopback[i]))
			return 0;
	return err_member(err, "gateway.profile",
			  "conformance asks for no token: public_base_url must be http://127.0.0.1:PORT");
}

bool config_has_set(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->tools.sets.count; i++)
		if (streq(config->tools.sets.items[i], name))
			return true;
	return false;
}

bool config_results_valid(const char *results)
{
	return streq(results, "content") || streq(results, "structured") || streq(results, "both") ||
	       streq(results, "none");
}

bool config_tools_direct(const struct config *config)
{
	return streq(config->tools.upstream, "direct") || streq(config->tools.upstream, "both");
}

static bool set_valid(const char *name)
{
	return streq(name, "isolator") || streq(name, "interpreter") || streq(name, "bridge") ||
	       streq(name, "snippets");
}

static int check_tools(const struct config *config, struct err *err)
{
	if (!streq(config->tools.text, "plain") && !streq(config->tools.text, "json"))
		return err_member(err, "tools.text", "must be plain or json");
	if (!streq(config->tools.upstream, "code") && !config_tools_direct(config))
		return err_member(err, "tools.upstream", "must be code, direct or both");
	if (!streq(config->tools.bridge_output, "compact") && !streq(config->tools.bridge_output, "toon"))
		return err_member(err, "tools.bridge_output", "must be compact or toon");
	for (size_t i = 0; i < config->tools.sets.count; i++)
		if (!set_valid(config->tools.sets.items[i]))
			return err_member(err, "tools.sets",
					  "\"%s\" is not a tool set; use isolator, interpreter, bridge or snippets",
					  config->tools.sets.items[i]);
	return 0;
}

static int check_retention(const struct config *config, struct err *err)
{
	if (!streq(config->log.format, "text") && !streq(config->log.format, "json"))
		return err_member(err, "log.format", "must be text or json");
	if (!log_level_valid(config->log.level))
		return err_member(err, "log.level", "must be debug, info, warn or error");
	if (!streq(config->retention.when_full, "refuse") && !streq(config->retention.when_full, "oldest"))
		return err_member(err, "retention.when_full", "must be refuse or oldest");
	if (config->health.disk_mb && config->health.disk_mb < config->retention.free_mb)
		return err_member(err, "health.disk_mb",
				  "is %lld: /readyz must warn before nothing runs, so it must be 0 or at least "
				  "retention.free_mb (%lld)",
				  (long long)config->health.disk_mb, (long long)config->retention.free_mb);
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
	if (check_ids(config->jailer.id_base, config->jailer.id_count, err) < 0)
		return -ERR_INVALID;
	if (prefix[0] != '\0' && (prefix[0] != '/' || prefix[strlen(prefix) - 1] != '/'))
		return err_member(err, "gateway.accel_prefix", "must begin and end with a slash, as \"/_blobs/\"");
	if (check_profile(config, err) < 0 || check_tools(config, err) < 0 || config_network_check(config, err) < 0 ||
	    check_retention(config, err) < 0)
		return -ERR_INVALID;
	if (strchr(config->jailer.cgroup, '/') != NULL || config->jailer.cgroup[0] == '.')
		return err_member(err, "jailer.cgroup", "must be a plain name");
	return check_public_base_url(config->public_base_url, err);
}
