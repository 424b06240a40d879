/*
 * grade_expect.c - see grade_expect.h.
 *
 * Expectations are about each case in the format ("all cases are AC or TLE, one is TLE"); a judge that stops at the
 * first rejection has one verdict. So a rule is turned into the verdicts that the first rejected case may have, and AC
 * where there need be none.
 */
#include "grade_expect.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "grade_yaml.h"
#include "lib/base/util.h"

#define ANY (GRADE_BIT(GRADE_AC) | GRADE_BIT(GRADE_WA) | GRADE_BIT(GRADE_TLE) | GRADE_BIT(GRADE_RTE))
#define ALL UINT32_MAX
#define GLOB_MAX 1024
#define ALL_DATA "{sample,secret}" /* the pattern of all cases */

/* Folders of all formats, and those that DOMjudge reads: every case is in `permitted`, one is in `required`. `timed`:
 * the format uses it for the time limit. */
#define AC  GRADE_BIT(GRADE_AC)
#define WA  GRADE_BIT(GRADE_WA)
#define TLE GRADE_BIT(GRADE_TLE)
#define RTE GRADE_BIT(GRADE_RTE)
#define OLE GRADE_BIT(GRADE_OLE)
#define CE  GRADE_BIT(GRADE_CE)
static const struct folder {
	const char *folder;
	uint32_t permitted, required;
	bool timed, partial;
} folders[] = {
	{"accepted", AC, ANY, true, false},
	{"slow_accepted", AC, ANY, false, false},
	{"partially_accepted", AC, ANY, false, true},
	{"wrong_answer", AC | WA, WA, true, false},
	{"time_limit_exceeded", AC | TLE, TLE, true, false},
	{"timelimit", AC | TLE, TLE, false, false},
	{"run_time_error", AC | RTE, RTE, true, false},
	{"memory_limit_exceeded", AC | RTE, RTE, false, false},
	{"output_limit_exceeded", AC | OLE, OLE, false, false},
	{"output_limit", AC | OLE, OLE, false, false},
	{"no_output", AC | WA, WA, false, false},
	{"compiler_error", CE, CE, false, false},
	{"rejected", ANY, ANY & ~AC, true, false},
	{"brute_force", AC | RTE | TLE, RTE | TLE, true, false},
};

/* DOMjudge's words, without regard to case, "-" and "_". */
static const struct {
	const char *word;
	enum grade_verdict verdict;
} results[] = {
	{"CORRECT", GRADE_AC},		  {"ACCEPTED", GRADE_AC},	   {"WRONGANSWER", GRADE_WA},
	{"NOOUTPUT", GRADE_WA},		  {"TIMELIMIT", GRADE_TLE},	   {"TIMELIMITEXCEEDED", GRADE_TLE},
	{"RUNERROR", GRADE_RTE},	  {"RUNTIMEERROR", GRADE_RTE},	   {"MEMORYLIMIT", GRADE_RTE},
	{"COMPILERERROR", GRADE_CE},	  {"OUTPUTLIMIT", GRADE_OLE},	   {"OUTPUTLIMITEXCEEDED", GRADE_OLE},
	{"PRESENTATIONERROR", GRADE_PE},  {"MEMORYLIMITEXCEEDED", GRADE_RTE},
};

/* -------- patterns ------------------------------------------------------------------------------------ */

static bool glob_here(const char *pattern, const char *path, int depth);

/* The path may go on behind a whole name: a pattern for a folder holds for all in it. */
static bool glob_here(const char *pattern, const char *path, int depth)
{
	for (; *pattern; pattern++, path++) {
		if (*pattern == '{') {
			/* {a,b}rest: any of the alternatives with the rest behind it. */
			const char *close = strchr(pattern, '}');

			if (!close || depth > 8)
				return false;
			for (const char *from = pattern + 1; from <= close;) {
				size_t length = strcspn(from, ",}");
				auto_free char *one = xasprintf("%.*s%s", (int)length, from, close + 1);

				if (glob_here(one, path, depth + 1))
					return true;
				from += length + 1;
			}
			return false;
		}
		if (*pattern == '*') {
			for (const char *at = path;; at++) {
				if (glob_here(pattern + 1, at, depth + 1))
					return true;
				if (!*at || *at == '/' || depth > 64)
					return false;
			}
		}
		if (*pattern != *path)
			return false;
	}
	return *path == '\0' || *path == '/';
}

