/*
 * client.h - who sent a request: the address and the program of the client, as executions and entries of the audit log
 * say them (struct store_client).
 *
 * The address is the one that the web server saw. Where that is a proxy of gateway.trusted_proxies, it is the last one
 * in X-Forwarded-For that is not, because everybody else may write there what they like. gateway.client_addresses says
 * how much of it is kept. The program is the User-Agent, until the protocol knows better (client_named).
 */
#pragma once

#include "lib/base/config.h"
#include "lib/store/audit/store_audit.h"
#include "request.h"

/* All but the request's id. */
void client_read(const struct config *config, const struct request *request, struct store_client *ret);
/* The address that the request came from by the same rule, whatever is kept; "": standard input. */
void client_address(const struct config *config, const struct request *request, char ret[STORE_ADDRESS_SIZE]);
/* What a client of the protocol calls itself; NULL: nothing, and what is there stays. */
void client_named(struct store_client *client, const char *name, const char *version);
/* The API that it uses, and its own id of the request; NULL: it has none. */
void client_came(struct store_client *client, const char *door, const char *caller);
