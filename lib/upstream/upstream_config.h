/*
 * upstream_config.h - upstream.file: the servers, in the form that people have in their MCP clients.
 *
 * {"mcpServers": {"github": {"url": …, "headers": {…}}, "files": {"command": "node", "args": […]}}}, comments allowed;
 * `servers` instead of `mcpServers` (VS Code) too. To the members that clients know (command args env cwd, url headers,
 * type, description, disabled) come ours, see the table in upstream_config.c. Members that only concern a client's
 * window are passed over; other unknown members are errors.
 *
 * ${NAME} and ${NAME:-default} in command, args, env, cwd, url, headers and oauth are replaced: by the file NAME in
 * upstream.secrets_dir, else by the environment variable. $NAME is text.
 *
 * An error of one entry (unknown member, missing variable, wrong URL) makes that server unavailable: `problem` says
 * why, the others work. An error of the file is one of all: not JSON, two names that are one alias, our own address.
 *
 * Secrets: what came from a variable, all values of headers and of env, and oauth.client_secret. They are shown as
 * ${NAME} or *** and masked in whatever comes from the server.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/bind.h"
#include "lib/base/config.h"
#include "lib/base/err.h"
#include "upstream_name.h"

#define UPSTREAM_SERVERS_MAX 200

enum upstream_data_kind { UPSTREAM_DATA_TEMPORARY, UPSTREAM_DATA_KEEP };
enum upstream_share { UPSTREAM_SHARE_OWNER, UPSTREAM_SHARE_RUN, UPSTREAM_SHARE_ALL };
enum upstream_start { UPSTREAM_START_USE, UPSTREAM_START_GATEWAY };
enum upstream_elicitation { UPSTREAM_ELICITATION_NONE, UPSTREAM_ELICITATION_RELAY };
/* Unsaid: of an entry without a default (upstream_policy.h); no decision. */
enum upstream_decision { UPSTREAM_ALLOW, UPSTREAM_ASK, UPSTREAM_DENY, UPSTREAM_UNSAID };

/* Patterns: a tool's exact name, or with * for any text. */
struct upstream_rules {
	struct bind_strings allow, ask, deny;
	enum upstream_decision otherwise; /* member `default`: for tools that no pattern names */
};

/* Where the server asks for a sign-in (upstream_sign_in.h); NULL: not said. */
struct upstream_oauth {
	const char *client_id, *client_secret; /* a client that the operator registered */
	const char *client_metadata_url;       /* an https address that describes us, for issuers that take such */
	const char *redirect_uri;              /* of the client; NULL: one of this computer, with a free port */
	const char *scopes;
};

struct upstream_server {
	const char *name;
	char alias[UPSTREAM_ALIAS_SIZE];
	char *problem;  /* NULL: it can be used; else one sentence */
	char *identity; /* what makes it the same server after a restart: name and url, or name, command and args, as
			   written (variables not replaced) */
	const char *command; /* NULL: `url` */
	struct bind_strings args;
	struct bind_map env, headers;
	const char *cwd, *url, *description;
	const char *type; /* "stdio", "http" …: NULL: `command` or `url` says it */
	bool disabled;
	bool jail;                   /* command: in a jail of its own (default) */
	struct bind_strings network; /* command: hosts that it reaches in its jail: exact entries of network.allow */
	struct bind_strings binds;   /* command: folders of upstream.binds that it sees in its jail … */
	bool names_binds;            /* … if the entry has the member; else it sees all */
	enum upstream_data_kind data; /* command: is the /data of its jail kept for its next process? */
	int64_t memory_mb;
	struct upstream_rules tools;
	struct bind_strings idempotent; /* patterns of tools that may be called again when an answer was lost */
	struct bind_strings roots;      /* URIs for servers that ask for them */
	int64_t timeout_seconds, start_seconds, idle_seconds;
	int64_t instances; /* processes that serve one owner (or run) side by side */
	bool is_private;   /* url: the address may be one that is not public */
	enum upstream_start start;
	enum upstream_share share; /* whose connection or process it is */
	bool pin;                  /* changed definitions are refused until an operator accepts them */
	bool trust_annotations;    /* readOnlyHint counts as allow */
	enum upstream_elicitation elicitation;
	struct upstream_oauth oauth;

	/* Not members of the file: */
	struct bind_strings secrets; /* texts to mask */
	struct json_object *entry;   /* strings above point into it; variables replaced */
};

struct upstream_file {
	struct upstream_server *servers;
	size_t count;
	struct bind_strings warnings;
	struct json_object *document;
};

/* config->upstream.file, which must be set. */
int upstream_config_load(const struct config *config, struct upstream_file *ret, struct err *err);
void upstream_config_clear(struct upstream_file *file);
extern const struct bind upstream_config_table[];

/* upstream_expand.c: ${NAME} in an entry. */
/* What variables became, to be masked; strings are the list's. */
struct upstream_secrets {
	char **items;
	size_t count;
};
void upstream_expand_keep(struct upstream_secrets *secrets, const char *value); /* once each; short ones are not */
void upstream_expand_clear(struct upstream_secrets *secrets);

/* Replaces ${NAME}, ${NAME:-default} and ${env:NAME} in the strings of the members that may have them, in place.
 * ERR_INVALID names the member and the variable that is not set. `folder`: of files that hold values; "": none. */
int upstream_expand(struct json_object *entry, const char *folder, struct upstream_secrets *secrets, struct err *err);
