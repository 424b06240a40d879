/*
 * upstream_search.c - see upstream_search.h.
 *
 * A tool is four fields of words: its name (taken apart at _ - . and capitals), its server, its description, the names
 * and descriptions of its arguments. A word counts by its field's weight; common words of a query are left out unless
 * none is left, endings are cut (files, filed, filing: fil), and a few synonyms count half. tests/unit measures it with
 * a table of queries and the tools that they mean. Facts: Robertson and Zaragoza, BM25 and beyond (2009).
 */
#include "upstream_search.h"

#include <ctype.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/util.h"

#define WORD_SIZE   32
#define WORDS_MAX   32 /* of a query, with synonyms */
#define K1          1.2
#define B           0.75
#define SYNONYM     0.5
#define PROPERTIES  64 /* arguments of a tool that are read */
#define FIELD_BYTES 4096
#define TOOL_WORDS  512 /* different words of a tool that count */

enum field { FIELD_NAME, FIELD_SERVER, FIELD_DESCRIPTION, FIELD_ARGUMENTS, FIELDS };
static const double weights[FIELDS] = {8, 2, 3, 1};

static const char *const stop_words[] = {"a",   "an",   "and", "are",  "as",  "at",   "be", "by",   "can",  "do",
					 "for", "from", "how", "i",    "in",  "into", "is", "it",   "me",   "my",
					 "of",  "on",   "or",  "that", "the", "this", "to", "what", "with", "you"};
static const char *const synonyms[][2] = {
	{"open", "create"},   {"remember", "create"},    {"remember", "add"},  {"show", "get"},
	{"show", "list"},     {"remove", "delete"},      {"erase", "delete"},  {"change", "edit"},
	{"change", "update"}, {"folder", "directory"},   {"picture", "image"}, {"rename", "move"},
	{"find", "search"},   {"look", "search"},        {"save", "write"},    {"fetch", "read"},
	{"load", "read"},     {"weather", "structured"}, {"plus", "sum"},      {"pr", "pull"},
	{"link", "relation"}, {"person", "entity"},      {"url", "navigate"},  {"compress", "gzip"},
	{"zip", "gzip"},      {"content", "read"},
};

struct word {
	char text[WORD_SIZE];
	double weight;
};

/* Cuts usual endings off a lower-case word. */
static void stem(char *word)
{
	static const char *const endings[][2] = {{"ies", "y"}, {"sses", "ss"}, {"ations", "at"}, {"ation", "at"},
						 {"ing", ""},  {"edly", ""},   {"ed", ""},       {"es", ""},
						 {"s", ""},    {"e", ""}};
	size_t length = strlen(word);

	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		size_t cut = strlen(endings[i][0]);

		if (length < cut + 3 || !streq(word + length - cut, endings[i][0]) ||
		    (i == 8 && word[length - 2] == 's'))
			continue;
		memcpy(word + length - cut, endings[i][1], strlen(endings[i][1]) + 1);
		length = strlen(word);
		if (length > 3 && word[length - 1] == word[length - 2] && strchr("aeioulsz", word[length - 1]) == NULL)
			word[--length] = '\0'; /* stopp -> stop */
		if (length > 3 && word[length - 1] == 'e')
			word[--length] = '\0';
		return;
	}
}

/* The next word of a text, in lower case and without its ending: letters and digits, a capital after a small letter
 * begins another. False: none is left. */
static bool next_word(const char **text, char ret[WORD_SIZE], bool cut)
{
	const char *at = *text;
	size_t length = 0;

	while (*at != '\0' && !isalnum((unsigned char)*at) && (unsigned char)*at < 0x80)
		at++;
	if (*at == '\0')
		return false;
	do {
		if (length < WORD_SIZE - 1)
			ret[length++] = (char)tolower((unsigned char)*at);
		at++;
	} while ((isalnum((unsigned char)*at) || (unsigned char)*at >= 0x80) &&
		 !(isupper((unsigned char)*at) && islower((unsigned char)at[-1])));
	ret[length] = '\0';
	*text = at;
	if (cut)
		stem(ret);
	return true;
}

static bool is_stop_word(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(stop_words); i++)
		if (streq(stop_words[i], word))
			return true;
	return false;
}

static size_t add_word(struct word *words, size_t count, const char *text, double weight)
{
	char cut[WORD_SIZE];

	snprintf(cut, sizeof(cut), "%s", text);
	stem(cut);
	for (size_t i = 0; i < count; i++)
		if (streq(words[i].text, cut))
			return count;
	if (count == WORDS_MAX)
		return count;
	memcpy(words[count].text, cut, sizeof(cut));
	words[count].weight = weight;
	return count + 1;
}

static size_t query_words(const char *query, struct word *ret)
{
	char word[WORD_SIZE];
	size_t count = 0;

	for (int pass = 0; pass < 2 && count == 0; pass++) /* the second takes common words, too */
		for (const char *at = query; next_word(&at, word, false);)
			if (pass == 1 || !is_stop_word(word))
				count = add_word(ret, count, word, 1);
	for (const char *at = query; next_word(&at, word, false);)
		for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++)
			if (streq(synonyms[i][0], word))
				count = add_word(ret, count, synonyms[i][1], SYNONYM);
	return count;
}

/* The words of a list's tools, made once: a search compares numbers. One block, freed with the list. */
struct indexed {
	uint64_t word; /* hash_of its text */
	double weight; /* of all its occurrences in this tool */
};
struct upstream_index {
	struct document {
		double length; /* words with their repetitions */
		size_t first, count;
	} * documents;
	struct indexed words[];
};

static uint64_t hash_of(const char *word)
{
	return fnv1a(FNV1A_BEGIN, word, strlen(word));
}

