/*
 * oauth_authorize.c - see oauth_authorize.h.
 *
 * Nothing is sent back to a client by itself before somebody who belongs here has looked: any stranger can register a
 * client, and could otherwise use this server to lead browsers anywhere. A fault of the request is a page; where the
 * address is known to be the client's, it has a link. A client that is named by the address of a document is looked up
 * in step 2: the document is fetched for people of this server alone.
 *
 * A form is taken if it comes from a page of public_base_url's very origin, and from the browser that began.
 */
#include "oauth_authorize.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/oauth/oauth_client.h"
#include "lib/oauth/oauth_who.h"
#include "lib/store/record/store_oauth_code.h"
#include "oauth_page.h"
#include "oauth_reply.h"
#include "oauth_server.h"

#define SECOND        INT64_C(1000000)
#define QUERY_MAX     8192
#define WRONG_NS      300000000 /* so long a wrong token or code takes at least */
#define STATE_KEPT    "state"
#define SIGN_IN_WRONG "This token or code is not good here: unknown, used, expired, or revoked"
#define START_AGAIN   "Start again in the program that sent you here."
#define GONE          "This registration is gone: remove the connection in your client and add it again"

/* -------- what a client asks -------------------------------------------------------------------------- */

struct fault {
	const char *error, *text; /* error NULL: nothing that a client could act on */
};

static bool is_document(const char *id)
{
	return str_starts(id, "https://") || str_starts(id, "http://");
}

/* The client as far as it is known without asking anybody: *ret_known false: its document is yet to be fetched. */
static int look_up(struct http_exchange *exchange, const char *id, struct store_oauth_client *ret, bool *ret_known,
		   struct err *err)
{
	const struct config *config = exchange->server->config;
	const bool document = is_document(id);

	*ret_known = false;
	if (document && !config->oauth.client_metadata)
		return err_set(err, ERR_INVALID,
			       "client_id is an address, and this server takes none (oauth.client_metadata)");
	if (document && oauth_redirect_document(config, id, err) < 0)
		return -ERR_INVALID;
	int result = strlen(id) > STORE_OAUTH_ID_MAX ? err_set(err, ERR_NOT_FOUND, "there is no such client")
						     : store_oauth_client_find(exchange->server->store, id, ret, err);

	if (result == -ERR_NOT_FOUND)
		return document
			       ? 0
			       : err_set(err, ERR_INVALID, str_starts(id, "spd_") ? GONE : "client_id is unknown here");
	if (result < 0)
		return result;
	if (ret->blocked_us)
		return err_set(err, ERR_INVALID, "this client was blocked here");
	*ret_known = !document || ret->fresh_us > clock_now_us();
	return 0;
}

/* Where the answer goes, of a client that is known: ERR_INVALID: nowhere. */
static int take_redirect(const struct store_oauth_client *client, const char *asked, char ret[OAUTH_REDIRECT_MAX + 1],
			 struct err *err)
{
	auto_json struct json_object *list = NULL;
	const char *redirect = oauth_client_redirect(client, asked && *asked ? asked : NULL, &list);

	if (!redirect || strlen(redirect) > OAUTH_REDIRECT_MAX)
		return err_set(err, ERR_INVALID,
			       asked && *asked ? "redirect_uri is not one that this client registered"
					       : "redirect_uri is missing, and this client has several");
	memmove(ret, redirect, strlen(redirect) + 1);
	return 0;
}

static bool resources_ours(const struct config *config, const struct oauth_form *form)
{
	for (size_t i = 0; i < form->count; i++)
		if (streq(form->fields[i].name, "resource") && form->fields[i].value[0] &&
		    !oauth_redirect_resource(config, form->fields[i].value))
			return false;
	return true;
}

/* What of the request is wrong that its client should hear of. */
static struct fault find_fault(const struct config *config, const struct oauth_form *form)
{
	const char *type = oauth_form_get(form, "response_type"), *mode = oauth_form_get(form, "response_mode");
	const char *challenge = oauth_form_get(form, "code_challenge"), *prompt = oauth_form_get(form, "prompt");
	const char *method = oauth_form_get(form, "code_challenge_method");

