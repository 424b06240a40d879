/*
 * replay_report.c - what is stored and printed of a replay.
 *
 * A report becomes one JSON text as soon as it is complete: that is stored for --resume and --merge, printed by --json,
 * and what the report for people is made of. So a replay that goes on after an interruption, or one put together from
 * shards, prints what one in a single piece would have printed. For people the matrix of verdicts, recorded × now,
 * comes first and the details after it.
 */
#include <string.h>

#include "lib/base/util.h"
#include "replay.h"

static const char *const classes[REPLAY_CLASSES] = {
#define X(name, text) text,
	REPLAY_CLASS_LIST(X)
#undef X
};
static const char *const verdicts[] = {"OK", "RE", "SG", "TO", "ML", "OL", "CE", "CX", "XX", ""};

const char *replay_class_text(enum replay_class class)
{
	return classes[class];
}

enum replay_class replay_class_from(const char *text)
{
	enum replay_class class = 0;

	while (class < REPLAY_CLASSES && !streq(classes[class], text))
		class ++;
	return class;
}

/* -------- one ----------------------------------------------------------------------------------------- */

void replay_report_init(struct replay_report *report)
{
	*report = (struct replay_report){0};
	buf_init(&report->outcome, 4 * NORMALISE_TEXT_MAX);
	replay_candidate_init(&report->candidate);
}

void replay_report_clear(struct replay_report *report)
{
	for (size_t i = 0; i < report->n_differences; i++) {
		free(report->differences[i].what);
		free(report->differences[i].recorded);
		free(report->differences[i].now);
		free(report->differences[i].diff);
	}
	free(report->differences);
	free(report->reason);
	buf_clear(&report->outcome);
	replay_candidate_clear(&report->candidate);
	json_put_pointer(&report->runtime);
	*report = (struct replay_report){0};
}

void replay_differ(struct replay_report *report, enum replay_class class, struct replay_difference difference)
{
	report->differences = xrealloc(report->differences, report->n_differences + 1, sizeof(*report->differences));
	report->differences[report->n_differences++] = difference;
	report->class = MAX(report->class, class);
}

static struct json_object *difference_json(const struct replay_difference *difference)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "what", difference->what);
	if (difference->line > 0)
		json_add_int(object, "line", (int64_t)difference->line);
	json_add_string(object, "recorded", difference->recorded);
	json_add_string(object, "now", difference->now);
	if (difference->diff)
		json_add_string(object, "diff", difference->diff);
	return object;
}

void replay_result(const struct replay_report *report, const char *id, const char *language,
		   const struct store_execution *execution, struct store_result *ret)
{
	auto_json struct json_object *object = json_object_new_object();
	struct json_object *differences = json_object_new_array(), *hidden = json_object_new_array();
	struct buf text;

	json_add_string(object, "id", id);
	json_add_string(object, "language", language);
	json_add_string(object, "class", classes[report->class]);
	if (report->deterministic)
		json_add_bool(object, "deterministic", true);
	if (report->reason)
		json_add_string(object, "reason", report->reason);
	for (size_t i = 0; i < report->n_differences; i++)
		json_object_array_add(differences, difference_json(&report->differences[i]));
	json_add(object, "differences", differences);
	for (int i = 0; i < normalise_count(); i++)
		if (report->hidden_by & NORMALISE_BIT(i))
			json_object_array_add(hidden, json_object_new_string(normalise_name(i)));
	json_add(object, "hidden_by", hidden);
	if (report->runtime)
		json_add(object, "runtime", json_object_get(report->runtime));
	if (report->blessed > 0)
		json_add_int(object, "generation", report->blessed);
	buf_init(&text, SIZE_MAX / 2);
	json_print(&text, object);
	*ret = (struct store_result){
		.report = buf_steal(&text, NULL), .output = report->output, .errors = report->errors};
	snprintf(ret->class, sizeof(ret->class), "%s", classes[report->class]);
	snprintf(ret->recorded, sizeof(ret->recorded), "%s", execution ? execution->verdict : "");
	snprintf(ret->now, sizeof(ret->now), "%s", report->now);
}

static enum cli_colour class_colour(enum replay_class class)
{
	if (class <= REPLAY_EQUAL)
		return CLI_GREEN;
	if (class == REPLAY_NOT_REPLAYABLE || class == REPLAY_NEW)
		return CLI_DIM;
	return class >= REPLAY_MISSING ? CLI_RED : CLI_YELLOW;
}

static void print_safe(FILE *out, const char *before, const char *text)
{
	fputs(before, out);
	cli_print_safe(out, text, strlen(text));
}

static void print_difference(FILE *out, struct json_object *difference)
{
	struct json_object *line = json_get(difference, "line", json_type_int);

	print_safe(out, "  ", json_get_string(difference, "what"));
	if (line)
		fprintf(out, ", line %lld", (long long)json_object_get_int64(line));
	print_safe(out, ":\n    recorded: ", json_get_string(difference, "recorded"));
	print_safe(out, "\n    now:      ", json_get_string(difference, "now"));
	fputc('\n', out);
	if (json_get_string(difference, "diff"))
		cli_print_diff(out, json_get_string(difference, "diff"), "    ");
}

