/*
 * store_audit.c - appending to the audit log; see store_audit.h.
 *
 * The number of an entry is read from the table inside the transaction, never from memory: commands of the operator
 * append while the gateway runs. Members have one order and no blanks, and nothing in them needs an escape, so an entry
 * is printed and never parsed: a verifier hashes the stored bytes.
 */
#include "store_audit.h"

#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_audit_internal.h"
#include "store_audit_read.h"
#include "store_audit_row.h"

/* Of a run. */
#define FACTS_USUAL   256
#define DETAILS_USUAL 512

static const char purpose[] = "sallyport audit detail 1";

static const char *const kinds[] = {
#define KIND(name, kind) [STORE_AUDIT_##name] = kind,
	STORE_AUDIT_KINDS(KIND)
#undef KIND
};

const char *store_audit_kind(enum store_audit_kind kind)
{
	return kinds[kind];
}

void store_audit_init(struct store_audit *entry, enum store_audit_kind kind, const char *type, const char *id)
{
	*entry = (struct store_audit){.kind = kind};
	snprintf(entry->object, sizeof(entry->object), "%s:%s", type, id);
	buf_init(&entry->facts, STORE_AUDIT_SIZE);
	buf_init(&entry->details, STORE_AUDIT_DETAILS_MAX);
	buf_reserve(&entry->facts, FACTS_USUAL);
	buf_reserve(&entry->details, DETAILS_USUAL);
}

void store_audit_clear(struct store_audit *entry)
{
	buf_clear(&entry->facts);
	buf_clear(&entry->details);
}

static void add_quoted(struct buf *to, const char *text, size_t length)
{
	buf_putc(to, '"');
	buf_add(to, text, length);
	buf_putc(to, '"');
}

static void name_member(struct buf *to, const char *name)
{
	buf_puts(to, to->length > 0 ? ",\"" : "\"");
	buf_puts(to, name);
	buf_puts(to, "\":");
}

void store_audit_int(struct store_audit *entry, const char *name, int64_t value)
{
	name_member(&entry->facts, name);
	buf_int(&entry->facts, value);
}

void store_audit_word(struct store_audit *entry, const char *name, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._:+#/-";
	const size_t length = strlen(word);

	if (length > 64 || strspn(word, plain) != length)
		entry->wrong = true;
	name_member(&entry->facts, name);
	add_quoted(&entry->facts, word, length);
}

/* Most details are sums, which need no escape. */
static bool is_sum(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((text[i] < '0' || text[i] > '9') && (text[i] < 'a' || text[i] > 'f'))
			return false;
	return length == SHA256_HEX_SIZE - 1;
}

void store_audit_text(struct store_audit *entry, const char *name, const char *text, size_t length)
{
	name_member(&entry->details, name);
	if (is_sum(text, length)) {
		add_quoted(&entry->details, text, length);
		return;
	}
	auto_json struct json_object *value = json_new_safe(text, length);

	json_print(&entry->details, value);
}

void store_audit_hex(struct store_audit *entry, const char *name, const char sum[SHA256_HEX_SIZE])
{
	name_member(&entry->details, name);
	add_quoted(&entry->details, sum, SHA256_HEX_SIZE - 1);
}

void store_audit_sum(struct store_audit *entry, const char *name, const void *data, size_t length)
{
	/* Most programs have no input, and most print no errors. */
	static const char nothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
	char sum[SHA256_HEX_SIZE];

	if (length > 0)
		sha256_hex(data, length, sum);
	store_audit_hex(entry, name, length > 0 ? sum : nothing);
}

void store_audit_json(struct store_audit *entry, const char *name, struct json_object *value)
{
	name_member(&entry->details, name);
	json_print(&entry->details, value);
}

void store_audit_client(struct store_audit *entry, const struct store_client *client)
{
	if (client == NULL)
		return;
	const struct {
		const char *name, *value;
	} members[] = {{"request", client->request_id}, {"address", client->address}, {"client", client->program}};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (members[i].value[0] != '\0')
			store_audit_text(entry, members[i].name, members[i].value, strlen(members[i].value));
}

void store_audit_place(const char *conversation_hash, char ret[SHA256_HEX_SIZE])
{
	auto_free char *text = xasprintf("sallyport audit conversation %s", conversation_hash);

	sha256_hex(text, strlen(text), ret);
}

