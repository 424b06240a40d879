/* bridge_progress.c - see bridge_progress.h. */
#include "bridge_progress.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define CHARACTER 4 /* bytes of the longest */

struct bridge_progress {
	_Atomic int references;
	pthread_mutex_t lock;
	bool fresh; /* `newest` was not taken yet */
	struct bridge_progress_text newest;
};

struct bridge_progress *bridge_progress_new(void)
{
	struct bridge_progress *progress = xcalloc(1, sizeof(*progress));

	progress->references = 1;
	pthread_mutex_init(&progress->lock, NULL);
	return progress;
}

struct bridge_progress *bridge_progress_keep(struct bridge_progress *progress)
{
	progress->references++;
	return progress;
}

void bridge_progress_free(struct bridge_progress *progress)
{
	if (!progress || --progress->references > 0)
		return;
	pthread_mutex_destroy(&progress->lock);
	free(progress);
}

void bridge_progress_put(struct bridge_progress *progress, const struct bridge_call *call, double done, double total,
			 const char *text)
{
	char room[BRIDGE_PROGRESS_MAX + CHARACTER];
	struct buf line;

	buf_init_room(&line, room, sizeof(room));
	buf_puts(&line, call->list->server->name);
	buf_putc(&line, '.');
	buf_puts(&line, call->tool ? call->tool->name : call->uri);
	if (done >= 0)
		buf_printf(&line, ": %.15g", done);
	if (done >= 0 && total >= 0)
		buf_printf(&line, " of %.15g", total);
	if (text[0])
		buf_puts(&line, ": ");
	buf_puts(&line, text);
	pthread_mutex_lock(&progress->lock);
	progress->newest.length = utf8_cut(room, line.length, BRIDGE_PROGRESS_MAX);
	progress->newest.cut = progress->newest.length < line.length;
	memcpy(progress->newest.text, room, progress->newest.length);
	progress->newest.text[progress->newest.length] = '\0';
	progress->fresh = true;
	pthread_mutex_unlock(&progress->lock);
}

bool bridge_progress_take(struct bridge_progress *progress, struct bridge_progress_text *ret)
{
	pthread_mutex_lock(&progress->lock);
	const bool fresh = progress->fresh;

	if (fresh)
		*ret = progress->newest;
	progress->fresh = false;
	pthread_mutex_unlock(&progress->lock);
	return fresh;
}
