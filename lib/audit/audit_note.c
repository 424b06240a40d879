/*
 * audit_note.c - see audit_note.h.
 *
 * Parsing is strict, because a note comes from outside: lines are cut at LF, sizes have no leading zero, base64 is
 * canonical, a name has no blank. What cannot be a checkpoint is refused as a whole.
 */
#include "audit_note.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/base/util.h"

#define DASH            "\xe2\x80\x94 " /* em dash, U+2014, and a blank */
#define TYPE_LOG        1
#define TYPE_WITNESS    4
#define ID_SIZE_BYTES   4
#define COSIGNED_HEADER "cosignature/v1\ntime "

bool audit_name_valid(const char *name)
{
	size_t length = strlen(name);

	if (length == 0 || length >= AUDIT_NAME_SIZE)
		return false;
	for (size_t i = 0; i < length; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '+')
			return false;
	return true;
}

static uint32_t key_id(const char *name, uint8_t type, const uint8_t key[SIGN_KEY_SIZE])
{
	uint8_t text[AUDIT_NAME_SIZE + 2 + SIGN_KEY_SIZE], hash[SHA256_SIZE];
	size_t length = strlen(name);

	memcpy(text, name, length);
	text[length] = '\n';
	text[length + 1] = type;
	memcpy(text + length + 2, key, SIGN_KEY_SIZE);
	sha256_bytes(text, length + 2 + SIGN_KEY_SIZE, hash);
	return (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3];
}

void audit_key_from_seed(const char *name, const uint8_t seed[SIGN_SEED_SIZE], struct audit_key *ret)
{
	*ret = (struct audit_key){0};
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	sign_public(seed, ret->key);
	ret->id = key_id(name, TYPE_LOG, ret->key);
}

void audit_key_print(const struct audit_key *key, struct buf *out)
{
	uint8_t bytes[1 + SIGN_KEY_SIZE] = {key->witness ? TYPE_WITNESS : TYPE_LOG};

	memcpy(bytes + 1, key->key, SIGN_KEY_SIZE);
	buf_printf(out, "%s+%08x+", key->name, key->id);
	base64_encode(out, bytes, sizeof(bytes));
}

int audit_key_parse(const char *text, struct audit_key *ret, struct err *err)
{
	auto_buf struct buf bytes = {0};
	const char *id = strchr(text, '+'), *key = id != NULL ? strchr(id + 1, '+') : NULL;
	struct audit_key parsed = {0};
	uint8_t raw[ID_SIZE_BYTES];

	if (key == NULL || (size_t)(id - text) >= sizeof(parsed.name) || key - id != 9 ||
	    hex_decode(id + 1, 8, raw) != 0)
		return err_set(err, ERR_INVALID, "a public key has the form NAME+8 hexadecimal digits+base64");
	snprintf(parsed.name, sizeof(parsed.name), "%.*s", (int)(id - text), text);
	buf_init(&bytes, 64);
	if (!audit_name_valid(parsed.name) || base64_decode(key + 1, strlen(key + 1), &bytes, NULL) < 0 ||
	    bytes.length != 1 + SIGN_KEY_SIZE || (bytes.data[0] != TYPE_LOG && bytes.data[0] != TYPE_WITNESS))
		return err_set(err, ERR_INVALID, "the public key %s is not one of type Ed25519", parsed.name);
	parsed.witness = bytes.data[0] == TYPE_WITNESS;
	memcpy(parsed.key, bytes.data + 1, SIGN_KEY_SIZE);
	parsed.id = (uint32_t)raw[0] << 24 | (uint32_t)raw[1] << 16 | (uint32_t)raw[2] << 8 | raw[3];
	if (parsed.id != key_id(parsed.name, (uint8_t)bytes.data[0], parsed.key))
		return err_set(err, ERR_INVALID, "the public key %s does not fit its id: it was copied with a mistake",
			       parsed.name);
	*ret = parsed;
	return 0;
}

