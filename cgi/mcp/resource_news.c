/* resource_news.c - see resource_news.h. The list names files, with size and time, so it changes with every file.
 * What a program prints changes its own resources only. */
#include "resource_news.h"

#include <pthread.h>
#include <sys/socket.h>

#include "cgi/http/hub.h"
#include "cgi/http/server.h"
#include "cgi/http/uri.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/job/job_news.h"

struct news_listener {
	struct server *server;
	char name[ID_SIZE]; /* of our socket */
	int fd;
	pthread_t thread;
	struct job_news_room room;
};

static void publish(struct hub *hub, const struct job_news *news)
{
	auto_buf struct buf uri = {0};

	buf_init(&uri, URI_MAX);
	if (news->name) {
		uri_file(&uri, news->conversation, news->name, news->name_length);
		hub_publish(hub, news->owner, HUB_RESOURCE_UPDATED, uri.data);
	}
	for (int i = 0; news->execution && i < 2; i++) {
		buf_reset(&uri);
		uri_output(&uri, news->execution, i == 1);
		hub_publish(hub, news->owner, HUB_RESOURCE_UPDATED, uri.data);
	}
	if (news->name || !news->execution) /* neither: files went with a conversation */
		hub_publish(hub, news->owner, HUB_RESOURCES_CHANGED, NULL);
}

void resource_news(void *arg, const struct job_news *news)
{
	struct server *server = arg;

	publish(server->hub, news);
	job_news_send(&server->news_sender, server->config->data_dir, server->news ? server->news->name : NULL, news);
}

static void *listen_on(void *arg)
{
	struct news_listener *listener = arg;
	struct job_news news;

	while (job_news_receive(listener->fd, &listener->room, &news)) {
		if (!news.cancel)
			publish(listener->server->hub, &news);
		else if (news.execution && server_cancel(listener->server, news.execution))
			log_event(LOG_INFO, "run cancelled by the operator", "id", news.execution, NULL);
	}
	return NULL;
}

int news_listen(struct server *server, struct news_listener **ret, struct err *err)
{
	struct news_listener *listener = xcalloc(1, sizeof(*listener));

	*listener = (struct news_listener){.server = server, .fd = -1};
	int result = job_news_listen(server->config->data_dir, listener->name, &listener->fd, err);

	if (result == 0 && server_thread(&listener->thread, false, listen_on, listener)) {
		job_news_leave(server->config->data_dir, listener->name);
		result = err_set(err, ERR_SYSTEM, "cannot start a thread for news");
	}
	if (result < 0) {
		close_pointer(&listener->fd);
		free(listener);
		return result;
	}
	*ret = listener;
	return 0;
}

void news_leave(struct news_listener *listener)
{
	if (!listener)
		return;
	job_news_leave(listener->server->config->data_dir, listener->name);
	shutdown(listener->fd, SHUT_RDWR);
	pthread_join(listener->thread, NULL);
	close_pointer(&listener->fd);
	free(listener);
}
