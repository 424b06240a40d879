/*
 * upstream_pool.c - the functions of upstream.h: the thread, the connections and who waits for them.
 *
 * Other threads hand errands over in a list under a lock and wake the thread; everything else is the thread's own. A
 * turn: take the errands, let libcurl and the pipes work, hand out what came, look at deadlines, sleep until the next.
 * Connections are found by server, owner and run as the server's entry shares them; the unused are freed in the end.
 */
#include "upstream.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "upstream_bare.h"
#include "upstream_connection.h"
#include "upstream_http.h"
#include "upstream_jail.h"

#define SECOND         INT64_C(1000000)
#define POLL_MAX_MS    60000
#define FDS_MAX        768
#define UNUSED_SECONDS 3600 /* a closed connection is forgotten, with its list */
#define LEAVE_SECONDS  1    /* for goodbyes when the process ends */
#define EVERYBODY      ""

struct errand {
	struct errand *next;
	enum { ERRAND_ORDER, ERRAND_CANCEL, ERRAND_REPLY, ERRAND_END_RUN } kind;
	struct order *order;
	uint64_t id;
	char *text;
};

struct upstream {
	struct upstream_file file;
	struct connection_loop loop;
	struct connection *connections;
	pthread_t thread;
	bool leaving;         /* the thread's own: no order begins any more */
	pthread_mutex_t lock; /* guards the rest */
	struct errand *errands, **last;
	uint64_t next_id;
	bool stopping;
	struct spent *spent; /* calls of owners in this minute */
	int64_t minute;
};
struct spent {
	struct spent *next;
	int64_t calls;
	char *owner;
};

static void hand_in(struct upstream *upstream, const struct errand *errand)
{
	struct errand *copy = xcalloc(1, sizeof(*copy));

	*copy = *errand;
	pthread_mutex_lock(&upstream->lock);
	bool first = upstream->errands == NULL;
	if (errand->kind == ERRAND_ORDER)
		copy->order->id = errand->id;
	*upstream->last = copy;
	upstream->last = &copy->next;
	pthread_mutex_unlock(&upstream->lock);
	if (first) /* else it was woken already and has not come yet */
		curl_multi_wakeup(*(CURLM **)upstream->loop.multi);
}

static uint64_t new_id(struct upstream *upstream)
{
	pthread_mutex_lock(&upstream->lock);
	uint64_t id = ++upstream->next_id;

	pthread_mutex_unlock(&upstream->lock);
	return id;
}

static struct order *new_order(const struct upstream_key *key)
{
	struct order *order = xcalloc(1, sizeof(*order));

	order->owner = xstrdup(key->owner != NULL ? key->owner : "");
	order->run = xstrdup(key->run != NULL ? key->run : "");
	order->key = (struct upstream_key){key->server, order->owner, order->run};
	order->queued_us = clock_now_us();
	return order;
}

uint64_t upstream_call(struct upstream *upstream, const struct upstream_call *call, upstream_done *done, void *arg)
{
	struct order *order = new_order(&call->key);
	uint64_t id = new_id(upstream);

	order->method = call->method != NULL ? xstrdup(call->method) : NULL;
	order->tool = xstrdup(call->tool);
	order->arguments = call->arguments != NULL ? xmemdup(call->arguments, call->length) : xstrdup("{}");
	order->length = call->arguments != NULL ? call->length : strlen("{}");
	order->timeout_us = call->timeout_us > 0 ? call->timeout_us : call->key.server->timeout_seconds * SECOND;
	order->held = call->list != NULL ? upstream_list_keep(call->list) : NULL;
	order->definition = call->definition;
	order->progress = call->progress;
	order->done = done;
	order->arg = arg;
	hand_in(upstream, &(struct errand){.kind = ERRAND_ORDER, .order = order, .id = id});
	return id;
}

void upstream_cancel(struct upstream *upstream, uint64_t id)
{
	hand_in(upstream, &(struct errand){.kind = ERRAND_CANCEL, .id = id});
}

void upstream_end_run(struct upstream *upstream, const char *run)
{
	hand_in(upstream, &(struct errand){.kind = ERRAND_END_RUN, .text = xstrdup(run)});
}

void upstream_reply(struct upstream *upstream, uint64_t question, const char *result, size_t length)
{
	hand_in(upstream, &(struct errand){.kind = ERRAND_REPLY, .id = question, .text = xstrndup(result, length)});
}

