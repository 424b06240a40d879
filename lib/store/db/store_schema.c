/* store_schema.c - see store_schema.h; the Makefile makes the included text from schema.sql. */
#include "store_schema.h"

#include <stddef.h>

const char store_schema[] =
#include "schema_sql.inc"
	;

#define NEWEST 25

const int store_schema_newest = NEWEST;

const struct store_step store_schema_steps[] = {
	/* The order of commits and the idle time of conversations no longer hang on the machine's clock. */
	{1,
	 "ALTER TABLE execution ADD COLUMN recorded INTEGER;"
	 "UPDATE execution SET recorded = place FROM (SELECT id AS ended, row_number() OVER (ORDER BY finished_us, id) "
	 "AS place FROM execution WHERE finished_us IS NOT NULL) WHERE id = ended;"
	 "DROP INDEX execution_by_finish;"
	 "CREATE UNIQUE INDEX execution_by_record ON execution (recorded) WHERE recorded IS NOT NULL;"
	 "CREATE TABLE uptime (one INTEGER PRIMARY KEY CHECK (one = 1), "
	 "served_us INTEGER NOT NULL CHECK (served_us >= 0)) STRICT;"
	 "INSERT INTO uptime (one, served_us) VALUES (1, 0);"
	 "ALTER TABLE conversation ADD COLUMN idle_from_us INTEGER NOT NULL DEFAULT 0;"
	 "DROP INDEX conversation_by_seen;"
	 "CREATE INDEX conversation_by_idle ON conversation (idle_from_us);"
	 "PRAGMA user_version = 2;"},
	/* By what a run is found in other programs' logs. */
	{2, "ALTER TABLE execution ADD COLUMN request_id TEXT;"
	    "ALTER TABLE execution ADD COLUMN trace TEXT;"
	    "PRAGMA user_version = 3;"},
	/* The audit log. */
	{3, "CREATE TABLE audit (n INTEGER PRIMARY KEY CHECK (n >= 0), at_us INTEGER NOT NULL, kind TEXT NOT NULL, "
	    "object TEXT NOT NULL, entry TEXT NOT NULL) STRICT;"
	    "CREATE INDEX audit_by_object ON audit (object, n);"
	    "CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN SELECT raise(ABORT, 'entries of the audit log are "
	    "never removed'); END;"
	    "CREATE TRIGGER audit_fixed BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'entries of the audit log are "
	    "never changed'); END;"
	    "CREATE TABLE audit_detail (n INTEGER PRIMARY KEY REFERENCES audit (n), "
	    "salt BLOB NOT NULL CHECK (length(salt) = 32), detail TEXT NOT NULL) STRICT;"
	    "CREATE TABLE principal (owner TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE CHECK (length(id) = 36), "
	    "created_us INTEGER NOT NULL) STRICT;"
	    "PRAGMA user_version = 4;"},
	/* Later generations of what is expected of a run. */
	{4, "CREATE TABLE baseline (execution TEXT NOT NULL REFERENCES execution (id) ON DELETE CASCADE, "
	    "generation INTEGER NOT NULL CHECK (generation >= 2), blessed_us INTEGER NOT NULL, author TEXT "
	    "NOT NULL CHECK (author <> ''), reason TEXT NOT NULL CHECK (reason <> ''), fingerprint TEXT NOT "
	    "NULL, created_us INTEGER NOT NULL, finished_us INTEGER NOT NULL, verdict TEXT NOT NULL CHECK "
	    "(verdict IN ('OK', 'RE', 'SG', 'TO', 'ML', 'OL', 'CE')), message TEXT NOT NULL, exit_code "
	    "INTEGER, signal INTEGER, run_cpu_user_us INTEGER NOT NULL, run_cpu_system_us INTEGER NOT NULL, "
	    "run_memory_peak INTEGER NOT NULL, stdout ANY CHECK (typeof(stdout) IN ('text', 'blob', "
	    "'null')), stdout_blob TEXT REFERENCES blob (sha256), stdout_bytes INTEGER NOT NULL, stderr ANY "
	    "CHECK (typeof(stderr) IN ('text', 'blob', 'null')), stderr_blob TEXT REFERENCES blob (sha256), "
	    "stderr_bytes INTEGER NOT NULL, PRIMARY KEY (execution, generation), CHECK (stdout IS NULL OR "
	    "stdout_blob IS NULL), CHECK (stderr IS NULL OR stderr_blob IS NULL)) STRICT;"
	    "CREATE INDEX baseline_by_stdout_blob ON baseline (stdout_blob) WHERE stdout_blob IS NOT NULL;"
	    "CREATE INDEX baseline_by_stderr_blob ON baseline (stderr_blob) WHERE stderr_blob IS NOT NULL;"
	    "CREATE TABLE baseline_file (execution TEXT NOT NULL, generation INTEGER NOT NULL, name ANY NOT "
	    "NULL CHECK (typeof(name) IN ('text', 'blob') AND length(name) > 0), change TEXT NOT NULL CHECK "
	    "(change IN ('created', 'changed', 'deleted', 'lost')), reason TEXT, blob TEXT CHECK "
	    "(length(blob) = 64), media_type TEXT, mode INTEGER NOT NULL, size INTEGER NOT NULL, mtime_us "
	    "INTEGER NOT NULL, PRIMARY KEY (execution, generation, name), FOREIGN KEY (execution, "
	    "generation) REFERENCES baseline (execution, generation) ON DELETE CASCADE) STRICT, WITHOUT "
	    "ROWID;"
	    "PRAGMA user_version = 5;"},
	/* What an owner has is counted, and each content once. */
	{5,
	 "CREATE TABLE usage (owner TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
	 "CREATE TABLE holding (owner TEXT NOT NULL, blob TEXT NOT NULL, size INTEGER NOT NULL, "
	 "doubt INTEGER NOT NULL DEFAULT 0 CHECK (doubt IN (0, 1)), PRIMARY KEY (owner, blob)) STRICT, WITHOUT ROWID;"
	 "CREATE INDEX holding_in_doubt ON holding (owner, blob) WHERE doubt = 1;"
	 "ALTER TABLE execution ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;"
	 "UPDATE execution SET bytes = 1024 + iif(code_blob IS NULL, code_bytes, 0) + iif(stdin_blob IS NULL, "
	 "stdin_bytes, 0) + iif(stdout_blob IS NULL, coalesce(stdout_bytes, 0), 0) + iif(stderr_blob IS NULL, "
	 "coalesce(stderr_bytes, 0), 0) + length(CAST(args AS BLOB)) + coalesce(length(env), 0) + "
	 "coalesce(length(CAST(result AS BLOB)), 0) + (SELECT coalesce(sum(128 + length(CAST(name AS BLOB))), 0) FROM "
	 "execution_file WHERE execution = id);"
	 "INSERT INTO holding (owner, blob, size) SELECT owner, blob, size FROM ("
	 "SELECT owner, file.blob AS blob FROM file JOIN conversation ON conversation.id = conversation "
	 "UNION SELECT owner, execution_file.blob FROM execution_file JOIN execution ON id = execution "
	 "UNION SELECT owner, code_blob FROM execution UNION SELECT owner, stdin_blob FROM execution "
	 "UNION SELECT owner, stdout_blob FROM execution UNION SELECT owner, stderr_blob FROM execution) "
	 "JOIN blob ON sha256 = blob;"
	 "INSERT INTO usage (owner, bytes) SELECT owner, sum(bytes) FROM ("
	 "SELECT owner, size AS bytes FROM holding UNION ALL SELECT owner, bytes FROM execution "
	 "UNION ALL SELECT owner, 1024 FROM conversation "
	 "UNION ALL SELECT owner, 128 FROM file JOIN conversation ON conversation.id = conversation) GROUP BY owner;"
	 "PRAGMA user_version = 6;"},
	/* A token's end, and where its client looks for the details of a call. */
	{6, "ALTER TABLE token ADD COLUMN expires_us INTEGER;"
	    "ALTER TABLE token ADD COLUMN results TEXT CHECK (results IN ('content', 'structured', 'both'));"
	    "PRAGMA user_version = 7;"},
	/* Calls of tools. */
	{7, "CREATE TABLE tool_list (hash        TEXT PRIMARY KEY CHECK (length(hash) = 64), definitions "
	    "TEXT NOT NULL, first_us    INTEGER NOT NULL) STRICT;"
	    "CREATE TABLE execution_server (execution   TEXT NOT NULL REFERENCES execution (id) ON DELETE "
	    "CASCADE, position    INTEGER NOT NULL, name        TEXT NOT NULL, alias       TEXT NOT NULL, "
	    "description TEXT NOT NULL, list        TEXT NOT NULL REFERENCES tool_list (hash), PRIMARY KEY "
	    "(execution, position)) STRICT, WITHOUT ROWID;"
	    "CREATE INDEX execution_server_by_list ON execution_server (list);"
	    "CREATE TABLE tool_call (execution      TEXT NOT NULL REFERENCES execution (id) ON DELETE "
	    "CASCADE, seq            INTEGER NOT NULL CHECK (seq > 0), connection     INTEGER NOT NULL, "
	    "server         TEXT NOT NULL, tool           TEXT NOT NULL, is_read        INTEGER NOT NULL "
	    "CHECK (is_read IN (0, 1)), definition     TEXT, arguments      TEXT NOT NULL, arguments_hash "
	    "TEXT NOT NULL, occurrence     INTEGER NOT NULL, decision       TEXT, rule           TEXT, "
	    "decided_by     TEXT, state          TEXT NOT NULL CHECK (state IN ('done', 'failed', 'refused', "
	    "'cancelled')), kind           TEXT NOT NULL, is_error       INTEGER NOT NULL CHECK (is_error IN "
	    "(0, 1)), result         TEXT NOT NULL, protocol       TEXT, attempts       INTEGER NOT NULL, "
	    "approval_us    INTEGER NOT NULL, queued_us      INTEGER NOT NULL, started_us     INTEGER NOT "
	    "NULL, finished_us    INTEGER NOT NULL, PRIMARY KEY (execution, seq)) STRICT, WITHOUT ROWID;"
	    "PRAGMA user_version = 8;"},
	/* What tokens may use of upstream servers, and the definitions that were seen. */
	{8, "ALTER TABLE token ADD COLUMN servers TEXT;"
	    "CREATE TABLE tool_pin (server     TEXT NOT NULL CHECK (length(server) = 64), tool       TEXT NOT NULL, "
	    "hash       TEXT NOT NULL CHECK (length(hash) = 64), first_us   INTEGER NOT NULL, decided_us "
	    "INTEGER, PRIMARY KEY (server, tool)) STRICT, WITHOUT ROWID;"
	    "PRAGMA user_version = 9;"},
	/* Content can go, the fact stays; calls of tools count. */
	{9,
	 "ALTER TABLE execution ADD COLUMN erased TEXT CHECK (erased IN ('output', 'content'));"
	 "ALTER TABLE execution ADD COLUMN erased_us INTEGER;"
	 "ALTER TABLE execution ADD COLUMN erased_why TEXT;"
	 "ALTER TABLE execution ADD COLUMN erased_before INTEGER;"
	 "ALTER TABLE execution ADD COLUMN erased_after INTEGER;"
	 "CREATE TABLE erasing (execution TEXT PRIMARY KEY REFERENCES execution (id) ON DELETE CASCADE, what TEXT NOT "
	 "NULL CHECK (what IN ('output', 'content'))) STRICT, WITHOUT ROWID;"
	 "UPDATE usage SET bytes = bytes + (SELECT coalesce(sum(256 + length(CAST(arguments AS BLOB)) + "
	 "length(CAST(tool_call.result AS BLOB))), 0) FROM tool_call JOIN execution ON execution.id = "
	 "tool_call.execution WHERE execution.owner = usage.owner);"
	 "PRAGMA user_version = 10;"},
	/* Listings of outputs pass silent runs over. */
	{10,
	 "CREATE INDEX execution_with_output ON execution (owner, id) WHERE (stdout_bytes > 0 OR stderr_bytes > 0) AND "
	 "erased IS NULL;"
	 "PRAGMA user_version = 11;"},
	/* Was the value of a last expression shown? A replay must do the same. */
	{11, "ALTER TABLE execution ADD COLUMN display INTEGER NOT NULL DEFAULT 0 CHECK (display IN (0, 1));"
	     "PRAGMA user_version = 12;"},
	/* Sessions, events, keys and tasks live by the time that gateways served; those of today anew. */
	{12, "ALTER TABLE session ADD COLUMN idle_from_us INTEGER NOT NULL DEFAULT 0;"
	     "UPDATE session SET idle_from_us = (SELECT served_us FROM uptime);"
	     "ALTER TABLE event ADD COLUMN served_us INTEGER NOT NULL DEFAULT 0;"
	     "UPDATE event SET served_us = (SELECT uptime.served_us FROM uptime);"
	     "DROP INDEX event_by_created; CREATE INDEX event_by_age ON event (served_us);"
	     "ALTER TABLE request ADD COLUMN until_us INTEGER NOT NULL DEFAULT 0;"
	     "UPDATE request SET until_us = (SELECT served_us FROM uptime) + 86400000000;"
	     "DROP INDEX request_by_expiry; CREATE INDEX request_by_age ON request (until_us);"
	     "ALTER TABLE task ADD COLUMN until_us INTEGER NOT NULL DEFAULT 0;"
	     "UPDATE task SET until_us = (SELECT served_us FROM uptime) + expires_us - created_us;"
	     "DROP INDEX task_by_expiry; CREATE INDEX task_by_age ON task (until_us);"
	     "PRAGMA user_version = 13;"},
	/* Owners for whom nothing starts here. */
	{13,
	 "CREATE TABLE drain (owner TEXT PRIMARY KEY, reason TEXT NOT NULL, since_us INTEGER NOT NULL) STRICT, WITHOUT "
	 "ROWID;"
	 "PRAGMA user_version = 14;"},
	/* Expected outcomes of deterministic runs. */
	{14, "ALTER TABLE baseline ADD COLUMN deterministic INTEGER NOT NULL DEFAULT 0 CHECK (deterministic IN (0, 1));"
	     "PRAGMA user_version = 15;"},
	/* The index of texts; the next garbage collection fills it. */
	{15,
	 "CREATE VIRTUAL TABLE search USING fts5 (text, content = '', columnsize = 0, detail = none, tokenize = "
	 "'trigram case_sensitive 1');"
	 "CREATE TABLE searched (one INTEGER PRIMARY KEY CHECK (one = 1), through INTEGER NOT NULL CHECK (through >= "
	 "0), stale INTEGER NOT NULL CHECK (stale IN (0, 1, 2))) STRICT;"
	 "INSERT INTO searched (one, through, stale) VALUES (1, 0, 0);"
	 "PRAGMA user_version = 16;"},
	/* What programs run on. */
	{16, "CREATE TABLE runtime (hash TEXT PRIMARY KEY CHECK (length(hash) = 64), description TEXT NOT NULL CHECK "
	     "(substr(description, 1, 1) = '{'), first_us INTEGER NOT NULL) STRICT;"
	     "ALTER TABLE execution ADD COLUMN runtime TEXT REFERENCES runtime (hash);"
	     "PRAGMA user_version = 17;"},
	/* Programs that are kept by name. */
	{17,
	 "CREATE TABLE snippet (owner TEXT NOT NULL, name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64), version "
	 "INTEGER NOT NULL CHECK (version > 0), language TEXT NOT NULL, description TEXT NOT NULL, schema TEXT NOT "
	 "NULL CHECK (substr(schema, 1, 1) = '{'), servers TEXT NOT NULL CHECK (substr(servers, 1, 1) = '['), "
	 "code TEXT NOT NULL, created_us INTEGER NOT NULL, PRIMARY KEY (owner, name, version)) STRICT;"
	 "PRAGMA user_version = 18;"},
	/* What real servers answered when a generation was made. */
	{18, "CREATE TABLE baseline_server (execution TEXT NOT NULL, generation INTEGER NOT NULL, position INTEGER NOT "
	     "NULL, name TEXT NOT NULL, alias TEXT NOT NULL, description TEXT NOT NULL, list TEXT NOT NULL REFERENCES "
	     "tool_list (hash), PRIMARY KEY (execution, generation, position), FOREIGN KEY (execution, generation) "
	     "REFERENCES baseline (execution, generation) ON DELETE CASCADE) STRICT, WITHOUT ROWID;"
	     "CREATE INDEX baseline_server_by_list ON baseline_server (list);"
	     "CREATE TABLE baseline_call (execution TEXT NOT NULL, generation INTEGER NOT NULL, seq INTEGER NOT NULL "
	     "CHECK (seq > 0), connection INTEGER NOT NULL, server TEXT NOT NULL, tool TEXT NOT NULL, is_read INTEGER "
	     "NOT NULL CHECK (is_read IN (0, 1)), definition TEXT, arguments TEXT NOT NULL, arguments_hash TEXT NOT "
	     "NULL, occurrence INTEGER NOT NULL, decision TEXT, rule TEXT, decided_by TEXT, state TEXT NOT NULL CHECK "
	     "(state IN ('done', 'failed', 'refused', 'cancelled')), kind TEXT NOT NULL, is_error INTEGER NOT NULL "
	     "CHECK (is_error IN (0, 1)), result TEXT NOT NULL, protocol TEXT, attempts INTEGER NOT NULL, approval_us "
	     "INTEGER NOT NULL, queued_us INTEGER NOT NULL, started_us INTEGER NOT NULL, finished_us INTEGER NOT "
	     "NULL, PRIMARY KEY (execution, generation, seq), FOREIGN KEY (execution, generation) REFERENCES baseline "
	     "(execution, generation) ON DELETE CASCADE) STRICT, WITHOUT ROWID;"
	     "PRAGMA user_version = 19;"},
	/* Snippets count as their owner's. */
	{19, "INSERT INTO usage (owner, bytes) SELECT owner, sum(512 + length(CAST(description || schema || servers || "
	     "code AS BLOB))) FROM snippet WHERE owner <> '' GROUP BY owner ON CONFLICT (owner) DO UPDATE SET bytes = "
	     "bytes + excluded.bytes;"
	     "PRAGMA user_version = 20;"},
	/* A file that is written anew and is as long as before changes no sum: triggers are all made anew. */
	{20, "PRAGMA user_version = 21;"},
	/* Files of contents may be packed, which older programs take for missing. */
	{21, "PRAGMA user_version = 22;"},
	/* Runs have tags. */
	{22,
	 "CREATE TABLE execution_tag (execution TEXT NOT NULL REFERENCES execution (id) ON DELETE CASCADE, tag TEXT "
	 "NOT NULL CHECK (length(tag) BETWEEN 1 AND 64), PRIMARY KEY (execution, tag)) STRICT, WITHOUT ROWID;"
	 "CREATE INDEX execution_tag_by_tag ON execution_tag (tag);"
	 "PRAGMA user_version = 23;"},
	/* The index of texts has entries of pieces, and is merged by lib/store/blob/store_search.c alone. The garbage
	 * collection makes it anew. */
	{23, "INSERT INTO search (search) VALUES ('delete-all');"
	     "INSERT INTO search (search, rank) VALUES ('automerge', 0), ('crisismerge', 1999);"
	     "ALTER TABLE searched ADD COLUMN debt INTEGER NOT NULL DEFAULT 0 CHECK (debt >= 0);"
	     "UPDATE searched SET through = 0, stale = 0;"
	     "PRAGMA user_version = 24;"},
	/* Long arguments and results of calls are contents; those that are there stay in their rows. */
	{24, "ALTER TABLE tool_call ADD COLUMN arguments_blob TEXT REFERENCES blob (sha256) CHECK "
	     "(arguments_blob IS NULL OR arguments = 'null');"
	     "ALTER TABLE tool_call ADD COLUMN result_blob TEXT REFERENCES blob (sha256) CHECK (result_blob IS "
	     "NULL OR result = '');"
	     "CREATE INDEX tool_call_by_arguments_blob ON tool_call (arguments_blob) WHERE arguments_blob "
	     "IS NOT NULL;"
	     "CREATE INDEX tool_call_by_result_blob ON tool_call (result_blob) WHERE result_blob IS NOT NULL;"
	     "ALTER TABLE baseline_call ADD COLUMN arguments_blob TEXT REFERENCES blob (sha256) CHECK "
	     "(arguments_blob IS NULL OR arguments = 'null');"
	     "ALTER TABLE baseline_call ADD COLUMN result_blob TEXT REFERENCES blob (sha256) CHECK (result_blob IS "
	     "NULL OR result = '');"
	     "CREATE INDEX baseline_call_by_arguments_blob ON baseline_call (arguments_blob) WHERE arguments_blob "
	     "IS NOT NULL;"
	     "CREATE INDEX baseline_call_by_result_blob ON baseline_call (result_blob) WHERE result_blob IS NOT NULL;"
	     "PRAGMA user_version = 25;"},
	{NEWEST, NULL},
};

int store_schema_refuse(int64_t version, struct err *err)
{
	if (version == 0)
		return err_set(err, ERR_NOT_FOUND, "the database is empty: the gateway fills it when it starts");
	if (version > store_schema_newest)
		return err_set(err, ERR_UNAVAILABLE,
			       "the database is of version %lld, this program knows versions up to %d: install the "
			       "newer release",
			       (long long)version, store_schema_newest);
	if (version < store_schema_steps[0].from)
		return err_set(err, ERR_UNAVAILABLE,
			       "the database is of version %lld, from before the first release, and this program "
			       "upgrades version %d and newer: open it with the program that wrote it, or give this one "
			       "a data_dir of its own",
			       (long long)version, store_schema_steps[0].from);
	return err_set(
		err, ERR_UNAVAILABLE,
		"the database is of version %lld, and this program works with version %d: start the gateway of this release, which upgrades it and keeps a copy (if it is starting now, try again in a moment)",
		(long long)version, store_schema_newest);
}
