/*
 * mcp.c - the program `mcp` in jails: calls tools of the run's servers from bash, C, Go and whatever can
 * start a program.
 *
 * Static and small; it comes into the jail with each run that names servers. It is the guest's own: what it says to the
 * bridge is worth no more than what any other program says there (bridge_frame.h has the frames).
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/bridge/bridge_frame.h"
#include "lib/upstream/upstream_raw.h"

#define FRAME_MAX (256u << 20)
enum { DONE, FAILED, USAGE, DENIED, LIMIT, AWAY };

static const char usage[] =
	"mcp call SERVER.TOOL [NAME=TEXT | NAME:=JSON]... [--json ARGUMENTS | --json -] [--raw] [--timeout SECONDS]\n"
	"mcp servers | tools SERVER | describe SERVER[.TOOL] | search WORDS... | read SERVER URI\n"
	"  Text or JSON on standard output, errors on standard error. Exit status: 0 done, 1 the tool failed, 2 wrong "
	"usage\n"
	"  or arguments, 3 denied, 4 a limit, 5 unavailable or no answer in time.\n";

static _Noreturn void fail(int status, const char *text)
{
	fprintf(stderr, "mcp: %s\n", text);
	exit(status);
}

static void add_string(struct buf *out, const char *text)
{
	if (!utf8_valid(text, strlen(text)))
		fail(USAGE, "arguments must be UTF-8");
	buf_putc(out, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_putc(out, '\\');
		if ((unsigned char)*text < ' ')
			buf_printf(out, "\\u%04x", (unsigned char)*text);
		else
			buf_putc(out, *text);
	}
	buf_putc(out, '"');
}

/* A JSON text as it is written in an argument. */
static void add_json(struct buf *out, const char *text)
{
	struct err err = ERR_INIT;

	if (raw_check(text, strlen(text), out, &err) < 0)
		fail(USAGE, err.text);
}

/* -------- the answer ---------------------------------------------------------------------------------- */

/* A short answer with its newline in one piece: several of these programs may write to one pipe (pipe(7)). */
static void print_bytes(const char *bytes, size_t length)
{
	const bool open_end = length == 0 || bytes[length - 1] != '\n';
	char line[PIPE_BUF];

	if (open_end && length < sizeof(line)) {
		memcpy(line, bytes, length);
		line[length++] = '\n';
		bytes = line;
	}
	if (write_all(STDOUT_FILENO, bytes, length) < 0 ||
	    (open_end && bytes != line && write_all(STDOUT_FILENO, "\n", 1) < 0))
		exit(FAILED);
}

static int print_error(struct raw error)
{
	static const struct {
		const char *kind;
		int status;
	} kinds[] = {{"tool", FAILED},      {"invalid", USAGE},        {"denied", DENIED},
		     {"approval", DENIED},  {"limit", LIMIT},          {"timeout", AWAY},
		     {"unavailable", AWAY}, {"unknown_outcome", AWAY}, {"protocol", USAGE}};
	auto_free char *kind = raw_string(raw_member(error, "kind"));
	auto_free char *text = raw_string(raw_member(error, "text"));
	auto_free char *signature = raw_string(raw_member(error, "signature"));

	fprintf(stderr, "%s\n", text ? text : "failed");
	if (signature)
		fprintf(stderr, "signature: %s\n", signature);
	for (size_t i = 0; kind && i < ARRAY_SIZE(kinds); i++)
		if (streq(kinds[i].kind, kind))
			return kinds[i].status;
	return FAILED;
}

/* Structured content, else the text blocks, else the blocks as they are. */
static void print_value(struct raw result, bool wrapped)
{
	const struct raw structured = raw_member(result, "structuredContent"), content = raw_member(result, "content");
	auto_buf struct buf text = {0};
	struct raw block;
	bool only_text = content.text != NULL;

	if (structured.text && !raw_is(structured, "null")) {
		const struct raw inner = wrapped ? raw_member(structured, "result") : structured;

		print_bytes(inner.text ? inner.text : "null", inner.text ? inner.length : 4);
		return;
	}
	buf_init(&text, FRAME_MAX);
	for (size_t at = 0; raw_item(content, &at, &block);) {
		auto_free char *part = raw_string(raw_member(block, "text"));

		only_text = only_text && part;
		if (part && text.length > 0)
			buf_putc(&text, '\n');
		buf_puts(&text, part ? part : "");
	}
	if (only_text)
		print_bytes(text.data, text.length);
	else
		print_bytes(content.text ? content.text : result.text, content.text ? content.length : result.length);
}

/* -------- the wire ------------------------------------------------------------------------------------ */

static void receive(int fd, char *to, size_t length)
{
	while (length > 0) {
		ssize_t n = recv(fd, to, length, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fail(AWAY, "the run has ended");
		to += n;
		length -= (size_t)n;
	}
}

static struct raw ask(struct buf *frame)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JAIL_SOCKET};
	const char *path = getenv("MCP_SOCKET");
	unsigned char head[BRIDGE_HEAD];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (path && strlen(path) < sizeof(address.sun_path))
		memcpy(address.sun_path, path, strlen(path) + 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		fail(AWAY, "this run may call no tools: it names no servers");
	bridge_frame_end(frame);
	if (write_all(fd, frame->data, frame->length) < 0)
		fail(AWAY, "the run has ended");
	receive(fd, (char *)head, sizeof(head));
	uint32_t length = bridge_frame_length(head);
	char *bytes = xmalloc((size_t)length + 1);
	receive(fd, bytes, length);
	bytes[length] = '\0';
	return raw_value(bytes, length);
}

/* -------- the command line ---------------------------------------------------------------------------- */

