/*
 * job_news.h - news of the record from one process to another: who serves clients hears what others (a gateway, stdio
 * next to it, a plain CGI process) recorded in the same database; and the operator's word that a run is to be
 * cancelled, which only the process that runs it heeds.
 *
 * Datagrams on sockets in a folder next to the database, which only its account can reach: each process that listens
 * has one there, and a process that has news sends them to all; one message is one struct job_news. A sender does not
 * care whether somebody listens: the record is what counts, news are a courtesy.
 */
#pragma once

#include <stdatomic.h>

#include "job.h"

#define JOB_NEWS_FOLDER "listeners" /* in data_dir */
#define JOB_NEWS_CANCEL "cancel"    /* a message's first field: `execution` is to be cancelled … */
#define JOB_NEWS_RECORD "record"    /* … or: this was recorded */

/* `ret_name`: the socket's, for job_news_send and job_news_leave. */
int job_news_listen(const char *data_dir, char ret_name[ID_SIZE], int *ret_fd, struct err *err);
/* Removes the socket; one whose process died is removed by the next news. */
void job_news_leave(const char *data_dir, const char *name);
/* The next one; its strings are in `room` until the next call. False: the socket was shut down. */
struct job_news_room {
	char bytes[8192];
};
bool job_news_receive(int fd, struct job_news_room *room, struct job_news *ret);
/* One who sends; several threads may use it at the same time. */
struct job_news_sender {
	/* A listener did not take the last message in time, so the next send does not wait: a run that changed many
	 * files would keep all others waiting. */
	atomic_bool tired;
};
/* To all but `self` (NULL: to all). Waits at most a second for a listener that does not keep up, and then not at all
 * until all do. */
void job_news_send(struct job_news_sender *sender, const char *data_dir, const char *self,
		   const struct job_news *news);