void upstream_on_ask(struct upstream *upstream, upstream_ask *ask, void *arg)
{
	atomic_store(&upstream->loop.ask_arg, arg);
	atomic_store(&upstream->loop.ask, ask);
}

void upstream_on_change(struct upstream *upstream, upstream_changed *changed, void *arg)
{
	atomic_store(&upstream->loop.changed_arg, arg);
	atomic_store(&upstream->loop.changed, changed);
}

void upstream_list_begin(struct upstream *upstream, const struct upstream_key *key, int64_t deadline_us,
			 upstream_listed *listed, void *arg)
{
	struct order *order = new_order(key);

	order->list = true;
	order->timeout_us = key->server->timeout_seconds * SECOND;
	order->deadline_us = deadline_us;
	order->listed = listed;
	order->arg = arg;
	hand_in(upstream, &(struct errand){.kind = ERRAND_ORDER, .order = order, .id = new_id(upstream)});
}

static void warmed(void *arg, struct upstream_list *list, const struct err *err)
{
	(void)arg;
	(void)err; /* it is logged */
	upstream_list_free(list);
}

void upstream_warm(struct upstream *upstream)
{
	for (size_t i = 0; i < upstream->file.count; i++) {
		const struct upstream_server *server = &upstream->file.servers[i];
		const struct upstream_key key = {server, EVERYBODY, EVERYBODY};

		if (server->problem == NULL && server->start == UPSTREAM_START_GATEWAY)
			upstream_list_begin(upstream, &key, 0, warmed, NULL);
	}
}

static void forget_spent(struct upstream *upstream)
{
	for (struct spent *spent; (spent = upstream->spent) != NULL;) {
		upstream->spent = spent->next;
		free(spent->owner);
		free(spent);
	}
}

int upstream_count_call(struct upstream *upstream, const char *owner, struct err *err)
{
	int64_t most = upstream->loop.config->upstream.calls_per_minute, calls;
	int64_t minute = clock_monotonic_us() / (60 * SECOND);
	struct spent *spent;

	if (most == 0)
		return 0;
	pthread_mutex_lock(&upstream->lock);
	if (upstream->minute != minute)
		forget_spent(upstream);
	upstream->minute = minute;
	for (spent = upstream->spent; spent != NULL && !streq(spent->owner, owner);)
		spent = spent->next;
	if (spent == NULL) {
		spent = xcalloc(1, sizeof(*spent));
		spent->owner = xstrdup(owner);
		spent->next = upstream->spent;
		upstream->spent = spent;
	}
	calls = ++spent->calls;
	pthread_mutex_unlock(&upstream->lock);
	if (calls > most)
		return err_set(err, ERR_LIMIT, "more than %lld calls in a minute: try again in the next",
			       (long long)most);
	return 0;
}

const struct upstream_server *upstream_servers(const struct upstream *upstream, size_t *ret_count)
{
	*ret_count = upstream->file.count;
	return upstream->file.servers;
}

int upstream_find(const struct upstream *upstream, const char *name, const struct upstream_server **ret,
		  struct err *err)
{
	const char *near = NULL;

	for (size_t i = 0; i < upstream->file.count; i++) {
		const struct upstream_server *server = &upstream->file.servers[i];

		if (streq(server->name, name) || streq(server->alias, name)) {
			*ret = server;
			return 0;
		}
		if (near == NULL && str_near(name, server->name))
			near = server->name;
	}
	if (near != NULL)
		return err_set(err, ERR_NOT_FOUND, "there is no server \"%.64s\", did you mean \"%.64s\"?", name, near);
	return err_set(err, ERR_NOT_FOUND, "there is no server \"%.64s\"", name);
}

/* --- what the thread does --- */

static int busy_with(const struct connection *connection)
{
	int orders = 0;

	for (const struct order *order = connection->orders; order != NULL; order = order->next)
		orders++;
	return orders;
}

static const char *owner_of(const struct upstream_key *key)
{
	return key->server->share == UPSTREAM_SHARE_ALL ? EVERYBODY : key->owner;
}

static const char *run_of(const struct upstream_key *key)
{
	return key->server->share == UPSTREAM_SHARE_RUN ? key->run : EVERYBODY;
}

