/*
 * result.c - the result of a run: verdicts as text, and the table of its fields (result.h).
 *
 * What has no fixed shape in C (names of refused calls, what the network did) stays JSON and is only checked: it goes
 * on into the record and into answers as it is. Both ends of the wire use this file; the jailer prints, clients parse,
 * and a jailer that was taken over can send a client nothing that it would not have accepted.
 */
#include "lib/base/bind.h"
#include "lib/base/util.h"
#include "wire.h"

static const char *const verdict_texts[] = {"OK", "RE", "SG", "TO", "ML", "OL", "CE", "CX", "XX", NULL};

const char *jail_verdict_text(enum jail_verdict verdict)
{
	return verdict < JAIL_VERDICTS ? verdict_texts[verdict] : "XX";
}

int jail_verdict_parse(const char *text, enum jail_verdict *ret)
{
	for (int i = 0; i < JAIL_VERDICTS; i++)
		if (streq(verdict_texts[i], text)) {
			*ret = (enum jail_verdict)i;
			return 0;
		}
	return -1;
}

const char *jail_change_text(enum jail_change_kind kind)
{
	static const char *const texts[] = {
		[JAIL_FILE_CREATED] = "created",
		[JAIL_FILE_CHANGED] = "changed",
		[JAIL_FILE_DELETED] = "deleted",
		[JAIL_FILE_NOT_KEPT] = "not kept",
	};

	return texts[kind];
}

size_t jail_folder(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash && streq(slash + 1, JAIL_FOLDER) ? (size_t)(slash - name) : 0;
}

void jail_result_clear(struct jail_result *result)
{
	json_put_pointer(&result->denied);
	json_put_pointer(&result->network);
	json_put_pointer(&result->value);
	json_put_pointer(&result->warnings);
	json_put_pointer(&result->left_in_tmp);
	*result = (struct jail_result){.verdict = JAIL_XX};
}

void jail_result_share(struct jail_result *result)
{
	result->denied = result->denied ? json_object_get(result->denied) : NULL;
	result->network = result->network ? json_object_get(result->network) : NULL;
	result->value = result->value ? json_object_get(result->value) : NULL;
	result->warnings = result->warnings ? json_object_get(result->warnings) : NULL;
	result->left_in_tmp = result->left_in_tmp ? json_object_get(result->left_in_tmp) : NULL;
}

#define USAGE(field, views_, text_)                                                                                    \
	{                                                                                                              \
		.name = #field, .type = BIND_INT, .offset = offsetof(struct jail_usage, field), .max = INT64_MAX,      \
		.views = views_, .description = text_                                                                  \
	}
#define COLUMN (JAIL_WIRE | JAIL_COLUMNS | JAIL_ANSWER | JAIL_REPORT)
#define DETAIL (JAIL_WIRE | JAIL_RECORD | JAIL_ANSWER | JAIL_REPORT)

const struct bind jail_usage_table[] = {
	USAGE(wall_us, COLUMN, "Wall clock time, microseconds"),
	USAGE(cpu_us, JAIL_WIRE | JAIL_ANSWER, "CPU time of all its processes, microseconds"),
	USAGE(cpu_user_us, COLUMN, "of it outside of the kernel"),
	USAGE(cpu_system_us, COLUMN, "of it in the kernel"),
	USAGE(memory_peak_bytes, COLUMN, "Peak memory"),
	USAGE(rss_peak_bytes, DETAIL, "of its largest process; 0 unknown"),
	USAGE(pids_peak, DETAIL, "Peak number of processes and threads; 0 unknown"),
	USAGE(pids_hits, DETAIL, "Times that the limit of processes refused one"),
	USAGE(switches_voluntary, DETAIL, "Context switches because it waited"),
	USAGE(switches_forced, DETAIL, "because others had their turn"),
	{0},
};

struct denied_call {
	const char *name;
	int64_t number;
};
struct denied_host {
	const char *host, *reason;
	int64_t port;
};
struct network {
	int64_t connections, bytes_in, bytes_out, unrouted;
	struct bind_objects denied;
};
#define MUST(struct_, field, kind, least, most)                                                                        \
	.name = #field, .type = kind, .offset = offsetof(struct struct_, field), .flags = BIND_REQUIRED, .min = least, \
	.max = most
static const struct bind denied_call_table[] = {
	{MUST(denied_call, name, BIND_STRING, 0, 64)},
	{MUST(denied_call, number, BIND_INT, INT64_MIN, INT64_MAX)},
	{0},
};
static const struct bind denied_host_table[] = {
	{MUST(denied_host, host, BIND_STRING, 0, 2048)},
	{MUST(denied_host, port, BIND_INT, 0, UINT16_MAX)},
	{MUST(denied_host, reason, BIND_STRING, 0, 128)},
	{0},
};
static const struct bind network_table[] = {
	{MUST(network, connections, BIND_INT, 0, INT64_MAX)},
	{MUST(network, bytes_in, BIND_INT, 0, INT64_MAX)},
	{MUST(network, bytes_out, BIND_INT, 0, INT64_MAX)},
	{MUST(network, unrouted, BIND_INT, 0, INT64_MAX),
	 .description = "Attempts to reach addresses directly, which all fail"},
	{MUST(network, denied, BIND_OBJECTS, 0, JAIL_DENIED_MAX), .table = denied_host_table,
	 .size = sizeof(struct denied_host), .description = "What could not be reached, and why"},
	{0},
};

