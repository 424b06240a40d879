/*
 * upstream_bearer.c - the token that a connection's requests carry, where somebody signed in to its server
 * (upstream_renew.h); and what a refusal means for people. See upstream_connection.h.
 */
#include <string.h>

#include "lib/base/util.h"
#include "upstream_connection.h"
#include "upstream_discover.h"
#include "upstream_renew.h"

void connection_new_mask(struct upstream_connection *connection, const struct bind_strings *more)
{
	const struct bind_strings *secrets = &connection->server->secrets;
	auto_free struct mask_value *values = xcalloc(secrets->count + more->count + 1, sizeof(*values));
	size_t count = 0;

	for (size_t i = 0; i < secrets->count; i++)
		values[count++] = (struct mask_value){secrets->items[i], strlen(secrets->items[i])};
	for (size_t i = 0; i < more->count; i++)
		if (more->items[i] != NULL)
			values[count++] = (struct mask_value){more->items[i], strlen(more->items[i])};
	mask_free(connection->mask);
	connection->mask = mask_new(values, count);
}

/* The token before this one may still be in what the server sends. */
static void take_bearer(struct upstream_connection *connection, const struct renew_view *view)
{
	const struct upstream_login *login = view->login;

	if (view->generation == connection->bearer_generation)
		return;
	auto_free char *before = steal(&connection->bearer);
	const char *secrets[] = {login->access_token, login->refresh_token, login->client_secret, before};

	connection->bearer = login->access_token != NULL ? xstrdup(login->access_token) : NULL;
	connection->bearer_generation = view->generation;
	connection_new_mask(connection, &(struct bind_strings){secrets, ARRAY_SIZE(secrets)});
	if (before != NULL)
		explicit_bzero(before, strlen(before));
}

bool connection_may_send(struct upstream_connection *connection, const char **ret_problem)
{
	struct renew_view view;

	switch (upstream_renew_look(connection->loop->renewals, connection->server, &view)) {
	case RENEW_WAITS:
		return false;
	case RENEW_FAILED:
		*ret_problem = view.problem;
		return false;
	case RENEW_NOTHING:
		if (connection->bearer != NULL)
			take_bearer(connection, &(struct renew_view){.login = &(struct upstream_login){0}});
		return true;
	case RENEW_READY:
		take_bearer(connection, &view);
	}
	return true;
}

bool connection_renews(struct upstream_connection *connection)
{
	return connection->bearer != NULL &&
	       upstream_renew_refused(connection->loop->renewals, connection->server, connection->bearer_generation);
}

/* Scopes that the person gave, and those that the server wants now. */
static char *more_scopes(const struct upstream_connection *connection, const char *wanted)
{
	struct renew_view view;
	auto_buf struct buf all = {0};

	upstream_renew_look(connection->loop->renewals, connection->server, &view);
	buf_init(&all, ERR_TEXT_SIZE / 2);
	if (view.login != NULL && view.login->scope != NULL)
		buf_puts(&all, view.login->scope);
	for (const char *word = wanted; *(word += strspn(word, " ")) != '\0'; word += strcspn(word, " ")) {
		const size_t length = strcspn(word, " ");
		auto_free char *padded = xasprintf(" %s ", all.data), *one = xasprintf(" %.*s ", (int)length, word);

		if (strstr(padded, one) == NULL)
			buf_printf(&all, "%s%.*s", all.length > 0 ? " " : "", (int)length, word);
	}
	return buf_steal(&all, NULL);
}

/* Can the text stand in a command between quotes? (RFC 6749: scopes have neither quotes nor backslashes.) */
static bool plain(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~' || strchr("\"\\$`!", *text) != NULL)
			return false;
	return true;
}

char *connection_wanted(const struct upstream_connection *connection, const struct failure *failure)
{
	const char *name = connection->server->name;
	auto_challenge struct upstream_challenge challenge = {0};

	if (failure->challenge != NULL)
		upstream_challenge_parse(failure->challenge, &challenge);
	if (!upstream_login_possible(connection->server))
		return xstrdup("it wants other credentials (headers)");
	if (failure->status == 403 && challenge.error != NULL && streq(challenge.error, "insufficient_scope") &&
	    challenge.scope != NULL && plain(challenge.scope)) {
		auto_free char *scopes = more_scopes(connection, challenge.scope);

		return xasprintf("it wants more rights: sallyport upstream login --scope \"%s\" %s", scopes, name);
	}
	if (failure->status == 401 && (failure->challenge != NULL || connection->bearer != NULL))
		return xasprintf("it asks for a sign-in: sallyport upstream login %s", name);
	return xstrdup("it wants other credentials (headers)");
}
