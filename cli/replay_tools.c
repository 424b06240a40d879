/* replay_tools.c - see replay_tools.h. */
#include "replay_tools.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/bridge/bridge_cassette.h"
#include "lib/bridge/bridge_tools.h"

/* -------- the real servers ---------------------------------------------------------------------------- */

int replay_tools_connect(const struct config *config, struct upstream **ret, struct err *err)
{
	int result = upstream_open(config, ret, err);

	if (result == 0 && !*ret)
		return err_set(err, ERR_INVALID,
			       "--live: no file says what servers there are: name it with --upstream, or by upstream.file in the configuration");
	return result;
}

int replay_tools(void *arg, const struct store_execution *execution, struct job_tools **ret, struct err *err)
{
	struct replay_tools *tools = arg;
	struct store_tools recorded = {0};
	int result = store_tools_expected(tools->store, execution->id, execution->generation, &recorded, err);

	const bool given = recorded.n_servers > 0 || streq(execution->conversation, BRIDGE_PYTHON_CONVERSATION);

	*ret = NULL;
	if (result == 0 && given && !tools->bridge)
		result = bridge_start(tools->upstream, &tools->bridge, err);
	if (result == 0 && given && tools->upstream && streq(execution->id, tools->id)) {
		/* The policy is that of the servers' entries, and nobody is there to be asked. */
		auto_free const char **names = xcalloc(recorded.n_servers + 1, sizeof(*names));

		for (size_t i = 0; i < recorded.n_servers; i++)
			names[i] = recorded.servers[i].name;
		const struct bridge_tools_spec spec = {.bridge = tools->bridge,
						       .upstream = tools->upstream,
						       .config = tools->config,
						       .store = tools->store,
						       .owner = execution->owner,
						       .grant = "*",
						       .servers = {.items = names, .count = recorded.n_servers},
						       .runner = execution->language,
						       .refusal = "nobody can be asked in a replay"};

		result = bridge_tools_new(&spec, ret, err) < 0 ? err_wrap(err, "--live") : 0;
	} else if (result == 0 && given)
		result = bridge_cassette_new(tools->bridge, tools->config, &recorded, execution->language, ret, err);
	store_tools_clear(&recorded);
	return result;
}

/* -------- the difference ------------------------------------------------------------------------------ */

/* What real servers answer to the same calls. */
int replay_tools_compare(struct store *store, const struct store_execution *execution, const struct job_replay *now,
			 bool live, struct replay_report *report, struct err *err)
{
	struct bridge_cassette_answer differs;
	struct store_tools recorded = {0};
	int result = store_tools_expected(store, execution->id, execution->generation, &recorded, err);
	auto_free char *difference = result == 0 ? bridge_cassette_difference(&recorded, &now->tools) : NULL;

	if (difference)
		replay_differ(report, REPLAY_DIVERGED,
			      (struct replay_difference){xstrdup("tools"), 0, xasprintf("%zu calls", recorded.n_calls),
							 steal(&difference), NULL});
	if (result == 0 && live && bridge_cassette_answers(&recorded, &now->tools, &differs))
		replay_differ(report, REPLAY_ANSWERS,
			      (struct replay_difference){xasprintf("answers of tools, %zu in all: call %lld, %s.%s",
								   differs.count, (long long)differs.now->seq,
								   differs.now->server, differs.now->tool),
							 0, differs.was_text, differs.now_text, NULL});
	store_tools_clear(&recorded);
	return result;
}
