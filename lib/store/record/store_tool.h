/*
 * store_tool.h - the servers whose tools a run could call, and its calls: what `show` prints and what a replay answers
 * from.
 *
 * Written in the transaction of the run's end (store_txn_execution_finish). A list of tools is stored once, however
 * many runs saw it.
 */
#pragma once

#include "lib/store/db/crypto.h"
#include "lib/store/store.h"

/* A server of a run. */
struct store_tool_server {
	char *name, *alias, *description;
	char list[SHA256_HEX_SIZE]; /* hash over `definitions` */
	char *definitions;          /* a JSON array, as the server sent them */
};
/* A call, in the order in which they arrived. */
struct store_tool_call {
	int64_t seq, connection;
	char *server, *tool; /* tool: of a read, the uri */
	bool is_read;
	char definition[SHA256_HEX_SIZE];     /* "": not known */
	char *arguments;                      /* as the program sent them */
	char arguments_hash[SHA256_HEX_SIZE]; /* over their canonical form */
	int64_t occurrence;                   /* equal calls before it in this run */
	char *decision, *rule, *decided_by;   /* NULL: none was needed */
	char state[12];                       /* "done" "failed" "refused" "cancelled" */
	char kind[24];                        /* "result", or why there is none */
	bool is_error;
	char *result; /* JSON as it came, else the sentence that says why not */
	size_t result_length;
	char protocol[16];
	int64_t attempts, approval_us, queued_us, started_us, finished_us;
	/* The contents in which store_tools_keep put the two texts, which are there all the same; "": in the row. */
	char arguments_blob[SHA256_HEX_SIZE], result_blob[SHA256_HEX_SIZE];
};
struct store_tools {
	struct store_tool_server *servers;
	size_t n_servers;
	struct store_tool_call *calls;
	size_t n_calls;
	int64_t asked; /* calls, also those beyond the limit that are not named */
};
void store_tool_call_clear(struct store_tool_call *call);
void store_tools_clear(struct store_tools *tools);
void store_tools_copy(const struct store_tools *tools, struct store_tools *ret);

/* What is too long for a row (STORE_INLINE_MAX) into contents: before the transaction, on a thread that may wait for
 * the disk. */
int store_tools_keep(struct store *store, struct store_tools *tools, struct err *err);
bool store_tools_inline(const struct store_tools *tools); /* nothing is */

struct store_txn;
int store_txn_tools_add(struct store_txn *txn, const char *execution, const struct store_tools *tools, struct err *err);
/* Of a later generation of what is expected (store_baseline.h). */
int store_txn_tools_expect(struct store_txn *txn, const char *execution, int64_t generation,
			   const struct store_tools *tools, struct err *err);
/* All of a run, with its contents; nothing (n_servers 0) if it named no servers. The caller clears it. */
int store_tools_load(struct store *store, const char *execution, struct store_tools *ret, struct err *err);
/* What answers its calls by this generation: what was recorded with it, with one before it, or with the run. */
int store_tools_expected(struct store *store, const char *execution, int64_t generation, struct store_tools *ret,
			 struct err *err);
