/*
 * host.c - see host.h.
 *
 * Addresses are read by inet_pton alone: it takes the four decimal numbers of IPv4 and none of the other forms of
 * inet_aton. A text that inet_aton, and so getaddrinfo, would read as an address is not a name. The tables of special
 * addresses are IANA's registries; for IPv6 the rule is the other way round: only what is handed out for global use
 * (2000::/3) is public, minus exceptions in it.
 */
#include "host.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "util.h"

#define LABEL_MAX 63

/* Labels of letters, digits, hyphens and underscores. The last label is not what inet_aton would read as a number:
 * digits, or 0x and anything. */
static bool name_valid(const char *name)
{
	for (const char *label = name;;) {
		const size_t length = strcspn(label, ".");

		if (length == 0 || length > LABEL_MAX || label[0] == '-' || label[length - 1] == '-')
			return false;
		for (size_t i = 0; i < length; i++)
			if (!isalnum((unsigned char)label[i]) && label[i] != '-' && label[i] != '_')
				return false;
		if (label[length] == '\0')
			return strspn(label, "0123456789") != length && (label[0] != '0' || label[1] != 'x');
		label += length + 1;
	}
}

static void print_v6(const struct in6_addr *address, char ret[HOST_SIZE])
{
	if (IN6_IS_ADDR_V4MAPPED(address))
		inet_ntop(AF_INET, &address->s6_addr[12], ret, HOST_SIZE);
	else
		inet_ntop(AF_INET6, address, ret, HOST_SIZE);
}

int host_normalise(const char *text, size_t length, char ret[HOST_SIZE])
{
	char host[HOST_SIZE];
	struct in_addr v4;
	struct in6_addr v6;

	if (length > 0 && text[length - 1] == '.')
		length--;
	if (length == 0 || length >= HOST_SIZE || memchr(text, '\0', length))
		return -1;
	for (size_t i = 0; i < length; i++)
		host[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + ('a' - 'A') : text[i]);
	host[length] = '\0';
	if (inet_pton(AF_INET, host, &v4) == 1) {
		inet_ntop(AF_INET, &v4, ret, HOST_SIZE);
		return HOST_ADDRESS;
	}
	if (inet_pton(AF_INET6, host, &v6) == 1) {
		print_v6(&v6, ret);
		return HOST_ADDRESS;
	}
	if (!name_valid(host))
		return -1;
	memcpy(ret, host, length + 1);
	return HOST_NAME;
}

int host_split(const char *text, size_t length, uint16_t port, char ret[HOST_SIZE], uint16_t *ret_port)
{
	const char *colon = memrchr(text, ':', length), *end = text + length;
	bool brackets = length > 0 && text[0] == '[';
	uint64_t number = port;
	char digits[6];
	int kind;

	if (brackets && text[length - 1] == ']')
		colon = NULL; /* the last one is the address's */
	if (colon) {
		size_t n = (size_t)(end - colon - 1);

		if (n == 0 || n >= sizeof(digits))
			return -1;
		memcpy(digits, colon + 1, n);
		digits[n] = '\0';
		if (parse_u64(digits, 1, UINT16_MAX, &number))
			return -1;
		end = colon;
	}
	if (number == 0)
		return -1;
	if (brackets) {
		if (end - text < 3 || end[-1] != ']')
			return -1;
		kind = memchr(text, ':', (size_t)(end - text)) ? host_normalise(text + 1, (size_t)(end - text) - 2, ret)
							       : -1;
	} else {
		kind = memchr(text, ':', (size_t)(end - text)) ? -1 : host_normalise(text, (size_t)(end - text), ret);
	}
	if (kind >= 0)
		*ret_port = (uint16_t)number;
	return kind;
}

#define PORT_HTTP  80
#define PORT_HTTPS 443

int host_url_parse(const char *url, struct host_url *ret)
{
	const bool https = str_starts(url, "https://");
	const char *host = https ? url + strlen("https://") : url + strlen("http://");
	struct host_url parts = {.secure = https};

	if (!https && !str_starts(url, "http://"))
		return -1;
	for (const char *p = url; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || strchr("\\\"<>#", *p) != NULL)
			return -1;
	const size_t length = strcspn(host, "/?");

	if (host_split(host, length, https ? PORT_HTTPS : PORT_HTTP, parts.host, &parts.port) < 0)
		return -1;
	parts.secure = https || streq(parts.host, "localhost") || streq(parts.host, "127.0.0.1") ||
		       streq(parts.host, "::1");
	parts.origin = (size_t)(host - url) + length;
	*ret = parts;
	return 0;
}

bool host_below(const char *host, const char *domain)
{
	size_t length = strlen(host), tail = strlen(domain);

	return length > tail + 1 && host[length - tail - 1] == '.' && streq(host + length - tail, domain);
}

int host_address(const char *host, uint16_t port, struct sockaddr_storage *ret, unsigned *ret_length)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
		memcpy(ret, &v4, sizeof(v4));
		*ret_length = sizeof(v4);
		return 0;
	}
	if (inet_pton(AF_INET6, host, &v6.sin6_addr) != 1)
		return -1;
	memcpy(ret, &v6, sizeof(v6));
	*ret_length = sizeof(v6);
	return 0;
}

