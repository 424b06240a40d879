/*
 * cmd_verify.c - `sallyport verify`: five verdicts on the record by its audit log.
 *
 * lib/audit/audit_verify.h does the work and reports each finding as it comes; here they are printed, at most 20 of
 * each verdict unless all are asked for, with the progress of what is being read. With --json they are gathered into
 * the one object that is printed at the end.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "lib/audit/audit_verify.h"
#include "lib/base/metrics.h"
#include "lib/base/text.h"
#include "lib/base/util.h"

#define FINDINGS_SHOWN 20 /* of each verdict */

struct verify {
	struct cli_common common;
	const char *signer, *metrics, *certificate;
	struct bind_strings keys, anchors;
	bool blobs, all;
};

static const struct cli_option verify_options[] = {
	{.name = "signer", .type = CLI_STRING, .offset = offsetof(struct verify, signer), .value = "DIR", .input = true,
	 .help = "compare with the checkpoints in this folder of the signer, or a copy of it"},
	{.name = "key", .type = CLI_STRINGS, .offset = offsetof(struct verify, keys), .value = "KEY",
	 .help = "use this public key of the log or of a witness (NAME+ID+base64); repeatable"},
	{.name = "anchor", .type = CLI_STRINGS, .offset = offsetof(struct verify, anchors), .value = "FILE",
	 .input = true,
	 .help = "compare with checkpoints that were kept elsewhere; repeatable"},
	{.name = "certificate", .type = CLI_STRING, .offset = offsetof(struct verify, certificate), .value = "FILE",
	 .input = true,
	 .help = "check this certificate of erasures, too (sallyport audit certificate)"},
	{.name = "metrics", .type = CLI_STRING, .offset = offsetof(struct verify, metrics), .value = "FILE",
	 .help = "write figures for Prometheus (node_exporter's textfile collector) to FILE"},
	{.name = "blobs", .type = CLI_FLAG, .offset = offsetof(struct verify, blobs),
	 .help = "read every content and compare its hash, too"},
	{.name = "all", .letter = 'a', .type = CLI_FLAG, .offset = offsetof(struct verify, all),
	 .help = "name every finding [the first 20 of each verdict]"},
	{0},
};
static const struct cli_group verify_groups[] = {{verify_options, 0}, {0}};

struct view {
	const struct verify *verify;
	struct cli_progress progress;
	struct json_object *findings; /* NULL: not JSON */
	int shown[AUDIT_PARTS];
};

static int progress(void *arg, const char *what, int64_t done, int64_t total)
{
	cli_progress_show(&((struct view *)arg)->progress, what, done, total);
	return 0;
}

static void found(void *arg, enum audit_part part, int64_t n, const char *text)
{
	struct view *view = arg;
	struct json_object *object;

	if (view->shown[part]++ >= FINDINGS_SHOWN && !view->verify->all)
		return;
	if (view->findings == NULL) {
		cli_progress_hide(&view->progress);
		printf("%s: ", audit_part_names[part]);
		cli_print_safe(stdout, text, strlen(text));
		putchar('\n');
		return;
	}
	object = json_object_new_object();
	json_add_string(object, "verdict", audit_part_names[part]);
	if (n >= 0)
		json_add_int(object, "entry", n);
	json_add_bytes(object, "text", text, strlen(text));
	json_object_array_add(view->findings, object);
}

static const char *const states[] = {
	[AUDIT_HOLDS] = "holds", [AUDIT_BROKEN] = "broken", [AUDIT_UNCHECKED] = "not checked"};

static void print_text(const struct audit_report *report)
{
	static const enum cli_colour colours[] = {
		[AUDIT_HOLDS] = CLI_GREEN, [AUDIT_BROKEN] = CLI_RED, [AUDIT_UNCHECKED] = CLI_YELLOW};

	for (int i = 0; i < AUDIT_PARTS; i++) {
		const struct audit_verdict *verdict = &report->parts[i];

		printf("%-10s  %s%-11s%s  %lld checked", audit_part_names[i],
		       cli_colour_on(stdout, colours[verdict->state]), states[verdict->state], cli_colour_off(stdout),
		       (long long)verdict->checked);
		if (verdict->findings > 0)
			printf(", %lld findings", (long long)verdict->findings);
		if (verdict->state == AUDIT_UNCHECKED)
			printf(" (%s)", verdict->text);
		putchar('\n');
	}
	if (report->certified > 0)
		printf("%lld erasures of the certificate checked\n", (long long)report->certified);
	printf("%lld entries, %lld of them covered by a checkpoint; details of %lld erased\n",
	       (long long)report->entries, (long long)report->covered, (long long)report->erased);
}

