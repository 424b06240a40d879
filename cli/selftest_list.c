/*
 * selftest_list.c - the lists of probes and their terms, see selftest.h.
 *
 * Nobody keeps a list: the program lists its verbs (it is run in a jail for that, too), each script its own
 * line. Every line is name, what it tries, terms; a term is a word NAME=VALUE, looked up here, and one that is not
 * known is an error, so that a promise that is written wrongly is not one that is never held. The result is in the
 * order of the names.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"
#include "selftest.h"

#define PROBE_PIDS  16
#define NUMBER_MAX  1000000
#define SCRIPT_HEAD 1024 /* bytes of a script that its first line is looked for in */

static const struct {
	const char *name;
	size_t offset;
	int64_t unit;
} numbers[] = {
	{"wall_ms", offsetof(struct probe_terms, limits.wall_us), 1000},
	{"cpu_ms", offsetof(struct probe_terms, limits.cpu_us), 1000},
	{"compile_ms", offsetof(struct probe_terms, limits.compile_wall_us), 1000},
	{"cpu_percent", offsetof(struct probe_terms, limits.cpu_percent), 1},
	{"memory_mb", offsetof(struct probe_terms, limits.memory_bytes), 1 << 20},
	{"pids", offsetof(struct probe_terms, limits.pids), 1},
	{"data_kb", offsetof(struct probe_terms, limits.data_bytes), 1024},
	{"tmp_kb", offsetof(struct probe_terms, limits.tmp_bytes), 1024},
	{"output_kb", offsetof(struct probe_terms, limits.output_bytes), 1024},
	{"cpu_below_ms", offsetof(struct probe_terms, cpu_below_us), 1000},
};

static const struct probe_terms no_terms = {
	.also = JAIL_VERDICTS, .live_ends = JAIL_VERDICTS, .weaker_ends = JAIL_VERDICTS, .limits.pids = PROBE_PIDS};

#define FLAG(name, value, member) {name, value, offsetof(struct probe_terms, member)}
static const struct {
	const char *name, *value;
	size_t offset; /* of a bool */
} flags[] = {
	FLAG("after", "plant", plant),     FLAG("twice", "differs", twice), FLAG("single", "weaker", weaker_single),
	FLAG("else", "weaker", weaker),    FLAG("heavy", "1", heavy),       FLAG("tools", "1", tools),
};
#define TEXT(member) {#member, offsetof(struct probe_terms, member), sizeof(((struct probe_terms *)NULL)->member)}
static const struct {
	const char *name;
	size_t offset, size;
} texts[] = {TEXT(runner), TEXT(kept), TEXT(left)};

static int parse_word(const char *name, const char *value, struct probe_terms *terms)
{
	char *base = (char *)terms, verdict[3] = "";
	uint64_t number;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (streq(name, flags[i].name) && streq(value, flags[i].value))
			return !(*(bool *)(base + flags[i].offset) = true);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (streq(name, texts[i].name)) {
			const int length = snprintf(base + texts[i].offset, texts[i].size, "%s", value);

			return (size_t)length < texts[i].size ? 0 : -1;
		}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (streq(name, numbers[i].name) && parse_u64(value, 1, NUMBER_MAX, &number) == 0) {
			*(int64_t *)(void *)(base + numbers[i].offset) = (int64_t)number * numbers[i].unit;
			return 0;
		}
	if (streq(name, "also"))
		return jail_verdict_parse(value, &terms->also);
	if (streq(name, "live"))
		return jail_verdict_parse(value, &terms->live_ends);
	if (streq(name, "else"))
		return jail_verdict_parse(value, &terms->weaker_ends);
	snprintf(verdict, sizeof(verdict), "%s", value);
	if (!streq(name, "ends") || jail_verdict_parse(verdict, &terms->ends) || (value[2] && value[2] != ':'))
		return -1;
	value += value[2] ? 3 : 2;
	return (size_t)snprintf(terms->detail, sizeof(terms->detail), "%s", value) < sizeof(terms->detail) ? 0 : -1;
}