	if (oauth_form_get(form, "request"))
		return (struct fault){"request_not_supported", "the parameter request is not supported"};
	if (oauth_form_get(form, "request_uri"))
		return (struct fault){"request_uri_not_supported", "the parameter request_uri is not supported"};
	if (!type)
		return (struct fault){"invalid_request", "response_type is missing"};
	if (!streq(type, "code"))
		return (struct fault){"unsupported_response_type", "response_type must be code"};
	if (mode && !streq(mode, "query"))
		return (struct fault){"invalid_request", "response_mode must be query"};
	if (!challenge || strlen(challenge) != OAUTH_CHALLENGE_SIZE - 1 ||
	    strspn(challenge, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
		    OAUTH_CHALLENGE_SIZE - 1)
		return (struct fault){"invalid_request", "code_challenge must be 43 characters of base64url (PKCE)"};
	if (!method || !streq(method, "S256"))
		return (struct fault){"invalid_request", "code_challenge_method must be S256"};
	if (!resources_ours(config, form))
		return (struct fault){"invalid_target", "resource is not this server"};
	if (prompt && streq(prompt, "none"))
		return (struct fault){"interaction_required", "the person must be asked"};
	return (struct fault){NULL, NULL};
}

/* A page about the fault, with a link if the way back is the client's. */
static void refuse(struct http_exchange *exchange, const struct oauth_transaction *transaction, struct fault fault)
{
	auto_free char *back = NULL;

	snprintf(exchange->reply->outcome, sizeof(exchange->reply->outcome), "%s", fault.error);
	if (transaction->redirect[0])
		back = oauth_page_address(exchange, transaction,
					  &(struct oauth_page_answer){.error = fault.error, .description = fault.text});
	auto_free char *text =
		xasprintf("The program that sent you here asked in a way that is not good: %s", fault.text);

	oauth_page_error(exchange, 400, text, back);
}

static int take_request(struct http_exchange *exchange, struct oauth_form *form, struct err *err)
{
	const char *uri = request_param(exchange->request, "REQUEST_URI"), *query = uri ? strchr(uri, '?') : NULL;

	if (query && strlen(query) > QUERY_MAX)
		return err_set(err, ERR_INVALID, "the query is longer than %d bytes", QUERY_MAX);
	int result = oauth_form_parse(query ? query + 1 : "", query ? strlen(query + 1) : 0, form, err);

	if (result == 0 && !oauth_form_get(form, "client_id"))
		return err_set(err, ERR_INVALID, "client_id is missing");
	if (result == 0 && oauth_form_get(form, STATE_KEPT) &&
	    strlen(oauth_form_get(form, STATE_KEPT)) > OAUTH_STATE_MAX)
		return err_set(err, ERR_INVALID, "state is longer than %d bytes", OAUTH_STATE_MAX);
	return result;
}

static void fill_transaction(struct http_exchange *exchange, const struct oauth_form *form,
			     struct oauth_transaction *transaction)
{
	const char *state = oauth_form_get(form, STATE_KEPT), *challenge = oauth_form_get(form, "code_challenge");

	snprintf(transaction->client, sizeof(transaction->client), "%s", oauth_form_get(form, "client_id"));
	snprintf(transaction->state, sizeof(transaction->state), "%s", state ? state : "");
	snprintf(transaction->challenge, sizeof(transaction->challenge), "%s", challenge ? challenge : "");
	transaction->asked = oauth_who_asked(oauth_form_get(form, "scope"), &transaction->offline);
	if (!transaction->asked)
		transaction->asked = oauth_who_usual(exchange->server->config);
	transaction->expires_us = clock_now_us() + OAUTH_TRANSACTION_SECONDS * SECOND;
}

static void show_ask(struct http_exchange *exchange)
{
	struct oauth_transaction transaction = {.asked = 0};
	auto_oauth_client struct store_oauth_client client = {.redirects = NULL};
	auto_form struct oauth_form form = {.count = 0};
	struct err err = ERR_INIT;
	bool known = false;
	int result = take_request(exchange, &form, &err);

	if (result == 0)
		result = look_up(exchange, oauth_form_get(&form, "client_id"), &client, &known, &err);
	if (result == 0 && known)
		result = take_redirect(&client, oauth_form_get(&form, "redirect_uri"), transaction.redirect, &err);
	if (result < 0) {
		if (result != -ERR_INVALID)
			log_event(LOG_ERROR, "sign-in failed", "error", err.text, NULL);
		oauth_page_error(exchange, result == -ERR_INVALID ? 400 : 503,
				 result == -ERR_INVALID ? err.text : "The server cannot do this at the moment", NULL);
		return;
	}
	fill_transaction(exchange, &form, &transaction);
	const struct fault fault = find_fault(exchange->server->config, &form);

	if (fault.error) {
		refuse(exchange, &transaction, fault);
		return;
	}
	if (!known && oauth_form_get(&form, "redirect_uri")) {
		if (!oauth_redirect_allowed(exchange->server->config, oauth_form_get(&form, "redirect_uri"))) {
			oauth_page_error(exchange, 400, "redirect_uri is not an address of https or of this computer",
					 NULL);
			return;
		}
		snprintf(transaction.redirect, sizeof(transaction.redirect), "%s",
			 oauth_form_get(&form, "redirect_uri"));
	}
	oauth_transaction_browser(exchange, transaction.browser);
	oauth_page_ask(exchange, 200, &transaction, client.redirects ? &client : NULL, NULL);
}

/* -------- who approves -------------------------------------------------------------------------------- */

struct person {
	char owner[STORE_OWNER_MAX + 1];
	unsigned scopes;
};

/* By what the person typed. */
static int check_typed(struct http_exchange *exchange, const char *typed, struct oauth_transaction *transaction,
		       struct person *ret, struct err *err)
{
	struct store *store = exchange->server->store;
	struct store_oauth_login login;
	struct store_token token;
	int result;

