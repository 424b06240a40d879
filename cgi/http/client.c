/* client.c - see client.h. */
#include "client.h"

#include <string.h>

#include "lib/base/host.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define NETWORK_V4 24 /* bits that client_addresses "network" keeps */
#define NETWORK_V6 48

static bool is_trusted(const struct config *config, const char *address)
{
	const struct bind_strings *proxies = &config->gateway.trusted_proxies;
	struct host_network network;

	for (size_t i = 0; i < proxies->count; i++)
		if (host_network_parse(proxies->items[i], &network) == 0 && host_in(&network, address))
			return true;
	return false;
}

/* The last address of a list "a, b, c"; *length is cut to what stands before it. False: none that is one. */
static bool take_last(const char *list, size_t *length, char ret[STORE_ADDRESS_SIZE])
{
	char host[HOST_SIZE];
	struct host_network one;

	while (*length > 0 && strchr(" \t,", list[*length - 1]))
		--*length;
	size_t from = *length;

	while (from > 0 && !strchr(" \t,", list[from - 1]))
		from--;
	const int kind = host_normalise(list + from, *length - from, host);

	*length = from;
	if (kind != HOST_ADDRESS || host_network_parse(host, &one) < 0 || strlen(host) >= STORE_ADDRESS_SIZE)
		return false;
	memcpy(ret, host, strlen(host) + 1);
	return true;
}

void client_address(const struct config *config, const struct request *request, char ret[STORE_ADDRESS_SIZE])
{
	const char *seen = request_param(request, "REMOTE_ADDR");
	const char *forwarded = request_param(request, "HTTP_X_FORWARDED_FOR");
	size_t length = seen ? strlen(seen) : 0;

	ret[0] = '\0';
	if (!take_last(seen ? seen : "", &length, ret))
		return;
	length = forwarded ? strlen(forwarded) : 0;
	while (is_trusted(config, ret) && take_last(forwarded ? forwarded : "", &length, ret))
		;
}

/* Cut on a character's boundary, without what would break a line. */
static void put_line(const char *text, char *ret, size_t size)
{
	const size_t length = utf8_cut(text, strlen(text), size - 1);

	memcpy(ret, text, length);
	ret[length] = '\0';
	for (char *c = ret; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = ' ';
	if (!utf8_valid(ret, length))
		ret[0] = '\0';
}

void client_read(const struct config *config, const struct request *request, struct store_client *ret)
{
	const char *program = request_param(request, "HTTP_USER_AGENT");
	const char *kept = config->gateway.client_addresses ? config->gateway.client_addresses : "full";
	char address[STORE_ADDRESS_SIZE];

	client_address(config, request, address);
	ret->address[0] = '\0';
	if (streq(kept, "full"))
		memcpy(ret->address, address, sizeof(address));
	else if (streq(kept, "network"))
		host_network_print(address, NETWORK_V4, NETWORK_V6, ret->address, sizeof(ret->address));
	put_line(program ? program : "", ret->program, sizeof(ret->program));
}

void client_named(struct store_client *client, const char *name, const char *version)
{
	auto_free char *both = name && *name ? xasprintf("%s%s%s", name, version && *version ? "/" : "",
							 version ? version : "")
					     : NULL;

	if (both)
		put_line(both, client->program, sizeof(client->program));
}

void client_came(struct store_client *client, const char *door, const char *caller)
{
	snprintf(client->door, sizeof(client->door), "%s", door);
	put_line(caller ? caller : "", client->caller, sizeof(client->caller));
}