/* The next field up to " | ", or the rest. */
static char *field(char **rest)
{
	char *start = *rest, *end = start ? strstr(start, " | ") : NULL;

	if (end)
		*end = '\0';
	*rest = end ? end + 3 : NULL;
	return start;
}

/* One line of a list, which is changed. ERR_INVALID names the word that is wrong. */
static int add(struct probe_list *list, char *line, const char *script, struct err *err)
{
	struct probe_terms terms = no_terms;
	char *rest = line, *name = field(&rest), *what = field(&rest), *words = field(&rest), *state;

	if (!name || !name[0] || !what)
		return err_set(err, ERR_INVALID, "not a probe: %s", line);
	for (char *word = words ? strtok_r(words, " ", &state) : NULL; word; word = strtok_r(NULL, " ", &state)) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		if (!value || parse_word(word, value, &terms))
			return err_set(err, ERR_INVALID, "probe %s: unknown term %s with value %s", name, word,
				       value ? value : "");
	}
	if (terms.weaker_ends == JAIL_VERDICTS)
		terms.weaker_ends = terms.ends;
	list->entries = xrealloc(list->entries, list->count + 1, sizeof(*list->entries));
	list->entries[list->count++] = (struct probe_entry){.name = xstrdup(name),
							    .what = xstrdup(what),
							    .script = script ? xstrdup(script) : NULL,
							    .terms = terms};
	return 0;
}

static int add_verbs(const struct probe_place *place, struct probe_list *list, struct err *err)
{
	char name[] = "--list";
	const struct probe_entry lister = {.name = name, .terms = no_terms};
	struct probe_outcome outcome;
	char *state;
	int result = selftest_probe_run(place, &lister, &outcome, err);

	if (result < 0)
		return result;
	/* What it prints is no "held": only the text counts here. */
	for (char *line = strtok_r(outcome.said, "\n", &state); result == 0 && line;
	     line = strtok_r(NULL, "\n", &state))
		if (strstr(line, " | "))
			result = add(list, line, NULL, err);
	if (result == 0 && list->count == 0)
		result = err_set(err, ERR_UNAVAILABLE, "the probes cannot be run in a jail: %s", outcome.message);
	selftest_outcome_clear(&outcome);
	return result;
}

static int add_scripts(const char *folder, struct probe_list *list, struct err *err)
{
	DIR *entries = opendir(folder);
	int result = 0;

	if (!entries)
		return 0;
	for (struct dirent *entry; result == 0 && (entry = readdir(entries));) {
		auto_free char *path = xasprintf("%s/%s", folder, entry->d_name), *text = NULL;
		size_t length;

		if (entry->d_name[0] == '.')
			continue;
		result = read_file_at(AT_FDCWD, path, 1 << 20, &text, &length, err);
		if (result < 0)
			break;
		text[strcspn(text, "\n")] = '\0';
		result = add(list, text + strspn(text, "#/* "), path, err);
	}
	closedir(entries);
	return result;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct probe_entry *)a)->name, ((const struct probe_entry *)b)->name);
}

int selftest_list_read(const struct probe_place *place, const char *folder, struct probe_list *ret, struct err *err)
{
	struct probe_list list = {.count = 0};
	auto_free char *scripts = xasprintf("%s/probes", folder);
	int result = add_verbs(place, &list, err);

	if (result == 0)
		result = add_scripts(scripts, &list, err);
	if (result < 0) {
		selftest_list_clear(&list);
		return result;
	}
	if (list.entries)
		qsort(list.entries, list.count, sizeof(*list.entries), by_name);
	list.chosen = list.count;
	*ret = list;
	return 0;
}

void selftest_list_clear(struct probe_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->entries[i].name);
		free(list->entries[i].what);
		free(list->entries[i].script);
	}
	free(list->entries);
	*list = (struct probe_list){.entries = NULL};
}
