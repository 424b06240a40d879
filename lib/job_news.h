/*
 * job_news.h - news of the record from one process to another: who serves a database hears what others (a plain CGI process, stdio beside
 * it, commands) recorded there.
 *
 * Datagrams on a socket in the database's folder, which only its account can reach; one message is one struct job_news. Nobody listens
 * where nobody serves, and who sends does not care: the record is what counts, news are a courtesy.
 */
#pragma once

#include "job.h"

#define JOB_NEWS_SOCKET "news" /* in data_dir */

/* For the one process that serves the database (store.h: STORE_SERVE), which may take the place of a socket that a dead one left. */
int job_news_listen(const char *data_dir, int *ret_fd, struct err *err);
/* The next one; its strings are in `room` until the next call. False: the socket was shut down. */
struct job_news_room {
	char bytes[8192];
};
bool job_news_receive(int fd, struct job_news_room *room, struct job_news *ret);
/* Waits at most a second where the listener does not keep up, and then not at all until it does. */
void job_news_send(const char *data_dir, const struct job_news *news);
