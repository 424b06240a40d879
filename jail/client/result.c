/*
 * result.c - the result of a run: verdicts as text, and the whole as JSON by one table for both directions.
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

void jail_result_clear(struct jail_result *result)
{
	json_put_pointer(&result->denied);
	json_put_pointer(&result->network);
	*result = (struct jail_result){.verdict = JAIL_XX};
}

void jail_result_share(struct jail_result *result)
{
	result->denied = result->denied ? json_object_get(result->denied) : NULL;
	result->network = result->network ? json_object_get(result->network) : NULL;
}

/* As the table wants it: text as pointers, numbers as int64_t. */
struct flat_result {
	const char *verdict, *message, *limit, *step, *runner, *fingerprint;
	int64_t step_errno, exit_code, signal;
	bool compiled, oom_killed, pids_limit_hit, stdout_truncated, stderr_truncated, warm, ended;
	int64_t stdout_bytes, stderr_bytes, setup_us;
	struct jail_usage compile, run;
	struct json_object *denied, *network;
};

#define USAGE(field)                                                                                                   \
	{                                                                                                              \
		.name = #field, .type = BIND_INT, .offset = offsetof(struct jail_usage, field), .max = INT64_MAX       \
	}
const struct bind jail_usage_table[] = {
	USAGE(wall_us),         USAGE(cpu_user_us),
	USAGE(cpu_system_us),   USAGE(memory_peak_bytes),
	USAGE(rss_peak_bytes),  USAGE(pids_peak),
	USAGE(pids_hits),       USAGE(switches_voluntary),
	USAGE(switches_forced), {0},
};

#define FLAT(field, kind, least, most)                                                                                 \
	{                                                                                                              \
		.name = #field, .type = kind, .offset = offsetof(struct flat_result, field), .min = least, .max = most \
	}
static const struct bind result_table[] = {
	{.name = "verdict",
	 .type = BIND_STRING,
	 .offset = offsetof(struct flat_result, verdict),
	 .flags = BIND_REQUIRED,
	 .choices = verdict_texts},
	FLAT(message, BIND_STRING, 0, JAIL_MESSAGE_TEXT - 1),
	FLAT(limit, BIND_STRING, 0, 15),
	FLAT(step, BIND_STRING, 0, 31),
	FLAT(step_errno, BIND_INT, 0, 4095),
	FLAT(compiled, BIND_BOOL, 0, 0),
	FLAT(exit_code, BIND_INT, -1, 255),
	FLAT(signal, BIND_INT, 0, 64),
	FLAT(oom_killed, BIND_BOOL, 0, 0),
	FLAT(pids_limit_hit, BIND_BOOL, 0, 0),
	FLAT(stdout_bytes, BIND_INT, 0, INT64_MAX),
	FLAT(stderr_bytes, BIND_INT, 0, INT64_MAX),
	FLAT(stdout_truncated, BIND_BOOL, 0, 0),
	FLAT(stderr_truncated, BIND_BOOL, 0, 0),
	{.name = "compile",
	 .type = BIND_OBJECT,
	 .offset = offsetof(struct flat_result, compile),
	 .table = jail_usage_table},
	{.name = "run", .type = BIND_OBJECT, .offset = offsetof(struct flat_result, run), .table = jail_usage_table},
	FLAT(setup_us, BIND_INT, 0, INT64_MAX),
	FLAT(warm, BIND_BOOL, 0, 0),
	FLAT(ended, BIND_BOOL, 0, 0),
	FLAT(runner, BIND_STRING, 0, 31),
	FLAT(fingerprint, BIND_STRING, 0, 255),
	FLAT(denied, BIND_ANY, 0, 0),
	FLAT(network, BIND_ANY, 0, 0),
	{0},
};

struct json_object *jail_result_print(const struct jail_result *result)
{
	struct flat_result flat = {
		.verdict = jail_verdict_text(result->verdict),
		.message = result->message,
		.limit = result->limit,
		.step = result->step,
		.runner = result->runner,
		.fingerprint = result->fingerprint,
		.step_errno = result->step_errno,
		.exit_code = result->exit_code,
		.signal = result->signal,
		.compiled = result->compiled,
		.oom_killed = result->oom_killed,
		.pids_limit_hit = result->pids_limit_hit,
		.stdout_truncated = result->stdout_truncated,
		.stderr_truncated = result->stderr_truncated,
		.warm = result->warm,
		.ended = result->ended,
		.stdout_bytes = result->stdout_bytes,
		.stderr_bytes = result->stderr_bytes,
		.setup_us = result->setup_us,
		.compile = result->compile,
		.run = result->run,
		.denied = result->denied,
		.network = result->network,
	};