void audit_note_sign(const struct audit_checkpoint *checkpoint, const struct audit_key *key,
		     const uint8_t seed[SIGN_SEED_SIZE], struct buf *out)
{
	auto_buf struct buf text = {0};
	uint8_t signature[ID_SIZE_BYTES + SIGN_SIZE];

	buf_init(&text, AUDIT_NOTE_MAX);
	buf_printf(&text, "%s\n%llu\n", checkpoint->origin, (unsigned long long)checkpoint->size);
	base64_encode(&text, checkpoint->root.bytes, SHA256_SIZE);
	buf_putc(&text, '\n');
	for (int i = 0; i < ID_SIZE_BYTES; i++)
		signature[i] = (uint8_t)(key->id >> (24 - 8 * i));
	sign_text(seed, text.data, text.length, signature + ID_SIZE_BYTES);
	buf_add(out, text.data, text.length);
	buf_printf(out, "\n" DASH "%s ", key->name);
	base64_encode(out, signature, sizeof(signature));
	buf_putc(out, '\n');
}

/* The line from *at on, without its LF; *at goes behind it. -1: none. */
static int next_line(const char *text, size_t length, size_t *at, const char **ret, size_t *ret_length)
{
	const char *end = *at < length ? memchr(text + *at, '\n', length - *at) : NULL;

	if (end == NULL)
		return -1;
	*ret = text + *at;
	*ret_length = (size_t)(end - *ret);
	*at = (size_t)(end - text) + 1;
	return 0;
}

static int parse_head(const char *text, size_t length, struct audit_note *note, size_t *ret_at)
{
	auto_buf struct buf root = {0};
	const char *line;
	char size[24];
	size_t n;

	if (next_line(text, length, ret_at, &line, &n) < 0 || n >= sizeof(note->checkpoint.origin))
		return -1;
	memcpy(note->checkpoint.origin, line, n);
	if (!audit_name_valid(note->checkpoint.origin) || next_line(text, length, ret_at, &line, &n) < 0 ||
	    n >= sizeof(size))
		return -1;
	snprintf(size, sizeof(size), "%.*s", (int)n, line);
	if ((size[0] == '0' && n > 1) || parse_u64(size, 0, INT64_MAX, &note->checkpoint.size) != 0 ||
	    next_line(text, length, ret_at, &line, &n) < 0)
		return -1;
	buf_init(&root, 64);
	if (base64_decode(line, n, &root, NULL) < 0 || root.length != SHA256_SIZE)
		return -1;
	memcpy(note->checkpoint.root.bytes, root.data, SHA256_SIZE);
	/* lines of extensions */
	do {
		note->signed_length = *ret_at;
		if (next_line(text, length, ret_at, &line, &n) < 0)
			return -1;
	} while (n > 0);
	return 0;
}

static int parse_signature(const char *line, size_t length, struct audit_signature *ret)
{
	const size_t dash = sizeof(DASH) - 1;
	auto_buf struct buf bytes = {0};

	if (length < dash || memcmp(line, DASH, dash) != 0)
		return -1;
	line += dash;
	length -= dash;
	const char *blank = memchr(line, ' ', length);

	if (blank == NULL || (size_t)(blank - line) >= sizeof(ret->name))
		return -1;
	*ret = (struct audit_signature){0};
	memcpy(ret->name, line, (size_t)(blank - line));
	buf_init(&bytes, 8192); /* ML-DSA has 2,420 bytes */
	if (!audit_name_valid(ret->name) ||
	    base64_decode(blank + 1, length - (size_t)(blank + 1 - line), &bytes, NULL) < 0 ||
	    bytes.length <= ID_SIZE_BYTES)
		return -1;
	const uint8_t *raw = (const uint8_t *)bytes.data;

	ret->id = (uint32_t)raw[0] << 24 | (uint32_t)raw[1] << 16 | (uint32_t)raw[2] << 8 | raw[3];
	ret->length = bytes.length - ID_SIZE_BYTES;
	if (ret->length <= sizeof(ret->bytes))
		memcpy(ret->bytes, raw + ID_SIZE_BYTES, ret->length);
	return 0;
}

