/*
 * store_sql_bundle.h - statements for carrying executions from one database to another (store_bundle.h), and the
 * columns that go along: everything but what belongs to one machine (instance, token, session, place in the record).
 */
#pragma once

#define STORE_BUNDLE_EXECUTION(FIRST, NEXT) \
	FIRST(id) \
	NEXT(state) NEXT(owner) NEXT(conversation_name) NEXT(created_us) NEXT(language) NEXT(fingerprint) \
		NEXT(network) NEXT(args) NEXT(limits) NEXT(code) NEXT(code_blob) NEXT(code_bytes) NEXT(stdin) NEXT( \
			stdin_blob) NEXT(stdin_bytes) NEXT(entry) NEXT(sandbox) NEXT(sandbox_seq) NEXT(finished_us) \
			NEXT(verdict) NEXT(message) NEXT(exit_code) NEXT(signal) NEXT(run_wall_us) \
				NEXT(run_cpu_user_us) NEXT(run_cpu_system_us) NEXT(run_memory_peak) \
					NEXT(compile_wall_us) NEXT(compile_cpu_user_us) NEXT(compile_cpu_system_us) \
	  NEXT(compile_memory_peak) NEXT(setup_us) NEXT(warm) NEXT(result) \
	  NEXT(stdout) NEXT(stdout_blob) NEXT(stdout_bytes) \
	  NEXT(stdout_truncated) NEXT(stderr) NEXT(stderr_blob) \
	  NEXT(stderr_bytes) NEXT(stderr_truncated) NEXT(display) NEXT(runtime) NEXT(door) NEXT(caller) NEXT(grading)
#define STORE_BUNDLE_FILE(FIRST, NEXT) \
	FIRST(execution) \
	NEXT(phase) NEXT(name) NEXT(change) NEXT(reason) NEXT(blob) NEXT(media_type) NEXT(mode) NEXT(size) \
		NEXT(mtime_us)
#define STORE_BUNDLE_SANDBOX(FIRST, NEXT) \
	FIRST(id) \
	NEXT(owner) NEXT(conversation_name) NEXT(language) NEXT(opened_us) NEXT(ended_us) NEXT(cause) \
		NEXT(dismissed_us)

#define STORE_BUNDLE_BASELINE(FIRST, NEXT) \
	FIRST(execution) \
	NEXT(generation) NEXT(blessed_us) NEXT(author) NEXT(reason) NEXT(fingerprint) NEXT(created_us) \
		NEXT(finished_us) NEXT(verdict) NEXT(message) NEXT(exit_code) NEXT(signal) NEXT(run_cpu_user_us) \
			NEXT(run_cpu_system_us) NEXT(run_memory_peak) NEXT(stdout) NEXT(stdout_blob) \
				NEXT(stdout_bytes) NEXT(stderr) NEXT(stderr_blob) NEXT(stderr_bytes) NEXT(deterministic)
#define STORE_BUNDLE_BASELINE_FILE(FIRST, NEXT) \
	FIRST(execution) \
	NEXT(generation) NEXT(name) NEXT(change) NEXT(reason) NEXT(blob) NEXT(media_type) NEXT(mode) NEXT(size) \
		NEXT(mtime_us)

#define STORE_BUNDLE_TAG(FIRST, NEXT)       FIRST(execution) NEXT(tag)
#define STORE_BUNDLE_RUNTIME(FIRST, NEXT)   FIRST(hash) NEXT(description) NEXT(first_us)
#define STORE_BUNDLE_TOOL_LIST(FIRST, NEXT) FIRST(hash) NEXT(definitions) NEXT(first_us)
#define STORE_BUNDLE_SERVER(FIRST, NEXT) \
	FIRST(execution) NEXT(position) NEXT(name) NEXT(alias) NEXT(description) NEXT(list)
#define STORE_BUNDLE_CALL(FIRST, NEXT) \
	FIRST(execution) \
	NEXT(seq) NEXT(connection) NEXT(server) NEXT(tool) NEXT(is_read) NEXT(definition) NEXT(arguments) \
		NEXT(arguments_hash) NEXT(occurrence) NEXT(decision) NEXT(rule) NEXT(decided_by) NEXT(state) \
			NEXT(kind) NEXT(is_error) NEXT(result) NEXT(protocol) NEXT(attempts) NEXT(approval_us) \
				NEXT(queued_us) NEXT(started_us) NEXT(finished_us) NEXT(arguments_blob) \
				NEXT(result_blob)

#define STORE_BUNDLE_BASELINE_SERVER(FIRST, NEXT) \
	FIRST(execution) NEXT(generation) NEXT(position) NEXT(name) NEXT(alias) NEXT(description) NEXT(list)
#define STORE_BUNDLE_BASELINE_CALL(FIRST, NEXT) STORE_BUNDLE_CALL(FIRST, NEXT) NEXT(generation)

#define BUNDLE_NAME(name)       #name
#define BUNDLE_NAME_NEXT(name)  ", " #name
#define BUNDLE_VALUE(name)      ":" #name
#define BUNDLE_VALUE_NEXT(name) ", :" #name
#define BUNDLE_NAMES(list)      list(BUNDLE_NAME, BUNDLE_NAME_NEXT)
#define BUNDLE_VALUES(list)     list(BUNDLE_VALUE, BUNDLE_VALUE_NEXT)

