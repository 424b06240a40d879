/* resource_news.h - tells listeners of an owner what of his record has changed: the job engine's news as notifications of resources. */
#pragma once

#include "../lib/job.h"

/* For job_engine_watch; `hub` is a struct hub. */
void resource_news(void *hub, const struct job_news *news);
