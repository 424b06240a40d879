/*
 * egress.h - what programs with network may reach: the allowlist, compiled once from the configuration and never
 * changed.
 *
 * An exact entry is a listener in the jail: on an address of its own in 127.83.0.0/16, which the jail's /etc/hosts
 * gives for the name, or, where the entry is an address, on that address itself, put on the jail's loopback. Entries
 * "*.domain" are reached through the proxy that listens on EGRESS_PROXY; it knows the exact ones, too.
 */
#pragma once

#include <netinet/in.h>

#include "lib/base/config.h"

#define EGRESS_PROXY_HOST "127.83.0.1"
#define EGRESS_PROXY_PORT 3128

struct egress_rule {
	struct config_host host;
	bool listens;               /* not for "*." */
	struct sockaddr_storage at; /* where, in the jail */
	socklen_t at_length;
};

struct egress {
	struct egress_rule *rules;
	size_t n_rules;
	const struct config *config;
	struct config_proxy proxy; /* port 0: none */
};

/* Empty where the configuration allows nothing: n_rules is 0. `config` must outlive it. */
int egress_init(const struct config *config, struct egress *ret, struct err *err);
void egress_clear(struct egress *egress);
/* The entry that allows it, or NULL. `host` is normalised, `kind` of enum host_kind. Where several do, one that says
 * private. */
const struct egress_rule *egress_match(const struct egress *egress, const char *host, int kind, uint16_t port);
/* Text of the jail's /etc/hosts; the caller's. */
char *egress_hosts(const struct egress *egress);
/* Variables of the guest's environment, ended by NULL. */
extern const char *const egress_env[];
