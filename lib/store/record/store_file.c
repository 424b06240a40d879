/*
 * store_file.c - conversations and their files.
 *
 * A conversation is found by owner and name, or by its hash, which is a HMAC over both and therefore known before the
 * row exists and unguessable to everybody else. It is made by the first write to it. Its files are rows that name
 * blobs; what a guest sees in /data and what a download serves is this table and nothing else.
 *
 * The owner's cap (store_space.h) is checked in the transaction that adds a file, so two uploads at once cannot pass it
 * together.
 */
#include "lib/store/blob/store_blob.h"
#include "lib/store/db/store_txn.h"
#include "store_file.h"

#include <string.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_audit_internal.h"
#include "lib/store/blob/store_blob_internal.h"
#include "store_record_internal.h"

#define HEAD_SIZE 16 /* bytes that store_media_type wants to see */

void store_conversation_hash(struct store *store, const char *owner, const char *name, char ret[SHA256_HEX_SIZE])
{
	auto_free char *text = xasprintf("%s%c%s", owner, '\0', name);
	uint8_t hash[SHA256_SIZE];

	hmac_sha256(store->secret, sizeof(store->secret), text, strlen(owner) + 1 + strlen(name), hash);
	hex_encode(hash, sizeof(hash), ret);
}

void store_sign(struct store *store, const void *data, size_t length, char ret[SHA256_HEX_SIZE])
{
	static const char purpose[] = "sallyport: texts that clients keep";
	uint8_t key[SHA256_SIZE], hash[SHA256_SIZE];

	hmac_sha256(store->secret, sizeof(store->secret), purpose, sizeof(purpose) - 1, key);
	hmac_sha256(key, sizeof(key), data, length, hash);
	explicit_bzero(key, sizeof(key));
	hex_encode(hash, sizeof(hash), ret);
}

static void sealing_key(const struct store *store, uint8_t ret[SHA256_SIZE])
{
	static const char purpose[] = "sallyport: sealed texts that clients keep";

	hmac_sha256(store->secret, sizeof(store->secret), purpose, sizeof(purpose) - 1, ret);
}

void store_seal(struct store *store, const char *purpose, const void *data, size_t length, struct buf *out)
{
	uint8_t key[SHA256_SIZE];
	auto_buf struct buf sealed = {0};

	buf_init(&sealed, SIZE_MAX / 2);
	sealing_key(store, key);
	seal(key, purpose, data, length, &sealed);
	explicit_bzero(key, sizeof(key));
	base64url_encode(out, sealed.data, sealed.length);
}

int store_unseal(struct store *store, const char *purpose, const char *text, struct buf *out, struct err *err)
{
	uint8_t key[SHA256_SIZE];
	auto_buf struct buf sealed = {0};

	buf_init(&sealed, SIZE_MAX / 2);
	if (base64url_decode(text, strlen(text), &sealed, NULL) < 0)
		return err_set(err, ERR_CORRUPT, "not a sealed text of this server");
	sealing_key(store, key);
	int result = unseal(key, purpose, sealed.data, sealed.length, out, err);

	explicit_bzero(key, sizeof(key));
	return result;
}

