/* egress.c - see egress.h. */
#include "egress.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"

#define LOCAL_FIRST 0x7f530101u /* 127.83.1.1; the proxy has 127.83.0.1 */
#define HOSTS_MAX   (128 * 1024)

#define PROXY_URL "http://127.83.0.1:3128"
_Static_assert(EGRESS_PROXY_PORT == 3128, "egress_env names the port");

/* Both spellings, because programs differ. Node reads them with NODE_USE_ENV_PROXY, from 22.21 on; bun always. */
const char *const egress_env[] = {
	"HTTP_PROXY=" PROXY_URL,
	"HTTPS_PROXY=" PROXY_URL,
	"http_proxy=" PROXY_URL,
	"https_proxy=" PROXY_URL,
	"NO_PROXY=localhost,127.0.0.1,::1",
	"no_proxy=localhost,127.0.0.1,::1",
	"NODE_USE_ENV_PROXY=1",
	NULL,
};

/* The first entry that listens for the same name (and port); itself, if there is none before. */
static size_t first_of_name(const struct egress *egress, size_t index, bool and_port)
{
	const struct config_host *host = &egress->rules[index].host;
	size_t i = 0;

	while (i < index && !(egress->rules[i].listens && streq(egress->rules[i].host.host, host->host) &&
			      (!and_port || egress->rules[i].host.port == host->port)))
		i++;
	return i;
}

int egress_init(const struct config *config, struct egress *ret, struct err *err)
{
	struct egress egress = {.config = config, .n_rules = config->network.allow.count};
	int result = config->network.proxy[0] ? config_proxy_parse(config->network.proxy, &egress.proxy, err) : 0;

	egress.rules = xcalloc(egress.n_rules + 1, sizeof(*egress.rules));
	for (size_t i = 0; i < egress.n_rules && result == 0; i++) {
		struct egress_rule *rule = &egress.rules[i];

		result = config_host_parse(config->network.allow.items[i], &rule->host, err);
		if (result < 0 || rule->host.below || first_of_name(&egress, i, true) < i)
			continue;
		rule->listens = true;
		if (rule->host.address) {
			host_address(rule->host.host, rule->host.port, &rule->at, &rule->at_length);
			continue;
		}
		struct sockaddr_in at = {
			.sin_family = AF_INET,
			.sin_port = htons(rule->host.port),
			.sin_addr.s_addr = htonl(LOCAL_FIRST + (uint32_t)first_of_name(&egress, i, false)),
		};
		memcpy(&rule->at, &at, sizeof(at));
		rule->at_length = sizeof(at);
	}
	if (result < 0)
		egress_clear(&egress);
	else
		*ret = egress;
	return result;
}

void egress_clear(struct egress *egress)
{
	free(egress->rules);
	*egress = (struct egress){.rules = NULL};
}

const struct egress_rule *egress_match(const struct egress *egress, const char *host, int kind, uint16_t port)
{
	const struct egress_rule *found = NULL;

	for (size_t i = 0; i < egress->n_rules; i++) {
		const struct config_host *entry = &egress->rules[i].host;
		bool fits =
			entry->below ? kind == HOST_NAME && host_below(host, entry->host) : streq(entry->host, host);

		if (fits && entry->port == port && (!found || entry->is_private))
			found = &egress->rules[i];
	}
	return found;
}

char *egress_hosts(const struct egress *egress)
{
	auto_buf struct buf text = {0};

	buf_init(&text, HOSTS_MAX);
	buf_puts(&text, "127.0.0.1 localhost jail\n::1 localhost ip6-localhost ip6-loopback\n");
	for (size_t i = 0; i < egress->n_rules; i++) {
		const struct egress_rule *rule = &egress->rules[i];
		char address[HOST_SIZE];

		if (!rule->listens || rule->host.address || first_of_name(egress, i, false) != i)
			continue;
		host_print((const struct sockaddr *)&rule->at, address);
		buf_printf(&text, "%s %s\n", address, rule->host.host);
	}
	return buf_steal(&text, NULL);
}
