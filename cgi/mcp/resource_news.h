/*
 * resource_news.h - notifies listeners of an owner of changes of his record: news of the record as notifications of
 * resources.
 *
 * What this process records goes to the listeners of its own hub and to the other processes that serve clients of
 * the same database (job_news.h); what those record is heard in a thread of its own.
 */
#pragma once

#include "lib/job/job.h"

struct server;
/* For job_engine_watch; `server` is a struct server. */
void resource_news(void *server, const struct job_news *news);

struct news_listener;
int news_listen(struct server *server, struct news_listener **ret, struct err *err);
void news_leave(struct news_listener *listener); /* before the hub goes; NULL is fine */
