/*
 * upstream_thread.c - the thread of upstream servers: the connections and who waits for them. See upstream_pool.h.
 *
 * Other threads hand work items over in a list under a lock; everything else is the thread's own. A turn: take the
 * work items, let libcurl and the pipes work, hand out what came, look at deadlines, serve the sources (which may hand
 * in work items, too), sleep until the next event. Connections are found by server, owner and run as the server's entry
 * shares them; the unused are freed in the end.
 */
#include <curl/curl.h>
#include <signal.h>
#include <string.h>

#include "lib/base/util.h"
#include "upstream_http.h"
#include "upstream_jail.h"
#include "upstream_pool.h"

#define SECOND         INT64_C(1000000)
#define POLL_MAX_MS    60000
#define FDS_MAX        768
#define SOURCES_MAX    64   /* that are watched */
#define UNUSED_SECONDS 3600 /* a closed connection is forgotten, with its list */
#define LEAVE_SECONDS  1    /* for goodbyes when the process ends */

/* Whose thread runs here; NULL: nobody's. */
static _Thread_local struct upstream *own;

static int busy_with(const struct upstream_connection *connection)
{
	int orders = 0;

	for (const struct upstream_order *order = connection->orders; order != NULL; order = order->next)
		orders++;
	return orders;
}

static const char *owner_of(const struct upstream_key *key)
{
	return key->server->share == UPSTREAM_SHARE_ALL ? POOL_EVERYBODY : key->owner;
}

static const char *run_of(const struct upstream_key *key)
{
	return key->server->share == UPSTREAM_SHARE_RUN ? key->run : POOL_EVERYBODY;
}

/* The least busy of those that serve this key; a new one while there may be more and all are busy. */
static struct upstream_connection *connection_for(struct upstream *upstream, const struct upstream_key *key)
{
	const struct transport *transport = key->server->url != NULL ? &http_transport : &pipe_transport;
	struct upstream_connection *best = NULL;
	int instances = 0;