	if (str_starts(typed, "sp_")) {
		result = store_token_check(store, typed, &token, err);
		if (result == 0) {
			memcpy(transaction->token, token.id, sizeof(transaction->token));
			memcpy(ret->owner, token.owner, sizeof(ret->owner));
			ret->scopes = token.scopes;
		}
		return result;
	}
	result = store_oauth_login_check(store, typed, &login, err);
	if (result == 0) {
		memcpy(transaction->login, login.hash, sizeof(transaction->login));
		memcpy(ret->owner, login.owner, sizeof(ret->owner));
		ret->scopes = login.scopes;
	}
	return result;
}

/* The same once more, by what the transaction has of it. */
static int check_again(struct http_exchange *exchange, const struct oauth_transaction *transaction, struct person *ret,
		       struct err *err)
{
	struct store *store = exchange->server->store;
	struct store_oauth_login login;
	struct store_token token;

	if (transaction->login[0]) {
		int result = store_oauth_login_find(store, transaction->login, &login, err);

		if (result == 0) {
			memcpy(ret->owner, login.owner, sizeof(ret->owner));
			ret->scopes = login.scopes;
		}
		return result;
	}
	int result = store_token_find(store, transaction->token, &token, err);

	if (result == -ERR_NOT_FOUND || result == -ERR_INVALID ||
	    (result == 0 && (token.revoked_us || (token.expires_us && token.expires_us <= clock_now_us()))))
		return err_set(err, ERR_DENIED, SIGN_IN_WRONG);
	if (result == 0) {
		memcpy(ret->owner, token.owner, sizeof(ret->owner));
		ret->scopes = token.scopes;
	}
	return result;
}

/* What may be ticked. */
static unsigned grantable(const struct oauth_transaction *transaction, const struct person *person)
{
	return person->scopes & STORE_SCOPE_ADMIN ? transaction->asked : transaction->asked & person->scopes;
}

/* A wrong one takes its time, counts, and is asked for again. */
static void refuse_typed(struct http_exchange *exchange, const struct oauth_transaction *transaction, int result,
			 const struct err *err)
{
	const struct timespec pause = {.tv_nsec = WRONG_NS};
	char address[STORE_ADDRESS_SIZE];

	if (result != -ERR_DENIED && result != -ERR_INVALID) {
		log_event(LOG_ERROR, "sign-in failed", "error", err->text, NULL);
		oauth_page_ask(exchange, 503, transaction, NULL, "The server cannot do this at the moment: try again");
		return;
	}
	oauth_server_address(exchange, address);
	attempts_count(&exchange->server->oauth->guesses, address);
	log_event(LOG_INFO, "sign-in refused", "request_id", exchange->reply->request_id, NULL);
	nanosleep(&pause, NULL);
	oauth_page_ask(exchange, 200, transaction, NULL, SIGN_IN_WRONG);
}

/* The client, and that the answer goes where it may; false: the reply says why not. */
static bool find_client(struct http_exchange *exchange, struct oauth_transaction *transaction,
			struct store_oauth_client *ret)
{
	struct err err = ERR_INIT;
	bool known = false;
	int result = look_up(exchange, transaction->client, ret, &known, &err);

