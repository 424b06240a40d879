/*
 * audit_certificate.c - see audit_certificate.h.
 *
 * A certificate comes from anybody, so nothing in it is believed: its words are compared with its entry, the entry with
 * its proof, the detail with the entry's commitment, and the owner's name with the id that stands for it in the record.
 */
#include "audit_certificate.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/base/util.h"

#define FORM     "sallyport erasure 1"
#define FILE_MAX (256 * 1024 * 1024)

/* -------- making one ---------------------------------------------------------------------------------- */

struct making {
	struct json_object *erasures;
	size_t at;
};

static struct json_object *new_base64(const void *data, size_t length)
{
	auto_buf struct buf text = {0};

	buf_init(&text, 128);
	base64_encode(&text, data, length);
	return json_object_new_string(text.data);
}

static void add_proof(void *arg, const struct audit_proven *proven)
{
	struct making *making = arg;
	struct json_object *erasure = json_object_array_get_idx(making->erasures, making->at++);
	struct json_object *hashes = json_object_new_array();
	char salt[SHA256_HEX_SIZE];

	json_add_string(erasure, "entry", proven->entry);
	json_add_string(erasure, "detail", proven->salt ? proven->detail : NULL);
	if (proven->salt)
		hex_encode(proven->salt, SHA256_SIZE, salt);
	json_add_string(erasure, "salt", proven->salt ? salt : NULL);
	for (size_t i = 0; i < proven->length; i++)
		json_object_array_add(hashes, new_base64(&proven->hashes[i], sizeof(proven->hashes[i])));
	json_add(erasure, "proof", hashes);
}

int audit_certificate_make(const char *database, const char *checkpoint, struct json_object *erasures,
			   struct json_object **ret, struct err *err)
{
	const size_t count = json_object_array_length(erasures);
	auto_free int64_t *numbers = xcalloc(count + 1, sizeof(*numbers));
	struct making making = {.erasures = erasures};
	struct audit_head head;
	char now[CLOCK_TEXT_SIZE];

	for (size_t i = 0; i < count; i++)
		numbers[i] = json_object_get_int64(
			json_get(json_object_array_get_idx(erasures, i), "n", json_type_int));
	const struct audit_wanted wanted = {numbers, count, add_proof, &making};
	int result = audit_prove_entries(database, checkpoint, &wanted, &head, err);

	if (result < 0)
		return result;
	struct json_object *tree = json_object_new_object();

	clock_text(clock_now_us(), now);
	*ret = json_object_new_object();
	json_add_string(*ret, "certificate", FORM);
	json_add_string(*ret, "made", now);
	json_add(*ret, "erasures", json_object_get(erasures));
	json_add_int(tree, "size", (int64_t)head.size);
	json_add(tree, "root", new_base64(&head.root, sizeof(head.root)));
	json_add(*ret, "tree", tree);
	json_add_string(*ret, "checkpoint", head.note);
	free(head.note);
	return 0;
}

/* -------- checking one -------------------------------------------------------------------------------- */

static int read_hash(const char *text, struct audit_hash *ret)
{
	auto_buf struct buf bytes = {0};

	buf_init(&bytes, sizeof(*ret) + 1);
	if (!text || base64_decode(text, strlen(text), &bytes, NULL) < 0 || bytes.length != sizeof(*ret))
		return -1;
	memcpy(ret, bytes.data, sizeof(*ret));
	return 0;
}

int audit_certificate_load(const char *path, struct audit_certified *ret, struct err *err)
{
	auto_free char *text = NULL;
	auto_json struct json_object *document = NULL;
	struct audit_note note;
	size_t length;
	int result = read_file_at(AT_FDCWD, path, FILE_MAX, &text, &length, err);

	if (result == 0)
		result = json_parse(text, length, &document, err);
	if (result < 0)
		return err_wrap(err, "%s", path);
	const char *form = json_get_string(document, "certificate");
	const char *signature = json_get_string(document, "checkpoint");
	struct json_object *tree = json_get(document, "tree", json_type_object);
	struct json_object *size = tree ? json_get(tree, "size", json_type_int) : NULL;

	if (!form || !streq(form, FORM) || !json_get(document, "erasures", json_type_array) || !size ||
	    read_hash(json_get_string(tree, "root"), &ret->root) < 0)
		return err_set(err, ERR_INVALID, "%s is no certificate of erasures", path);
	ret->size = (uint64_t)json_object_get_int64(size);
	if (signature && (audit_note_parse(signature, strlen(signature), &note, NULL) < 0 ||
			  note.checkpoint.size != ret->size ||
			  memcmp(&note.checkpoint.root, &ret->root, sizeof(ret->root)) != 0))
		return err_set(err, ERR_INVALID, "%s: its checkpoint is not of its tree", path);
	ret->note = signature;
	ret->document = steal(&document);
	return 0;
}

/* Is this member the entry's? */
static bool says(struct json_object *erasure, const char *member, struct json_object *entry, const char *key)
{
	const char *said = json_get_string(erasure, member), *is = entry ? json_get_string(entry, key) : NULL;

	return said && is && streq(said, is);
}

