/*
 * audit_verify.c - see audit_verify.h.
 *
 * What entries must say of runs is read first, in one pass over the rows. Then one pass over the entries does the tree,
 * the facts and the details: the tree grows with each entry, and where it has the size of a checkpoint its root is
 * compared. Stored sums are never chained on. A signer's folder has the hash of
 * every leaf that it saw, so the first entry that was altered is named; with checkpoints alone a range is.
 *
 * Then rows are asked for their entries, files for what put them there, and contents for their sums.
 *
 * An export has some of the entries, each with a proof that it is in a tree of a stated size and root: the proof takes
 * the place of the growing tree, everything else is asked as above.
 */
#include "audit_verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "audit_certificate.h"
#include "audit_checkpoints.h"
#include "lib/base/util.h"
#include "lib/store/transfer/store_bundle_audit.h"

const char *const audit_part_names[AUDIT_PARTS] = {
	[AUDIT_PART_TREE] = "tree",    [AUDIT_SIGNATURES] = "signatures", [AUDIT_ANCHORS] = "anchors",
	[AUDIT_COVERAGE] = "coverage", [AUDIT_CONTENT] = "content",
};

struct work {
	const struct audit_request *request;
	struct audit_report *report;
	struct store_audit_reader *reader;
	struct audit_checkpoints checkpoints;
	struct audit_tree tree;
	struct audit_hash *leaves; /* the signer's */
	int64_t n_leaves, total;
	size_t next_checkpoint;
	int64_t fitted;       /* size of the last checkpoint whose root is the tree's */
	bool altered;         /* an entry differs from the signer's leaf */
	bool bundle;          /* it is an export: some entries, each with its proof, and the rows of some runs */
	struct store_bundle_log log;
	struct audit_certified certified;
	enum audit_part part; /* of findings by callbacks */
};

static void finding(struct work *work, enum audit_part part, int64_t n, const char *text)
{
	struct audit_verdict *verdict = &work->report->parts[part];

	if (verdict->findings == 0) {
		snprintf(verdict->text, sizeof(verdict->text), "%s", text);
		verdict->first = n;
	}
	verdict->state = AUDIT_BROKEN;
	verdict->findings++;
	if (work->request->found != NULL)
		work->request->found(work->request->arg, part, n, text);
}

static void finding_at(struct work *work, enum audit_part part, int64_t n, const char *object, const char *text)
{
	char whole[AUDIT_TEXT_SIZE];

	snprintf(whole, sizeof(whole), "entry %lld (%.80s): %s", (long long)n, object, text);
	finding(work, part, n, whole);
}

static int from_store(void *arg, int64_t n, const char *text)
{
	struct work *work = arg;
	char whole[AUDIT_TEXT_SIZE];

	if (n >= 0)
		snprintf(whole, sizeof(whole), "entry %lld: %s", (long long)n, text);
	else
		snprintf(whole, sizeof(whole), "%s", text);
	finding(work, work->part, n, whole);
	return 0;
}

/* -------- the tree ------------------------------------------------------------------------------------ */

/* Checkpoints of the size that the tree has now. */
static void compare_roots(struct work *work)
{
	const struct audit_checkpoints *all = &work->checkpoints;
	struct audit_hash root;
	char text[AUDIT_TEXT_SIZE];
	bool computed = false;

	for (; work->next_checkpoint < all->count && all->items[work->next_checkpoint].size <= work->tree.size;
	     work->next_checkpoint++) {
		const struct audit_seen *seen = &all->items[work->next_checkpoint];
		const enum audit_part part = seen->outside ? AUDIT_ANCHORS : AUDIT_PART_TREE;

		if (!computed)
			audit_tree_root(&work->tree, &root);
		computed = true;
		work->report->parts[AUDIT_ANCHORS].checked += seen->outside;
		if (memcmp(&root, &seen->root, sizeof(root)) == 0) {
			work->fitted = (int64_t)seen->size;
			continue;
		}
		snprintf(text, sizeof(text),
			 "the checkpoint of %llu entries (%.80s) has another root: of entries %lld to %lld one was "
			 "altered, removed or inserted",
			 (unsigned long long)seen->size, seen->from, (long long)work->fitted,
			 (long long)seen->size - 1);
		finding(work, part, work->fitted, text);
	}
}

