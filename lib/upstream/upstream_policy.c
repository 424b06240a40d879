/*
 * upstream_policy.c - see upstream_policy.h.
 *
 * Two lists are asked, the token's and the server's, and the stricter answer holds: decisions are ordered from allow to
 * deny. A token's list is text and is read again for each question, entry by entry: it is short, and what was checked
 * when it was stored may still name servers that the file has no more.
 */
#include "upstream_policy.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "upstream.h"

static const char *const names[] = {[UPSTREAM_ALLOW] = "allow", [UPSTREAM_ASK] = "ask", [UPSTREAM_DENY] = "deny"};

const char *upstream_decision_name(enum upstream_decision decision)
{
	return names[decision];
}

bool upstream_policy_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *again = NULL;

	while (*name != '\0') {
		if (*pattern == '*') {
			star = pattern++;
			again = name;
		} else if (*pattern == *name) {
			pattern++;
			name++;
		} else if (star != NULL) {
			pattern = star + 1;
			name = ++again;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

static const char *match_of(const struct bind_strings *patterns, const char *name)
{
	for (size_t i = 0; i < patterns->count; i++)
		if (upstream_policy_matches(patterns->items[i], name))
			return patterns->items[i];
	return NULL;
}

bool upstream_policy_any(const struct bind_strings *patterns, const char *name)
{
	return match_of(patterns, name) != NULL;
}

/* One entry of a token's list: "deny:github.delete_*". */
struct entry {
	enum upstream_decision decision;
	char text[UPSTREAM_RULE_SIZE];
	const char *whole; /* of `text`: without the decision */
	char server[UPSTREAM_NAME_MAX + 1], tool[UPSTREAM_NAME_MAX + 1];
};

/* The next entry of the list and where the one after it begins; false: none is left, or it is not one. */
static bool next_entry(const char **list, struct entry *ret)
{
	const char *text = *list;
	size_t length = strcspn(text, ",");
	int server = 0;

	ret->decision = UPSTREAM_ALLOW;
	if (length == 0 || length >= sizeof(ret->text))
		return false;
	*list += length + (text[length] == ',');
	memcpy(ret->text, text, length);
	ret->text[length] = '\0';
	text = ret->text;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t prefix = strlen(names[i]);

		if (strncmp(text, names[i], prefix) == 0 && text[prefix] == ':') {
			ret->decision = (enum upstream_decision)i;
			text += prefix + 1;
			break;
		}
	}
	ret->whole = text;
	/* A server's name may have a dot; a tool's pattern is behind the last one. */
	const char *dot = strrchr(text, '.');

	server = dot != NULL ? (int)(dot - text) : (int)strlen(text);
	if (server == 0 || server > UPSTREAM_NAME_MAX || (dot != NULL && strlen(dot + 1) > UPSTREAM_NAME_MAX))
		return false;
	snprintf(ret->server, sizeof(ret->server), "%.*s", server, text);
	snprintf(ret->tool, sizeof(ret->tool), "%s", dot != NULL ? dot + 1 : "*");
	return true;
}

/* Does the entry speak of this server? One with a dot in its name is also named without a tool. */
static bool names_server(const struct entry *entry, const struct upstream_server *server)
{
	return streq(entry->server, "*") || streq(entry->server, server->name) || streq(entry->server, server->alias) ||
	       streq(entry->whole, server->name);
}

bool upstream_policy_granted(const char *grant, const struct upstream_server *server)
{
	struct entry entry;

	while (grant != NULL && next_entry(&grant, &entry))
		if (entry.decision != UPSTREAM_DENY && names_server(&entry, server))
			return true;
	return false;
}

int upstream_policy_check(const char *grant, struct err *err)
{
	struct entry entry;

	if (strlen(grant) > UPSTREAM_GRANT_MAX)
		return err_set(err, ERR_INVALID, "longer than %d bytes", UPSTREAM_GRANT_MAX);
	while (*grant != '\0') {
		const char *text = grant;

		if (!next_entry(&grant, &entry) || strpbrk(entry.text, " \t\n\"\\/") != NULL)
			return err_set(err, ERR_INVALID,
				       "\"%.64s\" is not a list of SERVER, SERVER.PATTERN, ask:SERVER.PATTERN or "
				       "deny:SERVER.PATTERN between commas",
				       text);
	}
	return 0;
}

static enum upstream_decision by_grant(const struct upstream_question *question, char rule[UPSTREAM_RULE_SIZE])
{
	const char *grant = question->grant;
	enum upstream_decision best = UPSTREAM_DENY;
	bool any = false;
	struct entry entry;

	snprintf(rule, UPSTREAM_RULE_SIZE, "the token is not given this %s",
		 upstream_policy_granted(grant, question->server) ? "tool" : "server");
	while (grant != NULL && next_entry(&grant, &entry)) {
		if (!names_server(&entry, question->server) || (!streq(entry.whole, question->server->name) &&
								!upstream_policy_matches(entry.tool, question->tool)))
			continue;
		if (entry.decision == UPSTREAM_DENY || !any || entry.decision < best) {
			best = entry.decision;
			snprintf(rule, UPSTREAM_RULE_SIZE, "token %.180s", entry.text);
		}
		if (entry.decision == UPSTREAM_DENY)
			return UPSTREAM_DENY;
		any = true;
	}
	return best;
}

static bool says(const struct upstream_tool *definition, const char *hint)
{
	struct json_object *annotations =
		definition != NULL ? json_get(definition->object, "annotations", json_type_object) : NULL;
	struct json_object *said = annotations != NULL ? json_get(annotations, hint, json_type_boolean) : NULL;

	return said != NULL && json_object_get_boolean(said);
}

/* Where no pattern names the tool and the entry has no default. */
static enum upstream_decision unsaid(const struct upstream_question *question, char rule[UPSTREAM_RULE_SIZE])
{
	const bool destroys = says(question->definition, "destructiveHint");

	snprintf(rule, UPSTREAM_RULE_SIZE, "%.80s: %s", question->server->name,
		 destroys ? "the tool says that it destroys" : "the server is named for the token");
	return destroys ? UPSTREAM_ASK : UPSTREAM_ALLOW;
}

/* UPSTREAM_UNSAID: no pattern names the tool. */
static enum upstream_decision by_pattern(const struct upstream_question *question, char rule[UPSTREAM_RULE_SIZE])
{
	const struct upstream_server *server = question->server;
	const struct {
		const struct bind_strings *patterns;
		enum upstream_decision decision;
	} order[] = {
		{&server->tools.deny, UPSTREAM_DENY},
		{&server->tools.allow, UPSTREAM_ALLOW},
		{&server->tools.ask, UPSTREAM_ASK},
	};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		const char *pattern = match_of(order[i].patterns, question->tool);

		if (pattern != NULL) {
			snprintf(rule, UPSTREAM_RULE_SIZE, "%.80s.tools.%s %.80s", server->name,
				 names[order[i].decision], pattern);
			return order[i].decision;
		}
	}
	if (server->trust_annotations && says(question->definition, "readOnlyHint")) {
		snprintf(rule, UPSTREAM_RULE_SIZE, "%.80s.trust_annotations: it only reads", server->name);
		return UPSTREAM_ALLOW;
	}
	return UPSTREAM_UNSAID;
}