static const char *words_differ(struct json_object *erasure, struct json_object *entry)
{
	struct json_object *facts = json_get(entry, "f", json_type_object), *at = json_get(entry, "t", json_type_int);
	const char *kind = json_get_string(entry, "k"), *said = json_get_string(erasure, "at");
	char time[CLOCK_TEXT_SIZE] = "";

	if (at)
		clock_text(json_object_get_int64(at), time);
	if (!kind || !streq(kind, "content.erase"))
		return "its entry is of another kind";
	if (json_object_get_int64(json_get(entry, "n", json_type_int)) !=
	    json_object_get_int64(json_get(erasure, "n", json_type_int)))
		return "its entry has another number";
	if (!said || !streq(said, time))
		return "it was at another time";
	if (!says(erasure, "object", entry, "o"))
		return "its entry is about something else";
	if (!says(erasure, "by", entry, "a"))
		return "its entry names somebody else";
	if (!says(erasure, "what", facts, "what") || !says(erasure, "reason", facts, "reason"))
		return "its entry says something else of what was erased";
	return NULL;
}

/* The ticket, by the entry's commitment. An entry whose details were erased since has none. */
static const char *detail_differs(struct json_object *erasure, struct json_object *entry)
{
	const char *detail = json_get_string(erasure, "detail"), *salt = json_get_string(erasure, "salt");
	const char *ticket = json_get_string(erasure, "ticket"), *sum = json_get_string(entry, "d");
	auto_json struct json_object *details = NULL;
	char commitment[SHA256_HEX_SIZE];
	uint8_t bytes[SHA256_SIZE];

	if (!detail || !salt)
		return ticket ? "nothing proves its ticket" : NULL;
	if (hex_decode(salt, strlen(salt), bytes) < 0 || strlen(salt) != 2 * sizeof(bytes))
		return "its salt is none";
	store_audit_commit_to(bytes, "content.erase", detail, strlen(detail), commitment);
	if (!sum || !streq(sum, commitment))
		return "its detail is not that of the entry";
	if (ticket && (json_parse(detail, strlen(detail), &details, NULL) < 0 ||
		       !says(erasure, "ticket", details, "ticket")))
		return "its ticket is not that of the entry";
	return NULL;
}

static const char *proof_fails(const struct audit_certified *certified, struct json_object *erasure, const char *entry,
			       int64_t n)
{
	struct json_object *proof = json_get(erasure, "proof", json_type_array);
	struct audit_hash leaf, root, hashes[AUDIT_TREE_DEPTH];
	const size_t count = proof ? json_object_array_length(proof) : 0;

	for (size_t i = 0; i < MIN(count, ARRAY_SIZE(hashes)); i++)
		if (read_hash(json_object_get_string(json_object_array_get_idx(proof, i)), &hashes[i]) < 0)
			return "its proof has a hash that is none";
	audit_tree_leaf(entry, strlen(entry), &leaf);
	if (!proof || n < 0 || count > ARRAY_SIZE(hashes) ||
	    audit_tree_root_from(&leaf, (uint64_t)n, certified->size, hashes, count, &root) < 0 ||
	    memcmp(&root, &certified->root, sizeof(root)) != 0)
		return "its proof does not lead to the root";
	return NULL;
}

/* *ret: what is wrong; NULL: nothing. */
static int against_record(struct store_audit_reader *reader, struct json_object *erasure, struct json_object *entry,
			  const char **ret, struct err *err)
{
	const char *owner = json_get_string(erasure, "owner"), *principal = json_get_string(entry, "p");
	const struct store_audit_gone gone = {
		.n = json_object_get_int64(json_get(erasure, "n", json_type_int)),
		.object = json_get_string(erasure, "object"),
		.what = json_get_string(erasure, "what"),
	};
	char id[ID_SIZE] = "";
	int result = owner ? store_audit_principal_of(reader, owner, id, err) : 0;

	if (result < 0)
		return result;
	if (!streq(principal ? principal : "", id))
		*ret = "it was another owner's";
	result = store_audit_left(reader, &gone, err);
	if (result > 0)
		*ret = "what was erased is there, or is there again";
	return MIN(result, 0);
}

int audit_certificate_check(const struct audit_certified *certified, struct store_audit_reader *reader,
			    void (*found)(void *arg, int64_t n, const char *text), void *arg, int64_t *ret_checked,
			    struct err *err)
{
	struct json_object *erasures = json_get(certified->document, "erasures", json_type_array);
	int result = 0;

	*ret_checked = 0;
	for (size_t i = 0; result == 0 && i < json_object_array_length(erasures); i++) {
		struct json_object *erasure = json_object_array_get_idx(erasures, i);
		struct json_object *number = json_get(erasure, "n", json_type_int);
		const char *text = json_get_string(erasure, "entry"), *wrong = "it has no entry";
		const int64_t n = number ? json_object_get_int64(number) : -1;
		auto_json struct json_object *entry = NULL;

		if (text && json_parse(text, strlen(text), &entry, NULL) == 0) {
			wrong = words_differ(erasure, entry);
			wrong = wrong ? wrong : detail_differs(erasure, entry);
			wrong = wrong ? wrong : proof_fails(certified, erasure, text, n);
			if (!wrong)
				result = against_record(reader, erasure, entry, &wrong, err);
		}
		if (wrong)
			found(arg, n, wrong);
		++*ret_checked;
	}
	return result;
}