static void compare_leaf(struct work *work, const struct store_audit_found *found, const struct audit_hash *leaf)
{
	const int64_t place = (int64_t)work->tree.size;

	if (work->altered || place >= work->n_leaves || memcmp(leaf, &work->leaves[place], sizeof(*leaf)) == 0)
		return;
	work->altered = true; /* what follows may be shifted by it */
	finding_at(work, AUDIT_PART_TREE, found->n, found->object, "it is not the entry that the signer saw");
}

/* What is left of the checkpoints covers more entries than there are. */
static void missing_tail(struct work *work)
{
	const struct audit_checkpoints *all = &work->checkpoints;
	char text[AUDIT_TEXT_SIZE];

	for (; work->next_checkpoint < all->count; work->next_checkpoint++) {
		const struct audit_seen *seen = &all->items[work->next_checkpoint];

		work->report->parts[AUDIT_ANCHORS].checked += seen->outside;
		snprintf(text, sizeof(text),
			 "the checkpoint of %llu entries (%.80s) covers more than the %llu that are here: the newest "
			 "ones are missing, or this is an older copy",
			 (unsigned long long)seen->size, seen->from, (unsigned long long)work->tree.size);
		finding(work, seen->outside ? AUDIT_ANCHORS : AUDIT_PART_TREE, (int64_t)work->tree.size, text);
	}
}

/* -------- one entry ----------------------------------------------------------------------------------- */

static bool same(const char *a, size_t length, const char *b)
{
	return strlen(b) == length && memcmp(a, b, length) == 0;
}

/* Were the details of the entry erased later on, by an entry that says so? */
static int is_erased(struct work *work, const struct store_audit_found *found, struct err *err)
{
	return store_audit_erased(work->reader, found->object, found->kind, found->n, err);
}

/* An export has the texts and files of a run, but not all columns of its row: the sum of those is left out. */
static bool same_details(const struct work *work, const struct store_audit_found *found, const char *expected)
{
	static const char row[] = "\"row\":\"";
	const char *at = strstr(expected, row);
	size_t before, behind;

	if (!work->bundle || !str_starts(found->kind, "run.") || at == NULL)
		return same(found->detail, found->detail_length, expected);
	before = (size_t)(at - expected) + sizeof(row) - 1;
	behind = before + SHA256_HEX_SIZE - 1;
	return strlen(expected) == found->detail_length && behind <= found->detail_length &&
	       memcmp(expected, found->detail, before) == 0 && streq(expected + behind, found->detail + behind);
}

struct row {
	struct store_audit says;
	char actor[STORE_AUDIT_OBJECT_SIZE], principal[ID_SIZE];
};

static int compare_row(struct work *work, const struct store_audit_found *found, const struct store_audit_parts *parts,
		       const struct row *row, struct err *err)
{
	/* Earlier releases erased with the output of a run what its calls said, and left the details. */
	const int blanked = streq(found->kind, "call") ? is_erased(work, found, err) : 0;

	if (blanked < 0)
		return blanked;
	if (!same(parts->facts, parts->facts_length, row->says.facts.data))
		finding_at(work, AUDIT_COVERAGE, found->n, found->object, "the row says something else than its facts");
	if (!work->bundle && !same(parts->principal, parts->principal_length, row->principal))
		finding_at(work, AUDIT_COVERAGE, found->n, found->object, "the row has another owner");
	if (row->actor[0] != '\0' && !same(parts->actor, parts->actor_length, row->actor))
		finding_at(work, AUDIT_COVERAGE, found->n, found->object, "the row names another token");
	if (!blanked && found->salt != NULL && !same_details(work, found, row->says.details.data))
		finding_at(work, AUDIT_CONTENT, found->n, found->object, "the row or its content was altered");
	return 0;
}

static int check_row(struct work *work, const struct store_audit_found *found, const struct store_audit_parts *parts,
		     struct err *err)
{
	struct row row;

	if (store_audit_rows_fit(work->reader, found, parts)) {
		work->report->parts[AUDIT_COVERAGE].checked++;
		return 0;
	}
	int there = store_audit_expected(work->reader, found, &row.says, row.actor, row.principal, err);

	if (there < 0)
		return there;
	work->report->parts[AUDIT_COVERAGE].checked++;
	if (there > 0) {
		/* a forgotten owner's rows name nobody that an entry could be compared with */
		there = compare_row(work, found, parts, &row, err);
		store_audit_clear(&row.says);
		return there;
	}
	finding_at(work, AUDIT_COVERAGE, found->n, found->object, "its row is gone: an erasure leaves it");
	return 0;
}