#define ROW struct store_conversation
static const struct column columns[] = {STORE_CONVERSATION_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

/* The one row of a bound query. */
static int one_conversation(struct query *query, struct store_conversation *ret, struct err *err)
{
	int found = query_next(query, err);

	if (found == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no such conversation");
	if (found < 0)
		return found;
	*ret = (struct store_conversation){0};
	query_read(query, columns, ARRAY_SIZE(columns), ret);
	return 0;
}

int store_conversation_find(struct store *store, const char *owner, const char *name, struct store_conversation *ret,
			    struct err *err)
{
	auto_read struct query q = store_read(store, SQL_CONVERSATION_FIND, err);

	query_bind_text(&q, ":owner", owner);
	query_bind_text(&q, ":name", name);
	return one_conversation(&q, ret, err);
}

int store_conversation_by_hash(struct store *store, const char *hash, struct store_conversation *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_CONVERSATION_BY_HASH, err);

	query_bind_text(&q, ":hash", hash);
	return one_conversation(&q, ret, err);
}

int store_txn_conversation(struct store_txn *txn, const char *owner, const char *name, struct store_conversation *ret,
			   struct err *err)
{
	char hash[SHA256_HEX_SIZE];

	if (strlen(owner) > STORE_OWNER_MAX || strlen(name) > STORE_CONVERSATION_MAX || owner[0] == '\0' ||
	    name[0] == '\0')
		return err_set(err, ERR_INVALID, "owner and name of a conversation have 1 to %d and 1 to %d bytes",
			       STORE_OWNER_MAX, STORE_CONVERSATION_MAX);
	const int64_t now = store_txn_now(txn); /* no other row has it */

	store_conversation_hash(txn->store, owner, name, hash);
	auto_query struct query q = query_begin(txn->conn, SQL_CONVERSATION_TOUCH);

	query_bind_text(&q, ":owner", owner);
	query_bind_text(&q, ":name", name);
	query_bind_text(&q, ":hash", hash);
	query_bind_int(&q, ":now", now);
	store_uptime_bind(txn->store, &q);
	int failed = one_conversation(&q, ret, err);

	if (failed == 0)
		failed = query_run(&q, NULL, err);
	return failed < 0 || ret->created_us != now ? failed : store_txn_audit_conversation(txn, ret->row, err);
}

#define ROW struct store_file
static const struct column file_columns[] = {STORE_FILE_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

void store_file_read(struct query *query, struct store_file *ret)
{
	*ret = (struct store_file){0};
	query_read(query, file_columns, ARRAY_SIZE(file_columns), ret);
	ret->name = query_bytes(query, FILE_NAME, &ret->name_length);
}

int store_file_find(struct store *store, int64_t conversation, const char *name, size_t length, struct store_file *ret,
		    struct err *err)
{
	auto_read struct query q = store_read(store, SQL_FILE_FIND, err);

	query_bind_int(&q, ":conversation", conversation);
	query_bind_bytes(&q, ":name", name, length);
	int found = query_next(&q, err);

	if (found <= 0)
		return found < 0 ? found : err_set(err, ERR_NOT_FOUND, "there is no such file");
	store_file_read(&q, ret);
	ret->name = name;
	ret->name_length = length;
	return 0;
}

/* A media type for a file that came without one: by the first bytes of the blob. */
static int media_type(struct store *store, const struct store_file *file, char ret[STORE_MEDIA_TYPE_SIZE],
		      struct err *err)
{
	unsigned char head[HEAD_SIZE];
	auto_close int fd = -1;
	int failed = store_blob_open(store, file->blob, &fd, NULL, err);

	if (failed < 0)
		return failed;
	ssize_t got = pread(fd, head, sizeof(head), 0);

	if (got < 0)
		return err_errno(err, "reading blob %s", file->blob);
	store_media_type(file->name, file->name_length, head, (size_t)got, ret);
	return 0;
}

int store_txn_file_put(struct store_txn *txn, int64_t conversation, const struct store_file *file, struct err *err)
{
	char type[STORE_MEDIA_TYPE_SIZE];
	struct store_more more = {.blob = file->blob, .bytes = STORE_FILE_BYTES, .size = file->size};
	auto_query struct query owner = query_begin(txn->conn, SQL_CONVERSATION_OWNER);

	query_bind_int(&owner, ":conversation", conversation);
	int found = query_next(&owner, err);

	if (found <= 0)
		return found < 0 ? found : err_set(err, ERR_NOT_FOUND, "there is no such conversation");
	more.owner = query_text(&owner, 0);
	int failed = store_txn_room(txn, &more, err);

	if (failed == 0)
		failed = store_txn_blob(txn, file->blob, file->size, err);
	if (failed == 0 && file->media_type[0] == '\0')
		failed = media_type(txn->store, file, type, err);
	if (failed < 0)
		return failed;
	auto_query struct query q = query_begin(txn->conn, SQL_FILE_PUT);

	query_bind_int(&q, ":conversation", conversation);
	query_bind_bytes(&q, ":name", file->name, file->name_length);
	query_bind_text(&q, ":blob", file->blob);
	query_bind_text(&q, ":media_type", file->media_type[0] != '\0' ? file->media_type : type);
	query_bind_int(&q, ":mode", file->mode);
	query_bind_int(&q, ":size", file->size);
	query_bind_int(&q, ":mtime", file->mtime_us);
	return query_run(&q, NULL, err);
}

/* All names below a folder are between the two. */
struct below {
	char *from, *to;
};
#define auto_below __attribute__((cleanup(below_clear)))

static struct below below_of(const char *name, size_t length)
{
	return (struct below){xasprintf("%.*s/", (int)length, name), xasprintf("%.*s%c", (int)length, name, '/' + 1)};
}

static void below_clear(struct below *below)
{
	free(below->from);
	free(below->to);
}

int store_txn_file_place(struct store_txn *txn, int64_t conversation, const char *name, struct err *err)
{
	auto_below struct below below = below_of(name, strlen(name));
	auto_query struct query within = query_begin(txn->conn, SQL_FILE_BELOW);

	query_bind_int(&within, ":conversation", conversation);
	query_bind_text(&within, ":from", below.from);
	query_bind_text(&within, ":to", below.to);
	int found = query_next(&within, err);

	if (found > 0)
		return err_set(err, ERR_CONFLICT,
			       "\"%s\" is a folder of this conversation and has files: choose another name", name);
	for (const char *slash = strchr(name, '/'); found == 0 && slash; slash = strchr(slash + 1, '/')) {
		auto_query struct query q = query_begin(txn->conn, SQL_FILE_FIND);

		query_bind_int(&q, ":conversation", conversation);
		query_bind_bytes(&q, ":name", name, (size_t)(slash - name));
		found = query_next(&q, err);
		if (found > 0)
			return err_set(err, ERR_CONFLICT,
				       "\"%.*s\" is a file of this conversation, so it cannot be a folder: choose "
				       "another name",
				       (int)(slash - name), name);
	}
	return found;
}

int store_txn_files(struct store_txn *txn, int64_t conversation, int (*each)(void *arg, const struct store_file *file),
		    void *arg, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_CONVERSATION_FILES);
	int found;

	query_bind_int(&q, ":conversation", conversation);
	query_bind_text(&q, ":name", "");
	query_bind_int(&q, ":limit", -1);
	while ((found = query_next(&q, err)) > 0) {
		struct store_file file;

		store_file_read(&q, &file);
		if (each(arg, &file) != 0)
			return 0;
	}
	return found;
}

int store_txn_conversation_quiet(struct store_txn *txn, int64_t conversation, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_CONVERSATION_RUNS);

	query_bind_int(&q, ":conversation", conversation);
	int found = query_next(&q, err);

	return found <= 0 ? found
			  : err_set(err, ERR_BUSY, "a program of this conversation is running: wait for its end");
}

int store_txn_file_delete(struct store_txn *txn, int64_t conversation, const char *name, size_t length, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_FILE_DELETE);
	int64_t changes = 0;

	query_bind_int(&q, ":conversation", conversation);
	query_bind_bytes(&q, ":name", name, length);
	int failed = query_run(&q, &changes, err);

	return failed < 0 || changes > 0 ? failed : err_set(err, ERR_NOT_FOUND, "there is no such file");
}

int store_txn_files_delete(struct store_txn *txn, int64_t conversation, const char *name, size_t length,
			   int64_t *ret_deleted, struct err *err)
{
	auto_below struct below below = below_of(name, length);
	auto_query struct query q = query_begin(txn->conn, SQL_FILES_DELETE);

	query_bind_int(&q, ":conversation", conversation);
	query_bind_bytes(&q, ":name", name, length);
	query_bind_text(&q, ":from", below.from);
	query_bind_text(&q, ":to", below.to);
	return query_run(&q, ret_deleted, err);
}