bool grade_expect_glob(const char *pattern, const char *path)
{
	size_t length = strlen(pattern);

	if (length > 0 && pattern[length - 1] == '/')
		length--;
	auto_free char *whole = xstrndup(pattern, length);
	return length > 0 && length < GLOB_MAX && glob_here(whole, path, 0);
}

/* -------- where expectations stand -------------------------------------------------------------------- */

static uint32_t verdict_set(struct json_object *rule, const char *key, uint32_t fallback)
{
	struct json_object *list = json_get(rule, key, json_type_array);
	const char *text = grade_yaml_text(rule, key);
	enum grade_verdict verdict;
	uint32_t set = 0;

	if (text)
		return grade_verdict_parse(text, &verdict) == 0 ? GRADE_BIT(verdict) : fallback;
	if (!list)
		return fallback;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		const char *item = json_object_get_string(json_object_array_get_idx(list, i));

		if (item && grade_verdict_parse(item, &verdict) == 0)
			set |= GRADE_BIT(verdict);
	}
	return set;
}

/* "score": 20, or [10, 20]. */
static void read_score(struct json_object *rule, bool *ret_has, double *ret_least, double *ret_most)
{
	struct json_object *pair = json_get(rule, "score", json_type_array);
	double number;

	if (pair && json_object_array_length(pair) == 2) {
		*ret_least = json_object_get_double(json_object_array_get_idx(pair, 0));
		*ret_most = json_object_get_double(json_object_array_get_idx(pair, 1));
		*ret_has = true;
	} else if (grade_yaml_text(rule, "score") && grade_yaml_number(rule, "score", 0, &number, NULL) == 0) {
		*ret_least = *ret_most = number;
		*ret_has = true;
	}
}

/* All cases are in `permitted`, one is in `required`: what may the first case that is not accepted be, and may there be
 * none? */
static uint32_t allowed(uint32_t permitted, uint32_t required)
{
	return (permitted & ~GRADE_BIT(GRADE_AC)) | (permitted & required & GRADE_BIT(GRADE_AC));
}

bool grade_expect_names_part(const char *key)
{
	return streq(key, "sample") || streq(key, "secret") || str_starts(key, "sample/") ||
	       str_starts(key, "secret/");
}

/* What use_for_time_limit says: a rule is a bound of the time limit by its verdicts, is none whatever they are, or is
 * the one bound, as a rule that nothing may be too slow (lower), or that something has to be (upper). */
enum time_use { BY_VERDICTS, NOT_USED, LOWER, UPPER };

static enum time_use time_use(struct json_object *rule)
{
	static const struct {
		const char *word;
		enum time_use use;
	} words[] = {{"true", BY_VERDICTS}, {"false", NOT_USED}, {"lower", LOWER}, {"upper", UPPER}};
	const char *text = grade_yaml_text(rule, "use_for_time_limit");

	for (size_t i = 0; text && i < ARRAY_SIZE(words); i++)
		if (streq(words[i].word, text))
			return words[i].use;
	return text ? NOT_USED : BY_VERDICTS;
}

/* The verdicts and the bounds of one rule. */
static void apply_use(enum time_use use, struct grade_expect_part *part)
{
	if (use == LOWER)
		part->permitted &= ~TLE;
	if (use == UPPER)
		part->required &= TLE;
	part->lower_bound = use == LOWER || (use == BY_VERDICTS && !(part->permitted & TLE));
	part->upper_bound = use == UPPER || (use == BY_VERDICTS && part->required == TLE);
}

static void add_rule(const struct grade_expect_part *rule, struct grade_expect *ret)
{
	ret->lower_bound = ret->lower_bound || rule->lower_bound;
	ret->upper_bound = ret->upper_bound || rule->upper_bound;
	if (ret->n_rules < GRADE_PARTS_MAX)
		ret->rules[ret->n_rules++] = *rule;
}

