-- schema.sql - the database of Sallyport: what ran, for whom, and everything needed to run it again.
--
-- Read it from top to bottom: processes (instance, uptime), who may ask (token, oauth_*, drain, session), where files live (conversation, blob,
-- file), what an owner holds (usage, holding), what ran (sandbox, runtime, execution, execution_file, tool_call, baseline), how texts are
-- found (search), what outlives a request (request, task), and who did what (audit, audit_detail, principal). At the end are views for a
-- person with a sqlite3 shell. What people ask, and the answer, on sqlite3 -readonly /var/lib/sallyport/sallyport.db:
--
-- 1. Who touched a file between two times?  SELECT * FROM file_history WHERE file = 'report.csv' AND at BETWEEN '2026-11-20' AND '2026-11-27';
-- 2. What did a conversation do, step by step?  SELECT at, id, verdict, message, code_begins FROM recent WHERE owner = 'ann' AND conversation = 'chat' ORDER BY id;
-- 3. Which runs hit the memory limit last week?  SELECT * FROM limit_hit WHERE "limit" = 'memory' AND at >= datetime('now', '-7 days');
-- 4. When was a run recorded, and does its row say so still?  SELECT l.at, l.kind, l.kind = 'run.begin' OR (l.result, l.facts ->> '$.stdout_bytes') = (x.verdict, x.stdout_bytes) AS holds FROM audit_log AS l JOIN execution AS x ON x.id = l.run WHERE x.id = 'ID' AND l.kind GLOB 'run.*';
-- 5. What was erased, when, by whom?  SELECT at, actor, owner, object, facts, details FROM audit_log WHERE kind = 'content.erase';
-- 6. What did a run change in files?  SELECT file, change, size, sha256 FROM file_history WHERE run = 'ID';
-- 7. Which token was used, from which address?  SELECT at, id, token, client_address FROM recent WHERE owner = 'ann';
-- 8. Which tools were called, with which arguments?  SELECT at, run, server, tool, arguments FROM call;
-- 9. What is running now?  SELECT * FROM recent WHERE state = 'running';
-- 10. What did it cost?  SELECT day, owner, runs, cpu_seconds, bytes FROM usage_by_owner_and_day;
-- 11. Who signed in to the admin page, who looked at what?  SELECT at, kind, token, run, client_address FROM audit_log WHERE kind GLOB 'admin.*';
-- 12. Does a text stand in the record?  SELECT id FROM execution WHERE instr(code, 'TEXT') OR instr(stdout, 'TEXT') OR instr(stderr, 'TEXT');
-- 13. What was denied, in which run?  SELECT * FROM denial ORDER BY at DESC;
-- 14. Which run belongs to an X-Request-Id?  SELECT * FROM recent WHERE request_id = 'ID';
-- 15. What happened between two times?  SELECT * FROM audit_log WHERE at BETWEEN '2026-11-27 14:00' AND '2026-11-27 14:10';
-- 16. Which client program asked?  SELECT client, count(*) FROM recent GROUP BY client;
-- 17. What changed in the configuration?  SELECT * FROM config_change;
-- 18. On which interpreter did it run?  SELECT fingerprint, description FROM execution JOIN runtime ON hash = runtime WHERE id = 'ID';
-- 19. Who uploaded a file?  SELECT at, owner, token, client_address FROM file_history WHERE file = 'report.csv' AND change = 'uploaded';
-- 20. Who downloaded it?  SELECT at, owner, token, client_address FROM file_history WHERE file = 'report.csv' AND change = 'downloaded';
-- 21. Which runs were the slowest, the largest?  SELECT id, owner, wall_ms, bytes FROM recent ORDER BY wall_ms DESC LIMIT 10;
-- 22. Which runs had secrets?  SELECT at, id, owner, secrets FROM recent WHERE secrets > 0;
-- 23. Which code ran under several owners?  SELECT substr(code, 1, 60), group_concat(DISTINCT owner) FROM execution WHERE erased IS NULL GROUP BY coalesce(code_blob, code) HAVING count(DISTINCT owner) > 1;
-- 24. Did the same code give the same result since?  SELECT n.id, n.owner, (n.verdict, n.stdout) IS (o.verdict, o.stdout) AS same FROM execution AS o JOIN execution AS n ON n.code = o.code WHERE o.id = 'ID' ORDER BY n.id;
-- 25. Is the log without gaps?  SELECT count(*) = max(n) + 1 FROM audit;
--
-- The program embeds this text and runs it once, in one transaction, on an empty file. It refuses a file with another
-- application_id and one whose user_version is higher than it knows. Only lib/store writes here, through one connection a process.
--
-- Conventions: *_us is UTC in microseconds since 1970. Ids are UUIDs of version 7 in lower case: in order of time, not to be guessed.
-- Columns of type ANY hold bytes: TEXT where they are UTF-8 without NUL, else BLOB. A text of up to 64 KiB is in the row,
-- a longer one is a blob; *_bytes is its length either way. Foreign keys are enforced by every connection of the program;
-- a shell has them off until PRAGMA foreign_keys = ON. (JSON is not checked beyond its first byte: to this SQLite json_valid is a
-- function that a schema may not call while trusted_schema is off.)
--
-- A table arrives together with the code that writes it. A change of a table that was released raises user_version and comes with a
-- step in lib/store/db/store_schema.c, which a test compares with this text.

PRAGMA application_id = 0x53505254; -- "SPRT"
PRAGMA user_version = 27;

-- One start of a program that writes here. While it lives it holds a lock (flock) on instances/ID.lock; a row whose lock is free
-- belongs to a process that is gone, and what it left running is marked interrupted by the next start. pid and boot_id are for
-- people: the lock alone decides. Written at start and at an orderly end; a row that no execution names is removed at the end.
CREATE TABLE instance (
	id         TEXT PRIMARY KEY CHECK (length(id) = 36),
	kind       TEXT NOT NULL CHECK (kind IN ('gateway', 'cli')),
	pid        INTEGER NOT NULL,
	boot_id    TEXT NOT NULL,
	started_us INTEGER NOT NULL,
	ended_us   INTEGER                       -- NULL: it runs, or it was killed and nobody noticed yet
) STRICT;

-- How long gateways have served this database, all together, in one row: the clock of what has a time to live (conversations, sessions,
-- events, idempotency keys, tasks). It goes on only while a gateway runs, so neither a wrong clock of the machine nor a time out of
-- service makes anything expire. Written by
-- the gateway about once an hour and at its end.
CREATE TABLE uptime (
	one       INTEGER PRIMARY KEY CHECK (one = 1),
	served_us INTEGER NOT NULL CHECK (served_us >= 0)
) STRICT;
INSERT INTO uptime (one, served_us) VALUES (1, 0);

-- A bearer token. Its text is sp_<owner>_<secret> and is shown once, when it is made: only its SHA-256 is kept. Everything is
-- isolated by owner; several tokens may share one. Written by `sallyport token`; rows are revoked, never removed, because
-- executions name them. used_us is brought up to date about once a minute.
CREATE TABLE token (
	id         TEXT PRIMARY KEY CHECK (length(id) = 36),
	owner      TEXT NOT NULL CHECK (owner GLOB '[a-z0-9]*' AND owner NOT GLOB '*[^a-z0-9-]*' AND length(owner) <= 32),
	name       TEXT NOT NULL,                -- what the operator calls it
	scopes     TEXT NOT NULL CHECK (scopes <> ''), -- 'run' programs, 'files': upload and read, 'network' for runs, 'admin': everything
	hash       TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
	created_us INTEGER NOT NULL,
	used_us    INTEGER,
	revoked_us INTEGER,
	expires_us INTEGER,                      -- refused from then on; NULL: never
	results    TEXT CHECK (results IN ('content', 'structured', 'both')), -- where results carry their details; NULL: nowhere
	servers    TEXT,                         -- upstream servers and tools that its programs may use: 'github,ask:mail.send'; NULL: none
	text_kb    INTEGER CHECK (text_kb BETWEEN 2 AND 64) -- text of an answer, in units of 1,000 bytes; NULL: limits.answer_kb
) STRICT;