static int check_details(struct work *work, const struct store_audit_found *found,
			 const struct store_audit_parts *parts, struct err *err)
{
	char commitment[SHA256_HEX_SIZE];
	int erased;

	if (parts->commitment_length == 0) {
		if (found->detail_length > 0)
			finding_at(work, AUDIT_CONTENT, found->n, found->object, "it has details and commits to none");
		return 0;
	}
	work->report->parts[AUDIT_CONTENT].checked++;
	if (found->salt != NULL) {
		store_audit_commit_to(found->salt, found->kind, found->detail, found->detail_length, commitment);
		if (!same(parts->commitment, parts->commitment_length, commitment))
			finding_at(work, AUDIT_CONTENT, found->n, found->object, "its details were altered");
		return 0;
	}
	erased = is_erased(work, found, err);
	work->report->erased += erased > 0;
	if (erased == 0)
		finding_at(work, AUDIT_CONTENT, found->n, found->object,
			   "its details are gone, and no entry says that they were erased");
	return MIN(erased, 0);
}

/* What an entry says of rows and details. */
static int check_saying(struct work *work, const struct store_audit_found *found, struct err *err)
{
	struct store_audit_parts parts;
	int result = 0;

	if (store_audit_split(found, &parts) < 0) {
		finding_at(work, AUDIT_PART_TREE, found->n, found->object, "its columns and its text differ");
		return 0;
	}
	if (store_audit_has_row(found->kind))
		result = check_row(work, found, &parts, err);
	return result == 0 ? check_details(work, found, &parts, err) : result;
}

static int check_entry(void *arg, const struct store_audit_found *found, struct err *err)
{
	struct work *work = arg;
	struct audit_hash leaf;
	int result;

	work->report->parts[AUDIT_PART_TREE].checked++;
	if (found->n != (int64_t)work->tree.size && work->report->parts[AUDIT_PART_TREE].findings == 0)
		finding_at(work, AUDIT_PART_TREE, found->n, found->object, "entries before it are missing");
	audit_tree_leaf(found->entry, found->length, &leaf);
	compare_leaf(work, found, &leaf);
	audit_tree_add(&work->tree, &leaf);
	compare_roots(work);
	result = check_saying(work, found, err);
	if (result == 0 && work->tree.size % 256 == 0)
		result = work->request->progress(work->request->arg, "entries", (int64_t)work->tree.size, work->total);
	return result;
}

/* -------- the whole ----------------------------------------------------------------------------------- */

static int row_progress(void *arg, int64_t done, int64_t total)
{
	const struct work *work = arg;

	return work->request->progress(work->request->arg, "rows", done, total);
}

static int blob_progress(void *arg, int64_t done, int64_t total)
{
	const struct work *work = arg;

	return work->request->progress(work->request->arg, "contents", done, total);
}

static int check_tables(struct work *work, struct err *err)
{
	struct audit_verdict *parts = work->report->parts;
	int64_t checked = 0;

	work->part = AUDIT_COVERAGE;
	int result = store_audit_check_rows(work->reader, from_store, work, &checked, err);

	parts[AUDIT_COVERAGE].checked += checked;
	work->part = AUDIT_CONTENT;
	if (result == 0)
		result = store_audit_check_files(work->reader, from_store, work, &checked, err);
	parts[AUDIT_CONTENT].checked += checked;
	if (result == 0 && work->request->blobs != NULL) {
		const struct store_audit_blobs blobs = {work->request->blobs, blob_progress, work};

		result = store_audit_check_blobs(work->reader, &blobs, from_store, &checked, err);
		parts[AUDIT_CONTENT].checked += checked;
	}
	return result;
}

static void unchecked(struct audit_verdict *verdict, const char *why)
{
	if (verdict->state != AUDIT_HOLDS)
		return;
	verdict->state = AUDIT_UNCHECKED;
	snprintf(verdict->text, sizeof(verdict->text), "%s", why);
}

static void not_checked(struct work *work)
{
	const struct audit_checkpoints *all = &work->checkpoints;
	struct audit_verdict *parts = work->report->parts;

	if (all->count == 0)
		unchecked(&parts[AUDIT_SIGNATURES], "no checkpoints were given: name the signer's folder by --signer");
	else if (all->n_keys == 0)
		unchecked(&parts[AUDIT_SIGNATURES], "no public key was given: name it by --key");
	if (work->request->n_anchors == 0 && work->certified.document == NULL)
		unchecked(&parts[AUDIT_ANCHORS], "no checkpoints from elsewhere were given: name them by --anchor");
}