/* What it says of the verdicts of all cases, and of the time limit. One rule leaves those of others as they are. */
static void apply_verdicts(struct json_object *rule, const struct folder *replaced, struct grade_expect *ret)
{
	enum time_use use = time_use(rule);
	bool says = json_object_object_get_ex(rule, "permitted", NULL) ||
		    json_object_object_get_ex(rule, "required", NULL) || use == LOWER || use == UPPER;
	struct grade_expect_part part = {
		.pattern = ALL_DATA,
		.permitted = verdict_set(rule, "permitted", replaced ? replaced->permitted : ANY),
		.required = verdict_set(rule, "required", replaced ? replaced->required : ANY),
	};

	if (!says && !(replaced && replaced->folder && use == NOT_USED))
		return;
	apply_use(use, &part);
	uint32_t set = allowed(part.permitted, part.required);

	if (replaced)
		ret->lower_bound = ret->upper_bound = false, ret->n_rules = 0;
	add_rule(&part, ret);
	ret->verdicts = replaced || !ret->verdicts ? set : ret->verdicts & set;
	ret->partial = ret->partial && !(replaced && says);
}

/* `replaced`: the folder whose own rule this is, which it takes what it does not say from; or NULL. */
static void apply_rule(struct json_object *rule, const struct folder *replaced, struct grade_expect *ret)
{
	const char *text;

	apply_verdicts(rule, replaced, ret);
	read_score(rule, &ret->has_score, &ret->least, &ret->most);
	if ((text = grade_yaml_text(rule, "message")) && ret->n_parts < GRADE_PARTS_MAX)
		ret->parts[ret->n_parts++] = (struct grade_expect_part){
			.pattern = ALL_DATA, .permitted = ALL, .required = ALL, .message = text};
	if ((text = grade_yaml_text(rule, "language")))
		ret->hint.language = text;
	if ((text = grade_yaml_text(rule, "entrypoint")))
		ret->hint.entry = text;
	json_object_object_foreach(rule, key, value)
	{
		if (!grade_expect_names_part(key) || !json_object_is_type(value, json_type_object) ||
		    ret->n_parts == GRADE_PARTS_MAX)
			continue;
		struct grade_expect_part *part = &ret->parts[ret->n_parts++];

		*part = (struct grade_expect_part){.pattern = key,
						   .permitted = verdict_set(value, "permitted", ANY),
						   .required = verdict_set(value, "required", ANY),
						   .message = grade_yaml_text(value, "message")};
		apply_use(time_use(value), part);
		read_score(value, &part->has_score, &part->least, &part->most);
	}
}

/* Only what lies in a folder has its row. */
static const struct folder *folder_of(const char *path, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(folders) && path[length] == '/'; i++)
		if (strlen(folders[i].folder) == length && strncmp(path, folders[i].folder, length) == 0)
			return &folders[i];
	return NULL;
}

void grade_expect_folder(struct json_object *yaml, const char *path, struct grade_expect *ret)
{
	static const struct folder own = {NULL, ANY, ANY, true, false}; /* a folder that the format does not know */
	size_t length = strcspn(path, "/");
	const struct folder *folder = folder_of(path, length);

	*ret = (struct grade_expect){0};
	if (folder) {
		struct grade_expect_part rule = {.pattern = ALL_DATA,
						 .permitted = folder->permitted,
						 .required = folder->required};

		apply_use(folder->timed ? BY_VERDICTS : NOT_USED, &rule);
		ret->verdicts = allowed(folder->permitted, folder->required);
		ret->partial = folder->partial;
		if (!folder->partial)
			add_rule(&rule, ret);
	}
	if (!yaml || !json_object_is_type(yaml, json_type_object))
		return;
	/* A folder's rule is there before those of patterns, wherever it stands. */
	for (int pass = 0; pass < 2; pass++) {
		json_object_object_foreach(yaml, pattern, rule)
		{
			/* Is the pattern the folder itself, "accepted" or "accepted/"? */
			bool whole = strncmp(pattern, path, length) == 0 &&
				     (!pattern[length] || streq(pattern + length, "/"));

			if (whole == (pass == 0) && rule && json_object_is_type(rule, json_type_object) &&
			    grade_expect_glob(pattern, path))
				apply_rule(rule, !whole ? NULL : folder ? folder : &own, ret);
		}
	}
}