	for (struct upstream_connection *connection = upstream->connections; connection != NULL;
	     connection = connection->next) {
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

static void take_order(struct upstream *upstream, struct upstream_order *order)
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
	for (struct upstream_connection *connection = upstream->connections; connection != NULL;
	     connection = connection->next)
		for (struct upstream_order *order = connection->orders; order != NULL; order = order->next)
			if (order->id == id) {
				connection_cancel(order);
				return;
			}
}

static void end_run(struct upstream *upstream, const char *run)
{
	for (struct upstream_connection **at = &upstream->connections; *at != NULL;) {
		struct upstream_connection *connection = *at;

		if (connection->run[0] == '\0' || !streq(connection->run, run)) {
			at = &connection->next;
			continue;
		}
		*at = connection->next;
		connection_free(connection);
	}
}

static bool take_work_items(struct upstream *upstream)
{
	struct work_item *work_items;

	pthread_mutex_lock(&upstream->lock);
	work_items = upstream->work_items;
	upstream->work_items = NULL;
	upstream->last = &upstream->work_items;
	bool stopping = upstream->stopping;
	for (struct upstream_source *source; (source = upstream->newcomers) != NULL;) {
		upstream->newcomers = source->next;
		source->next = upstream->sources;
		upstream->sources = source;
	}
	pthread_mutex_unlock(&upstream->lock);
	for (struct work_item *work_item; (work_item = work_items) != NULL;) {
		work_items = work_item->next;
		if (work_item->kind == WORK_ITEM_ORDER)
			take_order(upstream, work_item->order);
		else if (work_item->kind == WORK_ITEM_CANCEL)
			cancel_order(upstream, work_item->id);
		else if (work_item->kind == WORK_ITEM_REPLY)
			connection_replied(&upstream->loop, work_item->id, work_item->text);
		else
			end_run(upstream, work_item->text);
		free(work_item->text);
		free(work_item);
	}
	return stopping;
}

/* `waits` are those of the sources in their order, after a wait; NULL: none was watched. Returns when one of them is
 * due. */
static int64_t turn_sources(struct upstream *upstream, const struct curl_waitfd *waits)
{
	int64_t due = INT64_MAX, one;
	size_t n = 0;

	for (struct upstream_source **at = &upstream->sources; *at != NULL;) {
		struct upstream_source *source = *at;

		if (source->turn(source, waits != NULL && n < SOURCES_MAX && waits[n].revents != 0, &one)) {
			due = MIN(due, one);
			at = &source->next;
		} else {
			*at = source->next;
			source->left(source);
		}
		n++;
	}
	return due;
}

static int milliseconds_until(struct upstream *upstream, int64_t due)
{
	due = MIN(due, MIN(http_wake(&upstream->loop), MIN(pipes_wake(&upstream->loop), jails_wake(&upstream->loop))));
	for (const struct upstream_connection *connection = upstream->connections; connection != NULL;
	     connection = connection->next)
		due = MIN(due, connection_wake(connection));
	int64_t wait = due == INT64_MAX ? POLL_MAX_MS : (due - clock_monotonic_us() + 999) / 1000;

	return (int)MIN(MAX(wait, 0), POLL_MAX_MS);
}

/* Waits for what happens next; the sources hear of it at once. */
static void poll_all(struct upstream *upstream, int milliseconds)
{
	struct pollfd fds[FDS_MAX];
	struct curl_waitfd waits[SOURCES_MAX + FDS_MAX] = {0};
	size_t n_sources = 0, count = pipes_poll(&upstream->loop, fds, FDS_MAX - 1);

	count += jails_poll(&upstream->loop, fds + count);
	for (const struct upstream_source *source = upstream->sources; source != NULL && n_sources < SOURCES_MAX;
	     source = source->next)
		waits[n_sources++] = (struct curl_waitfd){.fd = source->fd, .events = CURL_WAIT_POLLIN};
	for (size_t i = 0; i < count; i++)
		waits[n_sources + i] = (struct curl_waitfd){
			.fd = fds[i].fd,
			.events = (short)(((fds[i].events & POLLIN) != 0 ? CURL_WAIT_POLLIN : 0) |
					  ((fds[i].events & POLLOUT) != 0 ? CURL_WAIT_POLLOUT : 0)),
		};
	curl_multi_poll(*(CURLM **)upstream->loop.multi, waits, (unsigned)(n_sources + count), milliseconds, NULL);
	turn_sources(upstream, waits);
}

static void turn(struct upstream *upstream)
{
	int running;

	curl_multi_perform(*(CURLM **)upstream->loop.multi, &running);
	upstream->loop.now_us = clock_monotonic_us();
	http_turn(&upstream->loop);
	jails_turn(&upstream->loop);
	pipes_turn(&upstream->loop);
	for (struct upstream_connection **at = &upstream->connections; *at != NULL;) {
		struct upstream_connection *connection = *at;

		connection_turn(connection);
		if (connection->state != CONNECTION_CLOSED || connection->orders != NULL ||
		    upstream->loop.now_us - connection->used_us < UNUSED_SECONDS * SECOND) {
			at = &connection->next;
			continue;
		}
		*at = connection->next;
		connection_free(connection);
	}
}

bool pool_on_thread(const struct upstream *upstream)
{
	return upstream == own;
}

void *pool_thread(void *arg)
{
	struct upstream *upstream = arg;
	int64_t leave_us;
	sigset_t all;

	/* Signals are other threads'; SIGPIPE, of a program that does not read, is an error of write(2). */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	own = upstream;

	for (;;) {
		upstream->loop.now_us = clock_monotonic_us();
		bool stopping = take_work_items(upstream);

		if (stopping)
			break;
		turn(upstream);
		int64_t due = turn_sources(upstream, NULL);

		pthread_mutex_lock(&upstream->lock);
		bool idle = upstream->work_items == NULL;

		pthread_mutex_unlock(&upstream->lock);
		if (idle)
			poll_all(upstream, milliseconds_until(upstream, due));
	}
	upstream->leaving = true;
	for (struct upstream_connection *connection; (connection = upstream->connections) != NULL;) {
		upstream->connections = connection->next;
		connection_free(connection);
	}
	for (leave_us = clock_monotonic_us() + LEAVE_SECONDS * SECOND;
	     (clock_monotonic_us() < leave_us && (http_leaving(&upstream->loop) || pipes_leaving(&upstream->loop))) ||
	     jails_storing(&upstream->loop);) {
		turn(upstream);
		poll_all(upstream, 20);
	}
	take_work_items(upstream);
	return NULL;
}
