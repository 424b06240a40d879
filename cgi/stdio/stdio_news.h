/*
 * stdio_news.h - over stdio: the session that `initialize` opened, and the notifications that it gets.
 *
 * Over HTTP that comes on the session's own stream, which the client opens by GET; here it is there from the moment the
 * session is, and what its thread has to say goes out between the answers. The session ends with it: its client has no
 * other way to it.
 */
#pragma once

#include "cgi/http/server.h"


struct stdio_news;
/* `message` sends one JSON text (struct request). The session belongs to STORE_OWNER_LOCAL. */
int stdio_news_start(struct server *server, const char *session_id, int (*message)(void *arg, const char *text),
		     void *arg, struct stdio_news **ret, struct err *err);
/* Nothing more is said when it returns; NULL is fine. */
void stdio_news_stop(struct stdio_news *news);
/* The same where the hub has stopped: everything is said first that was to be. */
void stdio_news_finish(struct stdio_news *news);