	if (result == 0 && !known) {
		store_oauth_client_clear(ret);
		result = oauth_documents_client(exchange->server->oauth->documents, transaction->client, ret, &err);
		if (result < 0) {
			auto_free char *text = xasprintf("The document that describes this program, %s, is no help: %s",
							 transaction->client, err.text);

			if (result == -ERR_INVALID)
				oauth_page_error(exchange, 400, text, NULL);
			else
				oauth_page_ask(exchange, 502, transaction, NULL, text);
			return false;
		}
	}
	if (result == 0 && ret->blocked_us)
		result = err_set(&err, ERR_INVALID, "this client was blocked here");
	if (result == 0)
		result = take_redirect(ret, transaction->redirect, transaction->redirect, &err);
	if (result < 0)
		oauth_page_error(exchange, result == -ERR_INVALID ? 400 : 503, err.text, NULL);
	return result == 0;
}

static void post_credential(struct http_exchange *exchange, const struct oauth_form *form,
			    struct oauth_transaction *transaction)
{
	auto_oauth_client struct store_oauth_client client = {.redirects = NULL};
	const char *typed = oauth_form_get(form, "credential");
	struct person person = {.scopes = 0};
	char address[STORE_ADDRESS_SIZE], names[STORE_SCOPES_TEXT];
	struct err err = ERR_INIT;

	oauth_server_address(exchange, address);
	const int64_t seconds = attempts_wait(&exchange->server->oauth->guesses, address);

	if (seconds > 0) {
		reply_header(exchange->reply, "Retry-After", "%lld", (long long)seconds);
		oauth_page_ask(exchange, 429, transaction, NULL, "Too many attempts: wait a minute and try again");
		return;
	}
	int result = check_typed(exchange, typed ? typed : "", transaction, &person, &err);

	if (result < 0) {
		refuse_typed(exchange, transaction, result, &err);
		return;
	}
	if (!find_client(exchange, transaction, &client))
		return;
	if (!grantable(transaction, &person)) {
		store_scopes_print(transaction->asked, names);
		auto_free char *text = xasprintf(
			"Your token or code may do nothing of what the program asks for (%s): use another one", names);

		transaction->token[0] = transaction->login[0] = '\0';
		oauth_page_ask(exchange, 200, transaction, &client, text);
		return;
	}
	oauth_page_approve(exchange, &(struct oauth_page_approval){.transaction = transaction,
								   .client = &client,
								   .owner = person.owner,
								   .may = grantable(transaction, &person)});
}

/* -------- the decision -------------------------------------------------------------------------------- */

static unsigned ticked(const struct oauth_form *form)
{
	static const unsigned scopes[] = {STORE_SCOPE_RUN, STORE_SCOPE_FILES, STORE_SCOPE_NETWORK, STORE_SCOPE_ADMIN};
	unsigned found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
		char scope[STORE_SCOPES_TEXT];

		store_scopes_print(scopes[i], scope);
		auto_free char *name = xasprintf("scope_%s", scope);

		if (oauth_form_get(form, name))
			found |= scopes[i];
	}
	return found;
}

static void approve(struct http_exchange *exchange, const struct oauth_transaction *transaction,
		    const struct person *person, unsigned scopes)
{
	char code[STORE_OAUTH_CODE_TEXT], host[OAUTH_REDIRECT_HOST];
	struct err err = ERR_INIT;

	oauth_redirect_host(transaction->redirect, host);
	const struct store_oauth_approval approval = {.client = transaction->client,
						      .redirect = transaction->redirect,
						      .host = host,
						      .challenge = transaction->challenge,
						      .owner = person->owner,
						      .parent = transaction->token[0] ? transaction->token : NULL,
						      .login = transaction->login[0] ? transaction->login : NULL,
						      .scopes = scopes,
						      .offline = transaction->offline};
	int result = store_oauth_code_add(exchange->server->store, &approval, code, &err);

	if (result < 0) {
		struct oauth_transaction again = *transaction;

		again.token[0] = again.login[0] = '\0';
		refuse_typed(exchange, &again, result, &err);
		return;
	}
	snprintf(exchange->reply->owner, sizeof(exchange->reply->owner), "%s", person->owner);
	log_event(LOG_INFO, "client approved", "owner", person->owner, "client", transaction->client, "host", host,
		  "request_id", exchange->reply->request_id, NULL);
	auto_free char *address = oauth_page_address(exchange, transaction, &(struct oauth_page_answer){.code = code});

	oauth_page_done(exchange, address, true);
	explicit_bzero(code, sizeof(code));
	explicit_bzero(address, strlen(address));
}

