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
	  NEXT(stderr_bytes) NEXT(stderr_truncated) NEXT(display) NEXT(runtime)
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

#define STORE_STATEMENTS_BUNDLE(X) \
	X(BUNDLE_EXECUTION, READ, \
	  "SELECT " BUNDLE_NAMES(STORE_BUNDLE_EXECUTION) " FROM execution WHERE id = :id AND state <> 'running'") \
	X(BUNDLE_FILES, READ, "SELECT " BUNDLE_NAMES(STORE_BUNDLE_FILE) " FROM execution_file WHERE execution = :id") \
	X(BUNDLE_TAGS, READ, "SELECT " BUNDLE_NAMES(STORE_BUNDLE_TAG) " FROM execution_tag WHERE execution = :id") \
	X(IMPORT_TAG, WRITE, \
	  "INSERT OR IGNORE INTO execution_tag (" BUNDLE_NAMES(STORE_BUNDLE_TAG) ") VALUES (" BUNDLE_VALUES( \
		  STORE_BUNDLE_TAG) ")") \
	X(BUNDLE_BASELINES, READ, \
	  "SELECT " BUNDLE_NAMES(STORE_BUNDLE_BASELINE) " FROM baseline WHERE execution = :id") \
	X(BUNDLE_BASELINE_FILES, READ, \
	  "SELECT " BUNDLE_NAMES(STORE_BUNDLE_BASELINE_FILE) " FROM baseline_file WHERE execution = :id") \
	X(IMPORT_BASELINE, WRITE, \
	  "INSERT OR IGNORE INTO baseline (" BUNDLE_NAMES(STORE_BUNDLE_BASELINE) ") VALUES (" BUNDLE_VALUES( \
		  STORE_BUNDLE_BASELINE) ")") \
	X(IMPORT_BASELINE_FILE, WRITE, \
	  "INSERT OR IGNORE INTO baseline_file (" BUNDLE_NAMES(STORE_BUNDLE_BASELINE_FILE) ") VALUES (" BUNDLE_VALUES( \
		  STORE_BUNDLE_BASELINE_FILE) ")") \
	X(BUNDLE_AUDIT, READ, \
	  "SELECT audit.n, at_us, kind, object, entry, salt, detail FROM audit LEFT JOIN audit_detail ON " \
	  "audit_detail.n = audit.n WHERE audit.n = 0 OR (object = 'execution:' || :id AND kind IN ('run.begin', " \
	  "'run.end', 'call'))") \
	X(BUNDLE_SANDBOX, READ, "SELECT " BUNDLE_NAMES(STORE_BUNDLE_SANDBOX) " FROM sandbox WHERE id = :id") \
	X(IMPORT_EXECUTION, WRITE, \
	  "INSERT INTO execution (" BUNDLE_NAMES(STORE_BUNDLE_EXECUTION) ", instance, env, recorded, bytes) VALUES " \
	  "(" BUNDLE_VALUES( \
	  STORE_BUNDLE_EXECUTION) ", " \
	  ":instance, " \
	  ":env," \
	  " " STORE_SQL_NEXT_RECORD ", " STORE_SQL_IMPORT_BYTES ")") \
	X(IMPORT_FILE, WRITE, \
	  "INSERT INTO execution_file (" BUNDLE_NAMES(STORE_BUNDLE_FILE) ") VALUES (" BUNDLE_VALUES( \
		  STORE_BUNDLE_FILE) ")") \
	X(IMPORT_SANDBOX, WRITE, \
	  "INSERT OR IGNORE INTO sandbox (" BUNDLE_NAMES(STORE_BUNDLE_SANDBOX) ", instance) VALUES (" BUNDLE_VALUES( \
		  STORE_BUNDLE_SANDBOX) ", :instance)") \
	/* what they ran on and called */ \
	X(BUNDLE_RUNTIME, READ, \
	  "SELECT " BUNDLE_NAMES(STORE_BUNDLE_RUNTIME) " FROM runtime WHERE hash = (SELECT runtime FROM execution " \
						       "WHERE id = :id)") \
	X(BUNDLE_TOOL_LISTS, READ, \
	  "SELECT " BUNDLE_NAMES(STORE_BUNDLE_TOOL_LIST) " FROM tool_list WHERE hash IN (SELECT list FROM " \
							 "execution_server WHERE execution = :id) OR hash IN " \
							 "(SELECT list FROM baseline_server WHERE execution = " \
							 ":id)") \
	X(BUNDLE_BASELINE_SERVERS, READ, \
	  "SELECT " BUNDLE_NAMES(STORE_BUNDLE_BASELINE_SERVER) " FROM baseline_server WHERE execution = :id") \
	X(BUNDLE_BASELINE_CALLS, READ, \
	  "SELECT " BUNDLE_NAMES(STORE_BUNDLE_BASELINE_CALL) " FROM baseline_call WHERE execution = :id") \
	X(IMPORT_BASELINE_SERVER, WRITE, \
	  "INSERT OR IGNORE INTO baseline_server (" BUNDLE_NAMES( \
		  STORE_BUNDLE_BASELINE_SERVER) ") VALUES (" BUNDLE_VALUES(STORE_BUNDLE_BASELINE_SERVER) ")") \
	X(IMPORT_BASELINE_CALL, WRITE, \
	  "INSERT OR IGNORE INTO baseline_call (" BUNDLE_NAMES(STORE_BUNDLE_BASELINE_CALL) ") VALUES (" BUNDLE_VALUES( \
		  STORE_BUNDLE_BASELINE_CALL) ")") \
	X(BUNDLE_SERVERS, READ, \
	  "SELECT " BUNDLE_NAMES(STORE_BUNDLE_SERVER) " FROM execution_server WHERE execution = :id") \
	X(BUNDLE_CALLS, READ, "SELECT " BUNDLE_NAMES(STORE_BUNDLE_CALL) " FROM tool_call WHERE execution = :id") \
	X(IMPORT_RUNTIME, WRITE, \
	  "INSERT OR IGNORE INTO runtime (" BUNDLE_NAMES(STORE_BUNDLE_RUNTIME) ") VALUES (" BUNDLE_VALUES( \
		  STORE_BUNDLE_RUNTIME) ")") \
	X(IMPORT_TOOL_LIST, WRITE, \
	  "INSERT OR IGNORE INTO tool_list (" BUNDLE_NAMES(STORE_BUNDLE_TOOL_LIST) ") VALUES (" BUNDLE_VALUES( \
		  STORE_BUNDLE_TOOL_LIST) ")") \
	X(IMPORT_SERVER, WRITE, \
	  "INSERT INTO execution_server (" BUNDLE_NAMES(STORE_BUNDLE_SERVER) ") VALUES (" BUNDLE_VALUES( \
		  STORE_BUNDLE_SERVER) ")") \
	X(IMPORT_CALL, WRITE, \
	  "INSERT INTO tool_call (" BUNDLE_NAMES(STORE_BUNDLE_CALL) ") VALUES (" BUNDLE_VALUES(STORE_BUNDLE_CALL) ")")
