/*
 * cli.h - what every subcommand of `sallyport` uses.
 *
 * One file per subcommand (cmd_NAME.c) exports one const struct cli_command; cli/commands.c lists them. A command's
 * options are a table: parser, usage text, --help and the bash completion come from it. The parser fills a struct of
 * the command's own, whose first member is struct cli_common; groups of options that several commands share
 * (cli_common_options, cli_filter_options) are tables of their own that are filled in at an offset. Strings point into
 * argv. A value that does not fit is an error that names the option and what was expected; it ends the program with
 * CLI_USAGE before the handler runs.
 *
 *     struct hello {
 *             struct cli_common common;      // always first
 *             struct cli_filter filter;
 *             int64_t times;
 *     };
 *     static const struct cli_option hello_options[] = {
 *             {.name = "times", .type = CLI_INT, .offset = offsetof(struct hello, times), .min = 1, .max = 9,
 *              .value = "N", .help = "say hello N times [1]"}, {0},
 *     };
 *     static const struct cli_group hello_groups[] = {
 *             {hello_options, 0}, {cli_filter_options, offsetof(struct hello, filter)}, {0}};
 *     const struct cli_command cmd_hello = {.name = "hello", .groups = hello_groups, .run = hello_run, …};
 *
 * The handler returns an exit code >= 0, or a negative err code with `err` set: main prints "sallyport: TEXT" on stderr
 * and ends with err_info(code)->exit. Results go to stdout and nothing else does. Whatever came from a guest or a
 * client passes cli_print_safe or cli_table before it reaches a terminal, so that it cannot send escape sequences.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "jail/client/jail.h"
#include "lib/base/buf.h"
#include "lib/base/config.h"
#include "lib/base/err.h"
#include "lib/base/json.h"
#include "lib/base/version.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/record/store_execution.h"

enum cli_exit {
	CLI_OK = 0,
	CLI_DIFFERENT = 1, /* replay: something differs; doctor: something is missing that stops a run */
	CLI_USAGE = 2,     /* the command line is wrong; nothing was done */
	CLI_MISSING = 3,   /* no such id or path; other errors have the codes of err_info, see sallyport(1) */
	CLI_INCOMPLETE = 5, /* grade, replay: interrupted, a shard is missing, or results were not kept */
	CLI_JUDGE_ERROR = 13, /* grade, replay: the judge or the sandbox failed, also when tried again */
	/* Only `run`, whose exit code is otherwise the program's own: */
	CLI_RUN_TIME = 124,    /* wall or CPU time */
	CLI_RUN_REFUSED = 125, /* refused, or the sandbox failed */
	CLI_RUN_SIGNAL = 128,  /* + number of the signal */
	CLI_RUN_CANCELLED = 130,
};

/* -------- options ------------------------------------------------------------------------------------- */
enum cli_option_type {
	CLI_FLAG = 1, /* bool */
	CLI_STRING,   /* const char *, not empty */
	CLI_STRINGS,  /* struct bind_strings: repeatable; the array is given back by cli_run */
	CLI_INT,      /* int64_t within [min, max] */
	CLI_SECONDS,  /* int64_t microseconds; "0.25", within [min, max] microseconds */
	CLI_MEBI,     /* int64_t bytes; whole MiB, within [min, max] bytes */
	CLI_TIME,     /* int64_t microseconds since the epoch: cli_parse_time */
};
struct cli_option {
	const char *name; /* without dashes: "timeout"; taken as --timeout V and --timeout=V */
	char letter;      /* 'j': -j V, -jV; 0: none */
	enum cli_option_type type;
	size_t offset; /* in the group's struct */
	int64_t min, max;
	const char *value; /* placeholder in the usage: "SECONDS" */
	const char *help;  /* what it does, in the imperative, then " [the default]"; no full stop */
	const char *const *choices; /* CLI_STRING: the allowed values, ended by NULL; or NULL */
	bool input;                 /* CLI_STRING, CLI_STRINGS: a path that must be there */
};
struct cli_group {
	const struct cli_option *options; /* ended by {0} */
	size_t offset;                    /* of the group's struct in the command's */
};

/* First member of every command's struct; its options are part of every command without being listed. */
struct cli_common {
	const char *config; /* --config; NULL: SALLYPORT_CONFIG or the defaults */
	bool json;          /* --json */
	bool help;          /* --help: handled by cli_run */
	const char *const *args; /* positional arguments */
	size_t n_args;
	const char *const *rest; /* what stood behind "--"; NULL-terminated; NULL: there was no "--" */
	size_t n_rest;
};
extern const struct cli_option cli_common_options[];