void replay_print(FILE *out, const char *report)
{
	auto_json struct json_object *object = NULL;
	struct json_object *differences, *hidden;
	const char *class, *reason, *before = " (hidden: ";
	struct json_object *generation;

	if (json_parse(report, strlen(report), &object, NULL) < 0)
		return;
	class = json_get_string(object, "class");
	reason = json_get_string(object, "reason");
	differences = json_get(object, "differences", json_type_array);
	hidden = json_get(object, "hidden_by", json_type_array);
	generation = json_get(object, "generation", json_type_int);
	fprintf(out, "%s %s %s%s%s", json_get_string(object, "id"), json_get_string(object, "language"),
		cli_colour_on(out, class_colour(replay_class_from(class))), class, cli_colour_off(out));
	for (size_t i = 0; i < json_object_array_length(hidden); i++, before = ", ")
		fprintf(out, "%s%s", before, json_object_get_string(json_object_array_get_idx(hidden, i)));
	if (json_object_array_length(hidden) > 0)
		fputc(')', out);
	if (json_get(object, "deterministic", json_type_boolean))
		fputs(", deterministic", out);
	if (reason)
		print_safe(out, ": ", reason);
	if (generation)
		fprintf(out, ", expected from now on: generation %lld", (long long)json_object_get_int64(generation));
	fputc('\n', out);
	for (size_t i = 0; i < json_object_array_length(differences); i++)
		print_difference(out, json_object_array_get_idx(differences, i));
	/* In what the runner differs from that of the recorded run. */
	struct json_object *list = json_get(object, "runtime", json_type_array);

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);

		print_safe(out, "  ran on another ", json_get_string(one, "what"));
		print_safe(out, ": recorded ", json_get_string(one, "recorded"));
		print_safe(out, ", now ", json_get_string(one, "now"));
		fputc('\n', out);
	}
}

void replay_details(struct json_object *differences, struct buf *ret)
{
	for (size_t i = 0; i < json_object_array_length(differences); i++) {
		struct json_object *difference = json_object_array_get_idx(differences, i);
		struct json_object *line = json_get(difference, "line", json_type_int);
		const char *diff = json_get_string(difference, "diff");

		buf_puts(ret, json_get_string(difference, "what"));
		if (line)
			buf_printf(ret, ", line %lld", (long long)json_object_get_int64(line));
		buf_printf(ret, ":\n  recorded: %s\n  now:      %s\n", json_get_string(difference, "recorded"),
			   json_get_string(difference, "now"));
		buf_puts(ret, diff ? diff : "");
	}
	buf_putc(ret, '\0');
}

static enum report_state state_of(enum replay_class class)
{
	if (class <= REPLAY_EQUAL || class == REPLAY_NEW)
		return REPORT_PASS;
	if (class == REPLAY_NOT_REPLAYABLE)
		return REPORT_SKIP;
	return class >= REPLAY_MISSING ? REPORT_ERROR : REPORT_FAIL;
}

void replay_report_add(struct report *to, struct store *store, const struct store_result *result)
{
	const enum report_state state = state_of(replay_class_from(result->class));
	auto_execution struct store_execution run = {0};
	auto_free char *code = NULL;
	auto_json struct json_object *object = NULL;
	auto_buf struct buf details = {0}, message = {0};
	struct json_object *differences;

	if (!to || json_parse(result->report, strlen(result->report), &object, NULL) < 0)
		return;
	buf_init(&details, SIZE_MAX / 2);
	buf_init(&message, SIZE_MAX / 2);
	differences = json_get(object, "differences", json_type_array);
	replay_details(differences, &details);
	if (json_get_string(object, "reason"))
		buf_puts(&message, json_get_string(object, "reason"));
	for (size_t i = 0; i < json_object_array_length(differences); i++)
		buf_printf(&message, "%s%s", message.length > 0 ? ", " : "",
			   json_get_string(json_object_array_get_idx(differences, i), "what"));
	buf_putc(&message, '\0');
	if (state != REPORT_PASS && store_execution_find(store, json_get_string(object, "id"), &run, NULL) == 0)
		store_text_read(store, &run.code, &code, &(size_t){0}, NULL);
	report_add(to, &(struct report_case){
			       .group = json_get_string(object, "language"),
			       .name = json_get_string(object, "id"),
			       .label = result->class,
			       .expected = *result->recorded ? result->recorded : "-",
			       .now = *result->now ? result->now : "-",
			       .state = state,
			       .message = message.data,
			       .details = *details.data ? details.data : NULL,
			       .json = result->report,
			       .code = code,
			       .conversation = run.conversation,
			       .wall_us = -1,
		       });
}