/* The rest of the line behind the mark, whichever case its letters are in: the caller's; NULL: it is not there. */
static char *comment(const struct grade_source *source, const char *mark)
{
	for (size_t i = 0; i < source->count; i++) {
		const char *at = source->files[i].data, *end = at + source->files[i].length;
		size_t length = strlen(mark);

		for (; at < end && (at = memchr(at, '@', (size_t)(end - at))); at++) {
			if ((size_t)(end - at) < length || strncasecmp(at, mark, length) != 0)
				continue;
			at += length;
			const char *newline = memchr(at, '\n', (size_t)(end - at));
			return xstrndup(at, (size_t)((newline ? newline : end) - at));
		}
	}
	return NULL;
}

/* The verdicts of a list of DOMjudge's words; 0: it names none, or leaves the verdict to people. */
static uint32_t results_set(char *list)
{
	uint32_t set = 0;

	for (char *save = NULL, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char plain[32];
		size_t n = 0;

		for (const char *at = word; *at; at++)
			if (isalpha((unsigned char)*at) && n + 1 < sizeof(plain))
				plain[n++] = (char)toupper((unsigned char)*at);
		plain[n] = '\0';
		for (size_t i = 0; i < ARRAY_SIZE(results); i++)
			if (streq(results[i].word, plain))
				set |= GRADE_BIT(results[i].verdict);
		if (streq(plain, "CHECKMANUALLY"))
			return 0;
	}
	return set;
}

void grade_expect_comment(const struct grade_source *source, struct grade_expect *expect)
{
	auto_free char *list = comment(source, "@EXPECTED_RESULTS@:"), *score = comment(source, "@EXPECTED_SCORE@:");
	auto_free char *grades = comment(source, "@EXPECTED_GRADES@");
	enum grade_verdict verdict;
	char *rest = score;
	double number = score ? strtod(score, &rest) : 0;

	if (rest != score) {
		expect->has_score = true;
		expect->least = expect->most = number;
	}
	/* DOMjudge reads results behind the mark of the score, too. */
	uint32_t set = list ? results_set(list) : score ? results_set(score) : 0;
	if (set) {
		expect->verdicts = set;
		expect->partial = false;
		expect->n_rules = 0;
	}
	/* "@EXPECTED_GRADES@ AC WA TLE": a word that is no verdict ends the list. */
	for (char *save = NULL, *word = grades ? strtok_r(grades, " \t\r:,", &save) : NULL;
	     word && expect->n_grades < GRADE_PARTS_MAX && grade_verdict_parse(word, &verdict) == 0;
	     word = strtok_r(NULL, " \t\r:,", &save))
		expect->grades[expect->n_grades++] = GRADE_BIT(verdict);
}

const struct grade_expect_part *grade_expect_lower(const struct grade_expect *expect, const char *case_name)
{
	for (size_t i = 0; i < expect->n_parts; i++)
		if (expect->parts[i].lower_bound && grade_expect_glob(expect->parts[i].pattern, case_name))
			return &expect->parts[i];
	return NULL;
}

bool grade_expect_upper(const struct grade_expect *expect, const char *case_name)
{
	bool upper = expect->upper_bound;

	for (size_t i = 0; i < expect->n_parts && !upper; i++)
		upper = expect->parts[i].upper_bound && grade_expect_glob(expect->parts[i].pattern, case_name);
	return upper;
}

bool grade_expect_allows(uint32_t set, enum grade_verdict verdict)
{
	static const uint32_t rejected = ANY & ~GRADE_BIT(GRADE_AC);
	enum grade_verdict counts = verdict;

	if (verdict == GRADE_MLE)
		counts = GRADE_RTE;
	else if (verdict == GRADE_PE)
		counts = GRADE_WA;
	else if (verdict == GRADE_RTE)
		counts = GRADE_MLE;
	else if (verdict == GRADE_OLE)
		return set & (rejected | GRADE_BIT(GRADE_OLE));
	return set & (GRADE_BIT(verdict) | GRADE_BIT(counts));
}

bool grade_expect_met(const struct grade_expect *expect, enum grade_verdict verdict, double score, double full)
{
	if (expect->verdicts && !expect->by_case && !grade_expect_allows(expect->verdicts, verdict))
		return false;
	if (expect->has_score && !isnan(score) && (score < expect->least - 1e-6 || score > expect->most + 1e-6))
		return false;
	return !expect->partial || isnan(score) || !isfinite(full) || fabs(score - full) > 1e-9;
}

/* -------- rules for parts of the test data ------------------------------------------------------------ */