int host_network_parse(const char *text, struct host_network *ret)
{
	const char *slash = strchr(text, '/');
	const size_t length = slash ? (size_t)(slash - text) : strlen(text);
	struct host_network network = {.length = 0};
	char address[INET6_ADDRSTRLEN];
	uint64_t bits;

	if (length >= sizeof(address))
		return -1;
	memcpy(address, text, length);
	address[length] = '\0';
	if (inet_pton(AF_INET, address, network.bytes) == 1)
		network.length = 4;
	else if (inet_pton(AF_INET6, address, network.bytes) == 1)
		network.length = 16;
	else
		return -1;
	if (parse_u64(slash ? slash + 1 : network.length == 4 ? "32" : "128", 0, 8ull * network.length, &bits) < 0)
		return -1;
	network.bits = (unsigned)bits;
	*ret = network;
	return 0;
}

static unsigned char masked(const unsigned char bytes[16], unsigned at, unsigned bits)
{
	const unsigned kept = bits <= 8 * at ? 0 : MIN(bits - 8 * at, 8u);

	return (unsigned char)(bytes[at] & (0xff00u >> kept));
}

bool host_in(const struct host_network *network, const char *address)
{
	struct host_network one;

	if (host_network_parse(address, &one) < 0 || one.length != network->length)
		return false;
	for (unsigned i = 0; i < network->length; i++)
		if (masked(one.bytes, i, network->bits) != masked(network->bytes, i, network->bits))
			return false;
	return true;
}

void host_network_print(const char *address, unsigned bits_v4, unsigned bits_v6, char *ret, size_t size)
{
	struct host_network one;
	char text[INET6_ADDRSTRLEN] = "";

	ret[0] = '\0';
	if (host_network_parse(address, &one) < 0)
		return;
	const unsigned bits = one.length == 4 ? bits_v4 : bits_v6;

	for (unsigned i = 0; i < one.length; i++)
		one.bytes[i] = masked(one.bytes, i, bits);
	inet_ntop(one.length == 4 ? AF_INET : AF_INET6, one.bytes, text, sizeof(text));
	snprintf(ret, size, "%s/%u", text, bits);
}

static bool v4_public(uint32_t address)
{
	static const struct {
		uint32_t network;
		int bits;
	} special[] = {
		{0x00000000, 8},  /* this network */
		{0x0a000000, 8},  /* private */
		{0x64400000, 10}, /* carrier-grade NAT */
		{0x7f000000, 8},  /* loopback */
		{0xa9fe0000, 16}, /* link-local, metadata services */
		{0xac100000, 12}, /* private */
		{0xc0000000, 24}, /* protocol assignments */
		{0xc0000200, 24}, /* documentation */
		{0xc0586300, 24}, /* 6to4 relays */
		{0xc0a80000, 16}, /* private */
		{0xc6120000, 15}, /* benchmarks */
		{0xc6336400, 24}, /* documentation */
		{0xcb007100, 24}, /* documentation */
		{0xe0000000, 3},  /* multicast, reserved, broadcast */
	};

	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		if ((address ^ special[i].network) >> (32 - special[i].bits) == 0)
			return false;
	return true;
}

static bool v6_begins(const struct in6_addr *address, const uint8_t *prefix, size_t bits)
{
	size_t bytes = bits / 8;
	unsigned rest = bits % 8;

	return memcmp(address->s6_addr, prefix, bytes) == 0 &&
	       (rest == 0 || (address->s6_addr[bytes] ^ prefix[bytes]) >> (8 - rest) == 0);
}

static bool v6_public(const struct in6_addr *address)
{
	static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
	static const uint8_t global[] = {0x20};
	static const struct {
		uint8_t prefix[4];
		size_t bits;
	} special[] = {
		{{0x20, 0x01, 0x00, 0x00}, 23}, /* protocol assignments, Teredo among them */
		{{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
		{{0x20, 0x02}, 16},             /* 6to4 */
		{{0x3f, 0xff}, 20},             /* documentation */
	};
	uint32_t carried;

	memcpy(&carried, &address->s6_addr[12], sizeof(carried));
	if (IN6_IS_ADDR_V4MAPPED(address) || v6_begins(address, nat64, 96))
		return v4_public(ntohl(carried));
	if (!v6_begins(address, global, 3))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		if (v6_begins(address, special[i].prefix, special[i].bits))
			return false;
	return true;
}

bool host_public(const struct sockaddr *address)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (address->sa_family == AF_INET) {
		memcpy(&v4, address, sizeof(v4));
		return v4_public(ntohl(v4.sin_addr.s_addr));
	}
	if (address->sa_family != AF_INET6)
		return false;
	memcpy(&v6, address, sizeof(v6));
	return v6_public(&v6.sin6_addr);
}

void host_print(const struct sockaddr *address, char ret[HOST_SIZE])
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	ret[0] = '\0';
	if (address->sa_family == AF_INET) {
		memcpy(&v4, address, sizeof(v4));
		inet_ntop(AF_INET, &v4.sin_addr, ret, HOST_SIZE);
	} else if (address->sa_family == AF_INET6) {
		memcpy(&v6, address, sizeof(v6));
		print_v6(&v6.sin6_addr, ret);
	}
}
