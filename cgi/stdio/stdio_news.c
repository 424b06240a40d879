/* stdio_news.c - see stdio_news.h. To the rest of the program this is a GET whose client leaves when it is stopped. */
#include "stdio_news.h"

#include <sys/socket.h>

#include "cgi/http/server.h"
#include "cgi/mcp/mcp_legacy_get.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

struct stdio_news {
	struct http_exchange exchange;
	struct request request;
	struct reply reply;
	struct stream stream;
	struct session session;
	struct hub_listener listener;
	int ends[2]; /* [0] is the request's hangup descriptor */
	pthread_t thread;
};

static void *follow(void *arg)
{
	struct stdio_news *news = arg;

	legacy_follow(&news->exchange, &news->session, &news->listener, &news->stream);
	return NULL;
}

static void news_free(struct stdio_news *news)
{
	reply_clear(&news->reply);
	close_pointer(&news->ends[0]);
	close_pointer(&news->ends[1]);
	free(news);
}

/* In this order: who changes something from now on finds the listener. */
static int listen_and_follow(struct stdio_news *news, const char *session_id, struct err *err)
{
	struct server *server = news->exchange.server;
	int result = sessions_find(server->sessions, session_id, STORE_OWNER_LOCAL, &news->session, err);

	if (result < 0)
		return result;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, news->ends) < 0)
		return err_errno(err, "socketpair");
	news->request.hangup_fd = news->ends[0];
	news->listener.session = news->session.id;
	result = legacy_listen(&news->exchange, &news->listener, err);
	if (result < 0)
		return result;
	if (server_thread(&news->thread, false, follow, news) == 0)
		return 0;
	hub_leave(server->hub, &news->listener);
	return err_set(err, ERR_SYSTEM, "cannot start a thread");
}

int stdio_news_start(struct server *server, const char *session_id, int (*message)(void *arg, const char *text),
		     void *arg, struct stdio_news **ret, struct err *err)
{
	static const char *const none[] = {NULL};
	struct stdio_news *news = xcalloc(1, sizeof(*news));

	news->request = (struct request){.params = none, .message = message, .arg = arg, .hangup_fd = -1};
	news->exchange = (struct http_exchange){
		.server = server,
		.request = &news->request,
		.reply = &news->reply,
		.token = {.owner = STORE_OWNER_LOCAL},
	};
	news->ends[0] = news->ends[1] = -1;
	reply_init(&news->reply);
	stream_init(&news->stream, &news->request, &news->reply);
	int result = listen_and_follow(news, session_id, err);

	if (result < 0) {
		news_free(news);
		return err_wrap(err, "a session's news");
	}
	*ret = news;
	return 0;
}

void stdio_news_stop(struct stdio_news *news)
{
	if (news)
		shutdown(news->ends[1], SHUT_RDWR);
	stdio_news_finish(news);
}

void stdio_news_finish(struct stdio_news *news)
{
	struct err err = ERR_INIT;

	if (!news)
		return;
	pthread_join(news->thread, NULL);
	if (sessions_end(news->exchange.server->sessions, news->session.id, STORE_OWNER_LOCAL, &err) < 0)
		log_event(LOG_WARN, "session not ended", "error", err.text, NULL);
	news_free(news);
}
