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
	  NEXT(stderr_bytes) NEXT(stderr_truncated)
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
				NEXT(stdout_bytes) NEXT(stderr) NEXT(stderr_blob) NEXT(stderr_bytes)
#define STORE_BUNDLE_BASELINE_FILE(FIRST, NEXT) \
	FIRST(execution) \
	NEXT(generation) NEXT(name) NEXT(change) NEXT(reason) NEXT(blob) NEXT(media_type) NEXT(mode) NEXT(size) \
		NEXT(mtime_us)

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
		  STORE_BUNDLE_SANDBOX) ", :instance)")