/* A witness that is named must have signed one. */
static void ask_witnesses(struct work *work)
{
	const struct audit_checkpoints *all = &work->checkpoints;
	char text[AUDIT_TEXT_SIZE];

	for (size_t i = 0; i < all->n_keys; i++) {
		if (!all->keys[i].witness || all->signed_by[i] > 0)
			continue;
		snprintf(text, sizeof(text), "no checkpoint that was given is signed by the witness %.120s",
			 all->keys[i].name);
		finding(work, AUDIT_ANCHORS, -1, text);
	}
}

#define CERTIFICATE "the certificate"

/* Its tree is one of those that the log is compared with. */
static int load_certificate(struct work *work, struct err *err)
{
	struct audit_certified *certified = &work->certified;
	struct audit_seen seen = {.outside = true, .from = CERTIFICATE};
	int result = audit_certificate_load(work->request->certificate, certified, err);

	if (result < 0)
		return result;
	if (certified->note != NULL)
		return audit_checkpoints_text(&work->checkpoints, certified->note, strlen(certified->note), CERTIFICATE,
					      true, err);
	seen.size = certified->size;
	seen.root = certified->root;
	audit_checkpoints_add(&work->checkpoints, &seen);
	return 0;
}

static void certificate_finding(void *arg, int64_t n, const char *text)
{
	finding_at(arg, AUDIT_CONTENT, n, CERTIFICATE, text);
}

static int load(struct work *work, struct err *err)
{
	const struct audit_request *request = work->request;
	struct audit_checkpoints *all = &work->checkpoints;
	int result = 0;

	for (size_t i = 0; result == 0 && i < request->n_keys; i++)
		result = audit_checkpoints_key(all, request->keys[i], err);
	if (result == 0 && request->signer != NULL)
		result = audit_checkpoints_signer(all, request->signer, &work->leaves, &work->n_leaves, err);
	if (result == 0 && work->log.checkpoint != NULL)
		result = audit_checkpoints_text(all, work->log.checkpoint, strlen(work->log.checkpoint), "the export",
						false, err);
	for (size_t i = 0; result == 0 && i < request->n_anchors; i++)
		result = audit_checkpoints_file(all, request->anchors[i], true, err);
	if (result == 0 && request->certificate != NULL)
		result = load_certificate(work, err);
	audit_checkpoints_sort(all);
	work->report->parts[AUDIT_SIGNATURES].checked = (int64_t)all->count;
	for (size_t i = 0; i < all->n_wrong; i++)
		finding(work, AUDIT_SIGNATURES, -1, all->wrong[i]);
	if (result == 0)
		ask_witnesses(work);
	return result;
}

/* -------- an export ----------------------------------------------------------------------------------- */

/* The entry is the one of its number in the tree that the export names, and the one that the signer saw. */
static int check_proven(void *arg, const struct store_audit_found *found, struct err *err)
{
	struct work *work = arg;
	struct audit_hash leaf, root, proof[AUDIT_TREE_DEPTH];
	int length = store_bundle_audit_proof(work->reader, found->n, proof, sizeof(proof), err);

	if (length < 0)
		return length;
	work->report->parts[AUDIT_PART_TREE].checked++;
	work->report->entries++;
	audit_tree_leaf(found->entry, found->length, &leaf);
	if (found->n < 0 ||
	    audit_tree_root_from(&leaf, (uint64_t)found->n, (uint64_t)work->log.size, proof,
				 (size_t)length / sizeof(proof[0]), &root) < 0 ||
	    memcmp(root.bytes, work->log.root, sizeof(work->log.root)) != 0)
		finding_at(work, AUDIT_PART_TREE, found->n, found->object, "its proof does not lead to the root");
	if (found->n >= 0 && found->n < work->n_leaves &&
	    memcmp(&leaf, &work->leaves[found->n], sizeof(leaf)) != 0)
		finding_at(work, AUDIT_PART_TREE, found->n, found->object, "it is not the entry that the signer saw");
	return check_saying(work, found, err);
}