/* -------- all ----------------------------------------------------------------------------------------- */

static size_t verdict_place(const char *verdict)
{
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(verdicts) && !streq(verdicts[i], verdict))
		i++;
	return i;
}

void replay_summary_add(struct replay_summary *summary, const struct store_result *result)
{
	enum replay_class class = replay_class_from(result->class);

	if (class < REPLAY_CLASSES)
		summary->classes[class]++;
	summary->verdicts[verdict_place(result->recorded)][verdict_place(result->now)]++;
}

size_t replay_summary_different(const struct replay_summary *summary)
{
	size_t count = 0;

	for (int i = REPLAY_EQUAL + 1; i < REPLAY_FLAKY; i++)
		count += summary->classes[i];
	return count;
}

int replay_summary_exit(const struct replay_summary *summary)
{
	if (summary->classes[REPLAY_MISSING] > 0)
		return CLI_INCOMPLETE;
	if (summary->classes[REPLAY_SANDBOX_ERROR] > 0)
		return CLI_JUDGE_ERROR;
	if (!summary->bless && replay_summary_different(summary) > 0)
		return CLI_DIFFERENT;
	return summary->classes[REPLAY_FLAKY] > 0 ? CLI_DIFFERENT : CLI_OK;
}

/* Is the verdict anywhere, as recorded or as it is now? */
static bool verdict_seen(const struct replay_summary *summary, size_t place)
{
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		if (summary->verdicts[place][i] + summary->verdicts[i][place] > 0)
			return true;
	return false;
}

void replay_summary_matrix(FILE *out, const struct replay_summary *summary)
{
	struct cli_column columns[1 + ARRAY_SIZE(verdicts)] = {{.title = "recorded \\ now"}};
	size_t places[ARRAY_SIZE(verdicts)], count = 0;
	auto_table struct cli_table *table = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
		if (!verdict_seen(summary, i))
			continue;
		places[count++] = i;
		columns[count] =
			(struct cli_column){.title = *verdicts[i] ? verdicts[i] : "-", .right = true, .min = 4};
	}
	if (count == 0)
		return;
	table = cli_table_new(columns, count + 1);
	for (size_t row = 0; row < count; row++) {
		cli_table_cell(table, columns[row + 1].title, CLI_BOLD);
		for (size_t column = 0; column < count; column++) {
			size_t number = summary->verdicts[places[row]][places[column]];
			auto_free char *text = number > 0 ? xasprintf("%zu", number) : xstrdup(".");

			cli_table_cell(table, text, row == column || number == 0 ? CLI_PLAIN : CLI_YELLOW);
		}
	}
	cli_table_print(table, out);
}

void replay_summary_print(FILE *out, const struct replay_summary *summary)
{
	const struct {
		enum replay_class class;
		const char *text;
	} more[] = {{REPLAY_FLAKY, "flaky"},
		    {REPLAY_NEW, "new"},
		    {REPLAY_MISSING, "missing"},
		    {REPLAY_SANDBOX_ERROR, "failed"}};

	fprintf(out, "%zu identical, ", summary->classes[REPLAY_IDENTICAL]);
	if (summary->classes[REPLAY_EQUAL] > 0)
		fprintf(out, "%zu equal after normalising, ", summary->classes[REPLAY_EQUAL]);
	fprintf(out, "%zu differ, %zu not replayable", replay_summary_different(summary),
		summary->classes[REPLAY_NOT_REPLAYABLE]);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (summary->classes[more[i].class] > 0)
			fprintf(out, ", %zu %s", summary->classes[more[i].class], more[i].text);
	fputc('\n', out);
}

struct json_object *replay_summary_json(const struct replay_summary *summary)
{
	struct json_object *object = json_object_new_object(), *members = json_object_new_object();
	struct json_object *counts = json_object_new_object();

	json_add_int(members, "identical", (int64_t)summary->classes[REPLAY_IDENTICAL]);
	json_add_int(members, "equal_after_normalising", (int64_t)summary->classes[REPLAY_EQUAL]);
	json_add_int(members, "different", (int64_t)replay_summary_different(summary));
	json_add_int(members, "flaky", (int64_t)summary->classes[REPLAY_FLAKY]);
	json_add_int(members, "not_replayable", (int64_t)summary->classes[REPLAY_NOT_REPLAYABLE]);
	json_add_int(members, "failed", (int64_t)summary->classes[REPLAY_SANDBOX_ERROR]);
	if (summary->bless)
		json_add_int(members, "blessed",
			     (int64_t)(replay_summary_different(summary) + summary->classes[REPLAY_NEW]));
	json_add_rounded(members, "seconds", summary->seconds, 2);
	for (int i = 0; i < REPLAY_CLASSES; i++)
		if (summary->classes[i] > 0)
			json_add_int(counts, classes[i], (int64_t)summary->classes[i]);
	json_add(members, "classes", counts);
	json_add(object, "summary", members);
	return object;
}
