/*
 * oauth_issuer.c - see oauth_issuer.h.
 *
 * Threads of requests and threads that fetch meet under one lock. A request that lacks keys wishes for them and waits
 * until one more attempt was made (struct oauth_issuer, `attempts`); a request with a token that must be
 * introspected puts a flight into the list, or joins the flight of the same token. Fetching threads take wishes and
 * flights, ask without the lock, and put results where requests find them. They are started with the first need, so a
 * gateway whose callers have keys of our own starts none.
 *
 * Bounds: WAITERS requests wait at once and FLIGHTS tokens are introspected at once, RATE a second; more are refused as
 * busy. Verdicts are kept in a table of SLOTS places, one for each value of a token's hash: a new one drops the old
 * one, which costs a question and nothing else.
 *
 * Keys are a set with a count of its users, so that new ones can come while signatures are checked with the old ones.
 * New keys make remembered verdicts on JWTs void: a key that was removed stops working at once.
 */
#include <string.h>
#include <time.h>

#include "lib/base/host.h"
#include "lib/base/util.h"
#include "oauth_fetch.h"
#include "oauth_issuer_internal.h"
#include "oauth_jwt.h"

#define UNKNOWN_US (60 * SECOND) /* between two questions for the sake of an unknown key */
#define WAITERS    32
#define FLIGHTS    8
#define RATE       50

/* -------- opening ------------------------------------------------------------------------------------- */

static int check_url(const char *member, const char *value, struct err *err)
{
	struct host_url url;

	if (host_url_parse(value, &url) < 0 || !url.secure)
		return err_member(err, member, "\"%.100s\" must be an address of https (http for this machine alone)",
				  value);
	return 0;
}

static int check(const struct config *config, struct err *err)
{
	if (config->oauth.issuer[0] == '\0')
		return err_member(err, "oauth.issuer", "must be set where oauth.mode is external");
	if (check_url("oauth.issuer", config->oauth.issuer, err) < 0 ||
	    (config->oauth.jwks_uri[0] != '\0' && check_url("oauth.jwks_uri", config->oauth.jwks_uri, err) < 0) ||
	    (config->oauth.introspection_endpoint[0] != '\0' &&
	     check_url("oauth.introspection_endpoint", config->oauth.introspection_endpoint, err) < 0))
		return -ERR_INVALID;
	return oauth_who_check(config, err);
}

static int take_rules(struct oauth_issuer *issuer, struct err *err)
{
	const struct config *config = issuer->config;
	struct oauth_rules *rules = &issuer->rules;

	*rules = (struct oauth_rules){
		.issuer = config->oauth.issuer,
		.audiences = config->oauth.audiences,
		.clients = config->oauth.clients,
		.any_type = streq(config->oauth.typ, "any"),
		.algorithms = OAUTH_RS256 | OAUTH_PS256 | OAUTH_ES256 | OAUTH_EDDSA,
	};
	if (config->oauth.algorithms.count > 0)
		rules->algorithms = 0;
	for (size_t i = 0; i < config->oauth.algorithms.count; i++) {
		const unsigned one = oauth_keys_algorithm(config->oauth.algorithms.items[i]);

		if (one == 0)
			return err_member(
				err, "oauth.algorithms",
				"\"%.32s\" is none of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA",
				config->oauth.algorithms.items[i]);
		rules->algorithms |= one;
	}
	if (rules->audiences.count == 0) {
		issuer->audiences[0] = xasprintf("%s/mcp", config->public_base_url);
		issuer->audiences[1] = xasprintf("%s/mcp/", config->public_base_url);
		rules->audiences = (struct bind_strings){issuer->audiences, ARRAY_SIZE(issuer->audiences)};
	}
	return 0;
}

