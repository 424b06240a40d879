/*
 * audit_bench.c - what the audit log costs: how much of recording a run is its two entries.
 *
 *   audit_bench FOLDER RUNS BLOBS      makes a record below FOLDER: so many runs, so many contents of 1 MiB
 *
 * Prints microseconds of processor for a run (begin and finish, 64 runs a commit) and for its two entries alone, made
 * once more of the same rows. The record stays, for `sallyport verify`.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_audit_internal.h"
#include "lib/store/blob/store_blob_internal.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_execution.h"

#define BATCH 64

static int64_t processor_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

struct batch {
	char ids[BATCH][ID_SIZE];
	bool entries_alone;
};

static int run_one(struct store_txn *txn, char id[ID_SIZE], struct err *err)
{
	static char code[] = "import csv\nprint(sum(float(row[2]) for row in csv.reader(open('sales.csv'))))\n",
		    out[] = "12345.5\n", args[] = "[]", limits[] = "{\"wall\":30}", result[] = "{}";
	struct store_execution run = {.owner = "bench",
				      .language = "python",
				      .fingerprint = "Python 3.11.2",
				      .code = {code, sizeof(code) - 1, ""},
				      .args_json = args,
				      .limits_json = limits,
				      .verdict = "OK",
				      .message = "The program ended normally.",
				      .stdout_text = {out, sizeof(out) - 1, ""},
				      .result_json = result};

	id_new(id);
	memcpy(run.id, id, ID_SIZE);
	int failed = store_txn_execution_begin(txn, &run, err);

	return failed < 0 ? failed : store_txn_execution_finish(txn, &run, NULL, 0, err);
}

static int work(struct store_txn *txn, void *arg, struct err *err)
{
	struct batch *batch = arg;
	int failed = 0;

	for (int i = 0; failed == 0 && i < BATCH; i++) {
		if (!batch->entries_alone)
			failed = run_one(txn, batch->ids[i], err);
		else if ((failed = store_txn_audit_begin(txn, batch->ids[i], err)) == 0)
			failed = store_txn_audit_end(txn, batch->ids[i], err);
	}
	/* entries without a run are measured and not kept */
	return failed < 0 || !batch->entries_alone ? failed : err_set(err, ERR_CANCELLED, "measured");
}

static int put_blob(struct store_txn *txn, void *arg, struct err *err)
{
	return store_txn_blob(txn, arg, 1024 * 1024, err);
}

static int measure(struct store *store, uint64_t runs, uint64_t blobs, struct err *err)
{
	int64_t whole = 0, entries = 0;
	struct batch batch;
	int failed = 0;

	for (uint64_t done = 0; failed == 0 && done < runs; done += BATCH) {
		batch.entries_alone = false;
		int64_t at = processor_us();

		failed = store_commit(store, work, &batch, err);
		whole += processor_us() - at;
		if (failed < 0)
			break;
		batch.entries_alone = true;
		at = processor_us();
		failed = store_commit(store, work, &batch, err) == -ERR_CANCELLED ? 0 : -ERR_INTERNAL;
		entries += processor_us() - at;
	}
	auto_free char *content = xcalloc(1, 1024 * 1024);

	for (uint64_t i = 0; failed == 0 && i < blobs; i++) {
		char sha256[SHA256_HEX_SIZE];

		memcpy(content, &i, sizeof(i));
		failed = store_blob_put(store, content, 1024 * 1024, sha256, err);
		if (failed == 0)
			failed = store_commit(store, put_blob, sha256, err);
	}
	if (failed == 0)
		printf("%.1f %.1f\n", (double)whole / (double)runs, (double)entries / (double)runs);
	return failed;
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct store *store;
	uint64_t runs, blobs;

	if (argc != 4 || parse_u64(argv[2], BATCH, 10000000, &runs) != 0 || parse_u64(argv[3], 0, 100000, &blobs) != 0)
		return 2;
	int failed = store_open(argv[1], STORE_SERVE, &store, &err);

	if (failed == 0) {
		failed = measure(store, runs, blobs, &err);
		store_close(store);
	}
	if (failed < 0)
		fprintf(stderr, "audit_bench: %s\n", err.text);
	return failed < 0;
}
