/*
 * host.h - names and addresses of other machines as text: one spelling for each, and which addresses are the public
 * internet's.
 *
 * Code that compares hosts compares what host_normalise made of them. It takes no spelling that another program could
 * read differently: no userinfo, no percent signs, no 0x7f.1 or 2130706433 for 127.0.0.1 (a last label that begins like
 * a number is refused, as in the WHATWG URL standard), no zone of an IPv6 address; an IPv4 address inside of IPv6
 * (::ffff:a.b.c.d) becomes that IPv4 address. Facts: RFC 1123 2.1, RFC 3986 3.2.2, IANA's special-purpose address
 * registries (RFC 6890), RFC 6052 (NAT64).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Not <sys/socket.h>: a file that includes the configuration may have a bind() of its own. */
struct sockaddr;
struct sockaddr_storage;

#define HOST_SIZE 254 /* 253 characters */

enum host_kind { HOST_NAME, HOST_ADDRESS };

/* "WWW.Example.COM." -> "www.example.com", "[::FFFF:192.0.2.1]" -> "192.0.2.1" (brackets are the caller's to strip: see
 * host_split). The kind, or -1: no host. */
int host_normalise(const char *text, size_t length, char ret[HOST_SIZE]);
/* "name:443", "192.0.2.1:80", "[2001:db8::1]:443" -> normalised host and port. `port` 0: one must be there; else it is
 * the default. The kind, or -1. */
int host_split(const char *text, size_t length, uint16_t port, char ret[HOST_SIZE], uint16_t *ret_port);
/* An address of HTTP, without userinfo, fragment, blanks and control characters. */
struct host_url {
	bool secure; /* https, or http on this machine's loopback interface */
	char host[HOST_SIZE];
	uint16_t port;
	size_t origin; /* bytes of scheme, host and port: from there on it is the path */
};
int host_url_parse(const char *url, struct host_url *ret); /* 0 or -1 */
/* Is `host`, normalised, a name below `domain`, normalised? "a.b.example.com" is below "example.com", itself it is not.
 */
bool host_below(const char *host, const char *domain);

/* A normalised address as a socket address; 0 or -1. */
int host_address(const char *host, uint16_t port, struct sockaddr_storage *ret, unsigned *ret_length);
/* "10.0.0.0/8", "2001:db8::/32", or an address alone; 0 or -1. */
struct host_network {
	unsigned char bytes[16];
	unsigned length, bits; /* length: 4 or 16 */
};
int host_network_parse(const char *text, struct host_network *ret);
bool host_in(const struct host_network *network, const char *address);
/* The network of so many bits that the address is in, as text; "": it is no address. */
void host_network_print(const char *address, unsigned bits_v4, unsigned bits_v6, char *ret, size_t size);
/* May the internet route to it? No: loopback, private and shared ranges, link-local, documentation, benchmarks,
 * multicast, reserved, tunnels that carry another address (6to4, Teredo); IPv4-mapped and NAT64 addresses are what they
 * carry. */
bool host_public(const struct sockaddr *address);
/* Text of an address, as host_normalise would write it. */
void host_print(const struct sockaddr *address, char ret[HOST_SIZE]);
