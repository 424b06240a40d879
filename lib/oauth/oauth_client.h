/*
 * oauth_client.h - what a client says of itself: in the document at its id (client ID metadata documents), or when it
 * registers (RFC 7591). Everything but the redirect addresses, the name, and whether it refreshes is passed over; none
 * of it was checked by anybody, but that a document stands at its address.
 *
 * Clients are public: they have no secret, and prove by PKCE that a code is theirs. So a document that wants to prove
 * more, and cannot do without, is refused, and who registers gets "none" whatever was asked.
 */
#pragma once

#include "lib/base/json.h"
#include "lib/store/record/store_oauth_client.h"
#include "oauth_redirect.h"

#define OAUTH_CLIENT_REDIRECTS     10          /* of one that registers */
#define OAUTH_CLIENT_REDIRECTS_DOC 20          /* of a document */
#define OAUTH_CLIENT_BYTES         (10 * 1024) /* of a document */

/* The names of errors, as they go out. */
#define OAUTH_BAD_REDIRECT "invalid_redirect_uri"
#define OAUTH_BAD_METADATA "invalid_client_metadata"

/* Fills name, redirects and refreshes. ERR_INVALID: the reason; *ret_error: which of the errors it is. */
int oauth_client_register(const struct config *config, struct json_object *body, struct store_oauth_client *ret,
			  const char **ret_error, struct err *err);
/* The same, and id, of the text at the address `id`. */
int oauth_client_document(const struct config *config, const char *id, const char *text, size_t length,
			  struct store_oauth_client *ret, struct err *err);
/* A copy of the document of a well-known client, for when its host does not answer; false: it is none. */
bool oauth_client_known(const char *id, struct store_oauth_client *ret);
/* Is the address one of the client's? `asked` NULL: the only one that it has, if that names a whole address. NULL: no.
 */
const char *oauth_client_redirect(const struct store_oauth_client *client, const char *asked,
				  struct json_object **ret_list);
/* Do all its addresses lead to this machine? */
bool oauth_client_local(const struct store_oauth_client *client);
