/* test_store_records.c - tokens, sessions, conversations, files, executions: in and out again, real SQLite, real files.
 */
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_file.h"
#include "lib/store/record/store_resource.h"
#include "lib/store/record/store_session.h"
#include "lib/store/record/store_token.h"
#include "lib/store/retention/store_expire.h"
#include "store_fixture.h"

#include <fcntl.h>

/* -------- tokens -------------------------------------------------------------------------------------- */

static int collect_tokens(void *arg, const struct store_token *token)
{
	char *text = arg;
	size_t length = strlen(text);

	snprintf(text + length, 256 - length, "%s/%s%s ", token->owner, token->name, token->revoked_us != 0 ? "!" : "");
	return 0;
}

static void token_life(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char text[STORE_TOKEN_TEXT], other[STORE_TOKEN_TEXT], list[256] = "";
	struct store_token made, found, revoked;

	ok(store_token_add(f->store, "ann-1", "laptop", text, &made, &err));
	ok(store_token_add(f->store, "bob", "ci", other, NULL, &err));
	assert_true(str_starts(text, "sp_ann-1_"));
	assert_int_equal(strlen(text), strlen("sp_ann-1_") + 48);
	ok(store_token_check(f->store, text, &found, &err));
	assert_string_equal(found.id, made.id);
	assert_string_equal(found.owner, "ann-1");
	assert_string_equal(found.name, "laptop");

	text[strlen(text) - 1] ^= 1;
	fails(store_token_check(f->store, text, &found, &err), ERR_DENIED);
	text[strlen(text) - 1] ^= 1;
	fails(store_token_check(f->store, "", &found, &err), ERR_DENIED);
	ok(store_token_list(f->store, collect_tokens, list, &err));
	assert_string_equal(list, "ann-1/laptop bob/ci ");

	ok(store_token_revoke(f->store, made.id, &revoked, &err));
	assert_true(revoked.revoked_us > 0);
	char known[ERR_TEXT_SIZE];

	fails(store_token_check(f->store, text, &found, &err), ERR_DENIED);
	memcpy(known, err.text, sizeof(known));
	fails(store_token_check(f->store, "sp_ann-1_00", &found, &err), ERR_DENIED);
	assert_string_equal(known, err.text); /* unknown and revoked look alike */
	int64_t first = revoked.revoked_us;

	ok(store_token_revoke(f->store, made.id, &revoked, &err));
	assert_int_equal(revoked.revoked_us, first);
	ok(store_token_check(f->store, other, &found, &err));
}

static void token_only_hash_is_stored(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char text[STORE_TOKEN_TEXT];

	ok(store_token_add(f->store, "ann", "x", text, NULL, &err));
	reopen(f, STORE_SERVE); /* the log is folded into the database */
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	auto_free char *bytes = NULL;
	size_t length;

	ok(read_file_at(AT_FDCWD, path, 10 * 1024 * 1024, &bytes, &length, &err));
	assert_null(memmem(bytes, length, text + 7, strlen(text) - 7));
	char hash[SHA256_HEX_SIZE];

	sha256_hex(text, strlen(text), hash);
	assert_non_null(memmem(bytes, length, hash, strlen(hash)));
}

static void token_bad_input(void **state)
{
	static const char *const owners[] = {"",    "-a", "A",   "a b",
					     "a_b", "ä",  "a/b", "123456789012345678901234567890123"};
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char text[STORE_TOKEN_TEXT], name[65];

	for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
		fails(store_token_add(f->store, owners[i], "x", text, NULL, &err), ERR_INVALID);
		assert_string_equal(err.member, "owner");
	}
	memset(name, 'n', 64);
	name[64] = '\0';
	fails(store_token_add(f->store, "ann", name, text, NULL, &err), ERR_INVALID);
	assert_string_equal(err.member, "name");
	name[63] = '\0';
	ok(store_token_add(f->store, "12345678901234567890123456789012", name, text, NULL, &err));
	assert_answer(f, "SELECT count(*) FROM token", "1");
}

static void token_prefix(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char text[STORE_TOKEN_TEXT], prefix[ID_SIZE];
	struct store_token one, two, revoked;

	ok(store_token_add(f->store, "ann", "1", text, &one, &err));
	ok(store_token_add(f->store, "ann", "2", text, &two, &err));
	snprintf(prefix, sizeof(prefix), "%.4s", one.id);
	fails(store_token_revoke(f->store, prefix, &revoked, &err), ERR_CONFLICT);
	fails(store_token_revoke(f->store, "zz", &revoked, &err), ERR_NOT_FOUND);
	fails(store_token_revoke(f->store, "", &revoked, &err), ERR_INVALID);
	assert_answer(f, "SELECT count(*) FROM token WHERE revoked_us IS NOT NULL", "0");
	snprintf(prefix, sizeof(prefix), "%.35s", two.id);
	ok(store_token_revoke(f->store, prefix, &revoked, &err));
	assert_string_equal(revoked.id, two.id);
}

