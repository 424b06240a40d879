/*
 * upstream_policy.h - may this caller call this tool? One function for calls of programs, direct calls and the CLI.
 *
 * Order: the token's list, then the server's rules; the stricter of the two holds. In both a matching deny wins, then
 * allow, then ask. A token's list names servers, or tools by pattern: "github", "files.read_*", "ask:mail.send",
 * "deny:github.delete_*", separated by commas; "*" is every server. A server that no entry names is denied.
 *
 * What no pattern of a server names has the server's default. Where its entry has none, a server that a token names may
 * be called, but a tool that says of itself that it destroys is asked about where the client can be asked.
 *
 * A definition that changed since it was first seen is denied where the server's entry says pin, else asked about.
 * Annotations are the server's own claim: only with trust_annotations does readOnlyHint allow what no pattern names.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/err.h"
#include "upstream_config.h"

struct upstream_tool;
#define UPSTREAM_RULE_SIZE 192
#define UPSTREAM_GRANT_MAX 2048 /* bytes of a token's list */

enum upstream_pin { UPSTREAM_PIN_KNOWN, UPSTREAM_PIN_CHANGED };
struct upstream_question {
	const char *grant; /* the token's list; NULL: none */
	const struct upstream_server *server;
	const char *tool;
	const struct upstream_tool *definition; /* NULL: not known */
	enum upstream_pin pin;
};
/* `ret_rule` says which rule decided, for the record and for people: "mcpServers.github.tools.deny delete_*". */
enum upstream_decision upstream_decide(const struct upstream_question *question, char ret_rule[UPSTREAM_RULE_SIZE]);
/* Of what is to be asked: may it be called where nobody can be asked? */
bool upstream_policy_lenient(const struct upstream_question *question);
const char *upstream_decision_name(enum upstream_decision decision); /* "allow" "ask" "deny" */

/* Does the token's list name this server at all? What it does not name, it does not see. */
bool upstream_policy_granted(const char *grant, const struct upstream_server *server);
/* Is it a list that can be stored? Servers need not exist. */
int upstream_policy_check(const char *grant, struct err *err);
/* "*" stands for any text, also none. */
bool upstream_policy_matches(const char *pattern, const char *name);
bool upstream_policy_any(const struct bind_strings *patterns, const char *name);
