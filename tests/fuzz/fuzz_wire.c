/*
 * The jailer's protocol, as both sides read it: a packet goes through a real socket, then the jailer's reader takes it
 * for a request and the client's for an event. The first byte says how many descriptors go with it ('0' to '9'), the
 * rest is the packet.
 *
 * Promised: no descriptor is left open, whatever came; what is refused says why in UTF-8 and leaves the result alone;
 * an accepted request has the strings and descriptors that it announced; an accepted result is the same after it was
 * written and read again.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "jail/client/wire.h"
#include "jail/client/wire_fd.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

static void refused(const struct err *err)
{
	PROMISE(err->code != 0 && err->text[0] != '\0' && utf8_valid(err->text, strlen(err->text)));
}

static void as_request(const struct wire_message *message)
{
	struct wire_request request = {.jail = -7};
	struct err err = ERR_INIT;

	if (wire_request_parse(message, &request, &err)) {
		refused(&err);
		PROMISE(request.jail == -7 && request.files.items == NULL);
		return;
	}
	PROMISE(request.version == WIRE_VERSION && (unsigned)request.verb < WIRE_VERBS && request.jail >= -1 &&
		request.jail <= INT32_MAX);
	PROMISE(message->n_strings == request.files.count + (size_t)request.args + (size_t)request.env);
	PROMISE(request.files.count <= JAIL_BATCH_FILES && message->n_fds >= request.files.count);
	const struct wire_file *files = request.files.items;
	for (size_t i = 0; i < request.files.count; i++)
		PROMISE(files[i].mode >= 0 && files[i].mode <= 0777);
	wire_request_clear(&request);
}

static void as_result(struct json_object *object)
{
	struct jail_result result = {.exit_code = -7}, again = {.exit_code = -1};
	struct err err = ERR_INIT;

	if (jail_result_parse(object, &result, &err)) {
		refused(&err);
		PROMISE(result.exit_code == -7 && result.denied == NULL);
		return;
	}
	PROMISE((unsigned)result.verdict < JAIL_VERDICTS && result.exit_code >= -1 && result.exit_code <= 255);
	for (size_t i = 0; result.denied && i < json_object_array_length(result.denied); i++)
		PROMISE(json_get_string(json_object_array_get_idx(result.denied, i), "name") != NULL);
	auto_json struct json_object *first = jail_result_print(&result);
	PROMISE(jail_result_parse(first, &again, &err) == 0);
	auto_json struct json_object *second = jail_result_print(&again);
	PROMISE(streq(json_object_to_json_string(first), json_object_to_json_string(second)));
	jail_result_clear(&result);
	jail_result_clear(&again);
}

static void as_event(const struct wire_message *message)
{
	struct wire_event event = {.jail = -7};
	struct err err = ERR_INIT;

	if (wire_event_parse(message, &event, &err)) {
		refused(&err);
		PROMISE(event.jail == -7 && event.files.items == NULL);
		return;
	}
	PROMISE(event.event != NULL && event.files.count == message->n_strings &&
		event.files.count <= JAIL_BATCH_FILES);
	PROMISE(wire_err_code(event.code) >= ERR_INVALID && wire_err_code(event.code) < ERR_CODES);
	if (streq(event.event, "done"))
		as_result(event.result);
	wire_event_clear(&event);
}

/* The lowest free number: the same before and after, or something stayed open. */
static int free_number(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	int pair[2], fds[9];
	size_t n_fds = length > 0 && data[0] >= '0' && data[0] <= '9' ? data[0] - '0' : 0;
	struct wire_message message = {.bytes = NULL};
	struct err err = ERR_INIT;

	if (length < 2 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return 0;
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = STDERR_FILENO;
	int before = free_number();
	PROMISE(wire_fd_send(pair[0], data + 1, length - 1, fds, n_fds) == 0);
	if (wire_receive(pair[1], &message, &err)) {
		refused(&err);
		PROMISE(message.bytes == NULL && message.head == NULL);
	} else {
		PROMISE(message.n_fds == n_fds);
		as_request(&message);
		as_event(&message);
		wire_message_clear(&message);
	}
	PROMISE(free_number() == before);
	close(pair[0]);
	close(pair[1]);
	return 0;
}