static int nothing_work(struct store_txn *txn, void *arg, struct err *err)
{
	(void)txn, (void)arg, (void)err;
	return 0;
}

/* A use is noted, and not more often than once a minute. */
static void token_last_used(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char text[STORE_TOKEN_TEXT];
	struct store_token token;

	ok(store_token_add(f->store, "ann", "x", text, &token, &err));
	ok(store_token_check(f->store, text, &token, &err));
	ok(store_commit(f->store, nothing_work, NULL, &err)); /* behind the note */
	auto_free char *first = ask(f, "SELECT used_us FROM token");

	assert_string_not_equal(first, "NULL");
	ok(store_token_check(f->store, text, &token, &err));
	assert_true(token.used_us > 0);
	ok(store_commit(f->store, nothing_work, NULL, &err));
	assert_answer(f, "SELECT used_us FROM token", first);
	assert_null(ask(f, "UPDATE token SET used_us = used_us - 61 * 1000000"));
	ok(store_token_check(f->store, text, &token, &err));
	ok(store_commit(f->store, nothing_work, NULL, &err));
	auto_free char *later = ask(f, "SELECT used_us FROM token");

	assert_true(strcmp(later, first) > 0);
}

/* -------- sessions ------------------------------------------------------------------------------------ */

static void session_life(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char text[STORE_TOKEN_TEXT];
	struct store_token token;
	struct store_session session = {.owner = "ann",
					.protocol = "2025-06-18",
					.client_name = "x",
					.client_version = "1"},
			     found;

	ok(store_token_add(f->store, "ann", "x", text, &token, &err));
	memcpy(session.token_id, token.id, sizeof(token.id));
	ok(store_session_add(f->store, &session, &err));
	assert_true(id_valid(session.id));
	reopen(f, STORE_SERVE);
	ok(store_session_find(f->store, session.id, "ann", &found, &err));
	assert_string_equal(found.protocol, "2025-06-18");
	assert_string_equal(found.token_id, token.id);
	assert_string_equal(found.client_name, "x");
	assert_int_equal(found.created_us, session.created_us);
	fails(store_session_find(f->store, session.id, "bob", &found, &err), ERR_NOT_FOUND);
	fails(store_session_find(f->store, "nonsense", "ann", &found, &err), ERR_NOT_FOUND);
	fails(store_session_end(f->store, session.id, "bob", &err), ERR_NOT_FOUND);
	ok(store_session_end(f->store, session.id, "ann", &err));
	fails(store_session_end(f->store, session.id, "ann", &err), ERR_NOT_FOUND);
	fails(store_session_find(f->store, session.id, "ann", &found, &err), ERR_NOT_FOUND);
}

static void session_needs_its_token(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_session session = {.owner = "ann", .token_id = "01a1fd4c-5b94-7f6b-9ee6-a245b035fcd4"};

	fails(store_session_add(f->store, &session, &err), ERR_CONFLICT);
	assert_string_equal(session.id, "");
	session.token_id[0] = '\0';
	ok(store_session_add(f->store, &session, &err));
}

/* -------- conversations and files --------------------------------------------------------------------- */

static void conversations_are_per_owner(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char hash[SHA256_HEX_SIZE];
	struct store_conversation ann = put_file(f->store, "ann", "talk", "a.txt", "hello");
	struct store_conversation bob = put_file(f->store, "bob", "talk", "a.txt", "world"), found;

	assert_int_not_equal(ann.row, bob.row);
	assert_string_not_equal(ann.hash, bob.hash);
	ok(store_conversation_find(f->store, "ann", "talk", &found, &err));
	assert_int_equal(found.row, ann.row);
	assert_int_equal(found.bytes, 5);
	fails(store_conversation_find(f->store, "eve", "talk", &found, &err), ERR_NOT_FOUND);
	ok(store_conversation_by_hash(f->store, bob.hash, &found, &err));
	assert_string_equal(found.owner, "bob");
	fails(store_conversation_by_hash(f->store, "00", &found, &err), ERR_NOT_FOUND);
	store_conversation_hash(f->store, "ann", "talk", hash);
	assert_string_equal(hash, ann.hash);
	/* Owner and name cannot be shifted against each other. */
	store_conversation_hash(f->store, "an", "ntalk", hash);
	assert_string_not_equal(hash, ann.hash);
}

static int collect_files(void *arg, const struct store_owner_file *owned)
{
	const struct store_file *file = &owned->file;
	char *text = arg;
	size_t length = strlen(text);

	snprintf(text + length, 512 - length, "%.*s:%lld:%s ", (int)file->name_length, file->name,
		 (long long)file->size, file->media_type);
	return 0;
}

