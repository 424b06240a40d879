/*
 * server.c - connections and their answers; see server.h. What the verbs do: server_verbs.c.
 *
 * Answers go through the client's queue. The files of a collection are opened and sent batch by batch as the client
 * reads them, so that thousands of files never mean thousands of open descriptors.
 *
 * A client is freed only by server_tick, between events: a callback that finds the connection broken just marks it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "server_internal.h"

/* The next batch of a collection, or its end. */
static void send_batch(struct server_jail *jail)
{
	struct json_object *head = wire_head_jail("event", "files", jail->number), *list = json_object_new_array();
	const char *names[JAIL_BATCH_FILES];
	int fds[JAIL_BATCH_FILES];
	size_t n = 0, n_fds = 0, bytes = 0;

	json_add(head, "files", list);
	for (; n < JAIL_BATCH_FILES && jail->next_change < jail->n_changes; jail->next_change++) {
		const struct data_change *change = &jail->changes[jail->next_change];
		enum jail_change_kind kind = change->kind;
		const char *reason = change->entry->unkept;

		bytes += strlen(change->entry->name) + 1;
		if (bytes > WIRE_NAMES_MAX)
			break;
		if (kind <= JAIL_FILE_CHANGED) {
			fds[n_fds] = data_open(cell_data(jail->cell), change->entry);
			if (fds[n_fds] < 0) {
				kind = JAIL_FILE_NOT_KEPT;
				reason = "cannot be opened";
			} else {
				n_fds++;
			}
		}
		struct json_object *object = json_object_new_object();
		json_add_string(object, "kind", wire_change_kinds[kind]);
		json_add_int(object, "mode", change->entry->mode & 0777);
		json_add_int(object, "mtime_us", change->entry->mtime_us);
		json_add_int(object, "size", change->entry->size);
		if (reason)
			json_add_string(object, "reason", reason);
		json_object_array_add(list, object);
		names[n++] = change->entry->name;
	}
	if (n) {
		wire_queue_add(&jail->client->queue, head, &(struct wire_parts){names, n, fds, n_fds}, NULL);
		return;
	}
	json_object_put(head);
	jail->collecting = false;
	server_send(jail->client, wire_head_jail("event", "collected", jail->number));
	cell_collected(jail->cell);
}

/* -------- connections --------------------------------------------------------------------------------- */
static bool blocked(const struct server_client *client)
{
	size_t held = 0;

	for (struct server_jail *jail = client->jails; jail; jail = jail->next)
		held += cell_held_fds(jail->cell);
	return client->queue.count >= SERVER_QUEUE_MAX || held >= SERVER_HELD_FDS;
}

static struct json_object *refusal(const struct err *why)
{
	struct json_object *head = wire_head("event", "error");

	json_add_string(head, "code", err_info(why->code)->name);
	json_add_string(head, "text", why->text);
	return head;
}

void server_refuse(int fd, const struct err *why)
{
	struct wire_queue queue;

	wire_queue_init(&queue);
	if (wire_queue_add(&queue, refusal(why), NULL, NULL) == 0)
		wire_queue_flush(&queue, fd, NULL);
	wire_queue_clear(&queue);
}

static void refuse_connection(struct server_client *client, const struct err *why)
{
	server_send(client, refusal(why));
	wire_queue_flush(&client->queue, client->watch.fd, NULL);
	log_event(LOG_WARN, "client refused", "why", why->text, NULL);
	client->gone = true;
}

static void client_ready(struct loop_watch *watch, uint32_t events_seen)
{
	struct server_client *client = container_of(watch, struct server_client, watch);
	struct err err = ERR_INIT;

	(void)events_seen;
	while (!client->gone && !blocked(client)) {
		auto_message struct wire_message message = {.bytes = NULL};
		int result = wire_receive(watch->fd, &message, &err);

		if (result == -ERR_BUSY)
			break;
		if (result == -ERR_UNAVAILABLE)
			client->gone = true;
		else if (result < 0 || server_dispatch(client, &message, &err) < 0)
			refuse_connection(client, &err);
		client->spoke = true;
	}
	if (events_seen & (EPOLLHUP | EPOLLERR))
		client->gone = true;
}

void server_add(struct server *server, int fd)
{
	static const struct err full = {.code = ERR_BUSY,
					.text = "this jailer has too many connections: close some, or try again later"};
	struct server_client *client = xcalloc(1, sizeof(*client));

	client->server = server;
	client->watch = LOOP_WATCH_INIT;
	wire_queue_init(&client->queue);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) ||
	    loop_add(server->cells->loop, &client->watch, fd, EPOLLIN, client_ready)) {
		log_event(LOG_WARN, "connection refused", "why", strerror(errno), NULL);
		close(fd);
		free(client);
		return;
	}
	/* Of those that never said anything the oldest goes; the list begins with the newest. */
	struct server_client *silent = NULL;
	for (struct server_client *other = server->clients; other; other = other->next)
		if (!other->spoke && !other->gone)
			silent = other;
	bool room = server->n_clients < SERVER_CLIENTS_MAX || silent;
	if (server->n_clients >= SERVER_CLIENTS_MAX && silent)
		silent->gone = true;
	client->next = server->clients;
	server->clients = client;
	server->n_clients++;
	if (!room)
		refuse_connection(client, &full);
}

static void drop(struct server *server, struct server_client **link)
{
	struct server_client *client = *link;
	int fd = client->watch.fd;

	*link = client->next;
	server->n_clients--;
	for (struct server_jail *jail = client->jails, *next; jail; jail = next) {
		next = jail->next;
		server_jail_remove(jail);
	}
	loop_remove(server->cells->loop, &client->watch);
	close(fd);
	wire_queue_clear(&client->queue);
	free(client);
	server->gone = server->private && server->n_clients == 0;
}

static void tick_client(struct server_client *client)
{
	const struct versions *versions = client->server->versions;
	struct err err = ERR_INIT;

	if (client->wants_runners && (!versions->all || versions_done(versions))) {
		client->wants_runners = false;
		server_send_document(client, runners_print(client->server->runners), &err);
	}
	int result = wire_queue_flush(&client->queue, client->watch.fd, &err);

	/* The next batch of files only when the last one went: that bounds the open descriptors. */
	for (struct server_jail *jail = client->jails, *next; jail && result == 0; jail = next) {
		next = jail->next;
		while (result == 0 && jail->collecting) {
			send_batch(jail);
			result = wire_queue_flush(&client->queue, client->watch.fd, &err);
		}
	}
	if (result == 0)
		result = wire_queue_flush(&client->queue, client->watch.fd, &err);
	if (result == -ERR_UNAVAILABLE)
		client->gone = true;
	uint32_t wanted = (blocked(client) ? 0 : EPOLLIN) | (client->queue.first ? EPOLLOUT : 0);
	loop_change(client->server->cells->loop, &client->watch, wanted);
}

void server_tick(struct server *server)
{
	for (struct server_client **link = &server->clients; *link;) {
		if (!(*link)->gone)
			tick_client(*link);
		if ((*link)->gone)
			drop(server, link);
		else
			link = &(*link)->next;
	}
}

void server_clear(struct server *server)
{
	while (server->clients)
		drop(server, &server->clients);
}
