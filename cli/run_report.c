/*
 * run_report.c - what came of a run: exit code, isolate's meta file, one JSON object, remarks for a person.
 *
 * The four say the same with different precision. An exit code is one byte that the program shares with us. isolate's
 * file knows the statuses RE, SG, TO and XX, so memory and output limits, which end a program by SIGKILL, are reported
 * as SG with that signal and `killed`, as isolate does it. The object has everything. Remarks go to standard error and
 * leave out what the program's own output shows anyway.
 */
#include "run.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"

/* Killed for memory or output: what a shell shows for the SIGKILL that ended the program. */
#define EXIT_KILLED (CLI_RUN_SIGNAL + 9)

int run_exit_code(const struct run_outcome *outcome)
{
	const struct jail_result *result = &outcome->once.result;

	if (!outcome->once.done)
		return outcome->cancelled_by ? CLI_RUN_SIGNAL + outcome->cancelled_by : CLI_RUN_REFUSED;
	switch (result->verdict) {
	case JAIL_OK:
		return CLI_OK;
	case JAIL_RE:
	case JAIL_CE:
		return result->exit_code > 0 ? result->exit_code : result->signal ? CLI_RUN_SIGNAL + result->signal : 1;
	case JAIL_SG:
		return CLI_RUN_SIGNAL + result->signal;
	case JAIL_TO:
		return CLI_RUN_TIME;
	case JAIL_ML:
	case JAIL_OL:
		return EXIT_KILLED;
	case JAIL_CX:
		return outcome->cancelled_by ? CLI_RUN_SIGNAL + outcome->cancelled_by : CLI_RUN_CANCELLED;
	default:
		/* a private jailer may have got the same Ctrl-C from the terminal */
		return outcome->cancelled_by ? CLI_RUN_SIGNAL + outcome->cancelled_by : CLI_RUN_REFUSED;
	}
}

static void meta_seconds(struct buf *meta, const char *key, int64_t us)
{
	buf_printf(meta, "%s:%lld.%03lld\n", key, (long long)(us / 1000000), (long long)(us % 1000000 / 1000));
}

/* In isolate's words: graders look for "wall" in them. It knows four of our verdicts; what it would have killed for
 * memory it reports as a signal. */
static void meta_status(struct buf *meta, const struct jail_result *result, int signal)
{
	switch (result->verdict) {
	case JAIL_OK:
		return;
	case JAIL_RE:
	case JAIL_CE:
		buf_puts(meta, "status:RE\nmessage:");
		if (result->exit_code >= 0)
			buf_printf(meta, "Exited with error status %d\n", result->exit_code);
		else
			buf_printf(meta, "%s\n", result->message);
		return;
	case JAIL_TO:
		buf_printf(meta, "status:TO\nmessage:Time limit exceeded%s\n",
			   streq(result->limit, "wall") ? " (wall clock)" : "");
		return;
	case JAIL_SG:
	case JAIL_ML:
	case JAIL_OL:
		buf_printf(meta, "status:SG\nmessage:Caught fatal signal %d\n", signal);
		return;
	default:
		buf_printf(meta, "status:XX\nmessage:%s\n", result->message);
	}
}

static void meta_result(struct buf *meta, const struct run_outcome *outcome)
{
	const struct jail_result *result = &outcome->once.result;
	/* after a compile error there was no run: its step is what the file is about */
	const struct jail_usage *usage = result->verdict == JAIL_CE ? &result->compile : &result->run;
	bool killed = result->verdict == JAIL_TO || result->verdict == JAIL_ML || result->verdict == JAIL_OL ||
		      result->verdict == JAIL_CX;
	int signal = result->signal ? result->signal : result->verdict == JAIL_ML || result->verdict == JAIL_OL ? 9 : 0;

	meta_seconds(meta, "time", usage->cpu_user_us + usage->cpu_system_us);
	meta_seconds(meta, "time-wall", usage->wall_us);
	int64_t resident = usage->rss_peak_bytes ? usage->rss_peak_bytes : usage->memory_peak_bytes;
	buf_printf(meta, "max-rss:%lld\n", (long long)(resident / 1024));
	if (outcome->grouped) /* else the peak is that of the largest process, and isolate has neither key */
		buf_printf(meta, "cg-enabled:1\ncg-mem:%lld\n", (long long)(usage->memory_peak_bytes / 1024));
	buf_printf(meta, "csw-voluntary:%lld\ncsw-forced:%lld\n", (long long)usage->switches_voluntary,
		   (long long)usage->switches_forced);
	if (result->oom_killed)
		buf_puts(meta, "cg-oom-killed:1\n");
	if (killed)
		buf_puts(meta, "killed:1\n");
	if (signal)
		buf_printf(meta, "exitsig:%d\n", signal);
	else if (result->exit_code >= 0)
		buf_printf(meta, "exitcode:%d\n", result->exit_code);
	meta_status(meta, result, signal);
	buf_printf(meta, "sallyport-verdict:%s\nsallyport-message:%s\n", jail_verdict_text(result->verdict),
		   result->message);
}

