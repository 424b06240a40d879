/* oauth_server.c - see oauth_server.h. */
#include "oauth_server.h"

#include <string.h>

#include "cgi/http/client.h"
#include "lib/base/util.h"
#include "lib/oauth/oauth_who.h"

#define MINUTE_US (60 * INT64_C(1000000))
#define HOUR_US   (60 * MINUTE_US)

int oauth_server_open(const struct config *config, struct store *store, struct oauth_server **ret, struct err *err)
{
	unsigned scopes = 0;

	if (store_scopes_parse(config->oauth.default_scopes, &scopes, err) < 0)
		return err_wrap(err, "oauth.default_scopes"), -ERR_INVALID;
	if (scopes & STORE_SCOPE_ADMIN)
		return err_member(err, "oauth.default_scopes",
				  "must not have admin: a client that needs it asks for it by name");
	if (config->oauth.scope_map.count > 0)
		return err_member(err, "oauth.scope_map", "belongs to oauth.mode external");
	struct oauth_server *oauth = xcalloc(1, sizeof(*oauth));

	attempts_init(&oauth->guesses, OAUTH_SERVER_GUESSES, MINUTE_US);
	attempts_init(&oauth->failures, OAUTH_SERVER_FAILURES, MINUTE_US);
	attempts_init(&oauth->registered, OAUTH_SERVER_REGISTERED, HOUR_US);
	attempts_init(&oauth->all_registered, OAUTH_SERVER_REGISTERED_ALL, HOUR_US);
	pthread_mutex_init(&oauth->lock, NULL);
	oauth->documents = oauth_documents_new(config, store);
	*ret = oauth;
	return 0;
}

void oauth_server_close(struct oauth_server *oauth)
{
	if (!oauth)
		return;
	oauth_documents_free(oauth->documents);
	attempts_clear(&oauth->guesses);
	attempts_clear(&oauth->failures);
	attempts_clear(&oauth->registered);
	attempts_clear(&oauth->all_registered);
	pthread_mutex_destroy(&oauth->lock);
	free(oauth);
}

static bool look(struct oauth_server *oauth, const char *transaction, bool spend)
{
	const uint64_t hash = fnv1a(FNV1A_BEGIN, transaction, strlen(transaction));
	uint64_t *place = &oauth->spent[hash % OAUTH_SERVER_SPENT];

	pthread_mutex_lock(&oauth->lock);
	const bool spent = *place == hash;

	if (spend)
		*place = hash;
	pthread_mutex_unlock(&oauth->lock);
	return spent;
}

bool oauth_server_spend(struct oauth_server *oauth, const char *transaction)
{
	return !look(oauth, transaction, true);
}

bool oauth_server_spent(struct oauth_server *oauth, const char *transaction)
{
	return look(oauth, transaction, false);
}

void oauth_server_address(const struct http_exchange *exchange, char ret[STORE_ADDRESS_SIZE])
{
	client_address(exchange->server->config, exchange->request, ret);
}