int audit_note_parse(const char *text, size_t length, struct audit_note *ret, struct err *err)
{
	struct audit_note note = {0};
	const char *line;
	size_t at = 0, n;

	if (length > AUDIT_NOTE_MAX || parse_head(text, length, &note, &at) < 0)
		return err_set(err, ERR_INVALID, "this is not a checkpoint");
	while (next_line(text, length, &at, &line, &n) == 0) {
		if (note.n_signatures == AUDIT_SIGNATURES_MAX)
			return err_set(err, ERR_LIMIT, "a checkpoint has more than %d signatures",
				       AUDIT_SIGNATURES_MAX);
		if (parse_signature(line, n, &note.signatures[note.n_signatures]) < 0)
			return err_set(err, ERR_INVALID, "a signature of the checkpoint of %llu entries is malformed",
				       (unsigned long long)note.checkpoint.size);
		note.n_signatures++;
	}
	if (note.n_signatures == 0 || at != length)
		return err_set(err, ERR_INVALID, "the checkpoint of %llu entries has no signature",
			       (unsigned long long)note.checkpoint.size);
	*ret = note;
	return 0;
}

static int check_one(const char *text, const struct audit_note *note, const struct audit_signature *signature,
		     const struct audit_key *key, int64_t *ret_time)
{
	auto_buf struct buf cosigned = {0};
	uint64_t time = 0;

	if (!key->witness)
		return signature->length == SIGN_SIZE
			       ? sign_check(key->key, text, note->signed_length, signature->bytes)
			       : -1;
	if (signature->length != 8 + SIGN_SIZE)
		return -1;
	for (int i = 0; i < 8; i++)
		time = time << 8 | signature->bytes[i];
	buf_init(&cosigned, AUDIT_NOTE_MAX + 64);
	buf_printf(&cosigned, COSIGNED_HEADER "%llu\n", (unsigned long long)time);
	buf_add(&cosigned, text, note->signed_length);
	if (ret_time != NULL)
		*ret_time = (int64_t)time;
	return sign_check(key->key, cosigned.data, cosigned.length, signature->bytes + 8);
}

int audit_note_check(const char *text, const struct audit_note *note, const struct audit_key *key, int64_t *ret_time,
		     struct err *err)
{
	int count = 0;

	for (size_t i = 0; i < note->n_signatures; i++) {
		const struct audit_signature *signature = &note->signatures[i];

		if (!streq(signature->name, key->name) || signature->id != key->id)
			continue;
		if (check_one(text, note, signature, key, ret_time) < 0)
			return err_set(err, ERR_CORRUPT,
				       "the signature of %s under the checkpoint of %llu entries is wrong", key->name,
				       (unsigned long long)note->checkpoint.size);
		count++;
	}
	return count;
}

/* Where the note that begins at `from` ends: behind the last of its signatures. */
static size_t note_end(const char *text, size_t length, size_t from)
{
	size_t at = from, n;
	const char *line;
	bool blank = false;

	while (next_line(text, length, &at, &line, &n) == 0) {
		if (blank && n == 0)
			return (size_t)(line - text);
		blank = blank || n == 0;
	}
	return length;
}

int audit_notes_each(const char *text, size_t length,
		     int (*each)(void *arg, const char *text, size_t length, const struct audit_note *note,
				 struct err *err),
		     void *arg, struct err *err)
{
	struct audit_note note;
	int result = 0;

	for (size_t at = 0; result == 0 && at < length;) {
		if (text[at] == '\n') {
			at++;
			continue;
		}
		size_t end = note_end(text, length, at);

		result = audit_note_parse(text + at, end - at, &note, err);
		if (result == 0)
			result = each(arg, text + at, end - at, &note, err);
		at = end;
	}
	return result;
}
