/*
 * cmd_checkpoint.c - `sallyport checkpoint`: signs the audit log as it is, under another account than the gateway's,
 * and hands the checkpoint to its anchors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli.h"
#include "lib/audit/audit_anchor.h"
#include "lib/base/metrics.h"
#include "lib/base/util.h"

#define STATE_DEFAULT "/var/lib/sallyport-audit"
#define EVERY_MAX     (24 * 3600)

struct checkpoint {
	struct cli_common common;
	const char *state, *init, *key, *metrics;
	struct bind_strings anchors;
	int64_t every;
};

static const struct cli_option checkpoint_options[] = {
	{.name = "state", .type = CLI_STRING, .offset = offsetof(struct checkpoint, state), .value = "DIR",
	 .help = "use this folder of the signer [" STATE_DEFAULT "]"},
	{.name = "init", .type = CLI_STRING, .offset = offsetof(struct checkpoint, init), .value = "NAME",
	 .help = "make the folder and a key for a log of this name, and print the public key"},
	{.name = "key", .type = CLI_STRING, .offset = offsetof(struct checkpoint, key), .value = "FILE", .input = true,
	 .help = "read the private key from FILE [in the signer's folder]"},
	{.name = "anchor", .type = CLI_STRINGS, .offset = offsetof(struct checkpoint, anchors), .value = "ANCHOR",
	 .help = "hand the checkpoint to file:PATH, command:TEXT or 'witness:KEY URL'; repeatable"},
	{.name = "metrics", .type = CLI_STRING, .offset = offsetof(struct checkpoint, metrics), .value = "FILE",
	 .help = "write figures for Prometheus (node_exporter's textfile collector) to FILE"},
	{.name = "every", .type = CLI_INT, .offset = offsetof(struct checkpoint, every), .min = 1, .max = EVERY_MAX,
	 .value = "SECONDS",
	 .help = "repeat after so many seconds, until a signal or an error"},
	{0},
};
static const struct cli_group checkpoint_groups[] = {{checkpoint_options, 0}, {0}};

/* One round: 1 where an anchor failed. */
static int sign_once(const struct checkpoint *checkpoint, struct audit_signer *signer, const char *database,
		     struct err *err)
{
	auto_buf struct buf note = {0};
	int failed = CLI_OK;

	buf_init(&note, AUDIT_NOTE_MAX);
	int result = audit_signer_sign(signer, database, &note, err);

	metrics_set(METRIC_REWRITTEN, NULL, result == -ERR_CORRUPT);
	if (result < 0)
		return result;
	metrics_set(METRIC_SIGNED, NULL, signer->n_signed);
	metrics_set(METRIC_SIGNED_AT, NULL, clock_now_us() / 1000000);
	if (checkpoint->common.json) {
		auto_json struct json_object *object = json_object_new_object();

		json_add_string(object, "origin", signer->key.name);
		json_add_int(object, "entries", signer->n_signed);
		json_add_bool(object, "new", result > 0);
		if (result > 0)
			json_add_string(object, "checkpoint", note.data);
		cli_print_json(stdout, object, false);
	} else if (result > 0) {
		fputs(note.data, stdout);
	}
	fflush(stdout);
	for (size_t i = 0; i < checkpoint->anchors.count; i++) {
		const char *anchor = checkpoint->anchors.items[i];
		/* "1:file": which on the command line, and its kind; the rest may be a secret */
		auto_free char *label = xasprintf("%zu:%.*s", i + 1, (int)strcspn(anchor, ":"), anchor);
		struct err cause = ERR_INIT;

		if (audit_anchor_send(signer, anchor, &cause) < 0) {
			cli_complain(&cause);
			failed = CLI_DIFFERENT;
			continue;
		}
		metrics_declare(METRICS_ANCHOR, label);
		metrics_set(METRIC_ANCHORED, label, clock_now_us() / 1000000);
	}
	return failed;
}

static int sign(const struct checkpoint *checkpoint, const char *state, struct err *err)
{
	auto_config struct config config = {0};
	struct audit_signer signer = {.dir_fd = -1, .leaves_fd = -1};
	struct err cause = ERR_INIT;
	int result = cli_load_config(&checkpoint->common, &config, err);

	for (size_t i = 0; result == 0 && i < checkpoint->anchors.count; i++)
		result = audit_anchor_check(checkpoint->anchors.items[i], err);
	if (result == 0 && checkpoint->metrics)
		result = metrics_read(checkpoint->metrics, err);
	if (result == 0)
		result = audit_signer_open(state, checkpoint->key, &signer, err);
	while (result == 0) {
		result = sign_once(checkpoint, &signer, config.data_dir, err);
		if (checkpoint->metrics && metrics_write(checkpoint->metrics, &cause) < 0) {
			cli_complain(&cause);
			result = result == 0 ? CLI_DIFFERENT : result;
		}
		if (result < 0 || checkpoint->every == 0)
			break;
		const struct timespec pause = {.tv_sec = checkpoint->every};

		nanosleep(&pause, NULL);
		result = 0; /* an anchor that failed is tried again */
	}
	audit_signer_close(&signer);
	return result;
}

static int checkpoint_run(void *options, struct err *err)
{
	const struct checkpoint *checkpoint = options;
	const char *state = checkpoint->state ? checkpoint->state : STATE_DEFAULT;
	auto_buf struct buf vkey = {0};
	int result;

	if (!checkpoint->init)
		return sign(checkpoint, state, err);
	buf_init(&vkey, AUDIT_NOTE_MAX);
	result = audit_signer_init(state, checkpoint->init, &vkey, err);
	if (result == 0)
		puts(vkey.data);
	return result;
}

const struct cli_command cmd_checkpoint = {
	.name = "checkpoint",
	.summary = "Sign the audit log, and detect rewritten history",
	.help = "Runs under an account of its own, which can read the database and which the gateway cannot become. "
		"Compares every entry with the entries that it has seen before. "
		"If the log has grown, signs its tree (C2SP tlog-checkpoint, signed note, Ed25519), prints the checkpoint and keeps it. "
		"If an entry was altered or removed, signs nothing and names the entry.",
	.examples = "sallyport checkpoint --init sallyport.example.org/audit\n"
		"sallyport checkpoint --every 60 --anchor 'command:logger -n log.example.org'\n"
		"sallyport checkpoint --anchor 'witness:w.example+1c2d3e4f+BA… https://w.example'\n",
	.exits = "0 done\n"
		"1 an anchor or the file of --metrics failed\n"
		"7 another signer is at work\n"
		"11 history was rewritten or went back: nothing was signed\n",
	.groups = checkpoint_groups,
	.size = sizeof(struct checkpoint),
	.audits = true,
	.run = checkpoint_run,
};