/* `whose`: who says so, and of what: "submissions.yaml" and " in secret/1". */
static bool verdicts_met(const struct grade_expect_part *part, const struct grade_scope *scope,
			 const char *const whose[2], char ret_why[GRADE_MESSAGE])
{
	bool all = true, any = false, seen = false, said = !part->message;

	for (size_t i = 0; i < scope->n_cases; i++) {
		if (!grade_expect_glob(part->pattern, scope->cases[i]->name))
			continue;
		any = true;
		/* A case behind the one that ended its group may have run at the same time: it does not count. */
		if (scope->sheet->states[i] != GRADE_DONE ||
		    grade_score_turn(scope->sheet, scope->root, scope->cases[i]) == GRADE_NEVER) {
			all = false;
			continue;
		}
		enum grade_verdict verdict = scope->sheet->outcomes[i].verdict;

		said = said || strstr(scope->sheet->outcomes[i].message, part->message);
		seen = seen || grade_expect_allows(part->required, verdict);
		if (!grade_expect_allows(part->permitted, verdict)) {
			snprintf(ret_why, GRADE_MESSAGE, "%s is %s, which %s does not permit%s", scope->cases[i]->name,
				 grade_verdict_text(verdict), whose[0], whose[1]);
			return false;
		}
	}
	if (any && all && !seen) {
		snprintf(ret_why, GRADE_MESSAGE, "no case%s has a verdict that %s requires", whose[1], whose[0]);
		return false;
	}
	if (any && all && !said) {
		snprintf(ret_why, GRADE_MESSAGE, "no judge's message%s has \"%.100s\"", whose[1], part->message);
		return false;
	}
	return true;
}

static size_t slashes(const char *name)
{
	size_t count = 0;

	while ((name = strchr(name, '/'))) {
		count++;
		name++;
	}
	return count;
}

/* The groups in secret against the list of the source's comment; one that was not judged says nothing. */
static bool grades_met(const struct grade_expect *expect, const struct grade_scope *scope, char ret_why[GRADE_MESSAGE])
{
	const struct grade_node *secret = grade_data_find(scope->root, "secret");
	size_t number = 0, groups = 0;
	for (size_t i = 0; secret && i < secret->count; i++)
		groups += !secret->children[i]->is_case;
	for (size_t i = 0; secret && groups == expect->n_grades && i < secret->count; i++) {
		const struct grade_node *group = secret->children[i];

		if (group->is_case)
			continue;
		uint32_t wanted = expect->grades[number++];
		for (size_t k = 0; k < scope->total->n_groups; k++) {
			enum grade_verdict verdict = scope->total->groups[k].verdict;

			if (scope->total->groups[k].group != group || grade_expect_allows(wanted, verdict))
				continue;
			snprintf(ret_why, GRADE_MESSAGE, "%s is %s, which is not what @EXPECTED_GRADES@ says",
				 group->name, grade_verdict_text(verdict));
			return false;
		}
	}
	return true;
}

bool grade_expect_all_met(const struct grade_expect *expect, const struct grade_scope *scope,
			  char ret_why[GRADE_MESSAGE])
{
	static const char *const whole[] = {"its folder or submissions.yaml", ""};

	*ret_why = '\0';
	for (size_t i = 0; i < expect->n_parts; i++) {
		const struct grade_expect_part *part = &expect->parts[i];
		auto_free char *where = xasprintf(" in %s", part->pattern);
		const char *const whose[] = {"submissions.yaml", where};

		if (!verdicts_met(part, scope, whose, ret_why))
			return false;
		for (size_t k = 0; part->has_score && k < scope->total->n_groups; k++) {
			const struct grade_group_result *group = &scope->total->groups[k];

			/* Not for a group within the one that the pattern names. */
			if (slashes(part->pattern) != slashes(group->group->name) ||
			    !grade_expect_glob(part->pattern, group->group->name) ||
			    !(group->score < part->least - 1e-6 || group->score > part->most + 1e-6))
				continue;
			snprintf(ret_why, GRADE_MESSAGE, "%s has %.12g points, submissions.yaml expects %.12g to %.12g",
				 group->group->name, group->score, part->least, part->most);
			return false;
		}
	}
	for (size_t i = 0; expect->by_case && i < expect->n_rules; i++)
		if (!verdicts_met(&expect->rules[i], scope, whole, ret_why))
			return false;
	return grades_met(expect, scope, ret_why);
}
