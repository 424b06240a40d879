/*
 * upstream_renew.h - the tokens of servers that somebody signed in to (upstream_login.h), for the upstream thread:
 * which one to send, and a new one in time. Asking an issuer takes a while: a thread of its own does it, one for a
 * server at a time, and the requests to that server wait meanwhile.
 *
 *   held          event                              next
 *   nothing       the file is there                  READY
 *   READY         it is due, or the server says 401  WAITS (a thread asks)
 *   WAITS         new tokens                         READY, one generation further
 *   WAITS         the issuer is away                 READY while the old token lasts, else FAILED; again after a while
 *   WAITS         the grant is not good any more     FAILED, until a person signs in again
 *   any           the file was written anew          READY, one generation further
 *   any           the file is gone                   nothing
 */
#pragma once

#include "upstream_login.h"

enum renew_state { RENEW_NOTHING, RENEW_READY, RENEW_WAITS, RENEW_FAILED };
struct renew_view {
	uint64_t generation; /* of the token; 0: there is none */
	const struct upstream_login *login;
	const char *problem; /* FAILED: why, and what to do */
};

struct renewals;
/* `wake` is called on another thread when a look at something that waited is worth it. */
struct renewals *upstream_renew_open(const struct config *config, void (*wake)(void *arg), void *arg);
void upstream_renew_close(struct renewals *renewals); /* NULL is fine */

/* What the next request to the server needs. The view holds until the next call. */
enum renew_state upstream_renew_look(struct renewals *renewals, const struct upstream_server *server,
				     struct renew_view *ret);
/* The server refused the token of this generation. True: another one is there or on its way, look again. */
bool upstream_renew_refused(struct renewals *renewals, const struct upstream_server *server, uint64_t generation);