/* An index that is being made. */
struct making {
	struct indexed *words;
	size_t count;
	struct document *document;
};

static void read_field(struct making *making, const char *text, enum field field)
{
	char word[WORD_SIZE];
	const char *end = text + FIELD_BYTES;

	for (const char *at = text; at < end && next_word(&at, word, true); making->document->length++) {
		struct document *document = making->document;
		const uint64_t hash = hash_of(word);
		struct indexed *found = making->words + document->first, *behind = found + document->count;

		while (found < behind && found->word != hash)
			found++;
		if (found == behind && document->count < TOOL_WORDS) {
			*found = (struct indexed){.word = hash};
			document->count++;
		}
		if (found < making->words + document->first + document->count)
			found->weight += weights[field];
	}
}

static void read_tool(struct making *making, const struct upstream_list *list, const struct upstream_tool *tool)
{
	struct json_object *schema = json_get(tool->object, "inputSchema", json_type_object);
	struct json_object *properties = schema != NULL ? json_get(schema, "properties", json_type_object) : NULL;
	const char *texts[] = {tool->name, list->server->name, json_get_string(tool->object, "description")};
	int left = PROPERTIES;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i] != NULL)
			read_field(making, texts[i], (enum field)i);
	if (properties == NULL)
		return;
	json_object_object_foreach(properties, name, property)
	{
		const char *text = json_object_is_type(property, json_type_object)
					   ? json_get_string(property, "description")
					   : NULL;

		if (left-- <= 0)
			break;
		read_field(making, name, FIELD_ARGUMENTS);
		if (text != NULL)
			read_field(making, text, FIELD_ARGUMENTS);
	}
}

static const struct upstream_index *index_of(struct upstream_list *list)
{
	struct upstream_index *index = list->index, *other = NULL;

	if (index != NULL)
		return index;
	auto_free struct indexed *words = NULL;
	auto_free struct document *documents = xcalloc(list->count + 1, sizeof(*documents));
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		words = xrealloc(words, count + TOOL_WORDS, sizeof(*words));
		documents[i].first = count;
		read_tool(&(struct making){.words = words, .document = &documents[i]}, list, &list->tools[i]);
		count += documents[i].count;
	}
	index = xmalloc(sizeof(*index) + count * sizeof(*words) + list->count * sizeof(*documents));
	if (words != NULL)
		memcpy(index->words, words, count * sizeof(*words));
	index->documents = memcpy(index->words + count, documents, list->count * sizeof(*documents));
	if (atomic_compare_exchange_strong(&list->index, &other, index))
		return index;
	free(index); /* another thread was first */
	return other;
}

static int by_score(const void *one, const void *two)
{
	const struct upstream_found *a = one, *b = two;

	return (a->score < b->score) - (a->score > b->score);
}

/* What is searched: the tools of all lists, one after the other. */
struct searched {
	struct upstream_found *found;
	const struct document **documents;
	const struct indexed **words; /* of each one's list */
	size_t count;
	double length; /* of all */
};

/* Adds to every tool's score what a word is worth there: BM25. */
static void rank(struct searched *searched, const struct word *word, double *weights_there)
{
	const double n = (double)searched->count;
	const uint64_t hash = hash_of(word->text);
	size_t holders = 0;

	for (size_t i = 0; i < searched->count; i++) {
		const struct indexed *found = searched->words[i] + searched->documents[i]->first;
		const struct indexed *behind = found + searched->documents[i]->count;

		while (found < behind && found->word != hash)
			found++;
		weights_there[i] = found < behind ? found->weight : 0;
		holders += weights_there[i] > 0;
	}
	const double rarity = log(1 + (n - (double)holders + 0.5) / ((double)holders + 0.5));

	for (size_t i = 0; i < searched->count; i++) {
		const double f = weights_there[i], length = searched->documents[i]->length * n / searched->length;

		if (f > 0)
			searched->found[i].score +=
				word->weight * rarity * f * (K1 + 1) / (f + K1 * (1 - B + B * length));
	}
}

size_t upstream_search(struct upstream_list *const *lists, size_t n_lists, const char *query, size_t limit,
		       struct upstream_found *ret, size_t *ret_matched)
{
	struct word words[WORDS_MAX];
	size_t count = query_words(query, words), n = 0, matched = 0;

	for (size_t i = 0; i < n_lists; i++)
		n += lists[i]->count;
	auto_free struct upstream_found *found = xcalloc(n + 1, sizeof(*found));
	auto_free const struct document **documents = xcalloc(n + 1, sizeof(struct document *));
	auto_free const struct indexed **indexed = xcalloc(n + 1, sizeof(struct indexed *));
	auto_free double *there = xcalloc(n + 1, sizeof(*there));
	struct searched searched = {.found = found, .documents = documents, .words = indexed};

	for (size_t i = 0; i < n_lists; i++) {
		const struct upstream_index *index = index_of(lists[i]);

		for (size_t k = 0; k < lists[i]->count; k++, searched.count++) {
			found[searched.count] = (struct upstream_found){lists[i], &lists[i]->tools[k], 0};
			documents[searched.count] = &index->documents[k];
			indexed[searched.count] = index->words;
			searched.length += index->documents[k].length;
		}
	}
	for (size_t i = 0; i < count; i++)
		rank(&searched, &words[i], there);
	qsort(found, n, sizeof(*found), by_score);
	while (matched < n && found[matched].score > 0)
		matched++;
	*ret_matched = matched;
	limit = MIN(MIN(limit, matched), UPSTREAM_SEARCH_MAX);
	memcpy(ret, found, limit * sizeof(*ret));
	return limit;
}
