/*
 * hub.c - see hub.h.
 *
 * One lock, two lists. Each waiting thread has an eventfd, so that it can wait for its client's leaving at the same
 * time; a thread that has something for it queues it under the lock and writes the eventfd. Lists are walked from end
 * to end: they hold at most as many entries as there are threads (FCGI_THREADS_MAX).
 */
#include "hub.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/metrics.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_refused.h"

struct hub {
	struct store *store;
	pthread_mutex_t lock;
	struct hub_listener *listeners;
	struct hub_inflight *inflight;
	uint64_t questions; /* that were numbered */
	bool stopping;
};

struct hub *hub_new(struct store *store)
{
	struct hub *hub = xcalloc(1, sizeof(*hub));

	hub->store = store;
	pthread_mutex_init(&hub->lock, NULL);
	return hub;
}

void hub_free(struct hub *hub)
{
	if (!hub)
		return;
	pthread_mutex_destroy(&hub->lock);
	free(hub);
}

void hub_message_free(struct hub_message *message)
{
	if (!message)
		return;
	free(message->uri);
	free(message->text);
	free(message);
}

void hub_message_free_pointer(struct hub_message **message)
{
	hub_message_free(*message);
}

static void wake(int fd)
{
	eventfd_write(fd, 1); /* fails only when it is readable anyhow */
}

static int make_wake(int *ret, struct err *err)
{
	*ret = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return *ret < 0 ? err_errno(err, "cannot make an eventfd") : 0;
}

void hub_stop(struct hub *hub)
{
	pthread_mutex_lock(&hub->lock);
	hub->stopping = true;
	for (struct hub_listener *listener = hub->listeners; listener; listener = listener->next)
		wake(listener->wake_fd);
	for (struct hub_inflight *inflight = hub->inflight; inflight; inflight = inflight->next) {
		inflight->stopping = true; /* runs go on: the job engine drains */
		if (inflight->question)
			wake(inflight->wake_fd);
	}
	pthread_mutex_unlock(&hub->lock);
}

/* -------- listeners ----------------------------------------------------------------------------------- */

/* Under the lock. */
static int check_listener(const struct hub *hub, const struct hub_listener *listener, struct err *err)
{
	size_t all = 0, own = 0;

	if (hub->stopping)
		return err_set(err, ERR_UNAVAILABLE, "the server is stopping: try again in a moment");
	for (const struct hub_listener *other = hub->listeners; other; other = other->next) {
		all++;
		own += streq(other->owner, listener->owner);
		if (listener->exclusive && other->exclusive && streq(other->session, listener->session))
			return err_set(err, ERR_CONFLICT, "this session already has such a stream");
	}
	if (all >= HUB_LISTENERS_MAX)
		return err_set(err, ERR_BUSY, "this server already has %zu open streams: try again later", all);
	/* So a few owners never take all: each leaves as many as it has. */
	if (own >= HUB_LISTENERS_OWNER_MAX || own >= HUB_LISTENERS_MAX - all)
		return err_set(err, ERR_BUSY, "you already have %zu open streams: close one", own);
	return 0;
}

int hub_listen(struct hub *hub, struct hub_listener *listener, struct err *err)
{
	int result = make_wake(&listener->wake_fd, err);

	if (result < 0)
		return result;
	listener->last = &listener->first;
	pthread_mutex_lock(&hub->lock);
	result = check_listener(hub, listener, err);
	if (result == 0) {
		listener->next = hub->listeners;
		hub->listeners = listener;
		metrics_add(METRIC_STREAMS, NULL, NULL, 1);
	}
	pthread_mutex_unlock(&hub->lock);
	if (result == -ERR_BUSY)
		store_refused(hub->store, STORE_AUDIT_LIMIT, "streams",
		              &(struct store_refused_who){.owner = listener->owner});
	if (result < 0)
		close_pointer(&listener->wake_fd);
	return result;
}

void hub_leave(struct hub *hub, struct hub_listener *listener)
{
	struct hub_message *next;

	pthread_mutex_lock(&hub->lock);
	for (struct hub_listener **link = &hub->listeners; *link; link = &(*link)->next) {
		if (*link == listener) {
			*link = listener->next;
			metrics_add(METRIC_STREAMS, NULL, NULL, -1);
			break;
		}
	}
	pthread_mutex_unlock(&hub->lock);
	close_pointer(&listener->wake_fd);
	for (size_t i = 0; i < HUB_FOLLOWED_MAX; i++)
		free(listener->followed[i]);
	for (struct hub_message *message = listener->first; message; message = next) {
		next = message->next;
		hub_message_free(message);
	}
}