static void print_json(const struct audit_report *report, struct view *view)
{
	auto_json struct json_object *object = json_object_new_object();
	auto_buf struct buf root = {0};

	json_add_int(object, "entries", report->entries);
	json_add_int(object, "covered", report->covered);
	json_add_int(object, "erased", report->erased);
	json_add_int(object, "certified", report->certified);
	buf_init(&root, 64);
	base64_encode(&root, report->root.bytes, sizeof(report->root.bytes));
	json_add_string(object, "root", root.data);
	for (int i = 0; i < AUDIT_PARTS; i++) {
		const struct audit_verdict *verdict = &report->parts[i];
		struct json_object *part = json_object_new_object();

		json_add_string(part, "state", states[verdict->state]);
		json_add_int(part, "checked", verdict->checked);
		json_add_int(part, "findings", verdict->findings);
		if (verdict->first >= 0)
			json_add_int(part, "first", verdict->first);
		if (verdict->text[0] != '\0')
			json_add_bytes(part, "text", verdict->text, strlen(verdict->text));
		json_add(object, audit_part_names[i], part);
	}
	json_add(object, "found", steal(&view->findings));
	cli_print_json(stdout, object, false);
}

static int write_metrics(const char *path, bool holds, struct err *err)
{
	int result = metrics_read(path, err);

	if (holds) /* else the time of the last success stays */
		metrics_set(METRIC_VERIFIED, NULL, clock_now_us() / 1000000);
	return result == 0 ? metrics_write(path, err) : result;
}

static int verify_path(const struct verify *verify, const char *path, struct err *err)
{
	struct view view = {.verify = verify};
	struct audit_report report;
	struct stat st;
	auto_free char *folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? xstrdup(path) : NULL;

	if (folder == NULL) {
		const char *slash = strrchr(path, '/');

		folder = slash != NULL ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
	}
	auto_free char *blobs = xasprintf("%s/blobs", folder);
	const struct audit_request request = {.path = path,
					      .signer = verify->signer,
					      .keys = verify->keys.items,
					      .n_keys = verify->keys.count,
					      .anchors = verify->anchors.items,
					      .n_anchors = verify->anchors.count,
					      .certificate = verify->certificate,
					      .blobs = verify->blobs ? blobs : NULL,
					      .progress = progress,
					      .found = found,
					      .arg = &view};

	if (verify->common.json)
		view.findings = json_object_new_array();
	int result = audit_verify(&request, &report, err);

	cli_progress_hide(&view.progress);
	if (result == 0) {
		if (verify->common.json)
			print_json(&report, &view);
		else
			print_text(&report);
		for (int i = 0; i < AUDIT_PARTS; i++)
			if (report.parts[i].state == AUDIT_BROKEN)
				result = CLI_DIFFERENT;
	}
	if (result >= 0 && verify->metrics && write_metrics(verify->metrics, result == 0, err) < 0)
		result = -(int)err->code;
	json_object_put(view.findings);
	return result;
}

static int verify_run(void *options, struct err *err)
{
	const struct verify *verify = options;
	auto_config struct config config = {0};
	int result;

	if (verify->common.n_args > 0)
		return verify_path(verify, verify->common.args[0], err);
	result = config_load(verify->common.config, &config, err);
	if (result < 0)
		return result;
	if (!*config.data_dir)
		return err_set(err, ERR_INVALID,
			       "verify what? Name a data folder or a database, or a configuration with --config");
	return verify_path(verify, config.data_dir, err);
}

const struct cli_command cmd_verify = {
	.name = "verify",
	.summary = "Check the record against its audit log and checkpoints",
	.arguments = "[PATH]",
	.help = "PATH is a data folder, a backup, a database or a bundle; without it, the configured data_dir is checked. "
		"Nothing is written, and no key of the gateway is needed. "
		"There are five verdicts: tree, signatures, anchors, coverage and content. "
		"A finding names the first entry that does not fit.",
	.examples = "sallyport verify --signer /var/lib/sallyport-audit --blobs /backup/sallyport\n",
	.exits = "0 nothing is broken\n"
		"1 something is broken\n"
		"3 there is no PATH\n"
		"11 the file is damaged\n",
	.groups = verify_groups,
	.size = sizeof(struct verify),
	.max_args = 1,
	.audits = true,
	.run = verify_run,
};
