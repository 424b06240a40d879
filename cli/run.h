/*
 * run.h - the parts of `sallyport run`: choosing the runner, files in and out, tools, the session with the jailer, the
 * reports.
 *
 * cmd_run.c fills struct run_request, run_session runs it and fills struct run_outcome, run_report.c reports the
 * outcome.
 */
#pragma once

#include "cli.h"
#include "jail/client/client_once.h"
#include "lib/job/job_tools.h"

#define RUN_CODE_MAX (16LL * 1024 * 1024)
#define RUN_FILES_MAX 1024 /* --file options, and files that are written back */

/* --- cmd_run.c */
/* The runner's object in `runners` (borrowed): by name or alias if `language` is given, else by the file's extension,
 * else by its first line (#!). ERR_INVALID lists what there is, ERR_UNAVAILABLE says what to install. */
int run_runner_choose(struct json_object *runners, const char *language, const char *path, int code_fd,
		      struct json_object **ret, struct err *err);

/* --- run_files.c */
struct run_file { /* what the run made of /data */
	enum jail_change_kind kind;
	char *name;
	uint32_t mode;
	int64_t mtime_us, size;
	char *reason; /* NOT_KEPT; or why it was not written to the output folder */
	bool written;
};
struct run_files {
	struct run_file *items;
	size_t count, size;
	int output_dir; /* descriptor, -1: contents are dropped */
};
void run_files_clear(struct run_files *files);
/* "PATH[:NAME]" for --file, opened: ret->fd is the caller's, ret->name is a part of the argument. */
int run_input_open(const char *argument, struct jail_file *ret, struct err *err);
/* The folder of --output-dir, made if it is missing. */
int run_folder_open(const char *path, int *ret, struct err *err);
/* Writes one file below the folder, as run_files_add does; does not close change->fd. */
int run_file_write(int root, const struct jail_change *change, struct err *err);
/* Notes one change, and writes the file below output_dir: no symlink is followed, an existing file is replaced, names
 * that are not UTF-8 or hold control characters are left out with a reason. Closes change->fd. */
void run_files_add(struct run_files *files, const struct jail_change *change);

/* --- run_tools.c */
/* The servers of --servers: the pool of upstream servers and the bridge, in this process. The policy is that of the
 * servers' entries; calls that need approval are refused. Definitions of tools are not compared with any record: a
 * server with `pin` is refused. */
struct bridge;
struct upstream;
struct run_tools {
	struct upstream *upstream;
	struct bridge *bridge;
	struct job_tools *job;
	bool open;
	struct job_tools_wait wait; /* its event is readable: run_tools_step */
	struct job_tools_given given; /* for the program; NULL and -1 without servers */
	struct store_tools calls;     /* behind run_tools_stop */
};
struct run_tools_spec {
	const struct config *config;
	const char *servers; /* NAME[,NAME]; NULL: none */
	const char *runner;
};
/* Connects to the servers and takes what they offer. In any case the caller clears *ret. */
int run_tools_begin(struct run_tools *ret, const struct run_tools_spec *spec, struct err *err);
/* The program begins or ends to wait for tools: its wall clock stops, or continues. */
void run_tools_step(struct run_tools *tools, struct jail *jail);
/* The program has ended: cancels what is under way, and ends the servers. The configuration may go. */
void run_tools_stop(struct run_tools *tools);
void run_tools_clear(struct run_tools *tools); /* all zero is fine */

/* --- run_session.c */
struct run_request {
	struct jail_spec spec;
	struct jail_program program; /* stdin_fd and the output descriptors are the session's */
	struct jail_file *inputs;
	size_t n_inputs;
	bool forward_stdin; /* our standard input reaches the program as it arrives */
	bool live;          /* output goes to our stdout and stderr as it arrives */
	struct run_tools *tools; /* that it may call; NULL: none */
};
struct run_outcome {
	struct jail_once once; /* result, failure, and the whole output (captured) */
	bool grouped;           /* by a jailer with cgroups; known only where a meta file was asked for */
	struct run_files files;
	int cancelled_by;      /* signal, 0: none */
};
/* 0 when the jailer answered (look at once.done and once.failure), else an error of ours. SIGINT, SIGTERM and SIGHUP
 * cancel the run once, and kill this program the second time. */
int run_session(struct jail_client *client, const struct run_request *request, struct run_outcome *outcome,
		struct err *err);

/* --- run_report.c */
int run_exit_code(const struct run_outcome *outcome);
/* isolate's keys, sallyport-run(1) lists them. `fd` was opened before the run, so that a wrong path stops it early. */
int run_meta_write(int fd, const struct run_outcome *outcome, struct err *err);
struct json_object *run_json(const struct run_outcome *outcome);
/* What a person at a terminal wants to know besides the output. */
void run_remarks(const struct run_outcome *outcome, bool interactive);
