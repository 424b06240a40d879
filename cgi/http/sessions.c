/* sessions.c - see sessions.h. */
#include "sessions.h"

#include <pthread.h>

#include "lib/base/metrics.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/record/store_session.h"
#include "lib/store/record/store_token.h"

struct slot {
	struct session session; /* id "": empty */
	int64_t fresh_until_us; /* monotonic */
};

struct sessions {
	struct store *store;
	pthread_mutex_t lock;
	struct slot slots[SESSIONS_CACHED];
};

struct sessions *sessions_new(struct store *store)
{
	struct sessions *sessions = xcalloc(1, sizeof(*sessions));

	sessions->store = store;
	pthread_mutex_init(&sessions->lock, NULL);
	return sessions;
}

void sessions_free(struct sessions *sessions)
{
	if (!sessions)
		return;
	pthread_mutex_destroy(&sessions->lock);
	free(sessions);
}

/* FNV-1a: ids are random, so any spread will do. */
static struct slot *slot_of(struct sessions *sessions, const char *id)
{
	uint32_t hash = 2166136261u;

	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 16777619u;
	return &sessions->slots[hash % SESSIONS_CACHED];
}

static void forget(struct sessions *sessions, const char *id, const char *owner)
{
	struct slot *slot = slot_of(sessions, id);

	pthread_mutex_lock(&sessions->lock);
	if (streq(slot->session.id, id) && streq(slot->session.owner, owner))
		slot->session.id[0] = '\0';
	pthread_mutex_unlock(&sessions->lock);
}

static void remember(struct sessions *sessions, const struct session *session)
{
	struct slot *slot = slot_of(sessions, session->id);

	pthread_mutex_lock(&sessions->lock);
	slot->session = *session;
	slot->fresh_until_us = clock_monotonic_us() + SESSIONS_FRESH_US;
	pthread_mutex_unlock(&sessions->lock);
}

/* What the client calls itself, cut to the record's size on a character's boundary. */
static void copy_name(char *ret, size_t size, const char *name)
{
	size_t length = name ? utf8_cut(name, strlen(name), size - 1) : 0;

	if (length)
		memcpy(ret, name, length);
	ret[length] = '\0';
}

static void from_store(const struct store_session *stored, struct session *ret)
{
	*ret = (struct session){.offers = stored->client_offers, .log_level = stored->log_level};
	snprintf(ret->id, sizeof(ret->id), "%s", stored->id);
	snprintf(ret->owner, sizeof(ret->owner), "%s", stored->owner);
	snprintf(ret->protocol, sizeof(ret->protocol), "%s", stored->protocol);
	snprintf(ret->client_name, sizeof(ret->client_name), "%s", stored->client_name);
	snprintf(ret->client_version, sizeof(ret->client_version), "%s", stored->client_version);
}

int sessions_add(struct sessions *sessions, const struct store_token *token, const struct session_client *client,
		 struct session *ret, struct err *err)
{
	struct store_session stored = {0};

	snprintf(stored.token_id, sizeof(stored.token_id), "%s", token->id);
	snprintf(stored.owner, sizeof(stored.owner), "%s", token->owner);
	snprintf(stored.protocol, sizeof(stored.protocol), "%s", client->protocol);
	stored.client_offers = client->offers;
	copy_name(stored.client_name, sizeof(stored.client_name), client->name);
	copy_name(stored.client_version, sizeof(stored.client_version), client->version);
	int result = store_session_add(sessions->store, &stored, err);

	if (result < 0)
		return err_wrap(err, "opening a session");
	if (stored.removed[0])
		forget(sessions, stored.removed, stored.owner);
	metrics_add(METRIC_SESSIONS, NULL, NULL, 1);
	from_store(&stored, ret);
	remember(sessions, ret);
	return 0;
}

int sessions_find(struct sessions *sessions, const char *id, const char *owner, struct session *ret, struct err *err)
{
	struct slot *slot = slot_of(sessions, id);
	struct store_session stored;

	pthread_mutex_lock(&sessions->lock);
	bool known = slot->session.id[0] && streq(slot->session.id, id) && streq(slot->session.owner, owner) &&
		     slot->fresh_until_us > clock_monotonic_us();
	if (known)
		*ret = slot->session;
	pthread_mutex_unlock(&sessions->lock);
	if (known)
		return 0;

	if (!id_valid(id))
		return err_set(err, ERR_NOT_FOUND, "no such session");
	int result = store_session_find(sessions->store, id, owner, &stored, err);

	if (result < 0)
		return result;
	from_store(&stored, ret);
	remember(sessions, ret);
	return 0;
}

int sessions_set_log_level(struct sessions *sessions, const char *id, int level, struct err *err)
{
	struct slot *slot = slot_of(sessions, id);
	int result = store_session_log_level(sessions->store, id, level, err);

	if (result < 0)
		return result;
	pthread_mutex_lock(&sessions->lock);
	if (streq(slot->session.id, id))
		slot->session.log_level = level;
	pthread_mutex_unlock(&sessions->lock);
	return 0;
}

int sessions_end(struct sessions *sessions, const char *id, const char *owner, struct err *err)
{
	int result = store_session_end(sessions->store, id, owner, err);

	forget(sessions, id,
	       owner); /* after the store: a call that looks it up meanwhile must not put it back as live */
	return result;
}
