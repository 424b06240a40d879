/*
 * bridge_cassette.h - the calls of a recorded run as answers to the same program: no server is asked, none need be
 * there.
 *
 * A call is found by server, tool, canonical arguments and how many equal ones came before it, not by its place: calls
 * that run at once come in any order. What was recorded is served as it came, failures and refusals too. A call that
 * is not in the record fails with the kind "replay" and says what is nearest to it; what was recorded and not called is
 * reported as well.
 */
#pragma once

#include "bridge.h"
#include "lib/job/job.h"

/* `recorded` is taken over. */
int bridge_cassette_new(struct bridge *bridge, const struct config *config, struct store_tools *recorded,
			const char *runner, struct job_tools **ret, struct err *err);
/* The first difference between the calls of a recorded run and of its replay, as one sentence, the caller's; NULL: the
 * same calls, in whatever order. */
char *bridge_cassette_difference(const struct store_tools *recorded, const struct store_tools *now);
/* The first call of both runs that was not answered in the same way, and how many such calls there are. Results are
 * compared in their canonical form. The texts are the caller's, about where they differ; false: there is none. */
struct bridge_cassette_answer {
	size_t count;
	const struct store_tool_call *now;
	char *was_text, *now_text;
};
bool bridge_cassette_answers(const struct store_tools *recorded, const struct store_tools *now,
			     struct bridge_cassette_answer *ret);
