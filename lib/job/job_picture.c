/*
 * job_picture.c - see job_picture.h.
 *
 * The jailer may have been started anew since the last picture: a connection that fails is made once more. Where all
 * jails are taken the look fails, and the answer names the files instead: nothing waits for it.
 */
#include "job_picture.h"

#include <string.h>
#include <unistd.h>

#include "jail/client/client_once.h"
#include "job_internal.h"
#include "lib/store/blob/store_blob.h"

#define RUNNER    "picture"
#define WALL_US   INT64_C(60000000)
#define MEMORY    (INT64_C(1) << 30)
#define HEAD_MAX  128 /* bytes of a line of its answer */
#define TYPE_MAX  32
#define SIDES_MAX 10000000

struct look {
	struct job_engine *engine;
	const struct job_picture *pictures;
	char names[JOB_PICTURES_MAX][24];
};

static int open_picture(void *arg, size_t index, struct jail_file *ret, struct err *err)
{
	struct look *look = arg;

	*ret = (struct jail_file){.name = look->names[index], .mode = 0644, .fd = -1};
	return store_blob_open(look->engine->store, look->pictures[index].file->blob, &ret->fd, NULL, err);
}

/* -------- what it says ------------------------------------------------------------------------------- */

static const char *known_type(const char *text)
{
	static const char *const types[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (streq(types[i], text))
			return types[i];
	return NULL;
}

static bool within(long long value, long long most)
{
	return value >= 0 && value <= most;
}

/* One picture's answer at `*at`; false: it is none. */
static bool take_answer(struct job_picture *picture, size_t most, const char **at, const char *end)
{
	const char *newline = memchr(*at, '\n', MIN((size_t)(end - *at), (size_t)HEAD_MAX));
	char head[HEAD_MAX + 1], type[TYPE_MAX] = "";
	long long width = 0, height = 0, length = 0;

	if (!newline)
		return false;
	snprintf(head, sizeof(head), "%.*s", (int)(newline - *at), *at);
	*at = newline + 1;
	if (streq(head, "broken"))
		picture->is = JOB_PICTURE_BROKEN;
	else if (sscanf(head, "large %lld %lld", &width, &height) == 2)
		picture->is = JOB_PICTURE_LARGE;
	else if (sscanf(head, "whole %31s %lld %lld", type, &width, &height) == 3)
		picture->is = JOB_PICTURE_WHOLE;
	else if (sscanf(head, "scaled %31s %lld %lld %lld", type, &width, &height, &length) == 4)
		picture->is = JOB_PICTURE_SCALED;
	picture->media_type = known_type(type);
	if ((picture->is >= JOB_PICTURE_WHOLE && !picture->media_type) || !within(width, SIDES_MAX) ||
	    !within(height, SIDES_MAX) || !within(length, MIN(end - *at, (long long)most))) {
		picture->is = JOB_PICTURE_UNKNOWN;
		return false;
	}
	picture->width = width;
	picture->height = height;
	if (picture->is == JOB_PICTURE_SCALED) {
		picture->data = xmemdup(*at, (size_t)length);
		picture->length = (size_t)length;
	}
	*at += length;
	return picture->is != JOB_PICTURE_UNKNOWN;
}

/* -------- the look ----------------------------------------------------------------------------------- */

static int look_in_jail(struct look *look, struct jail_client *client, struct job_picture *pictures, size_t count,
			size_t most, struct err *err)
{
	struct job_engine *engine = look->engine;
	const struct config_limits *limits = &engine->config->limits;
	auto_free const char **args = xcalloc(count + 3, sizeof(*args));
	auto_free char *side = xasprintf("%d", JOB_PICTURE_SIDE), *bytes = xasprintf("%zu", most), *output = NULL;
	auto_close int code = memfd_with("code", "", 0);
	auto_once struct jail_once once = {
		.spec = {.runner = RUNNER,
			 .label = RUNNER,
			 .limits = {.wall_us = MIN(WALL_US, limits->wall_seconds_max * LIMIT_SECONDS),
				    .memory_bytes = MIN(MEMORY, limits->memory_mb_max * LIMIT_MEBI),
				    .data_bytes =
					    MIN((int64_t)JOB_PICTURES_BYTES * 2, limits->data_mb_max * LIMIT_MEBI),
				    .cpu_percent = -1}},
		.program = {.code_fd = code, .stdin_fd = -1, .args = args},
		.capture = true,
		.open_file = open_picture,
		.n_files = count,
		.arg = look,
	};
	size_t length;

	args[0] = side;
	args[1] = bytes;
	for (size_t i = 0; i < count; i++) {
		snprintf(look->names[i], sizeof(look->names[i]), "%zu", i);
		args[2 + i] = look->names[i];
	}
	if (code < 0)
		return err_errno(err, "cannot make an anonymous file");
	int result = jail_once(client, &once, err);
	if (result == 0 && once.result.verdict != JAIL_OK)
		result = err_set(err, ERR_UNAVAILABLE, "%s", once.result.message);
	if (result == 0)
		result = jail_once_output(&once, 1, count * (most + HEAD_MAX), &output, &length, err);
	if (result < 0)
		return result;
	const char *at = output, *end = output + length;
	for (size_t i = 0; i < count && take_answer(&pictures[i], most, &at, end); i++)
		;
	return 0;
}

/* A free place, if none of them is the owner's; NULL: one has to wait. One with a connection is preferred. */
static struct job_picture_place *free_place(struct job_pictures *own, const char *owner)
{
	struct job_picture_place *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(own->places); i++) {
		struct job_picture_place *place = &own->places[i];

		if (streq(place->owner, owner))
			return NULL;
		if (!*place->owner && (!found || (!found->client && place->client)))
			found = place;
	}
	return found;
}

static struct job_picture_place *enter(struct job_pictures *own, const char *owner)
{
	struct job_picture_place *place;

	pthread_mutex_lock(&own->lock);
	while (!(place = free_place(own, owner)))
		pthread_cond_wait(&own->left, &own->lock);
	snprintf(place->owner, sizeof(place->owner), "%s", owner);
	pthread_mutex_unlock(&own->lock);
	return place;
}

static void leave(struct job_pictures *own, struct job_picture_place *place)
{
	pthread_mutex_lock(&own->lock);
	place->owner[0] = '\0';
	pthread_cond_broadcast(&own->left);
	pthread_mutex_unlock(&own->lock);
}

int job_pictures_look(struct job_engine *engine, const char *owner, struct job_picture *pictures, size_t count,
		      size_t most, struct err *err)
{
	struct look look = {.engine = engine, .pictures = pictures};
	struct job_picture_place *place = enter(&engine->pictures, owner);
	int result = -ERR_UNAVAILABLE;

	for (int i = 0; i < 2 && result < 0; i++) {
		const bool old = place->client != NULL;

		result = old ? 0 : jail_client_dial(engine->config, &place->client, 1, err);
		if (result == 0)
			result = look_in_jail(&look, place->client, pictures, count, most, err);
		if (result < 0) {
			jail_client_free(steal(&place->client));
			job_pictures_clear(pictures, count);
		}
		if (!old)
			break;
	}
	leave(&engine->pictures, place);
	return result;
}

void job_pictures_clear(struct job_picture *pictures, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(pictures[i].data);
		pictures[i] = (struct job_picture){.file = pictures[i].file};
	}
}
