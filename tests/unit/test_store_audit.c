/*
 * test_store_audit.c - the audit log as it is written: which act leaves which entry, in whose transaction, and that
 * nothing of a guest's or client's text is in one.
 */
#include "store_fixture.h"

#include "lib/base/text.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/audit/store_refused.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_token.h"
#include "lib/store/retention/store_expire.h"

#define KINDS "SELECT group_concat(kind) FROM (SELECT kind FROM audit WHERE kind <> 'conversation.new' ORDER BY n)"

static int add_file(struct store_txn *txn, void *arg, struct err *err)
{
	struct store_conversation *to = arg;

	const struct store_caller caller = {.token = "01932c00-0000-7000-8000-000000000000"};

	return store_txn_audit_file(txn, to->row, "a.txt", 5, &caller, err);
}

static int nothing(struct store_txn *txn, void *arg, struct err *err)
{
	(void)txn, (void)arg, (void)err;
	return 0;
}

static void every_act(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_token token;
	struct store_conversation conversation;
	char text[STORE_TOKEN_TEXT];

	ok(store_token_add(f->store, "ann", "the laptop", text, &token, &err));
	put_file(f->store, "ann", "talk", "a.txt", "hello");
	ok(store_conversation_find(f->store, "ann", "talk", &conversation, &err));
	ok(store_commit(f->store, add_file, &conversation, &err));
	struct store_execution run = sample("ann");

	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	ok(store_token_revoke(f->store, token.id, NULL, &err));
	retain(f->store, 0, 1);
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	reopen(f, STORE_SERVE);
	assert_answer(f, KINDS,
		      "log.open,instance.start,token.add,file.put,run.begin,run.end,token.revoke,conversation.expire,"
		      "instance.stop,instance.start");
	/* Numbers without a gap, ids that the rows have, an id for the owner. */
	assert_answer(f, "SELECT min(n) || max(n) = '0' || (count(*) - 1) FROM audit", "1");
	auto_free char *object = xasprintf("execution:%s", run.id);
	auto_free char *said = ask(f, "SELECT object FROM audit WHERE kind = 'run.end'");

	assert_string_equal(said, object);
	assert_answer(f,
		      "SELECT count(DISTINCT entry -> 'p') FROM audit WHERE kind LIKE 'run.%' OR kind LIKE 'token.%'",
		      "1");
	assert_answer(f, "SELECT id = (SELECT entry ->> 'p' FROM audit WHERE kind = 'run.end') FROM principal", "1");
	/* Facts, and the actor. */
	assert_answer(f,
		      "SELECT entry ->> '$.f.verdict' || (entry ->> '$.f.language') IS NULL FROM audit WHERE kind = "
		      "'run.end'",
		      "1");
	assert_answer(f, "SELECT entry ->> 'a' FROM audit WHERE kind = 'file.put'",
		      "token:01932c00-0000-7000-8000-000000000000");
	assert_answer(
		f,
		"SELECT count(*) FROM audit WHERE entry <> json(entry) OR n <> entry ->> 'n' OR at_us <> entry ->> "
		"'t' OR kind <> entry ->> 'k' OR object <> entry ->> 'o'",
		"0");
	/* No names, no texts. */
	assert_answer(f,
		      "SELECT count(*) FROM audit WHERE entry LIKE '%ann%' OR entry LIKE '%talk%' OR entry LIKE "
		      "'%laptop%' OR entry LIKE '%print%' OR entry LIKE '%a.txt%'",
		      "0");
}

/* The commitment is what the brief of the format says, computed here anew. */
static void commitments(void **state)
{
	struct fixture *f = *state;
	struct store_execution run = sample("ann");
	auto_buf struct buf text = {0};
	uint8_t key[SHA256_SIZE], hash[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE], sum[SHA256_HEX_SIZE];

	begin(f->store, &run);
	auto_free char *salt =
		ask(f, "SELECT hex(salt) FROM audit_detail JOIN audit USING (n) WHERE kind = 'run.begin'");
	auto_free char *detail =
		ask(f, "SELECT detail FROM audit_detail JOIN audit USING (n) WHERE kind = 'run.begin'");
	auto_free char *d = ask(f, "SELECT entry ->> 'd' FROM audit WHERE kind = 'run.begin'");

	assert_int_equal(hex_decode(salt, strlen(salt), key), 0);
	buf_init(&text, 4096);
	buf_add(&text, "sallyport audit detail 1\0run.begin", 35);
	buf_puts(&text, detail);
	hmac_sha256(key, sizeof(key), text.data, text.length, hash);
	hex_encode(hash, sizeof(hash), hex);
	assert_string_equal(d, hex);
	sha256_hex(run.code.data, run.code.length, sum);
	auto_free char *named = ask(f, "SELECT detail ->> 'code' FROM audit_detail JOIN audit USING (n) WHERE kind = "
				       "'run.begin'");

	assert_string_equal(named, sum);
	/* Other salts each time: the same code twice is not seen in the entries. */
	struct store_execution again = sample("ann");

	begin(f->store, &again);
	assert_answer(f, "SELECT count(DISTINCT entry ->> 'd') FROM audit WHERE kind = 'run.begin'", "2");
}

