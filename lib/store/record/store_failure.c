/*
 * store_failure.c - see store_failure.h.
 *
 * Interpreters say at the end of standard error what was wrong, each in its way: Python on the last line, Node.js above
 * its version. The last line that has the form of an exception counts.
 */
#include "store_failure.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/util.h"

struct line {
	const char *text;
	size_t length;
};

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static bool ends_with(const char *text, size_t length, const char *end)
{
	const size_t size = strlen(end);

	return length >= size && memcmp(text + length - size, end, size) == 0;
}

/* "ZeroDivisionError: …", "json.decoder.JSONDecodeError: …", "Uncaught TypeError: …": the length of its type, which
 * stands at *begin. */
static size_t exception_type(const struct line *line, const char **begin)
{
	static const char before[] = "Uncaught ";
	static const char *const ends[] = {"Error", "Exception", "KeyboardInterrupt", "StopIteration", "Exit"};
	const char *at = line->text, *end = line->text + line->length;
	size_t length = 0;

	if ((size_t)(end - at) > strlen(before) && memcmp(at, before, strlen(before)) == 0)
		at += strlen(before);
	while (at + length < end && word_char(at[length]))
		length++;
	*begin = at;
	if (length == 0 || (at + length < end && at[length] != ':' && at[length] != ' ' && at[length] != '\r'))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (ends_with(at, length, ends[i]))
			return length;
	return 0;
}

/* What stands in quotes behind these words; NULL: they are not in the line. */
static char *quoted(const struct line *line, const char *words)
{
	const char *found = memmem(line->text, line->length, words, strlen(words));

	if (!found)
		return NULL;
	found += strlen(words);
	const size_t left = (size_t)(line->text + line->length - found);
	size_t length = 0;

	while (length < left && found[length] != '\'' && found[length] != '"')
		length++;
	return xstrndup(found, length);
}

/* From the end upward: the next line before *end. */
static bool line_before(const char *text, size_t *end, struct line *ret)
{
	if (*end == 0)
		return false;
	size_t stop = *end, begin;

	while (stop > 0 && strchr(" \t\r\n", text[stop - 1]))
		stop--;
	for (begin = stop; begin > 0 && text[begin - 1] != '\n';)
		begin--;
	*ret = (struct line){text + begin, stop - begin};
	*end = begin;
	return stop > begin;
}

/* *ret: the kind; "": standard error has no such line. `module`: only one that is missing. */
static void by_error(const struct store_failure *failure, bool module, char ret[STORE_FAILURE_SIZE])
{
	static const char *const missing[] = {"No module named '", "Cannot find module '", "Cannot find package '",
					      "cannot load such file -- ", "there is no package called "};
	size_t end = failure->error ? failure->error_length : 0;
	struct line line;

	for (ret[0] = '\0'; !ret[0] && line_before(failure->error, &end, &line);) {
		const char *type;
		const size_t length = module ? 0 : exception_type(&line, &type);

		for (size_t i = 0; module && !ret[0] && i < ARRAY_SIZE(missing); i++) {
			auto_free char *name = quoted(&line, missing[i]);

			if (name)
				snprintf(ret, STORE_FAILURE_SIZE, "missing module: %s", name);
		}
		if (length > 0)
			snprintf(ret, STORE_FAILURE_SIZE, "%.*s", (int)MIN(length, (size_t)STORE_FAILURE_SIZE - 1),
				 type);
		else if (!module && ends_with(line.text, line.length, ": command not found"))
			snprintf(ret, STORE_FAILURE_SIZE, "command not found");
	}
}

static void by_denial(const struct store_failure *failure, char ret[STORE_FAILURE_SIZE])
{
	auto_json struct json_object *result = NULL;

	ret[0] = '\0';
	if (!failure->result || !strstr(failure->result, "\"denied\"") ||
	    json_parse(failure->result, strlen(failure->result), &result, NULL) < 0)
		return;
	struct json_object *calls = json_get(result, "denied", json_type_array);
	struct json_object *network = json_get(result, "network", json_type_object);
	struct json_object *hosts = network ? json_get(network, "denied", json_type_array) : NULL;
	const char *call = calls ? json_get_string(json_object_array_get_idx(calls, 0), "name") : NULL;
	const char *host = hosts ? json_get_string(json_object_array_get_idx(hosts, 0), "host") : NULL;

	if (call || host)
		snprintf(ret, STORE_FAILURE_SIZE, "%s denied: %s", call ? "call" : "connection", call ? call : host);
}

/* The same failure has the same sentence but for its figures. */
static void by_message(const struct store_failure *failure, char ret[STORE_FAILURE_SIZE])
{
	const bool status = failure->status && streq(failure->verdict, "RE");
	size_t length = (size_t)snprintf(ret, STORE_FAILURE_SIZE, "%s: ", failure->verdict);

	for (const char *p = failure->message ? failure->message : ""; *p && length + 2 < STORE_FAILURE_SIZE; p++) {
		const bool digit = *p >= '0' && *p <= '9' && !status;

		if (!digit || ret[length - 1] != '#')
			ret[length++] = digit ? '#' : *p;
	}
	ret[length] = '\0';
}

void store_failure_kind(const struct store_failure *failure, char ret[STORE_FAILURE_SIZE])
{
	by_error(failure, true, ret);
	if (!ret[0])
		by_denial(failure, ret);
	if (!ret[0] && (streq(failure->verdict, "RE") || streq(failure->verdict, "CE")))
		by_error(failure, false, ret);
	if (!ret[0])
		by_message(failure, ret);
}
