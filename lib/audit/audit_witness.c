/*
 * audit_witness.c - see audit_witness.h.
 *
 * The size that a witness saw last is its own to say: where we remember another one (the folder is new, an answer was
 * lost), it answers 409 with the right one, and we ask once more with the proof from there. An answer is believed only
 * with a signature of the key that the operator named. Redirects are not followed. Facts: C2SP tlog-witness,
 * tlog-cosignature; libcurl 7.88.
 */
#include "audit_witness.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/base/util.h"

#define CONNECT_SECONDS 10L
#define ANSWER_SECONDS  30L
#define ANSWER_MAX      AUDIT_NOTE_MAX
#define STATUS_OK       200
#define STATUS_CONFLICT 409 /* the witness saw another size */
#define STATUS_PROOF    422 /* the proof does not lead from what it saw to what we have */

struct witness {
	struct audit_key key;
	char *address; /* of add-checkpoint */
};

static void clear_witness(struct witness *witness)
{
	free(witness->address);
}

static int parse(const char *text, struct witness *ret, struct err *err)
{
	const char *blank = strchr(text, ' ');
	auto_free char *key = blank != NULL ? xstrndup(text, (size_t)(blank - text)) : NULL;
	size_t length;

	if (blank == NULL || (!str_starts(blank + 1, "http://") && !str_starts(blank + 1, "https://")) ||
	    strpbrk(blank + 1, " #?") != NULL)
		return err_set(err, ERR_INVALID,
			       "a witness is a public key, a blank and an address of http or https, not '%s'", text);
	int result = audit_key_parse(key, &ret->key, err);

	if (result < 0)
		return result;
	if (!ret->key.witness)
		return err_set(err, ERR_INVALID, "%s is the key of a log, not of a witness", ret->key.name);
	length = strlen(blank + 1);
	while (blank[length] == '/')
		length--;
	ret->address = xasprintf("%.*s/add-checkpoint", (int)length, blank + 1);
	return 0;
}

int audit_witness_check(const char *text, struct err *err)
{
	struct witness witness = {0};
	int result = parse(text, &witness, err);

	clear_witness(&witness);
	return result;
}

static size_t take(char *data, size_t size, size_t count, void *arg)
{
	struct buf *answer = arg;

	buf_add(answer, data, size * count);
	return answer->overflow ? 0 : size * count;
}

/* Returns the status of HTTP. */
static int post(const struct witness *witness, const struct buf *body, struct buf *ret_answer, struct err *err)
{
	CURL *curl = curl_easy_init();
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: text/plain; charset=utf-8");
	long status = 0;

	if (curl == NULL || headers == NULL) {
		curl_easy_cleanup(curl);
		return err_set(err, ERR_SYSTEM, "libcurl does not start");
	}
	curl_easy_setopt(curl, CURLOPT_URL, witness->address);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, ANSWER_SECONDS);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body->data);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)body->length);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, ret_answer);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	CURLcode code = curl_easy_perform(curl);

	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	if (ret_answer->overflow)
		return err_set(err, ERR_UNAVAILABLE, "the witness %s answers more than %d KiB", witness->key.name,
			       ANSWER_MAX / 1024);
	if (code != CURLE_OK)
		return err_set(err, ERR_UNAVAILABLE, "the witness %s at %s: %s", witness->key.name, witness->address,
			       curl_easy_strerror(code));
	return (int)status;
}

static int take_signature(const struct audit_signer *signer, const struct witness *witness, const struct buf *note,
			  const struct buf *answer, struct err *err)
{
	auto_buf struct buf cosigned = {0};
	struct audit_note parsed;
	int64_t seconds = 0;

	buf_init(&cosigned, 2 * AUDIT_NOTE_MAX);
	buf_add(&cosigned, note->data, note->length);
	buf_add(&cosigned, answer->data, answer->length);
	int result = audit_note_parse(cosigned.data, cosigned.length, &parsed, err);

	if (result == 0)
		result = audit_note_check(cosigned.data, &parsed, &witness->key, &seconds, err);
	if (result < 0)
		return err_wrap(err, "the answer of the witness %s", witness->key.name);
	if (result == 0 || seconds == 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "the witness %s answers without a signature of the key that was given",
			       witness->key.name);
	/* Kept before the anchor is said to have it. */
	auto_close int fd =
		openat(signer->dir_fd, AUDIT_SIGNER_COSIGNED, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	buf_putc(&cosigned, '\n');
	if (fd < 0 || write_all(fd, cosigned.data, cosigned.length) < 0 || fsync(fd) < 0)
		return err_errno(err, "writing %s/" AUDIT_SIGNER_COSIGNED, signer->folder);
	return 0;
}

/* What a witness that saw another size says: -1, where it is none of ours. */
static int64_t size_seen(const struct audit_signer *signer, const struct buf *answer)
{
	auto_free char *text = xstrndup(answer->data, strcspn(answer->data, "\n"));
	uint64_t size;

	return parse_u64(text, 0, (uint64_t)signer->n_signed, &size) == 0 ? (int64_t)size : -1;
}

static int ask(const struct audit_signer *signer, const struct witness *witness, const struct buf *note, int64_t had,
	       struct err *err)
{
	auto_free struct audit_hash *leaves = NULL;
	int result = audit_signer_leaves(signer, &leaves, err);

	for (bool again = false; result == 0; again = true) {
		auto_buf struct buf question = {0}, answer = {0};

		buf_init(&question, 2 * AUDIT_NOTE_MAX);
		buf_init(&answer, ANSWER_MAX);
		/* The checkpoint, and why it continues the one of `had` entries. */
		struct audit_hash proof[AUDIT_TREE_DEPTH];
		size_t count = 0;

		if (had > 0)
			count = audit_tree_consistency(leaves, (uint64_t)signer->n_signed, (uint64_t)had, proof);
		buf_printf(&question, "old %lld\n", (long long)had);
		for (size_t i = 0; i < count; i++) {
			base64_encode(&question, proof[i].bytes, SHA256_SIZE);
			buf_putc(&question, '\n');
		}
		buf_putc(&question, '\n');
		buf_add(&question, note->data, note->length);
		const int status = post(witness, &question, &answer, err);
		const int64_t seen = status == STATUS_CONFLICT ? size_seen(signer, &answer) : -1;

		if (status < 0)
			return status;
		if (status == STATUS_OK)
			return take_signature(signer, witness, note, &answer, err);
		if (again || seen < 0 || seen == had) {
			if (status == STATUS_CONFLICT || status == STATUS_PROOF)
				return err_set(err, ERR_CORRUPT,
					       "the witness %s signs nothing: it saw another history of this log than the %lld entries that are here (it says: %.120s)",
					       witness->key.name, (long long)signer->n_signed, answer.data);
			return err_set(err, ERR_UNAVAILABLE, "the witness %s answers HTTP %d: %.120s",
				       witness->key.name, status, answer.data);
		}
		had = seen;
	}
	return result;
}

int audit_witness_send(const struct audit_signer *signer, const char *text, const struct buf *note, int64_t had,
		       struct err *err)
{
	struct witness witness = {0};
	int result = parse(text, &witness, err);

	if (result == 0)
		result = ask(signer, &witness, note, had, err);
	clear_witness(&witness);
	return result;
}