struct cli_command {
	const char *name;      /* "replay" */
	const char *summary;   /* one line for `sallyport help`, in the imperative, without a full stop */
	const char *arguments; /* for the usage line: "ID…"; " | " begins another usage line */
	const char *help;      /* what it does: paragraphs, an empty line between them; cli_usage breaks lines */
	const char *examples;  /* lines, each with its newline */
	const char *exits;     /* "CODE WHEN\n" for each exit code of its own, in order; NULL: 0 and 2 as for all */
	const struct cli_group *groups; /* ended by {0}; NULL: none */
	size_t size;                    /* of the command's struct */
	size_t min_args, max_args;      /* positional arguments; max SIZE_MAX: any number */
	size_t n_inputs;                /* so many of them, the first, are paths that must be there, or "-" */
	bool takes_rest;                /* "-- ARGUMENT…" is allowed */
	bool audits;                    /* is called `audit NAME`, too */
	/* `options` is the command's struct, filled in. */
	int (*run)(void *options, struct err *err);
};
extern const struct cli_command *const cli_commands[]; /* ended by NULL */
const struct cli_command *cli_command_find(const char *name); /* NULL: no such command */

/* Fills `ret_options` (zeroed, command->size bytes). ERR_INVALID names the option; ERR_NOT_FOUND: an input is not
 * there. cli_options_clear gives repeatable ones back. */
int cli_options_parse(const struct cli_command *command, int argc, char **argv, void *ret_options, struct err *err);
void cli_options_clear(const struct cli_command *command, void *options);
/* Usage, options and help of one command; the list of all commands. docs/man/page makes the manual out of what they
 * print. */
void cli_usage(const struct cli_command *command, FILE *out);
void cli_usage_all(FILE *out);
/* Parses and runs one command (argv[0] is its name), prints its error; the exit code. */
int cli_run(const struct cli_command *command, int argc, char **argv);
/* "sallyport: TEXT" on stderr, made printable; the exit code that belongs to it. */
int cli_complain(const struct err *err);

/* "0.25" -> 250000; at most six decimals, no sign. */
int cli_parse_seconds(const char *text, int64_t min_us, int64_t max_us, int64_t *ret_us, struct err *err);
/* "15m" "2h" "3d" "1w" "90s" before now; "2026-11-21", "2026-11-21T08:11[:09[.5]]" (a blank for the T will do), local
 * time or with Z. */
int cli_parse_time(const char *text, int64_t now_us, int64_t *ret_us, struct err *err);
/* The same in the future: "90d" from now, or a date that is still to come. */
int cli_parse_expiry(const char *text, int64_t now_us, int64_t *ret_us, struct err *err);

/* -------- which executions: shared by log and replay */
struct cli_filter {
	struct bind_strings verdicts, owners;
	const char *language, *token, *conversation, *task, *tool, *text, *tag, *request, *client, *file, *same, *door;
	bool denied, secrets;
	int64_t since_us, until_us; /* 0: open */
};
extern const struct cli_option cli_filter_options[], cli_tag_options[]; /* --tag has another meaning in promote */
extern const struct cli_option cli_log_options[];                      /* of log alone */
bool cli_filter_empty(const struct cli_filter *filter);
bool cli_filter_owner(const struct cli_filter *filter, const char *owner); /* is it named, or none? */
/* Everything else of *ret is zero; strings are the filter's. */
void cli_filter_to_store(const struct cli_filter *filter, struct store_filter *ret);

/* Those of the ids, or of the filters, or all; ERR_INVALID where nothing, or both, was given. */
struct cli_selection {
	const struct cli_common *common;
	const struct cli_filter *filter;
	bool all;
};
int cli_select(struct store *store, const struct cli_selection *selection,
	       int (*each)(void *arg, const struct store_execution *execution), void *arg, struct err *err);

/* -------- what commands open -------------------------------------------------------------------------- */
/* Configuration that names a data_dir; the caller's: auto_config. */
int cli_load_config(const struct cli_common *common, struct config *ret, struct err *err);
/* Configuration (the caller's: auto_config) and the store of its data_dir. */
int cli_open_store(const struct cli_common *common, enum store_mode mode, struct config *ret_config, struct store **ret,
		   struct err *err);
/* Makes the database where the folder has none, for a command that may be the first; several at once wait for one. */
int cli_make_database(const struct cli_common *common, struct err *err);
/* An entry of the audit log; _read: of a command that only reads, which goes on where the record cannot be written. */
int cli_audit(struct store *store, enum store_audit_kind kind, int64_t executions, struct err *err);
int cli_audit_read(const struct config *config, enum store_audit_kind kind, int64_t executions, struct err *err);
/* `count` clients of the jailer of config.jailer.socket if one is named, else of a private one (jail_client_dial). */
int cli_open_jailer(const struct config *config, struct jail_client **ret, size_t count, struct err *err);

/* --priority of commands that do batch work. */
struct cli_priority {
	const char *which; /* NULL: not given */
};
extern const struct cli_option cli_priority_options[];
/* Idle from now on, and so the jails of cli_open_jailer, where the option says so, or says nothing and a gateway serves
 * data_dir. Before any other thread is started. */
void cli_give_way(const struct config *config, const struct cli_priority *priority);
/* A folder below TMPDIR, readable by this user alone; removed when this process is gone, however it ended. Removes
 * those that processes of this user left which were killed together with what should have removed theirs. Before any
 * thread is started. The path is the caller's to free. */
int cli_scratch(char **ret, struct err *err);

/* Calls `look` whenever the record was written to, until it fails or the reader of our output is gone. The watch is
 * made before the first look, so that nothing falls between them; a descriptor, or negative. */