	return bind_print(result_table, &flat);
}

static int check_denied(struct json_object *denied, struct err *err)
{
	bool good = !denied || (json_object_is_type(denied, json_type_array) &&
				json_object_array_length(denied) <= JAIL_DENIED_MAX);

	for (size_t i = 0; good && denied && i < json_object_array_length(denied); i++) {
		struct json_object *call = json_object_array_get_idx(denied, i);

		good = json_get_string(call, "name") && json_get(call, "number", json_type_int) &&
		       json_object_object_length(call) == 2;
	}
	return good ? 0
		    : err_member(err, "denied", "must be at most %d system calls with name and number",
				 JAIL_DENIED_MAX);
}

struct network_denied {
	const char *host, *reason;
	int64_t port;
};
static const struct bind network_denied_table[] = {
	{.name = "host",
	 .type = BIND_STRING,
	 .offset = offsetof(struct network_denied, host),
	 .flags = BIND_REQUIRED,
	 .max = 2048},
	{.name = "port",
	 .type = BIND_INT,
	 .offset = offsetof(struct network_denied, port),
	 .flags = BIND_REQUIRED,
	 .max = UINT16_MAX},
	{.name = "reason",
	 .type = BIND_STRING,
	 .offset = offsetof(struct network_denied, reason),
	 .flags = BIND_REQUIRED,
	 .max = 128},
	{0},
};
struct network {
	int64_t connections, bytes_in, bytes_out, unrouted;
	struct bind_objects denied;
};
#define NETWORK(field)                                                                                                 \
	{                                                                                                              \
		.name = #field, .type = BIND_INT, .offset = offsetof(struct network, field), .flags = BIND_REQUIRED,   \
		.max = INT64_MAX                                                                                       \
	}
static const struct bind network_table[] = {
	NETWORK(connections),
	NETWORK(bytes_in),
	NETWORK(bytes_out),
	NETWORK(unrouted),
	{.name = "denied",
	 .type = BIND_OBJECTS,
	 .offset = offsetof(struct network, denied),
	 .flags = BIND_REQUIRED,
	 .max = JAIL_DENIED_MAX,
	 .table = network_denied_table,
	 .size = sizeof(struct network_denied)},
	{0},
};

static int check_network(struct json_object *object, struct err *err)
{
	struct network network = {.connections = 0};
	int result = object ? bind_parse(network_table, object, &network, err) : 0;

	bind_clear(network_table, &network);
	return result ? err_wrap(err, "network") : 0;
}

#define COPY_TEXT(to, from) snprintf(to, sizeof(to), "%s", (from) ? (from) : "")

int jail_result_parse(struct json_object *object, struct jail_result *ret, struct err *err)
{
	struct flat_result flat = {.exit_code = -1};
	int result = bind_parse(result_table, object, &flat, err);

	if (!result)
		result = check_denied(flat.denied, err);
	if (!result)
		result = check_network(flat.network, err);
	if (result)
		return result;
	*ret = (struct jail_result){
		.step_errno = (int)flat.step_errno,
		.exit_code = (int)flat.exit_code,
		.signal = (int)flat.signal,
		.compiled = flat.compiled,
		.oom_killed = flat.oom_killed,
		.pids_limit_hit = flat.pids_limit_hit,
		.stdout_truncated = flat.stdout_truncated,
		.stderr_truncated = flat.stderr_truncated,
		.warm = flat.warm,
		.ended = flat.ended,
		.stdout_bytes = flat.stdout_bytes,
		.stderr_bytes = flat.stderr_bytes,
		.setup_us = flat.setup_us,
		.compile = flat.compile,
		.run = flat.run,
	};
	jail_verdict_parse(flat.verdict, &ret->verdict);
	COPY_TEXT(ret->message, flat.message);
	COPY_TEXT(ret->limit, flat.limit);
	COPY_TEXT(ret->step, flat.step);
	COPY_TEXT(ret->runner, flat.runner);
	COPY_TEXT(ret->fingerprint, flat.fingerprint);
	ret->denied = flat.denied ? json_object_get(flat.denied) : NULL;
	ret->network = flat.network ? json_object_get(flat.network) : NULL;
	return 0;
}
