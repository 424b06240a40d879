/*
 * audit_certificate.h - the certificate of erasures: what was erased, when, by whom and for whom, with what proves it.
 *
 * One JSON object, made for people and for verify:
 *
 *     {"certificate": "sallyport erasure 1", "made": TIME, "erasures": [
 *        {"n": 4711, "at": TIME, "what": "content", "reason": "request", "owner": "ann", "by": "cli:0", "token": null,
 *         "object": "execution:ID", "ticket": "the operator's words",
 *         "entry": the bytes that were hashed, "detail": …, "salt": hexadecimal, "proof": [hashes in base64]}, …],
 *      "tree": {"size": 4720, "root": base64}, "checkpoint": the signed note, or null}
 *
 * The members before "entry" say what the entry says. Each proof leads from the entry to the root, which the
 * checkpoint signs.
 */
#pragma once

#include "audit_prove.h"
#include "lib/base/json.h"

/* Around `erasures`, an array of objects up to "ticket", in the order of n. `checkpoint` NULL: unsigned. *ret is the
 * caller's; errors are those of audit_prove. */
int audit_certificate_make(const char *database, const char *checkpoint, struct json_object *erasures,
			   struct json_object **ret, struct err *err);

/* A certificate from a file: *ret is the caller's, the note is part of it (NULL: unsigned). ERR_INVALID: it is none. */
struct audit_certified {
	struct json_object *document;
	const char *note;
	uint64_t size;
	struct audit_hash root;
};
int audit_certificate_load(const char *path, struct audit_certified *ret, struct err *err);
/* Each erasure against its entry, its proof, and the record: nothing that was erased is left there. `found` gets what
 * is wrong; n is the entry. */
int audit_certificate_check(const struct audit_certified *certified, struct store_audit_reader *reader,
			    void (*found)(void *arg, int64_t n, const char *text), void *arg, int64_t *ret_checked,
			    struct err *err);