/* Under the lock: news of a topic (`text` NULL), or a text. */
static void tell(struct hub_listener *listener, enum hub_topic topic, const char *uri, const char *text)
{
	if (listener->queued == HUB_QUEUE_MAX) {
		listener->overflow = true;
	} else {
		struct hub_message *message = xcalloc(1, sizeof(*message));

		message->topic = topic;
		message->uri = xstrdup(uri);
		message->text = text ? xstrdup(text) : NULL;
		*listener->last = message;
		listener->last = &message->next;
		listener->queued++;
	}
	wake(listener->wake_fd);
}

/* Under the lock: is there a message (in *ret_message), will none come any more, or not yet (HUB_TIME)? */
static enum hub_wait look(const struct hub *hub, struct hub_listener *listener, struct hub_message **ret_message)
{
	struct hub_message *first = listener->overflow ? NULL : listener->first;

	*ret_message = first;
	if (!first)
		return hub->stopping || listener->overflow ? HUB_GONE : HUB_TIME;
	listener->first = first->next;
	if (!listener->first)
		listener->last = &listener->first;
	listener->queued--;
	return HUB_MESSAGE;
}

enum hub_wait hub_wait(struct hub *hub, struct hub_listener *listener, int hangup_fd, int timeout_ms,
		       struct hub_message **ret_message)
{
	struct pollfd fds[2] = {{.fd = listener->wake_fd, .events = POLLIN}, {.fd = hangup_fd, .events = POLLRDHUP}};
	eventfd_t ignored;

	pthread_mutex_lock(&hub->lock);
	enum hub_wait what = look(hub, listener, ret_message);

	pthread_mutex_unlock(&hub->lock);
	if (what != HUB_TIME)
		return what;
	if (poll(fds, 2, timeout_ms) < 0 && errno != EINTR)
		return HUB_GONE;
	if (fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR))
		return HUB_GONE;
	if (!(fds[0].revents & POLLIN))
		return HUB_TIME;
	eventfd_read(listener->wake_fd, &ignored);
	pthread_mutex_lock(&hub->lock);
	what = look(hub, listener, ret_message);
	if (listener->first)
		wake(listener->wake_fd);
	pthread_mutex_unlock(&hub->lock);
	return what == HUB_GONE ? HUB_GONE : HUB_MESSAGE; /* woken for whatever reason */
}

static bool wants(const struct hub_listener *listener, enum hub_topic topic, const char *uri)
{
	if (!(listener->topics & topic))
		return false;
	if (topic != HUB_RESOURCE_UPDATED && topic != HUB_TASK_CHANGED)
		return true;
	for (const char *const *one = listener->uris; one && *one; one++) {
		if (streq(*one, uri))
			return true;
	}
	for (size_t i = 0; i < HUB_FOLLOWED_MAX; i++) {
		if (listener->followed[i] && streq(listener->followed[i], uri))
			return true;
	}
	return false;
}

static bool is_queued(const struct hub_listener *listener, enum hub_topic topic, const char *uri)
{
	const struct hub_message *message = listener->first;

	while (message && !(message->topic == topic && streq(message->uri, uri)))
		message = message->next;
	return message;
}

void hub_publish(struct hub *hub, const char *owner, enum hub_topic topic, const char *uri)
{
	const char *of = uri ? uri : "";

	pthread_mutex_lock(&hub->lock);
	for (struct hub_listener *listener = hub->listeners; listener; listener = listener->next) {
		if ((!owner || streq(owner, listener->owner)) && wants(listener, topic, of) &&
		    !is_queued(listener, topic, of))
			tell(listener, topic, of, NULL);
	}
	pthread_mutex_unlock(&hub->lock);
}

void hub_follow_uri(struct hub *hub, const char *session, const char *uri, bool on)
{
	pthread_mutex_lock(&hub->lock);
	for (struct hub_listener *listener = hub->listeners; listener; listener = listener->next) {
		char **free_place = NULL, **there = NULL;

		if (!listener->exclusive || !streq(listener->session, session))
			continue;
		for (char **place = listener->followed; place < listener->followed + HUB_FOLLOWED_MAX; place++) {
			if (!*place)
				free_place = place;
			else if (streq(*place, uri))
				there = place;
		}
		if (!on && there)
			free(steal(there));
		else if (on && !there && free_place)
			*free_place = xstrdup(uri);
	}
	pthread_mutex_unlock(&hub->lock);
}

bool hub_tell(struct hub *hub, const char *session, const char *text)
{
	bool found = false;

	pthread_mutex_lock(&hub->lock);
	for (struct hub_listener *listener = hub->listeners; listener && !found; listener = listener->next) {
		found = listener->exclusive && streq(listener->session, session);
		if (found)
			tell(listener, 0, "", text);
	}
	pthread_mutex_unlock(&hub->lock);
	return found;
}

void hub_cut(struct hub *hub, const char *session)
{
	pthread_mutex_lock(&hub->lock);
	for (struct hub_listener *listener = hub->listeners; listener; listener = listener->next) {
		if (!listener->session || !streq(listener->session, session))
			continue;
		listener->overflow = true;
		wake(listener->wake_fd);
	}
	pthread_mutex_unlock(&hub->lock);
}