static void deny(struct http_exchange *exchange, const struct oauth_transaction *transaction)
{
	auto_free char *address = oauth_page_address(
		exchange, transaction,
		&(struct oauth_page_answer){.error = "access_denied", .description = "the person said no"});

	snprintf(exchange->reply->outcome, sizeof(exchange->reply->outcome), "access_denied");
	oauth_page_done(exchange, address, false);
}

static void post_decision(struct http_exchange *exchange, const struct oauth_form *form,
			  struct oauth_transaction *transaction)
{
	struct oauth_server *oauth = exchange->server->oauth;
	auto_oauth_client struct store_oauth_client client = {.redirects = NULL};
	const char *decision = oauth_form_get(form, "decision"), *sealed = oauth_form_get(form, "transaction");
	struct person person = {.scopes = 0};
	struct err err = ERR_INIT;

	if (oauth_server_spent(oauth, sealed)) {
		oauth_page_error(exchange, 400, "You have answered this already. " START_AGAIN, NULL);
		return;
	}
	if (!find_client(exchange, transaction, &client))
		return;
	int result = check_again(exchange, transaction, &person, &err);

	if (result < 0) {
		transaction->token[0] = transaction->login[0] = '\0';
		refuse_typed(exchange, transaction, result, &err);
		return;
	}
	const unsigned may = grantable(transaction, &person), scopes = may & ticked(form);
	const bool yes = decision && streq(decision, "approve");

	if (yes && !scopes) {
		oauth_page_approve(exchange,
				   &(struct oauth_page_approval){
					   .transaction = transaction,
					   .client = &client,
					   .owner = person.owner,
					   .may = may,
					   .problem = "Tick at least one thing that the program may do, or deny"});
		return;
	}
	if (!oauth_server_spend(oauth, sealed)) { /* the same form, twice at once */
		oauth_page_error(exchange, 400, "You have answered this already. " START_AGAIN, NULL);
		return;
	}
	if (yes)
		approve(exchange, transaction, &person, scopes);
	else
		deny(exchange, transaction);
}

/* -------- forms --------------------------------------------------------------------------------------- */

/* A browser says from where a form comes; programs say nothing, and have no cookie of anybody's. */
static bool own_page(const struct http_exchange *exchange)
{
	const char *origin = request_param(exchange->request, "HTTP_ORIGIN");
	const char *site = request_param(exchange->request, "HTTP_SEC_FETCH_SITE");

	if (site && !streq(site, "same-origin"))
		return false;
	return !origin || strcasecmp(origin, exchange->server->config->public_base_url) == 0;
}

static int read_form(struct http_exchange *exchange, struct oauth_form *ret, struct err *err)
{
	auto_buf struct buf body = {0};

	buf_init(&body, OAUTH_REPLY_BODY_MAX);
	if (!oauth_reply_typed(exchange, "application/x-www-form-urlencoded"))
		return err_set(err, ERR_INVALID, "The form has the wrong type");
	if (exchange->request->read_body(exchange->request->arg, &body, err) < 0 || body.overflow)
		return err_set(err, ERR_INVALID, "The form could not be read");
	int result = oauth_form_parse(body.data, body.length, ret, err);

	explicit_bzero(body.data, body.length);
	return result;
}

static void take_form(struct http_exchange *exchange)
{
	struct oauth_transaction transaction;
	auto_form struct oauth_form form = {.count = 0};
	struct err err = ERR_INIT;

	if (!own_page(exchange)) {
		oauth_page_error(exchange, 403, "This form did not come from a page of this server.", NULL);
		return;
	}
	if (read_form(exchange, &form, &err) < 0) {
		oauth_page_error(exchange, 400, err.text, NULL);
		return;
	}
	const char *step = oauth_form_get(&form, "step");
	const bool known = step && streq(step, "2");

	if (oauth_transaction_open(exchange, known ? OAUTH_STEP_KNOWN : OAUTH_STEP_ASKED,
				   oauth_form_get(&form, "transaction"), &transaction, &err) < 0) {
		auto_free char *text = xasprintf("This form cannot be used: %s. " START_AGAIN, err.text);

		oauth_page_error(exchange, 400, text, NULL);
		return;
	}
	if (known)
		post_decision(exchange, &form, &transaction);
	else
		post_credential(exchange, &form, &transaction);
	explicit_bzero(&transaction, sizeof(transaction));
}

void oauth_authorize_handle(struct http_exchange *exchange, const char *method, const char *rest)
{
	(void)rest;
	if (streq(method, "POST"))
		take_form(exchange);
	else
		show_ask(exchange);
}