#define NAMED(name_, field, kind, views_)                                                                              \
	.name = name_, .type = kind, .offset = offsetof(struct jail_result, field),                                    \
	.size = sizeof(((struct jail_result *)0)->field), .views = views_
#define FIELD(field, kind, views_) NAMED(#field, field, kind, views_)
#define JSON(field, kind)                                                                                              \
	.name = #field, .type = kind, .flags = BIND_JSON, .offset = offsetof(struct jail_result, field)

const struct bind jail_result_table[] = {
	{FIELD(verdict, BIND_CHOICE, COLUMN), .flags = BIND_REQUIRED, .choices = verdict_texts,
	 .description = "OK; RE exit code not 0; SG ended by a signal; TO time; ML memory; OL output; CE compile step "
			"failed; CX cancelled; XX the sandbox failed"},
	{FIELD(message, BIND_CHARS, COLUMN), .description = "The verdict as a sentence"},
	{FIELD(limit, BIND_CHARS, DETAIL), .sparse = JAIL_ANSWER, .null = JAIL_REPORT,
	 .description = "Which limit was hit"},
	{FIELD(step, BIND_CHARS, DETAIL), .sparse = JAIL_RECORD | JAIL_ANSWER | JAIL_REPORT,
	 .description = "XX: what of the sandbox failed"},
	{FIELD(step_errno, BIND_INT, JAIL_WIRE | JAIL_RECORD), .sparse = JAIL_RECORD, .max = 4095},
	{FIELD(compiled, BIND_BOOL, JAIL_WIRE | JAIL_RECORD)},
	{FIELD(exit_code, BIND_INT, COLUMN), .null = COLUMN & ~JAIL_WIRE, .none = -1, .min = -1, .max = 255},
	{FIELD(signal, BIND_INT, COLUMN), .null = COLUMN & ~JAIL_WIRE, .max = 64},
	{FIELD(oom_killed, BIND_BOOL, DETAIL)},
	{FIELD(pids_limit_hit, BIND_BOOL, DETAIL & ~JAIL_ANSWER)},
	{FIELD(stdout_bytes, BIND_INT, JAIL_WIRE), .max = INT64_MAX},
	{FIELD(stderr_bytes, BIND_INT, JAIL_WIRE), .max = INT64_MAX},
	{FIELD(stdout_truncated, BIND_BOOL, COLUMN)},
	{FIELD(stderr_truncated, BIND_BOOL, COLUMN)},
	{FIELD(setup_us, BIND_INT, COLUMN), .max = INT64_MAX, .description = "Making the sandbox, microseconds"},
	{FIELD(warm, BIND_BOOL, COLUMN), .description = "The interpreter was running already"},
	{FIELD(parked, BIND_BOOL, JAIL_WIRE)},
	{FIELD(run, BIND_OBJECT, JAIL_WIRE | JAIL_COLUMNS | JAIL_REPORT), .table = jail_usage_table},
	{FIELD(run, BIND_INLINE, JAIL_RECORD | JAIL_ANSWER), .table = jail_usage_table},
	{FIELD(compile, BIND_OBJECT, 0), .sparse = DETAIL & ~JAIL_WIRE, .table = jail_usage_table},
	{FIELD(ended, BIND_BOOL, JAIL_WIRE)},
	{FIELD(runner, BIND_CHARS, JAIL_WIRE | JAIL_REPORT)},
	{NAMED("language", runner, BIND_CHARS, JAIL_ANSWER)},
	{FIELD(fingerprint, BIND_CHARS, JAIL_WIRE | JAIL_REPORT)},
	{JSON(denied, BIND_OBJECTS), .views = DETAIL, .sparse = DETAIL & ~JAIL_REPORT, .max = JAIL_DENIED_MAX,
	 .table = denied_call_table, .size = sizeof(struct denied_call),
	 .description = "System calls that the sandbox refused"},
	{JSON(network, BIND_OBJECT), .views = DETAIL, .sparse = DETAIL, .table = network_table,
	 .size = sizeof(struct network)},
	{JSON(value, BIND_STRING), .views = DETAIL, .sparse = DETAIL,
	 .description = "The value of the last expression, as text; it is not in stdout"},
	{JSON(warnings, BIND_STRING), .views = DETAIL, .sparse = DETAIL,
	 .description = "What the compiler printed although it succeeded"},
	{JSON(left_in_tmp, BIND_STRING), .views = DETAIL, .sparse = DETAIL,
	 .description = "Files that the program left in /tmp, which are gone"},
	{0},
};

struct json_object *jail_result_print(const struct jail_result *result)
{
	return bind_print(jail_result_table, result);
}

int jail_result_parse(struct json_object *object, struct jail_result *ret, struct err *err)
{
	struct jail_result result = {.exit_code = -1};
	int failed = bind_parse(jail_result_table, object, &result, err);

	if (failed < 0)
		return failed;
	*ret = result;
	return 0;
}