/* The random id that stands for an owner; made with the first entry. */
static int principal(struct store_txn *txn, const char *owner, char ret[ID_SIZE], struct err *err)
{
	auto_query struct query find = query_begin(txn->conn, SQL_PRINCIPAL_FIND);

	query_bind_text(&find, ":owner", owner);
	int found = query_next(&find, err);

	if (found > 0)
		query_copy(&find, 0, ret, ID_SIZE);
	if (found != 0)
		return MIN(found, 0);
	auto_query struct query add = query_begin(txn->conn, SQL_PRINCIPAL_ADD);

	id_new(ret);
	query_bind_text(&add, ":owner", owner);
	query_bind_text(&add, ":id", ret);
	query_bind_int(&add, ":now", store_txn_now(txn));
	return query_run(&add, NULL, err);
}

static int next_number(struct store_txn *txn, int64_t *ret, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_AUDIT_NEXT);
	int found = query_next(&q, err);

	if (found > 0)
		*ret = query_int(&q, 0);
	return MIN(found, 0);
}

void store_audit_commit_to(const uint8_t salt[SHA256_SIZE], const char *kind, const char *details, size_t length,
			   char ret[SHA256_HEX_SIZE])
{
	const struct crypto_part parts[] = {
		{purpose, sizeof(purpose)}, /* with its NUL */
		{kind, strlen(kind) + 1},
		{details, length},
	};
	uint8_t hash[SHA256_SIZE];

	hmac_sha256_parts(salt, SHA256_SIZE, parts, ARRAY_SIZE(parts), hash);
	hex_encode(hash, sizeof(hash), ret);
}

/* What the log adds to an entry, and the commitment to its details. */
struct store_audit_line {
	int64_t n, at_us;
	char actor[STORE_AUDIT_OBJECT_SIZE], principal[ID_SIZE], commitment[SHA256_HEX_SIZE];
};

static int append(struct store_txn *txn, struct store_audit *entry, struct err *err)
{
	struct store_audit_line line = {.at_us = store_txn_now(txn)};
	uint8_t salt[SHA256_SIZE];
	char text[STORE_AUDIT_SIZE];
	struct buf out;
	int failed = next_number(txn, &line.n, err);

	if (failed == 0 && entry->owner != NULL && entry->owner[0] != '\0')
		failed = principal(txn, entry->owner, line.principal, err);
	if (failed < 0)
		return failed;
	if (entry->actor != NULL)
		snprintf(line.actor, sizeof(line.actor), "%s", entry->actor);
	else if (txn->store->mode == STORE_SERVE)
		snprintf(line.actor, sizeof(line.actor), "system");
	else
		snprintf(line.actor, sizeof(line.actor), "cli:%d", (int)getuid());
	if (entry->details.length > 0) {
		random_bytes(salt, sizeof(salt));
		store_audit_commit_to(salt, kinds[entry->kind], entry->details.data, entry->details.length,
				      line.commitment);
	}
	buf_init_room(&out, text, sizeof(text));
	buf_printf(&out,
		   "{\"v\":1,\"n\":%lld,\"t\":%lld,\"k\":\"%s\",\"a\":\"%s\",\"p\":\"%s\",\"o\":\"%s\",\"f\":{%s},"
		   "\"d\":\"%s\"}",
		   (long long)line.n, (long long)line.at_us, kinds[entry->kind], line.actor, line.principal,
		   entry->object, entry->facts.data, line.commitment);
	if (entry->wrong || out.overflow)
		return err_set(err, ERR_INTERNAL, "an audit entry of kind %s has a fact that is none",
			       kinds[entry->kind]);
	auto_query struct query q = query_begin(txn->conn, SQL_AUDIT_ADD);

	query_bind_int(&q, ":n", line.n);
	query_bind_int(&q, ":at", line.at_us);
	query_bind_text(&q, ":kind", kinds[entry->kind]);
	query_bind_text(&q, ":object", entry->object);
	query_bind_text(&q, ":entry", text);
	failed = query_run(&q, NULL, err);
	if (failed < 0 || entry->details.length == 0)
		return failed;
	auto_query struct query detail = query_begin(txn->conn, SQL_AUDIT_DETAIL_ADD);

	query_bind_int(&detail, ":n", line.n);
	query_bind_blob(&detail, ":salt", salt, sizeof(salt));
	query_bind_text(&detail, ":detail", entry->details.data);
	return query_run(&detail, NULL, err);
}

