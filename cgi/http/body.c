/* body.c - see body.h. */
#include "body.h"

#include <pthread.h>
#include <time.h>

#include "access.h"
#include "lib/base/util.h"

/* Bytes under way of one token or one client's address. */
struct share {
	struct share *next;
	char *key; /* "t" and the token's id, "a" and the address */
	int64_t bytes;
};

struct body_budget {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct share *shares; /* few: with bytes each */
	int64_t all;
};

struct body_budget *body_budget_new(void)
{
	struct body_budget *bodies = xcalloc(1, sizeof(*bodies));
	pthread_condattr_t monotonic;

	pthread_mutex_init(&bodies->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&bodies->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return bodies;
}

void body_budget_free(struct body_budget *bodies)
{
	if (!bodies)
		return;
	pthread_cond_destroy(&bodies->changed);
	pthread_mutex_destroy(&bodies->lock);
	free(bodies);
}

/* Under the lock, as everything below. */
static int64_t bytes_of(const struct body_budget *bodies, const char *key)
{
	for (const struct share *share = bodies->shares; share; share = share->next)
		if (streq(share->key, key))
			return share->bytes;
	return 0;
}

static void change(struct body_budget *bodies, const char *key, int64_t bytes)
{
	struct share **at = &bodies->shares;

	while (*at && !streq((*at)->key, key))
		at = &(*at)->next;
	struct share *share = *at;

	if (!share) {
		*at = share = xcalloc(1, sizeof(*share));
		share->key = xstrdup(key);
	}
	share->bytes += bytes;
	if (share->bytes > 0)
		return;
	*at = share->next;
	free(share->key);
	free(share);
}

struct keys {
	char *token, *address;
};
#define auto_keys __attribute__((cleanup(keys_clear)))
static void keys_clear(struct keys *keys)
{
	free(keys->token);
	free(keys->address);
}

static struct keys keys_of(const struct http_exchange *exchange)
{
	const char *address = request_param(exchange->request, "REMOTE_ADDR");

	return (struct keys){xasprintf("t%s", exchange->token.id), xasprintf("a%s", address ? address : "")};
}

static void count(struct body_budget *bodies, const struct keys *keys, int64_t bytes)
{
	bodies->all += bytes;
	change(bodies, keys->token, bytes);
	change(bodies, keys->address, bytes);
}

static bool has_room(const struct body_budget *bodies, const struct keys *keys, int64_t bytes, int64_t largest)
{
	return bytes_of(bodies, keys->token) + bytes <= BODY_TOKEN * largest &&
	       bytes_of(bodies, keys->address) + bytes <= BODY_ADDRESS * largest &&
	       bodies->all + bytes <= BODY_ALL * largest;
}

/* False: there was no room in time. */
static bool take(struct body_budget *bodies, const struct keys *keys, int64_t bytes, int64_t largest)
{
	struct timespec until;
	int waited = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += BODY_WAIT_SECONDS;
	pthread_mutex_lock(&bodies->lock);
	while (!has_room(bodies, keys, bytes, largest) && waited == 0)
		waited = pthread_cond_timedwait(&bodies->changed, &bodies->lock, &until);
	const bool room = has_room(bodies, keys, bytes, largest);

	if (room)
		count(bodies, keys, bytes);
	pthread_mutex_unlock(&bodies->lock);
	return room;
}

static int64_t length_of(const struct request *request, int64_t largest)
{
	const char *length = request_param(request, "CONTENT_LENGTH");
	uint64_t bytes;

	return length && *length && parse_u64(length, 0, INT64_MAX, &bytes) == 0 ? (int64_t)bytes : largest;
}

bool body_enter(struct http_exchange *exchange, struct access_refusal *ret)
{
	const int64_t largest = exchange->server->config->limits.body_mb << 20;
	const int64_t bytes = length_of(exchange->request, largest);
	auto_keys struct keys keys = keys_of(exchange);

	/* Too large a body is refused by its reader, unread. */
	if (bytes <= BODY_SMALL || bytes > largest || !exchange->token.id[0] || exchange->body_bytes)
		return true;
	if (!access_allows(access_scopes(&exchange->token), STORE_SCOPE_FILES) &&
	    !access_scope(exchange, STORE_SCOPE_RUN, ret))
		return false;
	if (!exchange->waits && !access_enter(exchange, ret))
		return false;
	exchange->body_place = !exchange->waits;
	if (take(exchange->server->bodies, &keys, bytes, largest)) {
		exchange->body_bytes = bytes;
		return true;
	}
	access_refused(exchange, "bodies");
	*ret = (struct access_refusal){.status = 429, .retry_seconds = 1};
	snprintf(ret->text, sizeof(ret->text),
		 "Too many large requests at once: wait for one of them, or send less in each");
	return false;
}

void body_leave(struct http_exchange *exchange)
{
	struct body_budget *bodies = exchange->server->bodies;
	auto_keys struct keys keys = keys_of(exchange);

	if (exchange->body_bytes) {
		pthread_mutex_lock(&bodies->lock);
		count(bodies, &keys, -exchange->body_bytes);
		pthread_cond_broadcast(&bodies->changed);
		pthread_mutex_unlock(&bodies->lock);
		exchange->body_bytes = 0;
	}
	if (exchange->body_place) {
		exchange->body_place = false;
		access_leave(exchange);
	}
}