int cli_follow_open(const struct config *config, struct err *err);
int cli_follow(int watch, int (*look)(void *arg, struct err *err), void *arg, struct err *err);

void cli_store_pointer(struct store **store);
void cli_jailer_pointer(struct jail_client **client);
#define auto_store __attribute__((cleanup(cli_store_pointer)))
#define auto_jailer __attribute__((cleanup(cli_jailer_pointer)))
#define auto_execution __attribute__((cleanup(store_execution_clear)))

const char *cli_state_text(enum store_state state);
const char *cli_task_text(const struct store_execution *e); /* the state of its task, "expired", or "" without one */
/* One execution as an object: all columns, texts left out (log) or in (show); the caller's. */
struct json_object *cli_execution_json(const struct store_execution *execution);
/* A point in time for programs: ISO 8601, UTC; null for 0. */
void cli_add_time(struct json_object *object, const char *key, int64_t us);

/* From now on SIGINT and SIGTERM print the text (a literal) and end the program with CLI_INCOMPLETE. Before any other
 * thread is started. */
int cli_catch_interrupts(const char *text, struct err *err);

/* -------- output -------------------------------------------------------------------------------------- */
enum cli_colour { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_BLUE };
/* Escape sequence to begin a colour on `out`, and to end it; "" unless `out` is a terminal, NO_COLOR is unset or empty,
 * and TERM is not "dumb". */
const char *cli_colour_on(FILE *out, enum cli_colour colour);
const char *cli_colour_off(FILE *out);
enum cli_colour cli_verdict_colour(const char *verdict);
/* Text made printable (utf8_printable), newlines too. */
void cli_print_safe(FILE *out, const char *data, size_t length);
/* A text in lines of 80 characters; the first begins in column `used`, the others in `indent`. Newlines stay. */
void cli_print_wrapped(FILE *out, const char *text, int used, int indent);
/* A unified diff, each line behind `indent` and made printable, in colours. */
void cli_print_diff(FILE *out, const char *diff, const char *indent);
/* One JSON value, indented when pretty, and a newline. */
void cli_print_json(FILE *out, struct json_object *value, bool pretty);

/* A table: cells are made printable and cut to the column's maximum; columns are as wide as their widest cell. On a
 * terminal a row fills one line at most: columns that can be spared go, then the widest are cut to their minimum, the
 * last to what is left. */
struct cli_column {
	const char *title;
	bool right;      /* aligned to the right */
	int min, max;    /* width in characters; max 0: none */
	int spare;       /* above 0: left out where the terminal is too narrow, the lowest first */
};
struct cli_table;
struct cli_table *cli_table_new(const struct cli_column *columns, size_t n_columns);
void cli_table_pointer(struct cli_table **table);
#define auto_table __attribute__((cleanup(cli_table_pointer)))
/* The next cell, row by row; the text is copied. */
void cli_table_cell(struct cli_table *table, const char *text, enum cli_colour colour);
/* Prints the rows that were not printed yet, and the titles before the first: may be called again as rows arrive. */
void cli_table_print(struct cli_table *table, FILE *out);
size_t cli_table_rows(const struct cli_table *table);

/* Rows that are JSON objects: with `json` each is printed on a line, else they are a table of the members that the
 * fields name. Numbers are aligned to the right. */
enum cli_form {
	CLI_AS_TEXT,     /* a string; "-" where there is none */
	CLI_AS_COUNT,    /* a number; CLI_RED only colours one above 0 */
	CLI_AS_BYTES,    /* bytes */
	CLI_AS_DURATION, /* microseconds */
	CLI_AS_TIME,     /* microseconds since the epoch; "never" where it is 0 */
};
struct cli_field {
	const char *member, *title;
	enum cli_form form;
	enum cli_colour colour;
	int max; /* width in characters; 0: none */
};
#define CLI_FIELDS_MAX 12
void cli_print_rows(struct json_object *rows, const struct cli_field *fields, size_t n_fields, bool json);

/* "1.2 s", "34 ms"; "12.3 MB"; "2026-11-21 08:11:09" in local time. */
#define CLI_TEXT_SIZE 32
void cli_text_duration(int64_t us, char ret[CLI_TEXT_SIZE]);
void cli_text_bytes(int64_t bytes, char ret[CLI_TEXT_SIZE]);
void cli_text_time(int64_t us, char ret[CLI_TEXT_SIZE]);

/* A progress bar on stderr: only when stderr is a terminal, only from the second second on; cleared at the end. */
struct cli_progress {
	const char *label;
	int64_t total, done, started_us, drawn_us; /* times are monotonic */
	bool enabled, shown;
};
void cli_progress_start(struct cli_progress *progress, const char *label, int64_t total);
void cli_progress_step(struct cli_progress *progress, int64_t done);
/* Begins a new bar where the label or the total is another than before. `label` is a literal. */
void cli_progress_show(struct cli_progress *progress, const char *label, int64_t done, int64_t total);
/* Takes the bar off the line, before other output and at the end; the next step draws it again. */
void cli_progress_hide(struct cli_progress *progress);
