/* job_news.c - see job_news.h. A message is what it is about, owner, conversation, execution and name, each ended by a
 * NUL; what is missing is empty. */
#include "job_news.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/util.h"

#define FIELDS       5
#define SEND_SECONDS 1

/* The folder's address by way of its descriptor: its path may be longer than a socket's address. */
static void address_of(int folder, const char *name, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%.*s", folder, ID_SIZE - 1, name);
}

static int open_folder(const char *data_dir, struct err *err)
{
	auto_free char *path = xasprintf("%s/" JOB_NEWS_FOLDER, data_dir);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_errno(err, "%s", path) : fd;
}

int job_news_listen(const char *data_dir, char ret_name[ID_SIZE], int *ret_fd, struct err *err)
{
	auto_free char *path = xasprintf("%s/" JOB_NEWS_FOLDER, data_dir);
	struct sockaddr_un address;
	char name[ID_SIZE];

	if (mkdir(path, 0700) && errno != EEXIST)
		return err_errno(err, "%s", path);
	auto_close int folder = open_folder(data_dir, err);

	if (folder < 0)
		return folder;
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	id_new(name);
	address_of(folder, name, &address);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) || fchmodat(folder, name, 0600, 0))
		return err_errno(err, "a socket in %s", path);
	memcpy(ret_name, name, ID_SIZE);
	*ret_fd = steal_fd(&fd);
	return 0;
}

void job_news_leave(const char *data_dir, const char *name)
{
	auto_close int folder = open_folder(data_dir, NULL);

	if (folder >= 0)
		unlinkat(folder, name, 0);
}

/* False: no message of ours. */
static bool split(const char *bytes, ssize_t length, const char *fields[FIELDS])
{
	const char *at = bytes;
	size_t count = 0;

	while (length > 0 && bytes[length - 1] == '\0' && count < FIELDS && at < bytes + length) {
		fields[count++] = at;
		at += strlen(at) + 1;
	}
	return count == FIELDS && at == bytes + length &&
	       (streq(fields[0], JOB_NEWS_CANCEL) || streq(fields[0], JOB_NEWS_RECORD));
}

bool job_news_receive(int fd, struct job_news_room *room, struct job_news *ret)
{
	for (;;) {
		ssize_t length = recv(fd, room->bytes, sizeof(room->bytes), 0);
		const char *fields[FIELDS];

		struct pollfd end = {.fd = fd};

		/* An empty datagram looks like the end. */
		if ((length == 0 && poll(&end, 1, 0) > 0) || (length < 0 && errno != EINTR))
			return false;
		if (!split(room->bytes, length, fields))
			continue;
		*ret = (struct job_news){.cancel = streq(fields[0], JOB_NEWS_CANCEL),
					 .owner = fields[1],
					 .conversation = fields[2],
					 .execution = *fields[3] ? fields[3] : NULL,
					 .name = *fields[4] ? fields[4] : NULL,
					 .name_length = strlen(fields[4])};
		return true;
	}
}

/* False: `news` do not fit a message. */
static bool print(const struct job_news *news, struct buf *ret)
{
	const char *about = news->cancel ? JOB_NEWS_CANCEL : JOB_NEWS_RECORD;

	buf_add(ret, about, strlen(about) + 1);
	buf_add(ret, news->owner, strlen(news->owner) + 1);
	buf_add(ret, news->conversation, strlen(news->conversation) + 1);
	buf_puts(ret, news->execution ? news->execution : "");
	buf_putc(ret, '\0');
	buf_add(ret, news->name ? news->name : "", news->name ? news->name_length : 0);
	buf_putc(ret, '\0');
	return !ret->overflow;
}

/* True: the listener does not keep up. A socket that nobody has open was a dead process's: its name is never used
 * again. */
static bool send_one(int fd, int folder, const char *name, const struct buf *text, bool wait)
{
	const int flags = MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT);
	struct sockaddr_un address;
	int error = 0;

	address_of(folder, name, &address);
	if (sendto(fd, text->data, text->length, flags, (const struct sockaddr *)&address, sizeof(address)) < 0)
		error = errno;
	if (error == ECONNREFUSED)
		unlinkat(folder, name, 0);
	else if (error && error != ENOENT && error != EPIPE && wait)
		log_event(LOG_WARN, "news not delivered", "error", strerror(error), NULL);
	return error == EAGAIN;
}

/* Most of the time nobody else listens: then this is a look into a folder and no more. */
void job_news_send(struct job_news_sender *sender, const char *data_dir, const char *self, const struct job_news *news)
{
	const int folder = open_folder(data_dir, NULL);
	DIR *listeners = folder < 0 ? NULL : fdopendir(folder); /* the descriptor is its own from now on */
	const struct timeval patience = {.tv_sec = SEND_SECONDS};
	bool wait = !atomic_load(&sender->tired), asked = true, slow = false;
	auto_close int fd = -1;
	auto_buf struct buf text = {0};
	const struct dirent *entry;

	buf_init(&text, sizeof(struct job_news_room));
	while (listeners && asked && (entry = readdir(listeners))) {
		if (!id_valid(entry->d_name) || (self && streq(entry->d_name, self)))
			continue;
		if (fd < 0) {
			fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
			asked = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
				print(news, &text);
		}
		if (asked && send_one(fd, folder, entry->d_name, &text, wait)) {
			slow = true;
			wait = false;
		}
	}
	if (asked) /* else it is not known who keeps up */
		atomic_store(&sender->tired, slow);
	if (listeners)
		closedir(listeners);
	else if (folder >= 0)
		close(folder);
}
