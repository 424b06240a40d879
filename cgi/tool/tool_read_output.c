/* tool_read_output.c - read_output: the part of a program's output that an answer left out. */
#include "lib/base/util.h"
#include "run_text.h"
#include "tool_common.h"

#define NOTE_MAX 200 /* bytes of our line */

struct read_arguments {
	const char *execution, *stream;
	int64_t offset;
};
struct part {
	int64_t offset, length, size;
};

static const char *const streams[] = {"stdout", "stderr", NULL};
static const struct bind table[] = {
	BIND_MEMBER(struct read_arguments, execution, "executionId", BIND_STRING, .flags = BIND_REQUIRED, .min = 1,
		    .max = ID_SIZE - 1, .description = "As the answer to run_code names it."),
	BIND_MEMBER(struct read_arguments, stream, "stream", BIND_STRING, .choices = streams,
		    .description = "Default: stdout."),
	BIND_MEMBER(struct read_arguments, offset, "offset", BIND_INT, .max = INT64_MAX,
		    .description = "Byte to begin at. Default: 0."),
	{0},
};
static const struct bind output_table[] = {
	BIND_MEMBER(struct part, offset, "offset", BIND_INT),
	BIND_MEMBER(struct part, length, "length", BIND_INT),
	BIND_MEMBER(struct part, size, "size", BIND_INT),
	{0},
};

static int read_part(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct read_arguments *arguments = bound;
	const size_t room = run_text_room(call->server, call->token) - NOTE_MAX - 2 * BIND_IGNORED_MAX;
	const struct job_printed which = {
		.owner = call->token->owner,
		.id = arguments->execution,
		.is_stderr = arguments->stream && streq(arguments->stream, "stderr"),
		.offset = arguments->offset,
		.length = (int64_t)room,
	};
	struct job_stream printed = {0};
	struct part part = {.offset = arguments->offset};
	int result = id_valid(arguments->execution)
			     ? job_printed_load(call->server->store, &which, &printed, &part.size, err)
			     : -ERR_NOT_FOUND;

	if (result == -ERR_NOT_FOUND)
		return err_member(err, "executionId", "is unknown");
	if (result < 0)
		return result;
	*ret = (struct tool_result){.content = json_object_new_array()};
	part.length = (int64_t)run_text_part(printed.data, printed.length, room);
	auto_free char *note = part.offset + part.length < part.size
				       ? xasprintf(RUN_MARK " bytes %lld to %lld of %lld; offset=%lld reads on\n",
						   (long long)part.offset, (long long)(part.offset + part.length),
						   (long long)part.size, (long long)(part.offset + part.length))
				       : xasprintf(RUN_MARK " this is the end: %lld bytes\n", (long long)part.size);

	tool_add_text(ret->content, note, strlen(note));
	if (part.length > 0)
		tool_add_text(ret->content, printed.data, (size_t)part.length);
	free(printed.data);
	ret->structured = bind_print(output_table, &part);
	return 0;
}

const struct tool tool_read_output = {
	.name = "read_output",
	.title = "Read a program's output",
	.scope = STORE_SCOPE_RUN,
	.description = "Reads the output of a program where the answer to run_code left some out.",
	.arguments = table,
	.arguments_size = sizeof(struct read_arguments),
	.output = output_table,
	.read_only = true,
	.idempotent = true,
	.call = read_part,
};
