/*
 * access.c - see access.h.
 *
 * A call that finds no place among limits.in_flight waits for limits.wait_seconds, in the order of its token's calls:
 * who leaves hands the place to the first. It waits on its thread, of which there are not enough for everybody, so that
 * few wait (ACCESS_WAITING). The others, and those who waited in vain, are refused.
 *
 * Everything is counted in memory, under one lock: of each token that was seen its credit of requests and its calls
 * under way; of requests for files, which need no token, how many are being answered, by conversation, by client
 * address and in all. A restart forgets it.
 */
#include "access.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <time.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_refused.h"

#define SLOTS              256
#define MINUTE_US          60000000LL
#define CALL_RETRY_SECONDS 1 /* nobody knows when a call ends */
#define DRAIN_RETRY_SECONDS 30
#define LOOK_US            500000 /* so often a call that waits looks whether its client is still there */

/* A call that waits for a place; on its thread's stack. */
struct waiting {
	struct waiting *next;
	pthread_cond_t given_cond;
	bool given;
};

/* One per token that was seen: as many as the operator made. */
struct entry {
	struct entry *next;
	struct waiting *first;
	int waiting;
	char token[ID_SIZE];
	int64_t credit_us; /* a request costs a minute divided by how many are allowed in one; time gives it back */
	int64_t seen_us;
	/* Requests that call a tool and are being answered. limits.in_flight bounds this number, so that a token cannot
	 * take every thread. lib/job bounds the token's jobs by the same limit (check_bounds): a task goes on after its
	 * request was answered, and is not in this number. */
	int64_t calls;
};

/* Requests for files that are being answered, of one conversation or one client. */
struct reads {
	struct reads *next;
	char *key; /* "p" and the conversation's hash, "a" and the client's address */
	int count;
};

struct limiter {
	pthread_mutex_t lock;
	struct entry *slots[SLOTS];
	struct reads *reads; /* few: with a count above 0 each */
	int all_reads;
	int waiting; /* calls of all tokens */
};

struct limiter *access_limiter_new(void)
{
	struct limiter *limiter = xcalloc(1, sizeof(*limiter));

	pthread_mutex_init(&limiter->lock, NULL);
	return limiter;
}

void access_limiter_free(struct limiter *limiter)
{
	struct entry *next;

	for (size_t i = 0; limiter && i < SLOTS; i++) {
		for (struct entry *entry = limiter->slots[i]; entry; entry = next) {
			next = entry->next;
			free(entry);
		}
	}
	if (limiter)
		pthread_mutex_destroy(&limiter->lock);
	free(limiter);
}

/* Under the lock. */
static struct entry *find(struct limiter *limiter, const char *token)
{
	size_t slot = 0;

	for (const char *p = token; *p; p++)
		slot = (slot * 31 + (unsigned char)*p) % SLOTS;
	for (struct entry *entry = limiter->slots[slot]; entry; entry = entry->next) {
		if (streq(entry->token, token))
			return entry;
	}
	struct entry *entry = xcalloc(1, sizeof(*entry));

	snprintf(entry->token, sizeof(entry->token), "%s", token);
	entry->credit_us = ACCESS_BURST_US;
	entry->seen_us = clock_monotonic_us();
	entry->next = limiter->slots[slot];
	limiter->slots[slot] = entry;
	return entry;
}