static enum upstream_decision by_server(const struct upstream_question *question, char rule[UPSTREAM_RULE_SIZE])
{
	const struct upstream_server *server = question->server;
	const enum upstream_decision decision = by_pattern(question, rule);

	if (decision != UPSTREAM_UNSAID)
		return decision;
	if (server->tools.otherwise == UPSTREAM_UNSAID)
		return unsaid(question, rule);
	snprintf(rule, UPSTREAM_RULE_SIZE, "%.80s.tools.default", server->name);
	return server->tools.otherwise;
}

bool upstream_policy_lenient(const struct upstream_question *question)
{
	char rule[UPSTREAM_RULE_SIZE];

	return question->pin == UPSTREAM_PIN_KNOWN && question->server->tools.otherwise == UPSTREAM_UNSAID &&
	       by_grant(question, rule) == UPSTREAM_ALLOW && by_pattern(question, rule) == UPSTREAM_UNSAID;
}

enum upstream_decision upstream_decide(const struct upstream_question *question, char ret_rule[UPSTREAM_RULE_SIZE])
{
	char rule[UPSTREAM_RULE_SIZE];
	enum upstream_decision decision = by_grant(question, ret_rule), second;

	if (decision == UPSTREAM_DENY)
		return decision;
	second = by_server(question, rule);
	if (second > decision || (second == decision && second == UPSTREAM_ALLOW)) {
		decision = second;
		memcpy(ret_rule, rule, sizeof(rule));
	}
	if (question->pin == UPSTREAM_PIN_CHANGED && decision != UPSTREAM_DENY &&
	    (question->server->pin || decision == UPSTREAM_ALLOW)) {
		decision = question->server->pin ? UPSTREAM_DENY : UPSTREAM_ASK;
		snprintf(ret_rule, UPSTREAM_RULE_SIZE,
			 "%.80s: the tool's definition changed: `sallyport upstream accept`",
			 question->server->name);
	}
	return decision;
}