/* Details are one object. */
void store_audit_close_details(struct buf *details)
{
	const size_t length = details->length;

	if (length == 0)
		return;
	buf_puts(details, "{}"); /* room for both */
	if (details->overflow)
		return;
	memmove(details->data + 1, details->data, length);
	details->data[0] = '{';
}

int store_txn_audit(struct store_txn *txn, struct store_audit *entry, struct err *err)
{
	int failed = 0;

	store_audit_close_details(&entry->details);
	if (entry->details.overflow)
		failed = err_set(err, ERR_LIMIT, "the details of an audit entry have more than %d bytes",
				 STORE_AUDIT_DETAILS_MAX);
	if (failed == 0)
		failed = append(txn, entry, err);
	store_audit_clear(entry);
	return failed < 0 ? err_wrap(err, "the audit log") : 0;
}

static int add_work(struct store_txn *txn, void *arg, struct err *err)
{
	return store_txn_audit(txn, arg, err);
}

int store_audit_add(struct store *store, struct store_audit *entry, struct err *err)
{
	int failed = store_commit(store, add_work, entry, err);

	store_audit_clear(entry); /* where it never came to the work */
	return failed;
}

/* The entry first: it is the work's argument. Its texts are the caller's, so they are copied. */
struct later {
	struct store_audit entry;
	char actor[STORE_AUDIT_OBJECT_SIZE], owner[STORE_OWNER_MAX + 1];
};

static void later_done(void *arg, int result, const struct err *err)
{
	struct later *later = arg;

	if (result < 0)
		log_event(LOG_ERROR, "audit entry not written", "kind", kinds[later->entry.kind], "why", err->text,
			  NULL);
	store_audit_clear(&later->entry);
	free(later);
}

void store_audit_later(struct store *store, struct store_audit *entry)
{
	struct later *later = xcalloc(1, sizeof(*later));

	later->entry = *entry;
	if (entry->actor != NULL) {
		snprintf(later->actor, sizeof(later->actor), "%s", entry->actor);
		later->entry.actor = later->actor;
	}
	if (entry->owner != NULL) {
		snprintf(later->owner, sizeof(later->owner), "%s", entry->owner);
		later->entry.owner = later->owner;
	}
	*entry = (struct store_audit){0};
	store_commit_async(store, add_work, &later->entry, later_done);
}

int store_txn_audit_erase(struct store_txn *txn, const struct store_audit_erasure *erasure, struct err *err)
{
	struct store_audit entry;

	store_audit_init(&entry, STORE_AUDIT_CONTENT_ERASE, erasure->type, erasure->id);
	entry.actor = erasure->actor;
	entry.owner = erasure->owner;
	store_audit_word(&entry, "what", erasure->what);
	store_audit_word(&entry, "reason", erasure->reason);
	if (erasure->ticket != NULL)
		store_audit_text(&entry, "ticket", erasure->ticket, strlen(erasure->ticket));
	auto_query struct query q = query_begin(txn->conn, SQL_AUDIT_DETAIL_ERASE);

	query_bind_text(&q, ":object", entry.object);
	query_bind_text(&q, ":what", erasure->what);
	int failed = query_run(&q, NULL, err);

	if (failed == 0)
		return store_txn_audit(txn, &entry, err);
	store_audit_clear(&entry);
	return failed;
}

int store_txn_audit_open(struct store_txn *txn, struct err *err)
{
	struct store_audit entry;
	int64_t next = 0;
	int failed = next_number(txn, &next, err);

	if (failed < 0 || next > 0)
		return failed;
	auto_query struct query q = query_begin(txn->conn, SQL_AUDIT_BEFORE);

	failed = query_next(&q, err);
	if (failed <= 0)
		return failed;
	store_audit_init(&entry, STORE_AUDIT_LOG_OPEN, "log", "audit");
	store_audit_int(&entry, "executions", query_int(&q, AUDIT_BEFORE_RUNS));
	store_audit_int(&entry, "tokens", query_int(&q, AUDIT_BEFORE_TOKENS));
	store_audit_int(&entry, "conversations", query_int(&q, AUDIT_BEFORE_CONVERSATIONS));
	return store_txn_audit(txn, &entry, err);
}
