/* replay_tools.c - see replay_tools.h. */
#include "replay_tools.h"

#include "cgi/bridge/bridge_cassette.h"
#include "lib/base/util.h"

int replay_tools(void *arg, const struct store_execution *execution, struct job_tools **ret, struct err *err)
{
	struct replay_tools *tools = arg;
	struct store_tools recorded = {0};
	int result = store_tools_load(tools->store, execution->id, &recorded, err);

	*ret = NULL;
	if (result == 0 && recorded.n_servers > 0 && !tools->bridge)
		result = bridge_start(&tools->bridge, err);
	if (result == 0 && recorded.n_servers > 0)
		result = bridge_cassette_new(tools->bridge, tools->config, &recorded, execution->language, ret, err);
	store_tools_clear(&recorded);
	return result;
}

int replay_tools_compare(struct store *store, const struct store_execution *execution, const struct job_replay *now,
			 struct replay_report *report, struct err *err)
{
	struct store_tools recorded = {0};
	int result = store_tools_load(store, execution->id, &recorded, err);
	auto_free char *difference = result == 0 ? bridge_cassette_difference(&recorded, &now->tools) : NULL;

	if (difference)
		replay_differ(report, REPLAY_DIVERGED,
			      (struct replay_difference){xstrdup("tools"), 0, xasprintf("%zu calls", recorded.n_calls),
							 steal(&difference), NULL});
	store_tools_clear(&recorded);
	return result;
}