static void files_replace_and_go(void **state)
{
	static const char raw[] = "caf\xe9\n\0x";
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char list[512] = "";
	struct store_file found;
	struct put_file odd = {
		.owner = "ann", .conversation = "talk", .name = raw, .name_length = sizeof(raw) - 1, .content = "12"};
	struct store_conversation talk = put_file(f->store, "ann", "talk", "b/a.csv", "1,2");

	put_file(f->store, "ann", "talk", "a.txt", "hello");
	put_file(f->store, "ann", "talk", "a.txt", "hello, world");
	ok(try_put_file(f->store, &odd, &err));
	const struct store_page page = {.owner = "ann", .limit = 10, .conversation = "", .name = ""};

	ok(store_owner_files(f->store, &page, collect_files, list, &err));
	assert_true(str_starts(list, "a.txt:12:text/plain b/a.csv:3:text/csv caf"));
	ok(store_file_find(f->store, talk.row, raw, sizeof(raw) - 1, &found, &err));
	assert_int_equal(found.size, 2);
	assert_ptr_equal(found.name, raw);
	fails(store_file_find(f->store, talk.row, raw, sizeof(raw) - 2, &found, &err), ERR_NOT_FOUND);
	fails(store_file_find(f->store, talk.row, "A.txt", 5, &found, &err), ERR_NOT_FOUND);
	assert_answer(f, "SELECT bytes FROM conversation", "17");
	assert_answer(f, "SELECT typeof(name) FROM file WHERE name = 'a.txt'", "text");
	assert_sound(f);
}

static int delete_work(struct store_txn *txn, void *arg, struct err *err)
{
	return store_txn_file_delete(txn, *(int64_t *)arg, "a.txt", 5, err);
}

static void file_delete(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_conversation talk = put_file(f->store, "ann", "talk", "a.txt", "hello");

	ok(store_commit(f->store, delete_work, &talk.row, &err));
	assert_answer(f, "SELECT bytes FROM conversation", "0");
	fails(store_commit(f->store, delete_work, &talk.row, &err), ERR_NOT_FOUND);
}

static void owner_cap(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct put_file put = {.owner = "ann", .conversation = "two", .name = "c", .content = "12345"};
	const int64_t rows = 2 * (STORE_CONVERSATION_BYTES + STORE_FILE_BYTES);

	retain(f->store, rows + 12, 0);
	put_file(f->store, "ann", "one", "a", "1234567");
	ok(try_put_file(f->store, &put, &err)); /* 12 of 12 */
	put.name = "d";
	put.content = "1";
	fails(try_put_file(f->store, &put, &err), ERR_LIMIT);
	assert_non_null(strstr(err.text, "owner ann"));
	assert_non_null(strstr(err.text, "retention.owner_mb"));
	put.name = "c"; /* a version more, whatever its size */
	put.content = "543";
	fails(try_put_file(f->store, &put, &err), ERR_LIMIT);
	put_file(f->store, "bob", "one", "a", "1234567"); /* another owner's space */
	assert_answer(f, "SELECT sum(bytes) FROM conversation WHERE owner = 'ann'", "12");
	assert_sound(f);
}

static int64_t charged(const struct fixture *f, const char *owner)
{
	auto_free char *question = xasprintf("SELECT bytes FROM usage WHERE owner = '%s'", owner);
	auto_free char *answer = ask(f, question);

	return answer != NULL ? strtoll(answer, NULL, 10) : 0;
}

/* Each content once, in every version, until nothing names it and it may leave the disk. */
static void contents_are_charged_once(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	const int64_t late = clock_now_us() + 2 * STORE_BLOB_GRACE_US;
	const int64_t file = STORE_FILE_BYTES, talk = STORE_CONVERSATION_BYTES;

	put_file(f->store, "ann", "talk", "a", "1234567");
	put_file(f->store, "ann", "talk", "b", "1234567");
	put_file(f->store, "bob", "talk", "b", "1234567");
	assert_int_equal(charged(f, "ann"), talk + 2 * file + 7);
	assert_int_equal(charged(f, "bob"), talk + file + 7);
	put_file(f->store, "ann", "talk", "a", "12345"); /* "b" has the old one */
	ok(store_expire(f->store, late, NULL, NULL, &err));
	assert_int_equal(charged(f, "ann"), talk + 2 * file + 12);
	put_file(f->store, "ann", "talk", "b", "12345");
	assert_int_equal(charged(f, "ann"), talk + 2 * file + 12); /* the disk has it, so it counts */
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	assert_int_equal(charged(f, "ann"), talk + 2 * file + 12);
	assert_answer(f, "SELECT count(*) FROM holding WHERE doubt = 1", "1");
	ok(store_expire(f->store, late, NULL, NULL, &err));
	assert_int_equal(charged(f, "ann"), talk + 2 * file + 5);
	assert_int_equal(charged(f, "bob"), talk + file + 7);
	assert_sound(f);
	/* A conversation that goes takes its files along. */
	retain(f->store, 0, 1);
	ok(store_expire(f->store, late, NULL, NULL, &err));
	ok(store_expire(f->store, late, NULL, NULL, &err));
	assert_int_equal(charged(f, "ann"), 0);
	assert_answer(f, "SELECT count(*) FROM blob", "0");
	assert_sound(f);
}