void hub_follow_wake(struct hub *hub, const char *stream)
{
	pthread_mutex_lock(&hub->lock);
	for (struct hub_listener *listener = hub->listeners; listener; listener = listener->next) {
		if (listener->stream && streq(listener->stream, stream))
			wake(listener->wake_fd);
	}
	pthread_mutex_unlock(&hub->lock);
}

/* -------- in-flight requests ------------------------------------------------------------------------------------- */

int hub_inflight_begin(struct hub *hub, struct hub_inflight *inflight, struct err *err)
{
	int result = make_wake(&inflight->wake_fd, err);

	if (result < 0)
		return result;
	pthread_mutex_lock(&hub->lock);
	inflight->stopping = hub->stopping;
	inflight->next = hub->inflight;
	hub->inflight = inflight;
	pthread_mutex_unlock(&hub->lock);
	return 0;
}

void hub_inflight_end(struct hub *hub, struct hub_inflight *inflight)
{
	pthread_mutex_lock(&hub->lock);
	for (struct hub_inflight **link = &hub->inflight; *link; link = &(*link)->next) {
		if (*link == inflight) {
			*link = inflight->next;
			break;
		}
	}
	pthread_mutex_unlock(&hub->lock);
	close_pointer(&inflight->wake_fd);
	free(inflight->answer);
}

void hub_inflight_stream(struct hub *hub, struct hub_inflight *inflight, const char *stream)
{
	pthread_mutex_lock(&hub->lock);
	inflight->stream = stream;
	pthread_mutex_unlock(&hub->lock);
}

bool hub_cancel(struct hub *hub, const char *session, const char *id)
{
	bool found = false;

	pthread_mutex_lock(&hub->lock);
	for (struct hub_inflight *inflight = hub->inflight; inflight; inflight = inflight->next) {
		if (!streq(inflight->session, session) || (id && !streq(inflight->id, id)))
			continue;
		inflight->cancelled = found = true;
		wake(inflight->wake_fd);
	}
	pthread_mutex_unlock(&hub->lock);
	return found;
}

bool hub_stream_live(struct hub *hub, const char *stream)
{
	bool found = false;

	pthread_mutex_lock(&hub->lock);
	for (struct hub_inflight *inflight = hub->inflight; inflight && !found; inflight = inflight->next)
		found = streq(inflight->stream, stream);
	pthread_mutex_unlock(&hub->lock);
	return found;
}

bool hub_cancelled(struct hub *hub, struct hub_inflight *inflight)
{
	eventfd_t ignored;

	eventfd_read(inflight->wake_fd, &ignored);
	pthread_mutex_lock(&hub->lock);
	bool cancelled = inflight->cancelled;

	pthread_mutex_unlock(&hub->lock);
	return cancelled;
}

uint64_t hub_question_number(struct hub *hub)
{
	pthread_mutex_lock(&hub->lock);
	uint64_t number = ++hub->questions;

	pthread_mutex_unlock(&hub->lock);
	return number;
}

void hub_question_begin(struct hub *hub, struct hub_inflight *inflight, const char *id)
{
	pthread_mutex_lock(&hub->lock);
	inflight->question = id;
	pthread_mutex_unlock(&hub->lock);
}

int hub_question_wait(struct hub *hub, struct hub_inflight *inflight, int timeout_ms, char **ret, struct err *err)
{
	struct pollfd fd = {.fd = inflight->wake_fd, .events = POLLIN};
	char *answer = NULL;
	bool over = false;
	eventfd_t ignored;

	if (poll(&fd, 1, timeout_ms) > 0)
		eventfd_read(inflight->wake_fd, &ignored);
	pthread_mutex_lock(&hub->lock);
	over = inflight->cancelled || inflight->stopping;
	if (over)
		wake(inflight->wake_fd); /* the next that waits shall see it too */
	if (inflight->answer)
		answer = steal(&inflight->answer);
	if (over || answer)
		inflight->question = NULL;
	pthread_mutex_unlock(&hub->lock);
	if (over) {
		free(answer);
		return err_set(err, ERR_CANCELLED, "cancelled");
	}
	*ret = answer;
	return 0;
}

bool hub_answer(struct hub *hub, const char *session, const char *id, const char *text)
{
	bool found = false;

	pthread_mutex_lock(&hub->lock);
	for (struct hub_inflight *inflight = hub->inflight; inflight && !found; inflight = inflight->next) {
		found = inflight->question && !inflight->answer && streq(inflight->session, session) &&
			streq(inflight->question, id);
		if (found) {
			inflight->answer = xstrdup(text);
			wake(inflight->wake_fd);
		}
	}
	pthread_mutex_unlock(&hub->lock);
	return found;
}