#define BUNDLE_SELECT(list, rest)       "SELECT " BUNDLE_NAMES(list) " FROM " rest
#define BUNDLE_OF_RUN(list, table)      BUNDLE_SELECT(list, table " WHERE execution = :id")
#define BUNDLE_PUT(table, list)         "INTO " table " (" BUNDLE_NAMES(list) ") VALUES (" BUNDLE_VALUES(list) ")"
#define BUNDLE_IF_NEW(table, list)      "INSERT OR IGNORE " BUNDLE_PUT(table, list)

#define STORE_STATEMENTS_BUNDLE(X) \
	/* out */ \
	X(BUNDLE_EXECUTION, READ, \
	  BUNDLE_SELECT(STORE_BUNDLE_EXECUTION, "execution WHERE id = :id AND state <> 'running'")) \
	X(BUNDLE_FILES, READ, BUNDLE_OF_RUN(STORE_BUNDLE_FILE, "execution_file")) \
	X(BUNDLE_TAGS, READ, BUNDLE_OF_RUN(STORE_BUNDLE_TAG, "execution_tag")) \
	X(BUNDLE_BASELINES, READ, BUNDLE_OF_RUN(STORE_BUNDLE_BASELINE, "baseline")) \
	X(BUNDLE_BASELINE_FILES, READ, BUNDLE_OF_RUN(STORE_BUNDLE_BASELINE_FILE, "baseline_file")) \
	X(BUNDLE_BASELINE_SERVERS, READ, BUNDLE_OF_RUN(STORE_BUNDLE_BASELINE_SERVER, "baseline_server")) \
	X(BUNDLE_BASELINE_CALLS, READ, BUNDLE_OF_RUN(STORE_BUNDLE_BASELINE_CALL, "baseline_call")) \
	X(BUNDLE_SERVERS, READ, BUNDLE_OF_RUN(STORE_BUNDLE_SERVER, "execution_server")) \
	X(BUNDLE_CALLS, READ, BUNDLE_OF_RUN(STORE_BUNDLE_CALL, "tool_call")) \
	X(BUNDLE_SANDBOX, READ, BUNDLE_SELECT(STORE_BUNDLE_SANDBOX, "sandbox WHERE id = :id")) \
	X(BUNDLE_RUNTIME, READ, \
	  BUNDLE_SELECT(STORE_BUNDLE_RUNTIME, "runtime WHERE hash = (SELECT runtime FROM execution WHERE id = :id)")) \
	X(BUNDLE_TOOL_LISTS, READ, \
	  BUNDLE_SELECT(STORE_BUNDLE_TOOL_LIST, \
			"tool_list WHERE hash IN (SELECT list FROM execution_server WHERE execution = :id) " \
			"OR hash IN (SELECT list FROM baseline_server WHERE execution = :id)")) \
	X(BUNDLE_AUDIT, READ, \
	  "SELECT audit.n, at_us, kind, object, entry, salt, detail FROM audit LEFT JOIN audit_detail ON " \
	  "audit_detail.n = audit.n WHERE audit.n = 0 OR (object = 'execution:' || :id AND kind IN ('run.begin', " \
	  "'run.end', 'call'))") \
	/* in */ \
	X(IMPORT_EXECUTION, WRITE, \
	  "INSERT INTO execution (" BUNDLE_NAMES(STORE_BUNDLE_EXECUTION) ", instance, env, recorded, bytes) VALUES (" \
	  BUNDLE_VALUES(STORE_BUNDLE_EXECUTION) ", :instance, :env, " STORE_SQL_NEXT_RECORD ", " \
	  STORE_SQL_IMPORT_BYTES ")") \
	X(IMPORT_SANDBOX, WRITE, \
	  "INSERT OR IGNORE INTO sandbox (" BUNDLE_NAMES(STORE_BUNDLE_SANDBOX) ", instance) VALUES (" \
	  BUNDLE_VALUES(STORE_BUNDLE_SANDBOX) ", :instance)") \
	X(IMPORT_FILE, WRITE, "INSERT " BUNDLE_PUT("execution_file", STORE_BUNDLE_FILE)) \
	X(IMPORT_SERVER, WRITE, "INSERT " BUNDLE_PUT("execution_server", STORE_BUNDLE_SERVER)) \
	X(IMPORT_CALL, WRITE, "INSERT " BUNDLE_PUT("tool_call", STORE_BUNDLE_CALL)) \
	X(IMPORT_TAG, WRITE, BUNDLE_IF_NEW("execution_tag", STORE_BUNDLE_TAG)) \
	X(IMPORT_BASELINE, WRITE, BUNDLE_IF_NEW("baseline", STORE_BUNDLE_BASELINE)) \
	X(IMPORT_BASELINE_FILE, WRITE, BUNDLE_IF_NEW("baseline_file", STORE_BUNDLE_BASELINE_FILE)) \
	X(IMPORT_BASELINE_SERVER, WRITE, BUNDLE_IF_NEW("baseline_server", STORE_BUNDLE_BASELINE_SERVER)) \
	X(IMPORT_BASELINE_CALL, WRITE, BUNDLE_IF_NEW("baseline_call", STORE_BUNDLE_BASELINE_CALL)) \
	X(IMPORT_RUNTIME, WRITE, BUNDLE_IF_NEW("runtime", STORE_BUNDLE_RUNTIME)) \
	X(IMPORT_TOOL_LIST, WRITE, BUNDLE_IF_NEW("tool_list", STORE_BUNDLE_TOOL_LIST))