/* The least busy of those that serve this key; a new one while there may be more and all are busy. */
static struct connection *connection_for(struct upstream *upstream, const struct upstream_key *key)
{
	const struct transport *transport = key->server->url != NULL ? &http_transport : &pipe_transport;
	struct connection *best = NULL;
	int instances = 0;

	for (struct connection *connection = upstream->connections; connection != NULL; connection = connection->next) {
		if (connection->server != key->server || !streq(connection->owner, owner_of(key)) ||
		    !streq(connection->run, run_of(key)))
			continue;
		instances++;
		if (best == NULL || busy_with(connection) < busy_with(best))
			best = connection;
	}
	if (best != NULL && (busy_with(best) == 0 || instances >= key->server->instances))
		return best;
	best = connection_new(&upstream->loop, &(struct upstream_key){key->server, owner_of(key), run_of(key)},
			      instances, transport);
	best->next = upstream->connections;
	upstream->connections = best;
	return best;
}

static void take_order(struct upstream *upstream, struct order *order)
{
	const struct upstream_server *server = order->key.server;

	if (!upstream->leaving && server->problem == NULL &&
	    (server->share != UPSTREAM_SHARE_RUN || order->run[0] != '\0')) {
		connection_submit(connection_for(upstream, &order->key), order);
		return;
	}
	const char *text = upstream->leaving         ? "the process is stopping"
			   : server->problem != NULL ? server->problem
						     : "its connections belong to runs";
	struct err err = ERR_INIT;

	err_set(&err, ERR_UNAVAILABLE, "%s is not available: %s", server->name, text);
	if (order->list)
		order->listed(order->arg, NULL, &err);
	else
		order->done(order->arg,
			    &(struct upstream_answer){.kind = UPSTREAM_UNAVAILABLE, .text = err.text, .protocol = ""});
	connection_order_free(order);
}

static void cancel_order(struct upstream *upstream, uint64_t id)
{
	for (struct connection *connection = upstream->connections; connection != NULL; connection = connection->next)
		for (struct order *order = connection->orders; order != NULL; order = order->next)
			if (order->id == id) {
				connection_cancel(order);
				return;
			}
}

static void end_run(struct upstream *upstream, const char *run)
{
	for (struct connection **at = &upstream->connections; *at != NULL;) {
		struct connection *connection = *at;

		if (connection->run[0] == '\0' || !streq(connection->run, run)) {
			at = &connection->next;
			continue;
		}
		*at = connection->next;
		connection_free(connection);
	}
}

static bool take_errands(struct upstream *upstream)
{
	struct errand *errands;

	pthread_mutex_lock(&upstream->lock);
	errands = upstream->errands;
	upstream->errands = NULL;
	upstream->last = &upstream->errands;
	bool stopping = upstream->stopping;
	pthread_mutex_unlock(&upstream->lock);
	for (struct errand *errand; (errand = errands) != NULL;) {
		errands = errand->next;
		if (errand->kind == ERRAND_ORDER)
			take_order(upstream, errand->order);
		else if (errand->kind == ERRAND_CANCEL)
			cancel_order(upstream, errand->id);
		else if (errand->kind == ERRAND_REPLY)
			connection_replied(&upstream->loop, errand->id, errand->text);
		else
			end_run(upstream, errand->text);
		free(errand->text);
		free(errand);
	}
	return stopping;
}

static void turn_connections(struct upstream *upstream)
{
	int64_t now = upstream->loop.now_us;

	for (struct connection **at = &upstream->connections; *at != NULL;) {
		struct connection *connection = *at;

		connection_turn(connection);
		if (connection->state != CONNECTION_CLOSED || connection->orders != NULL ||
		    now - connection->used_us < UNUSED_SECONDS * SECOND) {
			at = &connection->next;
			continue;
		}
		*at = connection->next;
		connection_free(connection);
	}
}

static int milliseconds_until(struct upstream *upstream)
{
	int64_t due = MIN(http_wake(&upstream->loop), MIN(pipes_wake(&upstream->loop), jails_wake(&upstream->loop)));

	for (const struct connection *connection = upstream->connections; connection != NULL;
	     connection = connection->next)
		due = MIN(due, connection_wake(connection));
	int64_t wait = due == INT64_MAX ? POLL_MAX_MS : (due - clock_monotonic_us() + 999) / 1000;

	return (int)MIN(MAX(wait, 0), POLL_MAX_MS);
}