/* "server.tool" or two arguments; returns how many were used. */
static int add_place(struct buf *out, char **argv, int argc, bool tool_too)
{
	const char *dot = argc > 0 ? strchr(argv[0], '.') : NULL;

	if (argc < 1)
		fail(USAGE, usage);
	auto_free char *server = dot ? xstrndup(argv[0], (size_t)(dot - argv[0])) : xstrdup(argv[0]);
	const char *tool = dot ? dot + 1 : tool_too && argc > 1 ? argv[1] : NULL;

	if (tool_too && !tool)
		fail(USAGE, "name a tool: mcp call SERVER.TOOL");
	buf_puts(out, ",\"server\":");
	add_string(out, server);
	if (tool) {
		buf_puts(out, ",\"tool\":");
		add_string(out, tool);
	}
	return tool && !dot ? 2 : 1;
}

static void add_argument(struct buf *arguments, const char *text)
{
	const char *equals = strchr(text, '=');
	bool json = equals && equals > text && equals[-1] == ':';

	if (!equals || equals == text)
		fail(USAGE, usage);
	auto_free char *name = xstrndup(text, (size_t)(equals - text) - json);
	buf_putc(arguments, arguments->length ? ',' : '{');
	add_string(arguments, name);
	buf_putc(arguments, ':');
	if (json)
		add_json(arguments, equals + 1);
	else
		add_string(arguments, equals + 1);
}

static void add_call(struct buf *frame, char **argv, int argc, bool *raw)
{
	auto_buf struct buf arguments = {0};
	int at = add_place(frame, argv, argc, true);
	bool whole = false; /* given as one JSON text */
	struct err err = ERR_INIT;

	buf_init(&arguments, FRAME_MAX);
	for (; at < argc; at++) {
		bool more = at + 1 < argc;

		if (streq(argv[at], "--raw")) {
			*raw = true;
		} else if (streq(argv[at], "--json") && more) {
			const char *text = argv[++at];
			auto_free char *input = NULL;

			if (streq(text, "-") && read_fd(STDIN_FILENO, FRAME_MAX, &input, NULL, &err) < 0)
				fail(USAGE, err.text);
			buf_reset(&arguments);
			add_json(&arguments, input ? input : text);
			whole = true;
		} else if (streq(argv[at], "--timeout") && more) {
			buf_puts(frame, ",\"timeout\":");
			add_json(frame, argv[++at]);
		} else {
			if (whole)
				fail(USAGE, "give --json or NAME=TEXT, not both");
			add_argument(&arguments, argv[at]);
		}
	}
	if (arguments.length > 0 && !whole)
		buf_putc(&arguments, '}');
	buf_puts(frame, ",\"arguments\":");
	if (arguments.length > 0)
		buf_add(frame, arguments.data, arguments.length);
	else
		buf_puts(frame, "{}");
}

static void print_listed(struct raw list)
{
	struct raw one;

	for (size_t at = 0; raw_item(list, &at, &one);) {
		auto_free char *server = raw_string(raw_member(one, "server"));
		auto_free char *tool = raw_string(raw_member(one, "tool"));
		auto_free char *name = raw_string(raw_member(one, "name"));
		auto_free char *signature = raw_string(raw_member(one, "signature"));
		auto_free char *text = raw_string(raw_member(one, "description"));

		if (signature)
			printf("%s.%s  # %s\n", server, signature, text ? text : "");
		else
			printf("%s%s%s - %s\n",
			       server ? server
			       : name ? name
				      : "",
			       tool ? "." : "", tool ? tool : "", text ? text : "");
	}
}

static void add_request(struct buf *frame, const char *op, char **argv, int argc, bool *raw)
{
	if (streq(op, "call")) {
		add_call(frame, argv, argc, raw);
	} else if (streq(op, "describe") || streq(op, "tools")) {
		add_place(frame, argv, argc, false);
	} else if (streq(op, "search")) {
		auto_buf struct buf words = {0};

		buf_init(&words, 4096);
		for (int i = 0; i < argc; i++)
			buf_printf(&words, "%s%s", i ? " " : "", argv[i]);
		buf_putc(&words, '\0');
		buf_puts(frame, ",\"query\":");
		add_string(frame, words.data);
	} else if (streq(op, "read") && argc == 2) {
		buf_puts(frame, ",\"server\":");
		add_string(frame, argv[0]);
		buf_puts(frame, ",\"uri\":");
		add_string(frame, argv[1]);
	} else if (!streq(op, "servers")) {
		fail(USAGE, usage);
	}
}

int main(int argc, char **argv)
{
	struct buf frame;
	bool raw = false;
	const char *op = argc > 1 ? argv[1] : "--help";

	if (streq(op, "--help") || streq(op, "help")) {
		fputs(usage, stdout);
		return DONE;
	}
	buf_init(&frame, FRAME_MAX);
	bridge_frame_begin(&frame);
	buf_printf(&frame, "{\"id\":1,\"op\":\"%s\"", streq(op, "tools") ? "describe" : op);
	add_request(&frame, op, argv + 2, argc - 2, &raw);
	buf_puts(&frame, streq(op, "describe") ? ",\"detail\":\"full\"}" : "}");
	const struct raw answer = ask(&frame), result = raw_member(answer, "result");
	if (!raw_is(raw_member(answer, "ok"), "true"))
		return print_error(raw_member(answer, "error"));
	if (raw || streq(op, "read"))
		print_bytes(result.text, result.length);
	else if (streq(op, "call"))
		print_value(result, raw_is(raw_member(answer, "wrap"), "true"));
	else
		print_listed(result);
	return DONE;
}
