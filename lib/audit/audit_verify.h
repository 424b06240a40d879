/*
 * audit_verify.h - five verdicts on a database, a copy of one or an export, by its audit log and by checkpoints.
 *
 *   tree        entries 0, 1, 2 … without a gap, columns as their entries say, the root of every checkpoint
 *   signatures  checkpoints are signed by the log's key
 *   anchors     checkpoints that come from elsewhere fit the tree
 *   coverage    rows have their entries, entries their rows, and both say the same
 *   content     details fit the commitments, rows and contents fit the details
 *
 * Integrity is not completeness: what a gateway never wrote down is in none of them.
 */
#pragma once

#include "audit_note.h"
#include "lib/store/audit/store_audit_read.h"

enum audit_state { AUDIT_HOLDS, AUDIT_BROKEN, AUDIT_UNCHECKED };
#define AUDIT_TEXT_SIZE 320
struct audit_verdict {
	enum audit_state state;
	int64_t checked, findings;
	int64_t first;              /* the entry of the first finding; -1: none names one */
	char text[AUDIT_TEXT_SIZE]; /* the first finding, or why it was not checked */
};
enum audit_part { AUDIT_PART_TREE, AUDIT_SIGNATURES, AUDIT_ANCHORS, AUDIT_COVERAGE, AUDIT_CONTENT, AUDIT_PARTS };
extern const char *const audit_part_names[AUDIT_PARTS];

struct audit_report {
	struct audit_verdict parts[AUDIT_PARTS];
	int64_t entries, erased; /* entries whose details are gone, as content.erase says */
	struct audit_hash root;
	int64_t covered; /* entries that the newest checkpoint which fits covers */
	int64_t certified; /* erasures of the certificate */
};

struct audit_request {
	const char *path;        /* data folder, database or export */
	const char *signer;      /* folder of the signer: checkpoints.log, leaves, vkey; NULL: none */
	const char *const *keys; /* public keys of log and witnesses besides vkey */
	size_t n_keys;
	const char *const *anchors; /* files with checkpoints from elsewhere */
	size_t n_anchors;
	const char *certificate; /* file with a certificate of erasures (audit_certificate.h); NULL: none */
	const char *blobs;       /* folder of contents to be read; NULL: not */
	int (*progress)(void *arg, const char *what, int64_t done, int64_t total);   /* negative ends it */
	void (*found)(void *arg, enum audit_part part, int64_t n, const char *text); /* each finding; may be NULL */
	void *arg;
};
/* 0: the report says what was found; negative: it could not be made. */
int audit_verify(const struct audit_request *request, struct audit_report *ret, struct err *err);