static void poll_all(struct upstream *upstream, int milliseconds)
{
	struct pollfd fds[FDS_MAX];
	struct curl_waitfd waits[FDS_MAX];
	size_t count = pipes_poll(&upstream->loop, fds, FDS_MAX - 1);
	count += jails_poll(&upstream->loop, fds + count);

	for (size_t i = 0; i < count; i++)
		waits[i] = (struct curl_waitfd){
			.fd = fds[i].fd,
			.events = (short)(((fds[i].events & POLLIN) != 0 ? CURL_WAIT_POLLIN : 0) |
					  ((fds[i].events & POLLOUT) != 0 ? CURL_WAIT_POLLOUT : 0)),
		};
	curl_multi_poll(*(CURLM **)upstream->loop.multi, waits, (unsigned)count, milliseconds, NULL);
}

static void turn(struct upstream *upstream)
{
	int running;

	curl_multi_perform(*(CURLM **)upstream->loop.multi, &running);
	upstream->loop.now_us = clock_monotonic_us();
	http_turn(&upstream->loop);
	jails_turn(&upstream->loop);
	pipes_turn(&upstream->loop);
	turn_connections(upstream);
}

static void *serve(void *arg)
{
	struct upstream *upstream = arg;
	int64_t leave_us;
	sigset_t all;

	/* Signals are other threads'; SIGPIPE, of a program that does not read, is an error of write(2). */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);

	for (;;) {
		upstream->loop.now_us = clock_monotonic_us();
		bool stopping = take_errands(upstream);

		if (stopping)
			break;
		turn(upstream);
		poll_all(upstream, milliseconds_until(upstream));
	}
	upstream->leaving = true;
	for (struct connection *connection; (connection = upstream->connections) != NULL;) {
		upstream->connections = connection->next;
		connection_free(connection);
	}
	for (leave_us = clock_monotonic_us() + LEAVE_SECONDS * SECOND;
	     (clock_monotonic_us() < leave_us && (http_leaving(&upstream->loop) || pipes_leaving(&upstream->loop))) ||
	     jails_storing(&upstream->loop);) {
		turn(upstream);
		poll_all(upstream, 20);
	}
	take_errands(upstream);
	return NULL;
}

static void log_file(const struct upstream_file *file)
{
	for (size_t i = 0; i < file->warnings.count; i++)
		log_event(LOG_WARN, "upstream.file", "warning", file->warnings.items[i], NULL);
	for (size_t i = 0; i < file->count; i++)
		if (file->servers[i].problem != NULL && !file->servers[i].disabled)
			log_event(LOG_ERROR, "upstream server unavailable", "server", file->servers[i].name, "why",
				  file->servers[i].problem, NULL);
}

int upstream_open(const struct config *config, struct upstream **ret, struct err *err)
{
	struct upstream *upstream;
	int result;

	if (config->upstream.file[0] == '\0') {
		*ret = NULL;
		return 0;
	}
	upstream = xcalloc(1, sizeof(*upstream));
	result = upstream_config_load(config, &upstream->file, err);
	if (result == 0)
		result = http_open(&upstream->loop, err);
	if (result < 0) {
		upstream_config_clear(&upstream->file);
		free(upstream);
		return result;
	}
	log_file(&upstream->file);
	pthread_mutex_init(&upstream->lock, NULL);
	upstream->last = &upstream->errands;
	upstream->loop.config = config;
	upstream->loop.result_max = (size_t)config->upstream.result_kb << 10;
	jails_open(&upstream->loop);
	pipes_open(&upstream->loop, &bare_launcher, &jail_launcher);
	if (pthread_create(&upstream->thread, NULL, serve, upstream) != 0)
		abort();
	*ret = upstream;
	return 0;
}

void upstream_close(struct upstream *upstream)
{
	if (upstream == NULL)
		return;
	pthread_mutex_lock(&upstream->lock);
	upstream->stopping = true;
	pthread_mutex_unlock(&upstream->lock);
	curl_multi_wakeup(*(CURLM **)upstream->loop.multi);
	pthread_join(upstream->thread, NULL);
	pipes_close(&upstream->loop);
	jails_close(&upstream->loop);
	http_close(&upstream->loop);
	pthread_mutex_destroy(&upstream->lock);
	forget_spent(upstream);
	upstream_config_clear(&upstream->file);
	free(upstream);
}
