/* resource_news.c - see resource_news.h. Whatever changed, the list shows it: size and time of a file stand there too. */
#include "resource_news.h"

#include "../lib/util.h"
#include "hub.h"
#include "resource_record.h"

void resource_news(void *arg, const struct job_news *news)
{
	struct hub *hub = arg;
	auto_buf struct buf uri = {0};

	buf_init(&uri, RESOURCE_URI_MAX);
	if (news->name) {
		resource_file_uri(&uri, news->conversation, news->name, news->name_length);
		hub_publish(hub, news->owner, HUB_RESOURCE_UPDATED, uri.data);
	}
	for (int i = 0; news->execution && i < 2; i++) {
		buf_reset(&uri);
		resource_output_uri(&uri, news->execution, i == 1);
		hub_publish(hub, news->owner, HUB_RESOURCE_UPDATED, uri.data);
	}
	hub_publish(hub, news->owner, HUB_RESOURCES_CHANGED, NULL);
}
