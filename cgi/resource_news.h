/*
 * resource_news.h - tells listeners of an owner what of his record has changed: the job engine's news as notifications of resources.
 *
 * The gateway hears besides what other processes record in its database (job_news.h), in a thread of its own; those pass on theirs.
 */
#pragma once

#include "../lib/job.h"

/* For job_engine_watch: `hub` is a struct hub, `data_dir` the folder of a database that somebody else serves. */
void resource_news(void *hub, const struct job_news *news);
void resource_news_pass_on(void *data_dir, const struct job_news *news);

struct hub;
struct news_listener;
int news_listen(struct hub *hub, const char *data_dir, struct news_listener **ret, struct err *err);
void news_leave(struct news_listener *listener); /* before the hub goes; NULL is fine */
