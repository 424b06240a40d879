/* tools_cache.c - see tools_cache.h. */
#include "tools_cache.h"

#include "cgi/http/access.h"
#include "lib/base/util.h"
#include "mcp_tasks.h"

#define SETS                                                                                                           \
	(2 *                                                                                                           \
	 STORE_SCOPE_ADMIN) /* sets of scopes that make a difference: none of the descriptions depends on "network" */

#define KINDS 4 /* with task support or not, with output schemas or not */

struct entry {
	char *text; /* NULL: not made yet */
	size_t length;
	uint64_t generation;
};

struct tools_cache {
	pthread_mutex_t lock;
	struct entry entries[KINDS * SETS];
};

struct tools_cache *tools_cache_new(void)
{
	struct tools_cache *cache = xcalloc(1, sizeof(*cache));

	pthread_mutex_init(&cache->lock, NULL);
	return cache;
}

void tools_cache_free(struct tools_cache *cache)
{
	for (size_t i = 0; cache && i < KINDS * SETS; i++)
		free(cache->entries[i].text);
	if (cache)
		pthread_mutex_destroy(&cache->lock);
	free(cache);
}

struct json_object *tools_cache_list(struct mcp_call *call)
{
	struct server *server = call->exchange->server;
	struct tools_cache *cache = server->tools;
	unsigned scopes = access_scopes(&call->exchange->token) % SETS;
	unsigned results = tool_results(&call->exchange->token);
	unsigned which = scopes + (mcp_task_support_shown(call) ? SETS : 0) +
			 (results & TOOL_RESULTS_STRUCTURED ? 2 * SETS : 0);
	struct job_engine *engine;
	uint64_t generation = 0;
	struct entry *entry = &cache->entries[which];
	struct json_object *found = NULL;

	if (server_engine(server, &engine, NULL) == 0) {
		job_engine_await_runners(engine); /* the descriptions name their versions */
		/* Before the description is made: one that is newer than its number is only made again. */
		generation = job_engine_generation(engine);
	}
	pthread_mutex_lock(&cache->lock);
	if (generation && entry->text && entry->generation == generation)
		found = json_new_printed(entry->text, entry->length);
	pthread_mutex_unlock(&cache->lock);
	if (found)
		return found;
	auto_json struct json_object *tools = tools_describe(server, scopes, results);
	auto_buf struct buf text = {0};

	mcp_task_support(call, tools);
	buf_init(&text, SIZE_MAX);
	json_print(&text, tools);
	found = json_new_printed(text.data, text.length);
	pthread_mutex_lock(&cache->lock);
	free(entry->text);
	entry->length = text.length;
	entry->generation = generation;
	entry->text = buf_steal(&text, NULL);
	pthread_mutex_unlock(&cache->lock);
	return found;
}