static int fail_after(struct store_txn *txn, void *arg, struct err *err)
{
	struct store_audit *entry = arg;

	return store_txn_audit(txn, entry, err) < 0 ? -1 : err_set(err, ERR_LIMIT, "the act failed");
}

/* One transaction: an act that fails leaves no entry, and an entry that cannot be written stops the act. */
static void together(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_audit entry;
	struct store_token token;
	char text[STORE_TOKEN_TEXT];
	auto_free char *before = ask(f, "SELECT max(n) FROM audit");

	store_audit_init(&entry, STORE_AUDIT_ADMIN_ACT, "log", "audit");
	fails(store_commit(f->store, fail_after, &entry, &err), ERR_LIMIT);
	assert_answer(f, "SELECT max(n) FROM audit", before);
	store_audit_init(&entry, STORE_AUDIT_ADMIN_ACT, "log", "audit");
	store_audit_word(&entry, "how", "\"quoted\"");
	fails(store_audit_add(f->store, &entry, &err), ERR_INTERNAL);
	assert_answer(f, "SELECT max(n) FROM audit", before);
	assert_null(ask(f, "CREATE TRIGGER no_more BEFORE INSERT ON audit BEGIN SELECT raise(ABORT, 'full'); END"));
	assert_int_not_equal(store_token_add(f->store, "ann", "x", text, &token, &err), 0);
	assert_answer(f, "SELECT count(*) FROM token", "0");
	assert_null(ask(f, "DROP TRIGGER no_more"));
	ok(store_token_add(f->store, "ann", "x", text, &token, &err));
}

static int erase(struct store_txn *txn, void *arg, struct err *err)
{
	const struct store_audit_erasure erasure = {.type = "execution",
						    .id = arg,
						    .what = "content",
						    .reason = "request",
						    .owner = "ann",
						    .ticket = "mail of Monday"};

	return store_txn_audit_erase(txn, &erasure, err);
}

static void erased(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann"), other = sample("ann");

	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	begin(f->store, &other);
	ok(store_commit(f->store, erase, run.id, &err));
	auto_free char *mine =
		xasprintf("SELECT group_concat(kind) FROM audit JOIN audit_detail USING (n) WHERE object = "
			  "'execution:%s'",
			  run.id);
	auto_free char *others = xasprintf("SELECT group_concat(kind) FROM audit JOIN audit_detail USING (n) WHERE "
					   "object = 'execution:%s'",
					   other.id);

	assert_answer(f, mine, "content.erase");
	assert_answer(f, others, "run.begin");
	assert_answer(f, "SELECT entry ->> '$.f.what' FROM audit WHERE kind = 'content.erase'", "content");
	/* By a slip nothing else is removed or changed. */
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "DELETE FROM audit WHERE n = 1", NULL, NULL, NULL), SQLITE_CONSTRAINT);
	assert_int_equal(sqlite3_exec(db, "UPDATE audit SET entry = 'x' WHERE n = 1", NULL, NULL, NULL),
			 SQLITE_CONSTRAINT);
	sqlite3_close(db);
}

/* A stranger cannot fill the log, and nothing that was refused is lost: also where more owners are refused than are
 * counted at a time. */
static void refusals(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char owner[24];

	for (int i = 0; i < 1000; i++)
		store_refused(f->store, STORE_AUDIT_DENIED, "unknown", NULL);
	for (int i = 0; i < STORE_REFUSED_KEPT + 8; i++) {
		snprintf(owner, sizeof(owner), "owner%d", i);
		store_refused(f->store, STORE_AUDIT_LIMIT, "rate", &(struct store_refused_who){.owner = owner});
		store_refused(f->store, STORE_AUDIT_LIMIT, "rate", &(struct store_refused_who){.owner = owner});
	}
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err)); /* hourly */
	ok(store_commit(f->store, nothing, NULL, &err));              /* behind what waited */
	assert_answer(f, "SELECT sum(entry ->> '$.f.count') FROM audit WHERE kind = 'auth.denied'", "1000");
	assert_answer(f, "SELECT count(*) FROM audit WHERE kind = 'auth.denied' AND object = 'auth:unknown'", "2");
	auto_free char *all = xasprintf("%d", 2 * (STORE_REFUSED_KEPT + 8));

	assert_answer(f, "SELECT sum(entry ->> '$.f.count') FROM audit WHERE kind = 'limit.hit'", all);
	assert_answer(f, "SELECT count(*) FROM audit WHERE kind = 'limit.hit' AND entry LIKE '%owner%'", "0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_act, setup, teardown),
		cmocka_unit_test_setup_teardown(commitments, setup, teardown),
		cmocka_unit_test_setup_teardown(together, setup, teardown),
		cmocka_unit_test_setup_teardown(erased, setup, teardown),
		cmocka_unit_test_setup_teardown(refusals, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