int run_meta_write(int fd, const struct run_outcome *outcome, struct err *err)
{
	auto_buf struct buf meta;

	buf_init(&meta, 16 * 1024);
	if (outcome->once.done)
		meta_result(&meta, outcome);
	else
		buf_printf(&meta, "status:XX\nmessage:%s\n", outcome->once.failure.text);
	return write_all(fd, meta.data, meta.length) ? err_errno(err, "writing the meta file") : 0;
}

static void add_output(struct json_object *object, const char *key, int fd)
{
	struct stat status;
	void *data = NULL;

	if (fd < 0 || fstat(fd, &status))
		return;
	if (status.st_size > 0)
		data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return;
	json_add_bytes(object, key, data ? data : "", (size_t)status.st_size);
	if (data)
		munmap(data, (size_t)status.st_size);
}

struct json_object *run_json(const struct run_outcome *outcome)
{
	struct json_object *object;

	if (!outcome->once.done) {
		object = json_object_new_object();
		json_add_string(object, "verdict", jail_verdict_text(JAIL_XX));
		json_add_string(object, "message", outcome->once.failure.text);
		return object;
	}
	object = bind_print_view(jail_result_table, &outcome->once.result, JAIL_REPORT);
	add_output(object, "stdout", outcome->once.program.stdout_fd);
	add_output(object, "stderr", outcome->once.program.stderr_fd);
	struct json_object *list = json_object_new_array();

	json_add(object, "files", list);
	for (size_t i = 0; i < outcome->files.count; i++) {
		const struct run_file *file = &outcome->files.items[i];
		struct json_object *entry = json_object_new_object();
		char mode[8];

		snprintf(mode, sizeof(mode), "%04o", file->mode & 07777);
		json_add_bytes(entry, "name", file->name, strlen(file->name));
		json_add_string(entry, "change", jail_change_text(file->kind));
		if (file->kind == JAIL_FILE_CREATED || file->kind == JAIL_FILE_CHANGED) {
			json_add_int(entry, "size", file->size);
			json_add_string(entry, "mode", mode);
			json_add_bool(entry, "written", file->written);
		}
		if (file->reason)
			json_add_string(entry, "reason", file->reason);
		json_object_array_add(list, entry);
	}
	return object;
}

static void remark(const char *text)
{
	fputs("sallyport: ", stderr);
	cli_print_safe(stderr, text, strlen(text));
	fputc('\n', stderr);
}

static void remark_network(const struct jail_result *result)
{
	struct json_object *denied = json_get(result->network, "denied", json_type_array);

	for (size_t i = 0; denied && i < json_object_array_length(denied); i++) {
		struct json_object *one = json_object_array_get_idx(denied, i);
		const char *host = json_get_string(one, "host"), *reason = json_get_string(one, "reason");
		auto_free char *text =
			xasprintf("network: %s:%d: %s", host ? host : "",
				  json_object_get_int(json_get(one, "port", json_type_int)), reason ? reason : "");

		remark(text);
	}
	int64_t unrouted = json_object_get_int64(json_get(result->network, "unrouted", json_type_int));
	auto_free char *text = xasprintf("network: " JAIL_UNROUTED_TEXT, (long long)unrouted);
	if (unrouted > 0)
		remark(text);
}

void run_remarks(const struct run_outcome *outcome, bool interactive)
{
	const struct jail_result *result = &outcome->once.result;

	if (!outcome->once.done) {
		remark(outcome->once.failure.text);
		return;
	}
	if (result->verdict != JAIL_OK && result->verdict != JAIL_RE)
		remark(result->message);
	remark_network(result);
	if (result->stdout_truncated || result->stderr_truncated)
		remark("the output was cut at its limit");
	for (size_t i = 0; i < outcome->files.count; i++) {
		const struct run_file *file = &outcome->files.items[i];
		bool lost = outcome->files.output_dir >= 0 && !file->written && file->kind != JAIL_FILE_DELETED;
		auto_free char *text =
			xasprintf("%s: %s%s%s", lost ? "not written" : jail_change_text(file->kind), file->name,
				  file->reason ? ": " : "", file->reason ? file->reason : "");

		if (interactive || lost)
			remark(text);
	}
}
