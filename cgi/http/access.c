/* access.c - see access.h. */
#include "access.h"

#include "cgi/mcp/mcp.h"
#include "cgi/tool/tools.h"
#include "lib/base/util.h"

#define SLOTS              256
#define MINUTE_US          60000000LL
#define CALL_RETRY_SECONDS 1 /* nobody knows when a call ends */

/* One per token that was seen: as many as the operator made. */
struct entry {
	struct entry *next;
	char token[ID_SIZE];
	int64_t credit_us; /* a request costs a minute divided by how many are allowed in one; time gives it back */
	int64_t seen_us;
	int64_t calls; /* of tools, under way */
};

struct limiter {
	pthread_mutex_t lock;
	struct entry *slots[SLOTS];
};

struct limiter *limiter_new(void)
{
	struct limiter *limiter = xcalloc(1, sizeof(*limiter));

	pthread_mutex_init(&limiter->lock, NULL);
	return limiter;
}

void limiter_free(struct limiter *limiter)
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

static bool is_call(const struct rpc_message *message)
{
	return message->kind == RPC_REQUEST && streq(message->method, "tools/call");
}

static void refuse(struct exchange *exchange, struct json_object *id, int64_t seconds, const char *text)
{
	reply_header(exchange->reply, "Retry-After", "%lld", (long long)seconds);
	mcp_reply_error(exchange->reply, 429, id, RPC_INVALID_REQUEST, text);
}

bool access_rate(struct exchange *exchange)
{
	struct limiter *limiter = exchange->server->limiter;
	int64_t most = exchange->server->config->limits.requests_per_minute, now = clock_monotonic_us(), missing = 0;
	char text[128];

	if (most <= 0 || !exchange->token.id[0])
		return true;
	const int64_t cost = MINUTE_US / most;

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
	snprintf(text, sizeof(text), "Too many requests: this token may send %lld a minute", (long long)most);
	refuse(exchange, NULL, (missing + 999999) / 1000000, text);
	return false;
}

/* The scope that a request needs; 0: none. */
static unsigned needed(const struct config *config, const struct rpc_message *message)
{
	static const char *const reading[] = {"resources/list", "resources/read", "resources/subscribe"};

	for (size_t i = 0; i < ARRAY_SIZE(reading); i++) {
		if (streq(message->method, reading[i]))
			return STORE_SCOPE_FILES;
	}
	if (str_starts(message->method, "tasks/"))
		return STORE_SCOPE_RUN;
	const char *name = is_call(message) ? json_get_string(message->params, "name") : NULL;
	const struct tool *tool = name ? tool_find(config, name) : NULL;

	return tool ? tool->scope : 0;
}

unsigned access_scopes(const struct store_token *token)
{
	return token->id[0] ? token->scopes : STORE_SCOPE_ADMIN;
}

bool access_allows(unsigned scopes, unsigned scope)
{
	return !scope || (scopes & (scope | STORE_SCOPE_ADMIN));
}

bool access_scope(struct exchange *exchange, const struct rpc_message *message)
{
	const struct store_token *token = &exchange->token;
	unsigned scope = message->kind == RPC_REQUEST ? needed(exchange->server->config, message) : 0;
	char name[STORE_SCOPES_TEXT], text[128];

	if (access_allows(access_scopes(token), scope))
		return true;
	store_scopes_print(scope, name);
	snprintf(text, sizeof(text), "Forbidden: this token lacks the scope \"%s\"", name);
	reply_header(exchange->reply, "WWW-Authenticate",
		     "Bearer realm=\"sallyport\", error=\"insufficient_scope\", error_description=\"%s is needed\", "
		     "scope=\"%s\"",
		     name, name);
	mcp_reply_error(exchange->reply, 403, message->id, RPC_INVALID_REQUEST, text);
	return false;
}

bool access_enter(struct exchange *exchange, const struct rpc_message *message)
{
	struct limiter *limiter = exchange->server->limiter;
	int64_t most = exchange->server->config->limits.in_flight;
	char text[128];

	if (!is_call(message) || !exchange->token.id[0])
		return true;
	pthread_mutex_lock(&limiter->lock);
	struct entry *entry = find(limiter, exchange->token.id);
	bool free_place = entry->calls < most;

	entry->calls += free_place;
	pthread_mutex_unlock(&limiter->lock);
	if (free_place)
		return true;
	snprintf(text, sizeof(text), "Too many calls: %lld of this token are under way already; wait for one of them",
		 (long long)most);
	refuse(exchange, message->id, CALL_RETRY_SECONDS, text);
	return false;
}

void access_leave(struct exchange *exchange, const struct rpc_message *message)
{
	struct limiter *limiter = exchange->server->limiter;

	if (!is_call(message) || !exchange->token.id[0])
		return;
	pthread_mutex_lock(&limiter->lock);
	find(limiter, exchange->token.id)->calls--;
	pthread_mutex_unlock(&limiter->lock);
}
