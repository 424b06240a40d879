/*
 * wire.c - packets, descriptors and queues of the jailer's protocol (what the messages mean: wire_table.c).
 *
 * Both sides read with wire_receive: one recvmsg a message into a buffer of the greatest size, so that a packet that is
 * too long or carries too many descriptors is seen as truncated and refused. Descriptors of a refused packet are closed
 * here, at once: a peer that sends rubbish cannot make the receiver hold anything.
 *
 * Sending never blocks. A packet that does not go now waits in the queue with its descriptors; EAGAIN and ETOOMANYREFS
 * (more descriptors in flight than the kernel allows one user) look alike to the caller: try again when the socket is
 * writable.
 */
#include "wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/secret.h"
#include "lib/base/util.h"
#include "wire_fd.h"

struct wire_packet {
	struct wire_packet *next;
	char *bytes;
	size_t length;
	size_t n_fds;
	int fds[];
};

void wire_message_clear(struct wire_message *message)
{
	for (size_t i = 0; i < message->n_fds; i++)
		fd_close(&message->fds[i]);
	json_put_pointer(&message->head);
	free(message->strings);
	secret_free(message->bytes);
	*message = (struct wire_message){.bytes = NULL};
}

int wire_take_fd(struct wire_message *message, size_t index)
{
	return steal_fd(&message->fds[index]);
}

int wire_receive(int socket, struct wire_message *ret, struct err *err)
{
	auto_message struct wire_message message = {.bytes = secret_alloc(JAIL_WIRE_MAX + 1)};
	struct wire_fds fds = {.fds = message.fds, .room = WIRE_FDS_MAX};
	ssize_t n = wire_fd_receive(socket, message.bytes, JAIL_WIRE_MAX, MSG_DONTWAIT, &fds);

	if (n < 0 && errno == EAGAIN) {
		secret_free_unused(steal(&message.bytes)); /* most receptions end like this */
		return err_set(err, ERR_BUSY, "no message yet");
	}
	if (n < 0 && errno == EMSGSIZE)
		return err_set(err, ERR_INVALID,
			       "the message is longer than %d bytes or carries more than %d descriptors", JAIL_WIRE_MAX,
			       WIRE_FDS_MAX);
	if (n < 0 && errno == EMFILE)
		return err_errno(err, "taking the descriptors of a message");
	if (n <= 0)
		return err_set(err, ERR_UNAVAILABLE, "the other side of the connection is gone");
	message.n_fds = fds.count;
	message.bytes[n] = '\0';
	size_t length = strlen(message.bytes);
	if (json_parse(message.bytes, length, &message.head, err) < 0)
		return err_wrap(err, "message");
	if (!json_object_is_type(message.head, json_type_object))
		return err_set(err, ERR_INVALID, "message: must be an object");
	const char *tail = message.bytes + length + 1, *end = message.bytes + n;
	if (tail < end && end[-1] != '\0')
		return err_set(err, ERR_INVALID, "the last string of the message is not ended");
	size_t n_strings = 0;
	for (const char *p = tail; p < end; p += strlen(p) + 1)
		n_strings++;
	message.strings = n_strings ? xcalloc(n_strings, sizeof(*message.strings)) : NULL;
	for (const char *p = tail; p < end; p += strlen(p) + 1)
		message.strings[message.n_strings++] = p;
	*ret = message;
	message = (struct wire_message){.bytes = NULL};
	return 0;
}

void wire_queue_init(struct wire_queue *queue)
{
	*queue = (struct wire_queue){.first = NULL};
	queue->last = &queue->first;
}

static void packet_free(struct wire_packet *packet)
{
	for (size_t i = 0; i < packet->n_fds; i++)
		close(packet->fds[i]);
	secret_free(packet->bytes);
	free(packet);
}

static void queue_pop(struct wire_queue *queue)
{
	struct wire_packet *packet = queue->first;

	queue->first = packet->next;
	if (!queue->first)
		queue->last = &queue->first;
	queue->count--;
	queue->n_fds -= packet->n_fds;
	packet_free(packet);
}

void wire_queue_clear(struct wire_queue *queue)
{
	while (queue->first)
		queue_pop(queue);
}

int wire_queue_add(struct wire_queue *queue, struct json_object *head, const struct wire_parts *parts, struct err *err)
{
	static const struct wire_parts none = {.n_fds = 0};
	auto_json struct json_object *owned = head;
	struct buf buf;

	parts = parts ? parts : &none;
	struct wire_packet *packet = xcalloc(1, sizeof(*packet) + parts->n_fds * sizeof(int));
	packet->n_fds = parts->n_fds;
	for (size_t i = 0; i < parts->n_fds; i++)
		packet->fds[i] = parts->fds[i];
	/* Environment values may be secrets. */
	packet->bytes = secret_alloc(JAIL_WIRE_MAX + 1);
	buf_init_room(&buf, packet->bytes, JAIL_WIRE_MAX + 1);
	json_print(&buf, owned);
	if (parts->n_strings)
		buf_putc(&buf, '\0');
	for (size_t i = 0; i < parts->n_strings; i++)
		buf_add(&buf, parts->strings[i], strlen(parts->strings[i]) + 1);
	packet->length = buf.length;
	if (buf.overflow || packet->n_fds > WIRE_FDS_MAX) {
		packet_free(packet);
		return err_set(err, ERR_LIMIT, "the message to the jailer would be longer than %d bytes",
			       JAIL_WIRE_MAX);
	}
	*queue->last = packet;
	queue->last = &packet->next;
	queue->count++;
	queue->n_fds += packet->n_fds;
	return 0;
}

int wire_queue_flush(struct wire_queue *queue, int socket, struct err *err)
{
	while (queue->first) {
		const struct wire_packet *p = queue->first;

		if (wire_fd_send(socket, p->bytes, p->length, p->fds, p->n_fds)) {
			if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS)
				return err_set(err, ERR_BUSY, "the connection is full");
			return err_set(err, ERR_UNAVAILABLE, "the other side of the connection is gone");
		}
		queue_pop(queue);
	}
	return 0;
}

struct json_object *wire_head(const char *key, const char *value)
{
	struct json_object *head = json_object_new_object();

	json_add_int(head, "v", WIRE_VERSION);
	json_add_string(head, key, value);
	return head;
}

struct json_object *wire_head_jail(const char *key, const char *value, int64_t jail)
{
	struct json_object *head = wire_head(key, value);

	json_add_int(head, "jail", jail);
	return head;
}