/* Checkpoints of the size of the export's tree; of other sizes it cannot say anything. */
static void compare_head(struct work *work)
{
	const struct audit_checkpoints *all = &work->checkpoints;
	char text[AUDIT_TEXT_SIZE];

	for (size_t i = 0; i < all->count; i++) {
		const struct audit_seen *seen = &all->items[i];

		if ((int64_t)seen->size != work->log.size)
			continue;
		work->report->parts[AUDIT_ANCHORS].checked += seen->outside;
		if (memcmp(seen->root.bytes, work->log.root, sizeof(work->log.root)) == 0) {
			work->report->covered = work->report->entries;
			continue;
		}
		snprintf(text, sizeof(text), "the checkpoint of %llu entries (%.80s) has another root than the export",
			 (unsigned long long)seen->size, seen->from);
		finding(work, seen->outside ? AUDIT_ANCHORS : AUDIT_PART_TREE, -1, text);
	}
	if (work->report->parts[AUDIT_ANCHORS].checked == 0)
		unchecked(&work->report->parts[AUDIT_ANCHORS],
			  "no checkpoint from elsewhere is of the tree that the export is proven against");
}

static int verify_bundle(struct work *work, struct err *err)
{
	struct audit_checkpoints *all = &work->checkpoints;
	int64_t checked = 0;
	int result = store_bundle_audit_open(work->request->path, &work->reader, &work->log, err);

	if (result == 0)
		result = load(work, err);
	if (result == 0)
		result = store_audit_each(work->reader, INT64_MIN, check_proven, work, err);
	work->part = AUDIT_COVERAGE;
	if (result == 0)
		result = store_audit_check_rows(work->reader, from_store, work, &checked, err);
	if (result < 0)
		return result;
	work->report->parts[AUDIT_COVERAGE].checked += checked;
	if (work->log.damage != NULL)
		finding(work, AUDIT_CONTENT, -1, work->log.damage);
	if (all->count == 0)
		unchecked(&work->report->parts[AUDIT_SIGNATURES],
			  "the export has no checkpoint (export --checkpoint), and none was given");
	else if (all->n_keys == 0)
		unchecked(&work->report->parts[AUDIT_SIGNATURES], "no public key was given: name it by --key");
	compare_head(work);
	memcpy(work->report->root.bytes, work->log.root, sizeof(work->log.root));
	return 0;
}

static int verify(struct work *work, struct err *err)
{
	int result = load(work, err);

	if (result == 0)
		result = store_audit_reader_open(work->request->path, &work->reader, err);
	if (result == 0)
		result = store_audit_count(work->reader, &work->total, err);
	compare_roots(work); /* of the empty tree */
	if (result == 0)
		result = store_audit_rows_read(work->reader, &(struct store_audit_progress){row_progress, work}, err);
	if (result == 0)
		result = store_audit_each(work->reader, INT64_MIN, check_entry, work, err);
	if (result < 0)
		return result;
	if (work->tree.size == 0)
		finding(work, AUDIT_PART_TREE, 0, "the log is empty: even its first entry is missing");
	if (work->n_leaves > (int64_t)work->tree.size)
		finding(work, AUDIT_PART_TREE, (int64_t)work->tree.size,
			"the signer saw more entries than are here: the newest ones are missing, or this is an older "
			"copy");
	missing_tail(work);
	result = check_tables(work, err);
	if (result == 0 && work->certified.document != NULL)
		result = audit_certificate_check(&work->certified, work->reader, certificate_finding, work,
						 &work->report->certified, err);
	work->report->entries = (int64_t)work->tree.size;
	work->report->covered = work->fitted;
	audit_tree_root(&work->tree, &work->report->root);
	not_checked(work);
	return result;
}

int audit_verify(const struct audit_request *request, struct audit_report *ret, struct err *err)
{
	struct work work = {.request = request, .report = ret, .bundle = store_bundle_is(request->path)};

	*ret = (struct audit_report){0};
	for (int i = 0; i < AUDIT_PARTS; i++)
		ret->parts[i].first = -1;
	int result = work.bundle && request->certificate
			     ? err_set(err, ERR_INVALID, "a certificate is checked against the record, not an export")
			     : work.bundle ? verify_bundle(&work, err) : verify(&work, err);

	store_audit_reader_close(work.reader);
	audit_checkpoints_clear(&work.checkpoints);
	store_bundle_log_clear(&work.log);
	json_object_put(work.certified.document);
	free(work.leaves);
	return result;
}