-- People and programs that come with a token of an authorization server (oauth.mode). Each has a row of token for each client, so that limits,
-- executions and `sallyport token list|revoke` know them; nobody has the text of that row's hash. Of an operator's server it is written at the
-- first request; of our own (builtin) whenever somebody approved a client, and then token.expires_us is when the client must ask again.
CREATE TABLE oauth_grant (
	token   TEXT PRIMARY KEY REFERENCES token (id),
	issuer  TEXT NOT NULL,                   -- the authorization server; empty: our own
	subject TEXT NOT NULL,                   -- whom it names, by its own id; of our own server empty
	client  TEXT NOT NULL,                   -- the program that asks for them; may be empty
	owner   TEXT NOT NULL,                   -- who they are here by the rules of that time
	parent  TEXT REFERENCES token (id),      -- of our own: the token that approved it, and with which it ends; NULL: a login code did
	host    TEXT NOT NULL DEFAULT '',        -- of our own: where the client's answers went
	offline INTEGER NOT NULL DEFAULT 0       -- of our own: the client asked for offline_access
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX oauth_grant_by_subject ON oauth_grant (issuer, subject, client, owner) WHERE issuer <> '';
CREATE INDEX oauth_grant_by_owner ON oauth_grant (owner);
CREATE INDEX oauth_grant_by_client ON oauth_grant (client);
CREATE INDEX oauth_grant_by_parent ON oauth_grant (parent) WHERE parent IS NOT NULL;

-- Programs that may ask our own authorization server for a person's approval. Written by /authorize (a document that was fetched), /register and
-- `sallyport client`; what nobody used goes after a day, what nobody uses any more after 90 days without a grant.
CREATE TABLE oauth_client (
	id          TEXT PRIMARY KEY,            -- the document's address, spd_… or spm_…
	kind        TEXT NOT NULL CHECK (kind IN ('document', 'registered', 'manual')),
	name        TEXT NOT NULL,               -- what it calls itself: nobody checked that
	redirects   TEXT NOT NULL,               -- JSON: addresses to which codes may go
	secret_hash TEXT,                        -- manual alone; NULL: it has no secret
	refreshes   INTEGER NOT NULL,            -- it uses refresh tokens
	created_us  INTEGER NOT NULL,
	used_us     INTEGER,                     -- when somebody approved it last
	blocked_us  INTEGER,                     -- `sallyport client block`
	fetched_us  INTEGER,                     -- document: when it was
	fresh_us    INTEGER                      -- document: it is fetched again from then on
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_client_by_kind ON oauth_client (kind, used_us, created_us);

-- Codes that /authorize sent to clients: good once, for a minute. They stay for a day, so that a second use is seen.
CREATE TABLE oauth_code (
	hash       TEXT PRIMARY KEY CHECK (length(hash) = 64),
	client     TEXT NOT NULL,
	redirect   TEXT NOT NULL,                -- where it went
	host       TEXT NOT NULL,
	challenge  TEXT NOT NULL,                -- PKCE, S256
	scopes     TEXT NOT NULL,
	offline    INTEGER NOT NULL,
	owner      TEXT NOT NULL,
	parent     TEXT REFERENCES token (id),
	expires_us INTEGER NOT NULL,
	used_us    INTEGER,
	token      TEXT REFERENCES token (id)    -- the grant that it became
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_code_by_owner ON oauth_code (owner, expires_us);
CREATE INDEX oauth_code_by_expiry ON oauth_code (expires_us);

-- Access and refresh tokens of grants, spa_… and spr_…. A refresh token stays good until something made from it was used for the first time
-- (proved_us), and a minute longer: answers get lost, and some clients ask from two addresses at once. Presented later it was stolen, from
-- its client or by it, and the grant is revoked. Rows stay for a week after their end, so that this is seen.
CREATE TABLE oauth_token (
	hash        TEXT PRIMARY KEY CHECK (length(hash) = 64),
	token       TEXT NOT NULL REFERENCES oauth_grant (token),
	kind        TEXT NOT NULL CHECK (kind IN ('access', 'refresh')),
	scopes      TEXT NOT NULL,
	parent      TEXT,                        -- hash of the refresh token that it was made from; NULL: of a code
	created_us  INTEGER NOT NULL,
	expires_us  INTEGER NOT NULL,
	replaced_us INTEGER,                     -- refresh: when another one was made from it first
	proved_us   INTEGER                      -- refresh: when something made from it was used first
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_token_by_parent ON oauth_token (parent, kind, created_us) WHERE parent IS NOT NULL;
CREATE INDEX oauth_token_by_expiry ON oauth_token (expires_us);

-- Codes of `sallyport login-code`: good once, for some minutes, on the page of /authorize alone.
CREATE TABLE oauth_login (
	hash       TEXT PRIMARY KEY CHECK (length(hash) = 64),
	owner      TEXT NOT NULL,
	scopes     TEXT NOT NULL,
	created_us INTEGER NOT NULL,
	expires_us INTEGER NOT NULL,
	used_us    INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_login_by_expiry ON oauth_login (expires_us);

-- Owners for whom nothing starts here, or everybody ('*'): the host is being emptied, or the owner moves to another one. What is under
-- way goes on. Written and removed by `sallyport drain`.
CREATE TABLE drain (
	owner    TEXT PRIMARY KEY,
	reason   TEXT NOT NULL,                  -- the operator's words; may be empty
	since_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A session of the legacy protocol (Mcp-Session-Id): survives a restart of the gateway and belongs to an owner. Written by
-- `initialize` and DELETE; removed when it ended, when nobody used it for as long as a conversation may idle, or when its owner opens so many
-- (STORE_SESSIONS_MAX) that the one which was not used for longest has to go.
CREATE TABLE session (
	id             TEXT PRIMARY KEY CHECK (length(id) = 36),
	token          TEXT REFERENCES token (id), -- NULL: a server without authentication
	owner          TEXT NOT NULL,
	protocol       TEXT NOT NULL,            -- '2025-06-18'
	client_name    TEXT NOT NULL,
	client_version TEXT NOT NULL,
	client_offers  INTEGER NOT NULL,         -- what the server may ask it for: 1 sampling, 2 elicitation, 4 roots
	log_level      INTEGER,                  -- of what is logged to it, the least it wants: 0 debug … 7 emergency; NULL: nothing
	created_us     INTEGER NOT NULL,
	seen_us        INTEGER NOT NULL,
	ended_us       INTEGER,
	idle_from_us   INTEGER NOT NULL DEFAULT 0 -- uptime.served_us when it was used last, to a minute
) STRICT;
CREATE INDEX session_by_owner ON session (owner, (ended_us IS NULL), seen_us, id);

-- What was sent on the event stream of a legacy request, so that a client which lost the connection gets what it missed, also from the next
-- start of the gateway. Written before it is sent: number 0 is the request's id when the stream was opened, `last` is the answer. Removed with
-- its session, or an hour later.
CREATE TABLE event (
	stream     TEXT NOT NULL CHECK (length(stream) = 36),
	number     INTEGER NOT NULL CHECK (number >= 0),
	session    TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
	last       INTEGER NOT NULL CHECK (last IN (0, 1)),
	created_us INTEGER NOT NULL,
	message    TEXT NOT NULL,                -- JSON
	served_us  INTEGER NOT NULL DEFAULT 0,   -- uptime.served_us when it was sent
	PRIMARY KEY (stream, number)
) STRICT;
CREATE INDEX event_by_session ON event (session);
CREATE INDEX event_by_age ON event (served_us);

-- What a legacy session wants to be told about (resources/subscribe); gone with the session.
CREATE TABLE subscription (
	session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
	uri     TEXT NOT NULL,
	PRIMARY KEY (session, uri)
) STRICT, WITHOUT ROWID;

-- A conversation is a folder of files under a name that the client chose; the same name under two owners is two conversations.
-- hash = HMAC-SHA-256(secret.key, owner NUL name) in hex is the folder in download addresses: it cannot be guessed, and comes out
-- the same if the conversation is made again. bytes is the sum of its files' sizes, kept by the triggers below; the sum over an
-- owner's conversations is what the owner's cap is compared with. Removed (with its files) when idle_from_us is too long ago.
CREATE TABLE conversation (
	id         INTEGER PRIMARY KEY,
	owner      TEXT NOT NULL,
	name       TEXT NOT NULL,
	hash       TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
	created_us INTEGER NOT NULL,
	seen_us    INTEGER NOT NULL,             -- last upload or run
	bytes      INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0),
	idle_from_us INTEGER NOT NULL DEFAULT 0, -- uptime.served_us at the last upload or run
	UNIQUE (owner, name)
) STRICT;
CREATE INDEX conversation_by_idle ON conversation (idle_from_us);

-- A content, named by the SHA-256 of its bytes, which are the file blobs/ab/cdef… next to the database; of output of runs and
-- of calls of tools, where that is smaller by a quarter, the file blobs/ab/cdef….gz, as gzip(1) writes it. `size` is the content's. The
-- file is complete and on disk before a row is written here, in the transaction of the first row that refers to it. A row that nothing refers to any more
-- is removed after some hours, its file after that: a crash in between leaves a file too many, never one too few.
CREATE TABLE blob (
	sha256     TEXT PRIMARY KEY CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
	size       INTEGER NOT NULL CHECK (size >= 0),
	created_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A file of a conversation as it is now: what a guest finds in /data, and what GET /files/{hash}/{name} serves. Written by uploads
-- and by runs that made, changed or removed it.
CREATE TABLE file (
	conversation INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
	name         ANY NOT NULL CHECK (typeof(name) IN ('text', 'blob') AND length(name) > 0), -- path below /data
	blob         TEXT NOT NULL REFERENCES blob (sha256),
	media_type   TEXT NOT NULL,
	mode         INTEGER NOT NULL CHECK (mode BETWEEN 0 AND 511), -- permission bits, 0777 at most
	size         INTEGER NOT NULL CHECK (size >= 0),
	mtime_us     INTEGER NOT NULL,
	PRIMARY KEY (conversation, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_by_blob ON file (blob);

-- conversation.bytes follows its files, whichever statement writes them.
CREATE TRIGGER file_added AFTER INSERT ON file BEGIN
	UPDATE conversation SET bytes = bytes + new.size WHERE id = new.conversation;
END;
CREATE TRIGGER file_removed AFTER DELETE ON file BEGIN
	UPDATE conversation SET bytes = bytes - old.size WHERE id = old.conversation;
END;
CREATE TRIGGER file_resized AFTER UPDATE OF size ON file WHEN new.size <> old.size BEGIN
	UPDATE conversation SET bytes = bytes + new.size - old.size WHERE id = new.conversation;
END;

-- What the record holds of each owner, in bytes, compared with retention.owner_mb at each call: the contents of `holding`, each once; `bytes`
-- of the owner's executions; of their calls of tools what the row has of arguments and result, and 256; 1024 for a conversation, 128 for a file in it; of each version of a snippet
-- its texts and 512. Kept by triggers.
CREATE TABLE usage (
	owner TEXT PRIMARY KEY,
	bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The contents that an owner's files and executions name. A pair comes with its first reference. Where one goes the pair is doubted; the garbage collection
-- removes it if no other reference is left and the content is old enough to leave the disk. A new reference ends the doubt.
CREATE TABLE holding (
	owner TEXT NOT NULL,
	blob  TEXT NOT NULL,                     -- not a reference: the content's row may go first
	size  INTEGER NOT NULL,
	doubt INTEGER NOT NULL DEFAULT 0 CHECK (doubt IN (0, 1)),
	PRIMARY KEY (owner, blob)
) STRICT, WITHOUT ROWID;
CREATE INDEX holding_in_doubt ON holding (owner, blob) WHERE doubt = 1;

CREATE TRIGGER holding_added AFTER INSERT ON holding BEGIN
	INSERT INTO usage (owner, bytes) VALUES (new.owner, new.size) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER holding_removed AFTER DELETE ON holding BEGIN
	UPDATE usage SET bytes = bytes - old.size WHERE owner = old.owner;
END;
CREATE TRIGGER conversation_counted AFTER INSERT ON conversation BEGIN
	INSERT INTO usage (owner, bytes) VALUES (new.owner, 1024) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER conversation_left BEFORE DELETE ON conversation BEGIN
	DELETE FROM file WHERE conversation = old.id; -- while it is known whose they are
	UPDATE usage SET bytes = bytes - 1024 WHERE owner = old.owner;
END;
CREATE TRIGGER file_held AFTER INSERT ON file BEGIN
	INSERT INTO holding (owner, blob, size) SELECT owner, new.blob, new.size FROM conversation WHERE id = new.conversation
		ON CONFLICT (owner, blob) DO UPDATE SET doubt = 0 WHERE doubt = 1;
	UPDATE usage SET bytes = bytes + 128 WHERE owner = (SELECT owner FROM conversation WHERE id = new.conversation);
END;
CREATE TRIGGER file_replaced AFTER UPDATE OF blob ON file WHEN new.blob <> old.blob BEGIN
	INSERT INTO holding (owner, blob, size) SELECT owner, new.blob, new.size FROM conversation WHERE id = new.conversation
		ON CONFLICT (owner, blob) DO UPDATE SET doubt = 0 WHERE doubt = 1;
	UPDATE holding SET doubt = 1 WHERE owner = (SELECT owner FROM conversation WHERE id = old.conversation) AND blob = old.blob;
END;
CREATE TRIGGER file_left AFTER DELETE ON file BEGIN
	UPDATE holding SET doubt = 1 WHERE owner = (SELECT owner FROM conversation WHERE id = old.conversation) AND blob = old.blob;
	UPDATE usage SET bytes = bytes - 128 WHERE owner = (SELECT owner FROM conversation WHERE id = old.conversation);
END;

-- A live sandbox: runs of one conversation in one jail that stays open between them, so that a run finds what the one before left,
-- in an interpreter's memory too. Its runs are the executions that name it, in the order of sandbox_seq, and are replayed together. Written
-- with the first of them. ended_us is NULL while it is open; where its instance is gone it was lost with that.
CREATE TABLE sandbox (
	id                TEXT PRIMARY KEY CHECK (length(id) = 36),
	instance          TEXT NOT NULL REFERENCES instance (id),
	owner             TEXT NOT NULL,
	conversation_name TEXT NOT NULL,
	language          TEXT NOT NULL,
	opened_us         INTEGER NOT NULL,
	ended_us          INTEGER,
	-- reset: asked for; idle: nobody used it, or it gave way to a newer one; ended: by a run's end (limit, signal, cancelled …); lost: the jailer went away or failed
	cause             TEXT CHECK (cause IN ('reset', 'idle', 'ended', 'lost')),
	dismissed_us      INTEGER, -- a reset was asked for then, also after its end: nobody counts on its state any more
	CHECK ((ended_us IS NULL) = (cause IS NULL))
) STRICT;
CREATE INDEX sandbox_by_place ON sandbox (owner, conversation_name, language, id);
CREATE INDEX sandbox_by_instance ON sandbox (instance);

-- What programs run on: runner, version, interpreter and its SHA-256, libraries, kernel, architecture and processor, as a JSON object. Stored
-- once, under the SHA-256 of its text; written in the transaction of the first run that ended there.
CREATE TABLE runtime (
	hash        TEXT PRIMARY KEY CHECK (length(hash) = 64),
	description TEXT NOT NULL CHECK (substr(description, 1, 1) = '{'),
	first_us    INTEGER NOT NULL
) STRICT;

-- A run: written as 'running' before the program starts, completed before the client gets its answer, in one transaction with its
-- files. 'interrupted' says that the process which ran it was gone before it ended; the output that had arrived by then is kept.
-- The first half is what was asked and is enough to ask again; the second is what came of it. Rows are never removed: a
-- conversation that expires leaves its name here, a session that ended its id, an erasure the fact.
CREATE TABLE execution (
	id                TEXT PRIMARY KEY CHECK (length(id) = 36),
	instance          TEXT NOT NULL REFERENCES instance (id),
	state             TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted')),
	owner             TEXT NOT NULL,
	token             TEXT REFERENCES token (id),
	session           TEXT,                  -- not a reference: sessions are removed
	conversation      INTEGER REFERENCES conversation (id) ON DELETE SET NULL,
	conversation_name TEXT,                  -- NULL: none, /data began empty and was not kept
	created_us        INTEGER NOT NULL,
	-- what was asked
	language          TEXT NOT NULL,         -- canonical name of the runner
	fingerprint       TEXT NOT NULL,         -- interpreter and version as found, 'Python 3.11.2'
	network           INTEGER NOT NULL CHECK (network IN (0, 1)),
	args              TEXT NOT NULL CHECK (substr(args, 1, 1) = '['),
	limits            TEXT NOT NULL CHECK (substr(limits, 1, 1) = '{'), -- as resolved, not as asked
	env               BLOB,                  -- sealed with AES-256-GCM under secret.key; secrets are in it by name only; NULL: empty
	code              ANY CHECK (typeof(code) IN ('text', 'blob', 'null')),
	code_blob         TEXT REFERENCES blob (sha256),
	code_bytes        INTEGER NOT NULL,
	stdin             ANY CHECK (typeof(stdin) IN ('text', 'blob', 'null')),
	stdin_blob        TEXT REFERENCES blob (sha256),
	stdin_bytes       INTEGER NOT NULL,
	entry             TEXT,                  -- the file of /data that was run in place of a copy of the code; NULL: none
	sandbox           TEXT REFERENCES sandbox (id), -- the live sandbox that it ran in; NULL: one of its own
	sandbox_seq       INTEGER CHECK (sandbox_seq >= 1), -- its first run is 1
	task              TEXT,                  -- the task that it is the work of; not a reference: tasks are removed when their time is up
	-- what came of it; NULL while it runs
	finished_us       INTEGER,               -- when it was recorded
	verdict           TEXT CHECK (verdict IN ('OK', 'RE', 'SG', 'TO', 'ML', 'OL', 'CE', 'CX', 'XX')),
	message           TEXT,                  -- one plain sentence
	exit_code         INTEGER,               -- NULL: none, it was ended
	signal            INTEGER,
	run_wall_us       INTEGER,
	run_cpu_user_us   INTEGER,
	run_cpu_system_us INTEGER,
	run_memory_peak   INTEGER,               -- bytes
	compile_wall_us       INTEGER,
	compile_cpu_user_us   INTEGER,
	compile_cpu_system_us INTEGER,
	compile_memory_peak   INTEGER,
	setup_us          INTEGER,               -- from the request for a jail to the program's start
	warm              INTEGER CHECK (warm IN (0, 1)),
	result            TEXT CHECK (substr(result, 1, 1) = '{'), -- everything else that the jailer reported
	stdout            ANY CHECK (typeof(stdout) IN ('text', 'blob', 'null')),
	stdout_blob       TEXT REFERENCES blob (sha256),
	stdout_bytes      INTEGER,
	stdout_truncated  INTEGER CHECK (stdout_truncated IN (0, 1)), -- cut at the record's limit
	stderr            ANY CHECK (typeof(stderr) IN ('text', 'blob', 'null')),
	stderr_blob       TEXT REFERENCES blob (sha256),
	stderr_bytes      INTEGER,
	stderr_truncated  INTEGER CHECK (stderr_truncated IN (0, 1)),
	recorded          INTEGER,               -- 1, 2, 3 …: the order in which ends were recorded, whatever the clock said; NULL while it runs
	request_id        TEXT,                  -- of the HTTP request: the same id is in nginx's log and in the jailer's; NULL: none
	trace             TEXT,                  -- W3C traceparent of the caller, checked for its form alone; NULL: none
	bytes             INTEGER NOT NULL DEFAULT 0, -- what the row and its files' rows count for in usage, without blobs
	-- What an erasure left. Of 'output', stdout, stderr, result and the files 'after' are gone; of 'content', besides: code, stdin,
	-- args, env, entry and the files 'before'. The sizes stay, and what the audit log says.
	erased            TEXT CHECK (erased IN ('output', 'content')),
	erased_us         INTEGER,
	erased_why        TEXT,                  -- 'request', or the rule: 'retention.execution_days'
	erased_before     INTEGER,               -- how many files there were 'before' …
	erased_after      INTEGER,               -- … and 'after', where their rows are gone
	display           INTEGER NOT NULL DEFAULT 0 CHECK (display IN (0, 1)), -- the value of its last expression and open figures were shown
	runtime           TEXT REFERENCES runtime (hash), -- NULL: not known, it was interrupted or was recorded before there was the table
	client_address    TEXT,                  -- from where it was asked for, as gateway.client_addresses says; NULL: not kept, or not by HTTP
	client            TEXT,                  -- the program that asked, 'claude-code/2.1.0'; NULL: it did not say. Both go with the content
	secrets           INTEGER,               -- how many it had: their names are in env, their values nowhere; NULL: not known
	door              TEXT,                  -- the API that it came through: 'mcp', 'v1', 'fusion', 'piston'; NULL: none, or not known
	caller            TEXT,                  -- the client's own id of the request; NULL: it has none. It goes with the content
	-- 1: a grading. stdin is its cases as JSON, stdout a line for each of them that ran, and the run is OK where all are right. NULL: a run
	grading           INTEGER CHECK (grading = 1),
	CHECK ((sandbox IS NULL) = (sandbox_seq IS NULL)),
	CHECK (code IS NULL OR code_blob IS NULL),
	CHECK (stdin IS NULL OR stdin_blob IS NULL),
	CHECK (stdout IS NULL OR stdout_blob IS NULL),
	CHECK (stderr IS NULL OR stderr_blob IS NULL),
	CHECK ((state = 'running') = (verdict IS NULL)),
	CHECK ((state = 'running') = (finished_us IS NULL))
) STRICT;
CREATE INDEX execution_by_instance ON execution (instance, state);
CREATE INDEX execution_by_conversation ON execution (conversation) WHERE conversation IS NOT NULL;
CREATE INDEX execution_by_owner ON execution (owner, id);
CREATE INDEX execution_by_request ON execution (request_id) WHERE request_id IS NOT NULL;
-- For listings of what an owner may read: most runs of a program that is silent leave nothing.
CREATE INDEX execution_with_output ON execution (owner, id) WHERE (stdout_bytes > 0 OR stderr_bytes > 0) AND erased IS NULL;
CREATE UNIQUE INDEX execution_by_sandbox ON execution (sandbox, sandbox_seq) WHERE sandbox IS NOT NULL;
CREATE UNIQUE INDEX execution_by_record ON execution (recorded) WHERE recorded IS NOT NULL;
-- For the question whether anything still refers to a blob.
CREATE INDEX execution_by_code_blob ON execution (code_blob) WHERE code_blob IS NOT NULL;
CREATE INDEX execution_by_stdin_blob ON execution (stdin_blob) WHERE stdin_blob IS NOT NULL;
CREATE INDEX execution_by_stdout_blob ON execution (stdout_blob) WHERE stdout_blob IS NOT NULL;
CREATE INDEX execution_by_stderr_blob ON execution (stderr_blob) WHERE stderr_blob IS NOT NULL;

-- The files of a run. 'before': what /data was filled with, copied from `file` when the run begins, so that a replay is filled the
-- same way whatever became of the conversation. 'after': what the run made, changed or removed; 'lost' was there and was not
-- kept, and reason says why (a link, a socket, the owner's cap …).
CREATE TABLE execution_file (
	execution  TEXT NOT NULL REFERENCES execution (id) ON DELETE CASCADE,
	phase      TEXT NOT NULL CHECK (phase IN ('before', 'after')),
	name       ANY NOT NULL CHECK (typeof(name) IN ('text', 'blob') AND length(name) > 0),
	change     TEXT CHECK (change IN ('created', 'changed', 'deleted', 'lost')),
	reason     TEXT,
	blob       TEXT REFERENCES blob (sha256), -- NULL: deleted, lost
	media_type TEXT,
	mode       INTEGER NOT NULL,
	size       INTEGER NOT NULL,
	mtime_us   INTEGER NOT NULL,
	PRIMARY KEY (execution, phase, name),
	CHECK ((phase = 'before') = (change IS NULL)),
	CHECK ((blob IS NULL) = (change IS NOT NULL AND change IN ('deleted', 'lost')))
) STRICT, WITHOUT ROWID;
CREATE INDEX execution_file_by_blob ON execution_file (blob) WHERE blob IS NOT NULL;

-- The tools that a server offered at one moment, as it described them: a JSON array. Stored once, under its SHA-256.
CREATE TABLE tool_list (
	hash        TEXT PRIMARY KEY CHECK (length(hash) = 64),
	definitions TEXT NOT NULL,
	first_us    INTEGER NOT NULL
) STRICT;

-- The servers whose tools a run could call, and what they offered. Written with the end of the run.
CREATE TABLE execution_server (
	execution   TEXT NOT NULL REFERENCES execution (id) ON DELETE CASCADE,
	position    INTEGER NOT NULL,
	name        TEXT NOT NULL,
	alias       TEXT NOT NULL,               -- its name in programs
	description TEXT NOT NULL,
	list        TEXT NOT NULL REFERENCES tool_list (hash),
	PRIMARY KEY (execution, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX execution_server_by_list ON execution_server (list);

-- Definitions of upstream servers' tools as they were first seen, or as an operator accepted them: a changed one is asked about or refused
-- (lib/upstream/upstream_policy.h). Written when a list is read, and by `sallyport upstream accept`.
CREATE TABLE tool_pin (
	server     TEXT NOT NULL CHECK (length(server) = 64), -- SHA-256 of its name with its url or command
	tool       TEXT NOT NULL,
	hash       TEXT NOT NULL CHECK (length(hash) = 64),   -- over name, title, description, schemas and annotations
	first_us   INTEGER NOT NULL,
	decided_us INTEGER,                      -- NULL: nobody has looked at it
	PRIMARY KEY (server, tool)
) STRICT, WITHOUT ROWID;

-- Programs that are kept by name (tools save_snippet and run_snippet); each save is a new version, the newest ten are kept. What an operator
-- promotes (sallyport snippet promote) or imports (tools.snippets_dir) is everybody's, with the owner ''.
CREATE TABLE snippet (
	owner       TEXT NOT NULL,
	name        TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
	version     INTEGER NOT NULL CHECK (version > 0),
	language    TEXT NOT NULL,
	description TEXT NOT NULL,
	schema      TEXT NOT NULL CHECK (substr(schema, 1, 1) = '{'),  -- JSON Schema of its input
	servers     TEXT NOT NULL CHECK (substr(servers, 1, 1) = '['), -- names of MCP servers that it calls
	code        TEXT NOT NULL,
	created_us  INTEGER NOT NULL,
	PRIMARY KEY (owner, name, version)
) STRICT;
CREATE TRIGGER snippet_counted AFTER INSERT ON snippet WHEN new.owner <> '' BEGIN
	INSERT INTO usage (owner, bytes) VALUES (new.owner, 512 + length(CAST(new.description || new.schema || new.servers || new.code AS BLOB)))
		ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER snippet_left AFTER DELETE ON snippet WHEN old.owner <> '' BEGIN
	UPDATE usage SET bytes = bytes - 512 - length(CAST(old.description || old.schema || old.servers || old.code AS BLOB))
		WHERE owner = old.owner;
END;

-- The calls of a run, in the order in which they reached the host. With (server, tool, arguments_hash, occurrence) as the key a replay
-- answers the same calls from here. Calls beyond the limit are named up to a few.
CREATE TABLE tool_call (
	execution      TEXT NOT NULL REFERENCES execution (id) ON DELETE CASCADE,
	seq            INTEGER NOT NULL CHECK (seq > 0),
	connection     INTEGER NOT NULL,         -- which of the program's, from 1 on
	server         TEXT NOT NULL,
	tool           TEXT NOT NULL,            -- of resources/read, the address
	is_read        INTEGER NOT NULL CHECK (is_read IN (0, 1)),
	definition     TEXT,                     -- SHA-256 of the tool's definition; NULL: there was no such tool
	arguments      TEXT NOT NULL,            -- JSON, as the program sent it
	arguments_hash TEXT NOT NULL,            -- SHA-256 of its canonical form
	occurrence     INTEGER NOT NULL,         -- equal calls before it in this run
	decision       TEXT,                     -- 'allow' 'ask' 'deny'; NULL: it never came to that
	rule           TEXT,                     -- that decided
	decided_by     TEXT,                     -- who answered the question; NULL: nobody was asked
	state          TEXT NOT NULL CHECK (state IN ('done', 'failed', 'refused', 'cancelled')),
	kind           TEXT NOT NULL,            -- 'result', or why there is none: 'timeout', 'denied' …
	is_error       INTEGER NOT NULL CHECK (is_error IN (0, 1)), -- the tool says that it failed
	result         TEXT NOT NULL,            -- JSON as it came; else a sentence
	protocol       TEXT,                     -- revision of MCP that the server spoke
	attempts       INTEGER NOT NULL,
	approval_us    INTEGER NOT NULL,         -- how long somebody thought about it
	queued_us      INTEGER NOT NULL,
	started_us     INTEGER NOT NULL,         -- 0: never
	finished_us    INTEGER NOT NULL,
	arguments_blob TEXT REFERENCES blob (sha256) CHECK (arguments_blob IS NULL OR arguments = 'null'), -- where they are too long for the row
	result_blob    TEXT REFERENCES blob (sha256) CHECK (result_blob IS NULL OR result = ''),
	PRIMARY KEY (execution, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_call_by_arguments_blob ON tool_call (arguments_blob) WHERE arguments_blob IS NOT NULL;
CREATE INDEX tool_call_by_result_blob ON tool_call (result_blob) WHERE result_blob IS NOT NULL;
CREATE TRIGGER tool_call_counted AFTER INSERT ON tool_call BEGIN
	UPDATE usage SET bytes = bytes + 256 + length(CAST(new.arguments AS BLOB)) + length(CAST(new.result AS BLOB))
		WHERE owner = (SELECT owner FROM execution WHERE id = new.execution);
END;
CREATE TRIGGER tool_call_recounted AFTER UPDATE OF arguments, result ON tool_call BEGIN
	UPDATE usage SET bytes = bytes + length(CAST(new.arguments AS BLOB)) + length(CAST(new.result AS BLOB))
		- length(CAST(old.arguments AS BLOB)) - length(CAST(old.result AS BLOB))
		WHERE owner = (SELECT owner FROM execution WHERE id = new.execution);
END;
CREATE TRIGGER tool_call_held AFTER INSERT ON tool_call WHEN new.arguments_blob IS NOT NULL OR new.result_blob IS NOT NULL BEGIN
	INSERT INTO holding (owner, blob, size) SELECT owner, sha256, size FROM execution JOIN blob ON sha256 IN (new.arguments_blob, new.result_blob)
		WHERE execution.id = new.execution ON CONFLICT (owner, blob) DO UPDATE SET doubt = 0 WHERE doubt = 1;
END;
CREATE TRIGGER tool_call_left AFTER UPDATE OF arguments_blob, result_blob ON tool_call
	WHEN old.arguments_blob IS NOT NULL OR old.result_blob IS NOT NULL BEGIN
	UPDATE holding SET doubt = 1 WHERE owner = (SELECT owner FROM execution WHERE id = old.execution)
		AND blob IN (old.arguments_blob, old.result_blob);
END;

-- Erased executions of which files and calls of tools are still being removed, in parts. Empty, but for those moments and a kill.
CREATE TABLE erasing (
	execution TEXT PRIMARY KEY REFERENCES execution (id) ON DELETE CASCADE,
	what      TEXT NOT NULL CHECK (what IN ('output', 'content'))
) STRICT, WITHOUT ROWID;

-- Names by which an operator finds runs again; no part of what was recorded. Written by `sallyport tag`.
CREATE TABLE execution_tag (
	execution TEXT NOT NULL REFERENCES execution (id) ON DELETE CASCADE,
	tag       TEXT NOT NULL CHECK (length(tag) BETWEEN 1 AND 64),
	PRIMARY KEY (execution, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX execution_tag_by_tag ON execution_tag (tag);

-- What is expected of an execution from then on: an outcome of a later replay that somebody put in the place of the recorded one, which
-- stays as it is and is generation 1. The last generation counts. Written by `sallyport replay --bless`; rows are never changed.
CREATE TABLE baseline (
	execution         TEXT NOT NULL REFERENCES execution (id) ON DELETE CASCADE,
	generation        INTEGER NOT NULL CHECK (generation >= 2),
	blessed_us        INTEGER NOT NULL,
	author            TEXT NOT NULL CHECK (author <> ''),
	reason            TEXT NOT NULL CHECK (reason <> ''),
	-- the outcome, as in execution
	fingerprint       TEXT NOT NULL,
	created_us        INTEGER NOT NULL,
	finished_us       INTEGER NOT NULL,
	verdict           TEXT NOT NULL CHECK (verdict IN ('OK', 'RE', 'SG', 'TO', 'ML', 'OL', 'CE')),
	message           TEXT NOT NULL,
	exit_code         INTEGER,
	signal            INTEGER,
	run_cpu_user_us   INTEGER NOT NULL,
	run_cpu_system_us INTEGER NOT NULL,
	run_memory_peak   INTEGER NOT NULL,
	stdout            ANY CHECK (typeof(stdout) IN ('text', 'blob', 'null')),
	stdout_blob       TEXT REFERENCES blob (sha256),
	stdout_bytes      INTEGER NOT NULL,
	stderr            ANY CHECK (typeof(stderr) IN ('text', 'blob', 'null')),
	stderr_blob       TEXT REFERENCES blob (sha256),
	stderr_bytes      INTEGER NOT NULL,
	deterministic     INTEGER NOT NULL DEFAULT 0 CHECK (deterministic IN (0, 1)), -- by `replay --deterministic`: so are its replays
	PRIMARY KEY (execution, generation),
	CHECK (stdout IS NULL OR stdout_blob IS NULL),
	CHECK (stderr IS NULL OR stderr_blob IS NULL)
) STRICT;
CREATE INDEX baseline_by_stdout_blob ON baseline (stdout_blob) WHERE stdout_blob IS NOT NULL;
CREATE INDEX baseline_by_stderr_blob ON baseline (stderr_blob) WHERE stderr_blob IS NOT NULL;

-- The files of a generation, by their sums alone: for comparing them no content is needed, and none is kept.
CREATE TABLE baseline_file (
	execution  TEXT NOT NULL,
	generation INTEGER NOT NULL,
	name       ANY NOT NULL CHECK (typeof(name) IN ('text', 'blob') AND length(name) > 0),
	change     TEXT NOT NULL CHECK (change IN ('created', 'changed', 'deleted', 'lost')),
	reason     TEXT,
	blob       TEXT CHECK (length(blob) = 64), -- not a reference
	media_type TEXT,
	mode       INTEGER NOT NULL,
	size       INTEGER NOT NULL,
	mtime_us   INTEGER NOT NULL,
	PRIMARY KEY (execution, generation, name),
	FOREIGN KEY (execution, generation) REFERENCES baseline (execution, generation) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- What real servers answered when `sallyport replay --record` made a generation: from then on a replay answers from these rows, which are as
-- in execution_server and tool_call. A generation without servers has those of the one before it.
CREATE TABLE baseline_server (
	execution   TEXT NOT NULL,
	generation  INTEGER NOT NULL,
	position    INTEGER NOT NULL,
	name        TEXT NOT NULL,
	alias       TEXT NOT NULL,
	description TEXT NOT NULL,
	list        TEXT NOT NULL REFERENCES tool_list (hash),
	PRIMARY KEY (execution, generation, position),
	FOREIGN KEY (execution, generation) REFERENCES baseline (execution, generation) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX baseline_server_by_list ON baseline_server (list);
CREATE TABLE baseline_call (
	execution      TEXT NOT NULL,
	generation     INTEGER NOT NULL,
	seq            INTEGER NOT NULL CHECK (seq > 0),
	connection     INTEGER NOT NULL,
	server         TEXT NOT NULL,
	tool           TEXT NOT NULL,
	is_read        INTEGER NOT NULL CHECK (is_read IN (0, 1)),
	definition     TEXT,
	arguments      TEXT NOT NULL,
	arguments_hash TEXT NOT NULL,
	occurrence     INTEGER NOT NULL,
	decision       TEXT,
	rule           TEXT,
	decided_by     TEXT,
	state          TEXT NOT NULL CHECK (state IN ('done', 'failed', 'refused', 'cancelled')),
	kind           TEXT NOT NULL,
	is_error       INTEGER NOT NULL CHECK (is_error IN (0, 1)),
	result         TEXT NOT NULL,
	protocol       TEXT,
	attempts       INTEGER NOT NULL,
	approval_us    INTEGER NOT NULL,
	queued_us      INTEGER NOT NULL,
	started_us     INTEGER NOT NULL,
	finished_us    INTEGER NOT NULL,
	arguments_blob TEXT REFERENCES blob (sha256) CHECK (arguments_blob IS NULL OR arguments = 'null'),
	result_blob    TEXT REFERENCES blob (sha256) CHECK (result_blob IS NULL OR result = ''),
	PRIMARY KEY (execution, generation, seq),
	FOREIGN KEY (execution, generation) REFERENCES baseline (execution, generation) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX baseline_call_by_arguments_blob ON baseline_call (arguments_blob) WHERE arguments_blob IS NOT NULL;
CREATE INDEX baseline_call_by_result_blob ON baseline_call (result_blob) WHERE result_blob IS NOT NULL;
CREATE TRIGGER execution_counted AFTER INSERT ON execution BEGIN
	INSERT INTO usage (owner, bytes) VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
	INSERT INTO holding (owner, blob, size)
		SELECT new.owner, blob, size FROM (SELECT new.code_blob AS blob, new.code_bytes AS size UNION ALL
			SELECT new.stdin_blob, new.stdin_bytes UNION ALL
			SELECT new.stdout_blob, new.stdout_bytes UNION ALL SELECT new.stderr_blob, new.stderr_bytes) WHERE blob IS NOT NULL
		ON CONFLICT (owner, blob) DO UPDATE SET doubt = 0 WHERE doubt = 1;
END;
CREATE TRIGGER execution_recounted AFTER UPDATE OF bytes ON execution WHEN new.bytes <> old.bytes BEGIN
	UPDATE usage SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
END;
CREATE TRIGGER execution_output_held AFTER UPDATE OF stdout_blob, stderr_blob ON execution
	WHEN new.stdout_blob IS NOT NULL OR new.stderr_blob IS NOT NULL BEGIN
	INSERT INTO holding (owner, blob, size)
		SELECT new.owner, blob, size FROM (SELECT new.stdout_blob AS blob, new.stdout_bytes AS size UNION ALL
			SELECT new.stderr_blob, new.stderr_bytes) WHERE blob IS NOT NULL
		ON CONFLICT (owner, blob) DO UPDATE SET doubt = 0 WHERE doubt = 1;
END;
-- 'before' names what `file` names at that moment, and a trigger for each would cost a run in a conversation of many files dear.
CREATE TRIGGER execution_file_held AFTER INSERT ON execution_file WHEN new.phase = 'after' AND new.blob IS NOT NULL BEGIN
	INSERT INTO holding (owner, blob, size) SELECT owner, new.blob, new.size FROM execution WHERE id = new.execution
		ON CONFLICT (owner, blob) DO UPDATE SET doubt = 0 WHERE doubt = 1;
END;

-- The index by which `sallyport log --text` finds texts in code and output: trigrams, without the texts. The rows from 64 ×
-- execution.recorded are pieces of the code's beginning, + 16 of stdout's, + 32 of stderr's. Kept by the garbage collection (lib/store/blob/store_search.h),
-- so a run costs nothing here; runs behind `through` are searched without it. A content that is erased leaves the index with it; stale says
-- that parts of it are still in older segments: 1, and 2 while they are being merged; debt: so much went since they were merged last (2^60:
-- the index is being emptied, and filled again). FTS5 merges nothing by itself, because it would do so at the end of a transaction, however
-- long that takes.
CREATE VIRTUAL TABLE search USING fts5 (text, content = '', columnsize = 0, detail = none, tokenize = 'trigram case_sensitive 1');
CREATE TABLE searched (
	one     INTEGER PRIMARY KEY CHECK (one = 1),
	through INTEGER NOT NULL CHECK (through >= 0),
	stale   INTEGER NOT NULL CHECK (stale IN (0, 1, 2)),
	debt    INTEGER NOT NULL DEFAULT 0 CHECK (debt >= 0)
) STRICT;
INSERT INTO searched (one, through, stale) VALUES (1, 0, 0);
INSERT INTO search (search, rank) VALUES ('automerge', 0), ('crisismerge', 1999);

-- An idempotency key: the same key with the same arguments gives the first result again for a day. Claimed in the transaction that
-- writes the call's own rows; the result itself is the execution's. A claim whose execution ended as XX (interrupted, sandbox failed)
-- or as CX before its program was started does not count, and is replaced by the next call with that key. execution is NULL for an
-- upload: its file is there.
CREATE TABLE request (
	owner      TEXT NOT NULL,
	key        TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 128), -- of the client's choice
	hash       TEXT NOT NULL CHECK (length(hash) = 64), -- SHA-256 of tool and arguments, the values of secrets left out
	execution  TEXT REFERENCES execution (id) ON DELETE CASCADE,
	expires_us INTEGER NOT NULL,             -- for people; until_us decides
	until_us   INTEGER NOT NULL DEFAULT 0,   -- uptime.served_us when it goes
	PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX request_by_age ON request (until_us);
CREATE INDEX request_by_execution ON request (execution) WHERE execution IS NOT NULL;

-- A task: a call of a tool that outlives its request. Written before the client learns its id; its end is written once and is final.
-- Removed when its time is up. The result of a run is in its execution, any other one here; what a task that ended as 'failed' has to
-- say is its message. A task whose process is gone ends by what its execution says: 'completed' where that is finished, else 'failed'.
CREATE TABLE task (
	id         TEXT PRIMARY KEY CHECK (length(id) = 36),
	owner      TEXT NOT NULL,
	token      TEXT REFERENCES token (id),   -- NULL: a server without authentication
	session    TEXT,                         -- not a reference: sessions are removed
	instance   TEXT REFERENCES instance (id), -- that works on it; NULL when it has ended
	tool       TEXT NOT NULL,
	execution  TEXT,                         -- not a reference: its row comes when the run begins; NULL: no run
	state      TEXT NOT NULL CHECK (state IN ('working', 'completed', 'failed', 'cancelled')),
	is_error   INTEGER NOT NULL CHECK (is_error IN (0, 1)), -- the result is the tool's, and says that it failed
	message    TEXT NOT NULL,                -- a sentence for people, may be empty
	result     TEXT CHECK (substr(result, 1, 1) = '{'),
	created_us INTEGER NOT NULL,
	updated_us INTEGER NOT NULL,
	expires_us INTEGER NOT NULL,             -- as its client sees it; until_us decides
	until_us   INTEGER NOT NULL DEFAULT 0,   -- uptime.served_us when it goes, unless it is working
	CHECK ((state = 'working') = (instance IS NOT NULL))
) STRICT;
CREATE INDEX task_by_owner ON task (owner, id);
CREATE INDEX task_by_age ON task (until_us);
CREATE INDEX task_by_instance ON task (instance) WHERE instance IS NOT NULL;

-- The audit log: one entry for every act, in the transaction of what it describes, and the leaves of a Merkle tree (RFC 6962) in the
-- order of n, which begins at 0 and has no gap. `entry` is the exact text that is hashed; the columns before it are copies for queries,
-- and `sallyport verify` compares them. Content never enters an entry: see audit_detail. docs/audit.md lists the kinds. Rows are only
-- ever added. The triggers guard against a slip, not against an attacker: checkpoints that another account signs do.
CREATE TABLE audit (
	n      INTEGER PRIMARY KEY CHECK (n >= 0),
	at_us  INTEGER NOT NULL,
	kind   TEXT NOT NULL,
	object TEXT NOT NULL,                    -- 'execution:ID', 'token:ID', 'conversation:' and a hash …
	entry  TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_object ON audit (object, n);
CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN SELECT raise(ABORT, 'entries of the audit log are never removed'); END;
CREATE TRIGGER audit_fixed BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'entries of the audit log are never changed'); END;

-- What an entry commits to: sums of texts and rows, names. The commitment is HMAC-SHA-256 under the salt, so that once salt and details
-- are erased (with the content that they describe), nothing can be found out from the entry by trying.
CREATE TABLE audit_detail (
	n      INTEGER PRIMARY KEY REFERENCES audit (n),
	salt   BLOB NOT NULL CHECK (length(salt) = 32),
	detail TEXT NOT NULL
) STRICT;

-- Who an id in an entry is. The row stays when the owner is forgotten: for whom a run was is part of the fact, which stays in execution, too.
CREATE TABLE principal (
	owner      TEXT PRIMARY KEY,
	id         TEXT NOT NULL UNIQUE CHECK (length(id) = 36),
	created_us INTEGER NOT NULL
) STRICT;

-- For people with sqlite3 and nothing else. `sallyport audit log` runs the text of audit_log; the program uses none of the others. Times
-- are UTC, as text that sorts; a time of yours is compared with them as it is written: at >= '2026-11-21 14:00'.

-- What ran lately, newest first.
CREATE VIEW recent AS
SELECT strftime('%Y-%m-%d %H:%M:%S', created_us / 1000000, 'unixepoch') AS at, id, state, verdict, language, owner,
       conversation_name AS conversation, run_wall_us / 1000 AS wall_ms, (run_cpu_user_us + run_cpu_system_us) / 1000 AS cpu_ms,
       run_memory_peak / 1048576 AS memory_mib, message, substr(code, 1, 60) AS code_begins,
       code_bytes + stdin_bytes + coalesce(stdout_bytes, 0) + coalesce(stderr_bytes, 0) AS bytes,
       (SELECT name FROM token WHERE token.id = execution.token) AS token, request_id, client_address, client, secrets,
       fingerprint AS interpreter
FROM execution ORDER BY execution.id DESC;

-- Every entry of the audit log: who did what, to what, when, from where and with which result. What was erased, or was not kept, is NULL.
CREATE VIEW audit_log AS
SELECT a.n, strftime('%Y-%m-%d %H:%M:%S', a.at_us / 1000000, 'unixepoch') AS at,
       strftime('%Y-%m-%d %H:%M:%S', a.at_us / 1000000, 'unixepoch', 'localtime') AS at_local, a.kind,
       (SELECT owner FROM principal WHERE principal.id = a.entry ->> '$.p') AS owner, a.entry ->> '$.a' AS actor,
       (SELECT name FROM token WHERE token.id = substr(a.entry ->> '$.a', 7)) AS token,
       CASE WHEN a.object GLOB 'conversation:*' THEN (SELECT made.detail ->> '$.name' FROM audit AS first JOIN audit_detail AS made
               ON made.n = first.n WHERE first.object = a.object AND first.kind = 'conversation.new' ORDER BY first.n LIMIT 1)
            ELSE x.conversation_name END AS conversation,
       CASE WHEN a.kind GLOB 'file.*' THEN d.detail ->> '$.name' END AS file, x.id AS run, a.object,
       coalesce(d.detail ->> '$.request', own.request_id) AS request_id,
       coalesce(d.detail ->> '$.address', own.client_address) AS client_address,
       coalesce(d.detail ->> '$.client', own.client) AS client,
       CASE WHEN a.kind IN ('limit.hit', 'auth.denied', 'admin.failed') THEN 'refused'
            ELSE coalesce(a.entry ->> '$.f.verdict', a.entry ->> '$.f.state', 'done') END AS result,
       a.entry -> '$.f' AS facts, d.detail AS details, a.at_us
FROM audit AS a LEFT JOIN audit_detail AS d ON d.n = a.n
     LEFT JOIN execution AS x ON a.object GLOB 'execution:*' AND x.id = substr(a.object, 11)
     LEFT JOIN execution AS own ON own.id = x.id AND a.kind IN ('run.begin', 'run.end', 'call');

-- What starts of the gateway found changed in its configuration; old or new NULL: the default. Secrets are tags.
CREATE VIEW config_change AS
SELECT strftime('%Y-%m-%d %H:%M:%S', audit.at_us / 1000000, 'unixepoch') AS at, change.value ->> '$.member' AS member,
       change.value ->> '$.old' AS old, change.value ->> '$.new' AS new, audit.n AS entry
FROM audit JOIN audit_detail ON audit_detail.n = audit.n JOIN json_each(audit_detail.detail, '$.changes') AS change
WHERE audit.object = 'log:config';

-- The calls of tools of other servers, with what was sent and what came.
CREATE VIEW call AS
SELECT strftime('%Y-%m-%d %H:%M:%S', coalesce(nullif(c.started_us, 0), c.queued_us) / 1000000, 'unixepoch') AS at, x.owner,
       x.conversation_name AS conversation, c.execution AS run, c.seq, c.server, c.tool,
       coalesce('blobs/' || substr(c.arguments_blob, 1, 2) || '/' || substr(c.arguments_blob, 3), c.arguments) AS arguments,
       c.decision, c.rule, c.decided_by, c.state, c.kind, c.is_error,
       iif(c.started_us = 0, NULL, (c.finished_us - c.started_us) / 1000) AS ms,
       coalesce('blobs/' || substr(c.result_blob, 1, 2) || '/' || substr(c.result_blob, 3), c.result) AS result
FROM tool_call AS c JOIN execution AS x ON x.id = c.execution;

-- What programs and clients were denied: system calls, connections and tools of a run; requests that had no good token, or that a limit
-- refused (times: how often, since the entry before).
CREATE VIEW denial AS
SELECT strftime('%Y-%m-%d %H:%M:%S', x.created_us / 1000000, 'unixepoch') AS at, x.owner, x.id AS run, 'system call' AS what,
       denied.value ->> '$.name' AS name, 'not allowed in a jail' AS why, 1 AS times
FROM execution AS x JOIN json_each(x.result, '$.denied') AS denied WHERE instr(x.result, '"denied"')
UNION ALL
SELECT strftime('%Y-%m-%d %H:%M:%S', x.created_us / 1000000, 'unixepoch'), x.owner, x.id, 'connection',
       (denied.value ->> '$.host') || ':' || (denied.value ->> '$.port'), denied.value ->> '$.reason', 1
FROM execution AS x JOIN json_each(x.result, '$.network.denied') AS denied WHERE instr(x.result, '"denied"')
UNION ALL
SELECT at, owner, run, 'tool', server || '.' || tool, coalesce(rule, kind), 1 FROM call WHERE state = 'refused'
UNION ALL
SELECT strftime('%Y-%m-%d %H:%M:%S', audit.at_us / 1000000, 'unixepoch'),
       (SELECT owner FROM principal WHERE principal.id = audit.entry ->> '$.p'), NULL, iif(kind = 'limit.hit', 'limit', 'token'),
       substr(object, instr(object, ':') + 1), (SELECT detail ->> '$.address' FROM audit_detail WHERE audit_detail.n = audit.n),
       audit.entry ->> '$.f.count'
FROM audit WHERE (object >= 'limit:' AND object < 'limit;') OR (object >= 'auth:' AND object < 'auth;');

-- Runs that a limit ended, and calls that a limit refused.
CREATE VIEW limit_hit AS
SELECT strftime('%Y-%m-%d %H:%M:%S', created_us / 1000000, 'unixepoch') AS at, owner, id AS run, verdict,
       coalesce(result ->> '$.limit', CASE verdict WHEN 'TO' THEN 'time' WHEN 'ML' THEN 'memory' ELSE 'output' END) AS "limit", message,
       1 AS times
FROM execution WHERE verdict IN ('TO', 'ML', 'OL')
UNION ALL SELECT at, owner, NULL, NULL, name, 'refused before anything ran', times FROM denial WHERE what = 'limit';

-- Who did what to which file: uploads, downloads and removals by clients, and what runs left. size and sha256 are the content's.
CREATE VIEW file_history AS
SELECT strftime('%Y-%m-%d %H:%M:%S', x.finished_us / 1000000, 'unixepoch') AS at, x.owner, x.conversation_name AS conversation,
       CAST(f.name AS TEXT) AS file, f.change, x.id AS run, (SELECT name FROM token WHERE token.id = x.token) AS token, x.client_address,
       f.size, f.blob AS sha256
FROM execution_file AS f JOIN execution AS x ON x.id = f.execution WHERE f.phase = 'after'
UNION ALL
SELECT at, owner, conversation, file, CASE kind WHEN 'file.put' THEN 'uploaded' WHEN 'file.get' THEN 'downloaded' WHEN 'file.delete' THEN
       'removed' WHEN 'file.restore' THEN 'put back' ELSE 'workspace' END, NULL, coalesce(token, actor), client_address,
       facts ->> '$.bytes', NULL
FROM audit_log WHERE kind GLOB 'file.*';

-- What each owner used on each day (UTC).
CREATE VIEW usage_by_owner_and_day AS
SELECT strftime('%Y-%m-%d', created_us / 1000000, 'unixepoch') AS day, owner, count(*) AS runs, sum(verdict <> 'OK') AS failed,
       round(sum(coalesce(run_cpu_user_us, 0) + coalesce(run_cpu_system_us, 0) + coalesce(compile_cpu_user_us, 0) +
             coalesce(compile_cpu_system_us, 0)) / 1e6, 3) AS cpu_seconds,
       round(sum(coalesce(run_wall_us, 0)) / 1e6, 3) AS wall_seconds, max(run_memory_peak) / 1048576 AS memory_max_mib,
       sum(code_bytes + stdin_bytes + coalesce(stdout_bytes, 0) + coalesce(stderr_bytes, 0)) AS bytes, sum(network) AS with_network
FROM execution GROUP BY day, owner ORDER BY day DESC, owner;

-- Every file of every conversation, and where its bytes are.
CREATE VIEW files AS
SELECT owner, conversation.name AS conversation, file.name AS name, size, media_type, printf('%04o', mode) AS mode,
       strftime('%Y-%m-%d %H:%M:%S', mtime_us / 1000000, 'unixepoch') AS modified,
       'blobs/' || substr(blob, 1, 2) || '/' || substr(blob, 3) AS stored, hash
FROM file JOIN conversation ON conversation.id = file.conversation ORDER BY owner, conversation.name, file.name;

-- What each owner has: files is the size of the conversations' files, bytes what the cap is compared with.
CREATE VIEW owners AS
SELECT owner, sum(conversations) AS conversations, sum(files) AS files, sum(runs) AS runs, sum(bytes) AS bytes FROM (
	SELECT owner, count(*) AS conversations, sum(bytes) AS files, 0 AS runs, 0 AS bytes FROM conversation GROUP BY owner
	UNION ALL SELECT owner, 0, 0, count(*), 0 FROM execution GROUP BY owner
	UNION ALL SELECT owner, 0, 0, 0, bytes FROM usage)
GROUP BY owner ORDER BY owner;