int oauth_issuer_open(const struct config *config, struct oauth_issuer **ret, struct err *err)
{
	int result = check(config, err);

	if (result < 0)
		return result;
	struct oauth_issuer *issuer = xcalloc(1, sizeof(*issuer));
	pthread_condattr_t attributes;

	issuer->config = config;
	issuer->credit = RATE;
	pthread_mutex_init(&issuer->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&issuer->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	oauth_fetch_begin();
	result = oauth_remote_open(&issuer->remote, config, err);
	if (result == 0)
		result = take_rules(issuer, err);
	if (result < 0) {
		oauth_issuer_close(issuer);
		return result;
	}
	*ret = issuer;
	return 0;
}

void oauth_issuer_stop(struct oauth_issuer *issuer)
{
	if (issuer == NULL)
		return;
	issuer->remote.stop = true;
	pthread_mutex_lock(&issuer->lock);
	issuer->stopping = true;
	pthread_cond_broadcast(&issuer->changed);
	pthread_mutex_unlock(&issuer->lock);
}

void oauth_issuer_close(struct oauth_issuer *issuer)
{
	struct flight *next;

	if (issuer == NULL)
		return;
	oauth_issuer_stop(issuer);
	for (int i = 0; i < issuer->n_threads; i++)
		pthread_join(issuer->threads[i], NULL);
	for (struct flight *flight = issuer->flights; flight != NULL; flight = next) {
		next = flight->next;
		oauth_issuer_free_flight(flight);
	}
	oauth_issuer_leave_set(issuer->set);
	for (size_t i = 0; i < SLOTS; i++)
		free(issuer->slots[i]);
	free(unconst(issuer->audiences[0]));
	free(unconst(issuer->audiences[1]));
	oauth_remote_close(&issuer->remote);
	pthread_cond_destroy(&issuer->changed);
	pthread_mutex_destroy(&issuer->lock);
	free(issuer);
}

/* -------- verdicts ------------------------------------------------------------------------------------ */

/* Under the lock: what is remembered of the token; NULL: nothing that still counts. */
static const struct verdict *recall(const struct oauth_issuer *issuer, const uint8_t sum[SHA256_SIZE])
{
	const struct verdict *verdict = issuer->slots[oauth_issuer_slot(sum)];

	if (verdict == NULL || memcmp(verdict->sum, sum, SHA256_SIZE) != 0 ||
	    verdict->until_us <= clock_monotonic_us() ||
	    (verdict->keys != 0 && (verdict->keys != issuer->generation || issuer->set == NULL)) ||
	    (verdict->code == 0 && verdict->who.end_us != INT64_MAX &&
	     verdict->who.end_us + OAUTH_LEEWAY_SECONDS * SECOND <= clock_now_us()))
		return NULL;
	return verdict;
}

static int verdict_answer(const struct verdict *verdict, struct oauth_who *ret, struct err *err)
{
	if (verdict->code == 0)
		*ret = verdict->who;
	else if (verdict->code == -ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "no rule of oauth gives this person an owner");
	else
		return err_set(err, ERR_DENIED, "the issuer says that the token is not active");
	return 0;
}

/* -------- requests ------------------------------------------------------------------------------------ */

/* Under the lock: waits until `*done` or another attempt for keys; false: the time is up, or the end is near. */
static bool wait_for(struct oauth_issuer *issuer, const bool *done, uint64_t attempts)
{
	struct timespec until;
	int waited = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += OAUTH_ISSUER_SECONDS;
	issuer->waiters++;
	while (waited == 0 && !issuer->stopping && (done != NULL ? !*done : issuer->attempts == attempts))
		waited = pthread_cond_timedwait(&issuer->changed, &issuer->lock, &until);
	issuer->waiters--;
	return done != NULL ? *done : issuer->attempts != attempts;
}

static int refuse_busy(struct err *err)
{
	return err_set(err, ERR_BUSY, "too many requests wait for the issuer of tokens");
}

/* Under the lock: asks for keys and waits for them. */
static int wait_for_keys(struct oauth_issuer *issuer, struct err *err)
{
	if (issuer->waiters >= WAITERS)
		return refuse_busy(err);
	int result = oauth_issuer_start_threads(issuer, err);

	if (result < 0)
		return result;
	issuer->wanted = !issuer->fetching;
	pthread_cond_broadcast(&issuer->changed);
	if (!wait_for(issuer, NULL, issuer->attempts))
		return err_set(err, ERR_UNAVAILABLE, "the issuer of tokens does not answer");
	return 0;
}

/* Under the lock: the keys to check with; asks for new ones where those that there are grew old. */
static int take_set(struct oauth_issuer *issuer, struct key_set **ret, uint64_t *ret_generation, struct err *err)
{
	const int64_t now_us = clock_monotonic_us();

	if (issuer->set != NULL && now_us >= issuer->due_us && !issuer->fetching &&
	    oauth_issuer_start_threads(issuer, NULL) == 0) {
		issuer->wanted = true; /* nobody waits for it */
		pthread_cond_broadcast(&issuer->changed);
	}
	if (issuer->set == NULL && (!issuer->failing || now_us >= issuer->due_us || issuer->fetching)) {
		int result = wait_for_keys(issuer, err);

		if (result < 0)
			return result;
	}
	if (issuer->set == NULL)
		return err_set(err, ERR_UNAVAILABLE, "the keys of the issuer are not available");
	issuer->set->users++;
	*ret = issuer->set;
	*ret_generation = issuer->generation;
	return 0;
}

/* One look at a JWT with the keys that there are. Under the lock, which it gives up while it computes. */
static int look(struct oauth_issuer *issuer, const char *text, struct oauth_who *ret, uint64_t *ret_generation,
		struct err *err)
{
	auto_json struct json_object *claims = NULL;
	struct key_set *set = NULL;
	int result = take_set(issuer, &set, ret_generation, err);

	if (set == NULL)
		return result;
	pthread_mutex_unlock(&issuer->lock);
	result = oauth_jwt_check(text, set->keys, &issuer->rules, clock_now_us(), &claims, err);
	bool unknown_key = result == -ERR_NOT_FOUND;

	if (result == 0)
		result = oauth_who_read(issuer->config, claims, ret, err);
	pthread_mutex_lock(&issuer->lock);
	oauth_issuer_leave_set(set);
	return unknown_key ? -ERR_CONFLICT : result; /* ERR_CONFLICT: keys and token do not belong together, yet */
}

/* Under the lock: a token names a key that the set lacks. -ERR_NOT_FOUND: they were asked for not long ago. */
static int ask_for_unknown(struct oauth_issuer *issuer, struct err *err)
{
	const int64_t now_us = clock_monotonic_us();

	if (!issuer->fetching && !issuer->wanted) {
		if (issuer->unknown_us != 0 && now_us - issuer->unknown_us < UNKNOWN_US)
			return -ERR_NOT_FOUND;
		issuer->unknown_us = now_us;
	}
	return wait_for_keys(issuer, err);
}

/* Under the lock. */
static int check_jwt(struct oauth_issuer *issuer, const char *text, const uint8_t sum[SHA256_SIZE],
		     struct oauth_who *ret, struct err *err)
{
	uint64_t generation = 0;
	int result = look(issuer, text, ret, &generation, err);

	if (result == -ERR_CONFLICT) {
		const int waited = issuer->generation != generation ? 0 : ask_for_unknown(issuer, err);

		if (waited == -ERR_BUSY || waited == -ERR_UNAVAILABLE)
			return waited;
		if (waited == 0)
			result = look(issuer, text, ret, &generation, err);
	}
	if (result == -ERR_CONFLICT)
		return issuer->failing ? err_set(err, ERR_UNAVAILABLE, "the keys of the issuer are not available")
				       : err_set(err, ERR_DENIED, "the issuer has no key of this id");
	if (result == 0 || result == -ERR_NOT_FOUND)
		oauth_issuer_keep(issuer, sum, generation, result, ret);
	return result;
}

/* Under the lock: one more introspection, at most RATE a second. */
static bool take_credit(struct oauth_issuer *issuer)
{
	const int64_t now_us = clock_monotonic_us();

	issuer->credit += (double)(now_us - issuer->credit_us) * RATE / (double)SECOND;
	issuer->credit = MIN(issuer->credit, (double)RATE);
	issuer->credit_us = now_us;
	if (issuer->credit < 1)
		return false;
	issuer->credit -= 1;
	return true;
}

/* Under the lock: the flight of the token, a new one if there is none; NULL: there are too many. */
static struct flight *board(struct oauth_issuer *issuer, const char *text, const uint8_t sum[SHA256_SIZE])
{
	struct flight *flight = issuer->flights;

	while (flight != NULL && memcmp(flight->sum, sum, SHA256_SIZE) != 0)
		flight = flight->next;
	if (flight == NULL) {
		if (issuer->n_flights >= FLIGHTS || !take_credit(issuer))
			return NULL;
		flight = xcalloc(1, sizeof(*flight));
		flight->token = xstrdup(text);
		memcpy(flight->sum, sum, SHA256_SIZE);
		flight->next = issuer->flights;
		issuer->flights = flight;
		issuer->n_flights++;
	}
	flight->users++;
	return flight;
}

/* Under the lock. A flight that nobody waits for any more goes on: its verdict is of use to the next request. */
static int check_opaque(struct oauth_issuer *issuer, const char *text, const uint8_t sum[SHA256_SIZE],
			struct oauth_who *ret, struct err *err)
{
	int result = oauth_issuer_start_threads(issuer, err);
	struct flight *flight = result < 0 || issuer->waiters >= WAITERS ? NULL : board(issuer, text, sum);

	if (result < 0)
		return result;
	if (flight == NULL)
		return refuse_busy(err);
	pthread_cond_broadcast(&issuer->changed);
	if (!wait_for(issuer, &flight->landed, 0)) {
		result = err_set(err, ERR_UNAVAILABLE, "the issuer of tokens does not answer");
	} else {
		result = flight->code;
		if (result == 0)
			*ret = flight->who;
		else if (err != NULL)
			*err = flight->err;
	}
	if (flight->taken || flight->users > 1)
		oauth_issuer_leave_flight(flight);
	else
		flight->users--; /* no thread has taken it yet: it stays in the list */
	return result;
}

int oauth_issuer_check(struct oauth_issuer *issuer, const char *text, struct oauth_who *ret, struct err *err)
{
	uint8_t sum[SHA256_SIZE];
	int result;

	if (strlen(text) > OAUTH_TOKEN_MAX || str_starts(text, "sp_") || str_starts(text, "spa_") ||
	    str_starts(text, "spr_") || str_starts(text, "spc_"))
		return err_set(err, ERR_DENIED, "not a token of the issuer");
	sha256_bytes(text, strlen(text), sum);
	pthread_mutex_lock(&issuer->lock);
	const struct verdict *verdict = recall(issuer, sum);

	if (verdict != NULL)
		result = verdict_answer(verdict, ret, err);
	else if (issuer->stopping)
		result = err_set(err, ERR_UNAVAILABLE, "the server is stopping: try again in a moment");
	else if (oauth_jwt_shaped(text))
		result = check_jwt(issuer, text, sum, ret, err);
	else if (issuer->config->oauth.introspection_endpoint[0] != '\0')
		result = check_opaque(issuer, text, sum, ret, err);
	else
		result = err_set(err, ERR_DENIED, "not a JWT, and oauth.introspection_endpoint is not set");
	pthread_mutex_unlock(&issuer->lock);
	return result;
}
