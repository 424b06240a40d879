/*
 * upstream_pool.c - the functions of upstream.h that return at once. See upstream_pool.h.
 *
 * They hand work items over to the thread, in a list under a lock, and wake it.
 */
#include "upstream_pool.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "upstream_http.h"
#include "upstream_jail.h"
#include "upstream_renew.h"

#define SECOND INT64_C(1000000)

struct spent {
	struct spent *next;
	int64_t calls;
	char *owner;
};

static void wake_thread(void *upstream)
{
	curl_multi_wakeup(*(CURLM **)((struct upstream *)upstream)->loop.multi);
}

static void wake(struct upstream *upstream)
{
	if (!pool_on_thread(upstream)) /* the thread itself looks before it sleeps */
		wake_thread(upstream);
}

void upstream_serve(struct upstream *upstream, struct upstream_source *source)
{
	pthread_mutex_lock(&upstream->lock);
	source->next = upstream->newcomers;
	upstream->newcomers = source;
	pthread_mutex_unlock(&upstream->lock);
	wake(upstream);
}

static void hand_in(struct upstream *upstream, const struct work_item *work_item)
{
	struct work_item *copy = xcalloc(1, sizeof(*copy));

	*copy = *work_item;
	pthread_mutex_lock(&upstream->lock);
	bool first = upstream->work_items == NULL;
	if (work_item->kind == WORK_ITEM_ORDER)
		copy->order->id = work_item->id;
	*upstream->last = copy;
	upstream->last = &copy->next;
	pthread_mutex_unlock(&upstream->lock);
	if (first) /* else it was woken already and has not come yet */
		wake(upstream);
}

static uint64_t new_id(struct upstream *upstream)
{
	pthread_mutex_lock(&upstream->lock);
	uint64_t id = ++upstream->next_id;

	pthread_mutex_unlock(&upstream->lock);
	return id;
}

static struct upstream_order *new_order(const struct upstream_key *key)
{
	struct upstream_order *order = xcalloc(1, sizeof(*order));

	order->owner = xstrdup(key->owner != NULL ? key->owner : "");
	order->run = xstrdup(key->run != NULL ? key->run : "");
	order->key = (struct upstream_key){key->server, order->owner, order->run};
	order->queued_us = clock_now_us();
	return order;
}

uint64_t upstream_call(struct upstream *upstream, const struct upstream_call *call, upstream_done *done, void *arg)
{
	struct upstream_order *order = new_order(&call->key);
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
	hand_in(upstream, &(struct work_item){.kind = WORK_ITEM_ORDER, .order = order, .id = id});
	return id;
}

void upstream_cancel(struct upstream *upstream, uint64_t id)
{
	hand_in(upstream, &(struct work_item){.kind = WORK_ITEM_CANCEL, .id = id});
}

void upstream_end_run(struct upstream *upstream, const char *run)
{
	hand_in(upstream, &(struct work_item){.kind = WORK_ITEM_END_RUN, .text = xstrdup(run)});
}

void upstream_reply(struct upstream *upstream, uint64_t question, const char *result, size_t length)
{
	hand_in(upstream,
		&(struct work_item){.kind = WORK_ITEM_REPLY, .id = question, .text = xstrndup(result, length)});
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
	struct upstream_order *order = new_order(key);

	order->list = true;
	order->timeout_us = key->server->timeout_seconds * SECOND;
	order->deadline_us = deadline_us;
	order->listed = listed;
	order->arg = arg;
	hand_in(upstream, &(struct work_item){.kind = WORK_ITEM_ORDER, .order = order, .id = new_id(upstream)});
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
		const struct upstream_key key = {server, POOL_EVERYBODY, POOL_EVERYBODY};

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
	}
	for (size_t i = 0; i < upstream->file.count && near == NULL; i++)
		if (str_near(name, upstream->file.servers[i].name))
			near = upstream->file.servers[i].name;
	if (near != NULL)
		return err_set(err, ERR_NOT_FOUND, "there is no server \"%.64s\", did you mean \"%.64s\"?", name, near);
	return err_set(err, ERR_NOT_FOUND, "there is no server \"%.64s\"", name);
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
	for (size_t i = 0; i < upstream->file.warnings.count; i++)
		log_event(LOG_WARN, "upstream.file", "warning", upstream->file.warnings.items[i], NULL);
	for (size_t i = 0; i < upstream->file.count; i++) {
		const struct upstream_server *server = &upstream->file.servers[i];

		if (server->problem != NULL && !server->disabled)
			log_event(LOG_ERROR, "upstream server unavailable", "server", server->name, "why",
				  server->problem, NULL);
	}
	pthread_mutex_init(&upstream->lock, NULL);
	upstream->last = &upstream->work_items;
	upstream->loop.config = config;
	upstream->loop.result_max = (size_t)config->upstream.result_kb << 10;
	upstream->loop.reader = reader_open(wake_thread, upstream);
	upstream->loop.renewals = upstream_renew_open(config, wake_thread, upstream);
	jails_open(&upstream->loop);
	pipes_open(&upstream->loop, &bare_launcher, &jail_launcher);
	if (pthread_create(&upstream->thread, NULL, pool_thread, upstream) != 0)
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
	wake(upstream);
	pthread_join(upstream->thread, NULL);
	upstream_renew_close(upstream->loop.renewals);
	pipes_close(&upstream->loop);
	jails_close(&upstream->loop);
	reader_close(upstream->loop.reader);
	http_close(&upstream->loop);
	pthread_mutex_destroy(&upstream->lock);
	forget_spent(upstream);
	upstream_config_clear(&upstream->file);
	free(upstream);
}
