/* store_sql_baseline.h - statements on later generations of what is expected of an execution. */
#pragma once

#include "store_sql_execution.h"

/* The outcome; over that of the execution. */
#define STORE_EXPECTED_COLUMNS(FIRST, NEXT, OWN)                                                                       \
	FIRST(EXPECTED_GENERATION, "generation", generation)                                                           \
	NEXT(EXPECTED_FINGERPRINT, "fingerprint", fingerprint)                                                         \
	NEXT(EXPECTED_CREATED_US, "created_us", created_us)                                                            \
	NEXT(EXPECTED_FINISHED_US, "finished_us", finished_us)                                                         \
	NEXT(EXPECTED_VERDICT, "verdict", verdict)                                                                     \
	NEXT(EXPECTED_MESSAGE, "message", message)                                                                     \
	NEXT(EXPECTED_EXIT_CODE, "coalesce(exit_code, -1)", exit_code)                                                 \
	NEXT(EXPECTED_SIGNAL, "signal", signal)                                                                        \
	NEXT(EXPECTED_RUN_CPU_USER_US, "run_cpu_user_us", run.cpu_user_us)                                             \
	NEXT(EXPECTED_RUN_CPU_SYSTEM_US, "run_cpu_system_us", run.cpu_system_us)                                       \
	NEXT(EXPECTED_RUN_MEMORY_PEAK, "run_memory_peak", run.memory_peak_bytes)                                       \
	NEXT(EXPECTED_DETERMINISTIC, "deterministic", deterministic)                                                   \
	OWN(EXPECTED_STDOUT, "stdout")                                                                                 \
	NEXT(EXPECTED_STDOUT_BLOB, "stdout_blob", stdout_text.blob)                                                    \
	OWN(EXPECTED_STDOUT_BYTES, "stdout_bytes")                                                                     \
	OWN(EXPECTED_STDERR, "stderr")                                                                                 \
	NEXT(EXPECTED_STDERR_BLOB, "stderr_blob", stderr_text.blob)                                                    \
	OWN(EXPECTED_STDERR_BYTES, "stderr_bytes")
enum { STORE_EXPECTED_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) EXPECTED_COLUMNS };
#define STORE_SQL_EXPECTED STORE_EXPECTED_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

/* Who made it, and why. */
#define STORE_BASELINE_COLUMNS(FIRST, NEXT, OWN)                                                                       \
	FIRST(BASELINE_GENERATION, "generation", generation)                                                           \
	NEXT(BASELINE_BLESSED_US, "blessed_us", blessed_us)                                                            \
	NEXT(BASELINE_AUTHOR, "author", author)                                                                        \
	NEXT(BASELINE_REASON, "reason", reason)                                                                        \
	NEXT(BASELINE_FINGERPRINT, "fingerprint", fingerprint)                                                         \
	NEXT(BASELINE_VERDICT, "verdict", verdict)                                                                     \
	NEXT(BASELINE_OWN_SERVERS,                                                                                     \
	     "(SELECT count(*) FROM baseline_server AS s WHERE s.execution = baseline.execution AND s.generation = "   \
	     "baseline.generation)",                                                                                   \
	     servers)                                                                                                  \
	NEXT(BASELINE_OWN_CALLS,                                                                                       \
	     "(SELECT count(*) FROM baseline_call AS c WHERE c.execution = baseline.execution AND c.generation = "     \
	     "baseline.generation)",                                                                                   \
	     calls)
enum { STORE_BASELINE_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) BASELINE_COLUMNS };
#define STORE_SQL_BASELINE STORE_BASELINE_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_STATEMENTS_BASELINE(X)                                                                                   \
	X(BASELINE_ADD, WRITE,                                                                                         \
	  "INSERT INTO baseline (execution, generation, blessed_us, author, reason, fingerprint, created_us, "         \
	  "finished_us, verdict, message, exit_code, signal, run_cpu_user_us, run_cpu_system_us, run_memory_peak, "    \
	  "stdout, stdout_blob, stdout_bytes, stderr, stderr_blob, stderr_bytes, deterministic) VALUES (:execution, "  \
	  "(SELECT coalesce(max(generation), 1) + 1 FROM baseline WHERE execution = :execution), :blessed, :author, "  \
	  ":reason, :fingerprint, :created, :finished, :verdict, :message, :exit_code, :signal, :user, :system, "      \
	  ":memory, :stdout, :stdout_blob, :stdout_bytes, :stderr, :stderr_blob, :stderr_bytes, :deterministic) "      \
	  "RETURNING generation")                                                                                      \
	X(BASELINE_FILE_ADD, WRITE,                                                                                    \
	  "INSERT INTO baseline_file (execution, generation, name, change, reason, blob, media_type, mode, size, "     \
	  "mtime_us) VALUES (:execution, :generation, :name, :change, :reason, :blob, :media_type, :mode, :size, "     \
	  ":mtime)")                                                                                                   \
	X(BASELINE_EXPECTED, READ,                                                                                     \
	  "SELECT " STORE_SQL_EXPECTED "FROM baseline WHERE execution = :execution AND generation = :generation")      \
	X(BASELINE_LIST, READ,                                                                                         \
	  "SELECT " STORE_SQL_BASELINE "FROM baseline WHERE execution = :execution ORDER BY generation")               \
	X(BASELINE_FILES, READ,                                                                                        \
	  "SELECT " STORE_SQL_FILE STORE_SQL_CHANGE "FROM baseline_file WHERE execution = :execution AND generation "  \
	  "= :generation ORDER BY name")