static bool refuse(struct access_refusal *ret, int status, int64_t retry_seconds, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static bool refuse(struct access_refusal *ret, int status, int64_t retry_seconds, const char *format, ...)
{
	va_list arguments;

	*ret = (struct access_refusal){.status = status, .retry_seconds = retry_seconds};
	va_start(arguments, format);
	vsnprintf(ret->text, sizeof(ret->text), format, arguments);
	va_end(arguments);
	return false;
}

void access_refused(const struct http_exchange *exchange, const char *limit)
{
	const struct store_refused_who who = {exchange->token.owner, &exchange->client};

	store_refused(exchange->server->store, STORE_AUDIT_LIMIT, limit, &who);
}

static bool take(const struct http_exchange *exchange, int64_t requests, struct access_refusal *ret)
{
	struct limiter *limiter = exchange->server->limiter;
	int64_t most = exchange->server->config->limits.requests_per_minute, now = clock_monotonic_us(), missing = 0;

	if (most <= 0 || !exchange->token.id[0])
		return true;
	const int64_t cost = MINUTE_US / most * requests;

	pthread_mutex_lock(&limiter->lock);
	struct entry *entry = find(limiter, exchange->token.id);

	entry->credit_us = MIN(entry->credit_us + now - entry->seen_us, ACCESS_BURST_US);
	entry->seen_us = now;
	if (entry->credit_us >= cost)
		entry->credit_us -= cost;
	else
		missing = cost - entry->credit_us;
	pthread_mutex_unlock(&limiter->lock);
	if (!missing)
		return true;
	access_refused(exchange, "rate");
	return refuse(ret, 429, (missing + 999999) / 1000000,
		      "Too many requests: this token may send %lld a minute", (long long)most);
}

bool access_rate(const struct http_exchange *exchange, struct access_refusal *ret)
{
	return take(exchange, 1, ret);
}

bool access_rate_batch(const struct http_exchange *exchange, size_t messages, struct access_refusal *ret)
{
	int64_t most = exchange->server->config->limits.requests_per_minute;

	if (most > 0 && exchange->token.id[0] && (int64_t)messages > most)
		return refuse(ret, 400, 0, "A batch of %zu messages: this token may send %lld a minute", messages,
			      (long long)most);
	return messages < 2 || take(exchange, (int64_t)messages - 1, ret);
}

unsigned access_scopes(const struct store_token *token)
{
	return token->id[0] ? token->scopes : STORE_SCOPE_ADMIN;
}

bool access_allows(unsigned scopes, unsigned scope)
{
	return scope == ACCESS_FREE || (scope && (scopes & (scope | STORE_SCOPE_ADMIN)));
}

bool access_scope(const struct http_exchange *exchange, unsigned scope, struct access_refusal *ret)
{
	char name[STORE_SCOPES_TEXT];

	if (access_allows(access_scopes(&exchange->token), scope))
		return true;
	store_scopes_print(scope, name);
	refuse(ret, 403, 0,
	       scope ? "Forbidden: this token lacks the scope \"%s\"" : "Forbidden: no token may do this%s", name);
	memcpy(ret->scope, name, sizeof(name));
	return false;
}

bool access_open(const struct http_exchange *exchange, struct access_refusal *ret)
{
	if (!exchange->token.drained_us)
		return true;
	access_refused(exchange, "drained");
	return refuse(ret, 503, DRAIN_RETRY_SECONDS,
		      "This host is being emptied: nothing starts here now, what is under way ends; try again later");
}

static bool gone(const struct http_exchange *exchange)
{
	struct pollfd wait = {.fd = exchange->request->hangup_fd, .events = POLLRDHUP};

	return exchange->server->closing || poll(&wait, 1, 0) == 1;
}

static void leave_line(struct limiter *limiter, struct entry *entry, const struct waiting *me)
{
	struct waiting **at = &entry->first;

	while (*at && *at != me)
		at = &(*at)->next;
	if (*at)
		*at = me->next;
	entry->waiting--;
	limiter->waiting--;
}

/* Under the lock. Until somebody hands a place over; false: nobody did in time, or nobody waits for the answer. */
static bool wait_for_place(const struct http_exchange *exchange, struct limiter *limiter, struct entry *entry)
{
	const int64_t until_us =
		clock_monotonic_us() + exchange->server->config->limits.wait_seconds * INT64_C(1000000);
	struct waiting me = {.given = false}, **last = &entry->first;
	pthread_condattr_t monotonic;

	if (entry->waiting >= ACCESS_WAITING_TOKEN || limiter->waiting >= ACCESS_WAITING)
		return false;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&me.given_cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
	while (*last)
		last = &(*last)->next;
	*last = &me;
	entry->waiting++;
	limiter->waiting++;
	for (int64_t now_us; !me.given && (now_us = clock_monotonic_us()) < until_us && !gone(exchange);) {
		const int64_t next_us = MIN(until_us, now_us + LOOK_US);
		const struct timespec next = {.tv_sec = next_us / 1000000, .tv_nsec = next_us % 1000000 * 1000};

		pthread_cond_timedwait(&me.given_cond, &limiter->lock, &next);
	}
	leave_line(limiter, entry, &me);
	pthread_cond_destroy(&me.given_cond);
	return me.given;
}

bool access_enter(struct http_exchange *exchange, struct access_refusal *ret)
{
	struct limiter *limiter = exchange->server->limiter;
	int64_t most = exchange->server->config->limits.in_flight;

	if (!exchange->token.id[0] || exchange->places++ > 0)
		return true;
	pthread_mutex_lock(&limiter->lock);
	struct entry *entry = find(limiter, exchange->token.id);
	bool free_place = entry->calls < most;

	entry->calls += free_place;
	if (!free_place)
		free_place = wait_for_place(exchange, limiter, entry);
	pthread_mutex_unlock(&limiter->lock);
	if (free_place)
		return true;
	exchange->places = 0;
	access_refused(exchange, "calls");
	return refuse(ret, 429, CALL_RETRY_SECONDS,
		      "Too many calls: %lld of this token are under way already; wait for one of them",
		      (long long)most);
}

void access_leave(struct http_exchange *exchange)
{
	struct limiter *limiter = exchange->server->limiter;

	if (!exchange->token.id[0] || --exchange->places > 0)
		return;
	pthread_mutex_lock(&limiter->lock);
	struct entry *entry = find(limiter, exchange->token.id);
	struct waiting *first = entry->first;

	if (first) { /* it has the place now */
		entry->first = first->next;
		first->given = true;
		pthread_cond_signal(&first->given_cond);
	} else {
		entry->calls--;
	}
	pthread_mutex_unlock(&limiter->lock);
}

int access_waiting(struct limiter *limiter)
{
	pthread_mutex_lock(&limiter->lock);
	const int waiting = limiter->waiting;

	pthread_mutex_unlock(&limiter->lock);
	return waiting;
}

/* -------- requests for files -------------------------------------------------------------------------- */

/* Under the lock: adds to the count of a key. A row whose count is 0 goes. */
static void change_reads(struct limiter *limiter, const char *key, int change)
{
	struct reads **at = &limiter->reads;

	while (*at && !streq((*at)->key, key))
		at = &(*at)->next;
	struct reads *reads = *at;

	if (!reads) {
		*at = reads = xcalloc(1, sizeof(*reads));
		reads->key = xstrdup(key);
	}
	reads->count += change;
	if (reads->count > 0)
		return;
	*at = reads->next;
	free(reads->key);
	free(reads);
}

struct read_keys {
	char *place, *address;
};
#define auto_read_keys __attribute__((cleanup(read_keys_clear)))
static void read_keys_clear(struct read_keys *keys)
{
	free(keys->place);
	free(keys->address);
}

static struct read_keys read_keys(const struct http_exchange *exchange, const char *place)
{
	const char *address = request_param(exchange->request, "REMOTE_ADDR");

	return (struct read_keys){xasprintf("p%s", place), xasprintf("a%s", address ? address : "")};
}

/* Under the lock. */
static void count_read(struct limiter *limiter, const struct read_keys *keys, int change)
{
	limiter->all_reads += change;
	change_reads(limiter, keys->place, change);
	change_reads(limiter, keys->address, change);
}

static int reads_of(const struct limiter *limiter, const char *key)
{
	for (const struct reads *reads = limiter->reads; reads; reads = reads->next)
		if (streq(reads->key, key))
			return reads->count;
	return 0;
}

bool access_read_enter(const struct http_exchange *exchange, const char *place, struct access_refusal *ret)
{
	struct limiter *limiter = exchange->server->limiter;
	auto_read_keys struct read_keys keys = read_keys(exchange, place);

	pthread_mutex_lock(&limiter->lock);
	const bool free_place = limiter->all_reads < ACCESS_READS &&
				reads_of(limiter, keys.place) < ACCESS_READS_PLACE &&
				reads_of(limiter, keys.address) < ACCESS_READS_ADDRESS;

	if (free_place)
		count_read(limiter, &keys, 1);
	pthread_mutex_unlock(&limiter->lock);
	return free_place || refuse(ret, 429, CALL_RETRY_SECONDS,
				    "Too many requests for files at once: wait for one of them");
}

void access_read_leave(const struct http_exchange *exchange, const char *place)
{
	struct limiter *limiter = exchange->server->limiter;
	auto_read_keys struct read_keys keys = read_keys(exchange, place);

	pthread_mutex_lock(&limiter->lock);
	count_read(limiter, &keys, -1);
	pthread_mutex_unlock(&limiter->lock);
}