static void file_needs_its_blob(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct put_file put = {.owner = "ann", .conversation = "talk", .name = "a", .content = ""};

	put.file = (struct store_file){.name = "a", .name_length = 1, .size = 3, .media_type = "text/plain"};
	sha256_hex("abc", 3, put.file.blob);
	fails(store_commit(f->store, put_file_work, &put, &err), ERR_NOT_FOUND);
	ok(store_blob_put(f->store, "abc", 3, put.file.blob, &err));
	put.file.size = 4;
	fails(store_commit(f->store, put_file_work, &put, &err), ERR_CORRUPT);
	assert_answer(f, "SELECT count(*) FROM conversation", "0"); /* rolled back as a whole */
	put.file.size = 3;
	ok(store_commit(f->store, put_file_work, &put, &err));
	snprintf(put.file.blob, sizeof(put.file.blob), "../../etc/passwd");
	fails(store_commit(f->store, put_file_work, &put, &err), ERR_INTERNAL);
}

static void conversation_name_limits(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char name[STORE_CONVERSATION_MAX + 2];
	struct put_file put = {.owner = "ann", .conversation = name, .name = "a", .content = "x"};

	memset(name, 'n', sizeof(name));
	name[STORE_CONVERSATION_MAX + 1] = '\0';
	fails(try_put_file(f->store, &put, &err), ERR_INVALID);
	name[STORE_CONVERSATION_MAX] = '\0';
	ok(try_put_file(f->store, &put, &err));
	name[0] = '\0';
	fails(try_put_file(f->store, &put, &err), ERR_INVALID);
}

static void media_types(void **state)
{
	static const struct {
		const char *name, *head;
		size_t length;
		const char *type;
	} cases[] = {
		{"a.txt", "\x89PNG\r\n\x1a\n....", 12, "image/png"},
		{"a", "\xff\xd8\xff\xe0", 4, "image/jpeg"},
		{"a", "GIF89a..", 8, "image/gif"},
		{"a", "RIFF....WEBPVP8 ", 16, "image/webp"},
		{"a", "RIFX....WEBPVP8 ", 16, "application/octet-stream"},
		{"a.png", "no image", 8, "application/octet-stream"},
		{"x/Data.CSV", "", 0, "text/csv"},
		{"a.svg", "<svg", 4, "image/svg+xml"},
		{".txt", "", 0, "application/octet-stream"},
		{"dir.txt/file", "", 0, "application/octet-stream"},
		{"dir/.json", "", 0, "application/octet-stream"},
		{"a.tar.gz", "", 0, "application/gzip"},
		{"a.", "", 0, "application/octet-stream"},
		{"book.xlsx", "PK", 2, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
		{"talk.pptx", "PK", 2, "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	};
	char type[STORE_MEDIA_TYPE_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		store_media_type(cases[i].name, strlen(cases[i].name), (const unsigned char *)cases[i].head,
				 cases[i].length, type);
		assert_string_equal(type, cases[i].type);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(token_life, setup, teardown),
		cmocka_unit_test_setup_teardown(token_only_hash_is_stored, setup, teardown),
		cmocka_unit_test_setup_teardown(token_bad_input, setup, teardown),
		cmocka_unit_test_setup_teardown(token_prefix, setup, teardown),
		cmocka_unit_test_setup_teardown(token_last_used, setup, teardown),
		cmocka_unit_test_setup_teardown(session_life, setup, teardown),
		cmocka_unit_test_setup_teardown(session_needs_its_token, setup, teardown),
		cmocka_unit_test_setup_teardown(conversations_are_per_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(files_replace_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(file_delete, setup, teardown),
		cmocka_unit_test_setup_teardown(owner_cap, setup, teardown),
		cmocka_unit_test_setup_teardown(contents_are_charged_once, setup, teardown),
		cmocka_unit_test_setup_teardown(contents_are_charged_once, setup, teardown),
		cmocka_unit_test_setup_teardown(file_needs_its_blob, setup, teardown),
		cmocka_unit_test_setup_teardown(conversation_name_limits, setup, teardown),
		cmocka_unit_test(media_types),
	};

	return cmocka_run_group_tests_name("store_records", tests, NULL, NULL);
}
