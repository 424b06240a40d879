/* job_news.c - see job_news.h. A message is owner, conversation, execution and name, each ended by a NUL; what is missing is empty. */
#include "job_news.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "util.h"

#define FIELDS 4
#define SEND_SECONDS 1

/* By way of the folder's descriptor: its path may be longer than an address. */
static int open_socket(const char *data_dir, int *ret_folder, struct sockaddr_un *ret, struct err *err)
{
	auto_close int folder = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = folder < 0 ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_errno(err, "no socket for news in %s", data_dir);
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" JOB_NEWS_SOCKET, folder);
	*ret_folder = steal_fd(&folder);
	return fd;
}

int job_news_listen(const char *data_dir, int *ret_fd, struct err *err)
{
	struct sockaddr_un address;
	auto_close int folder = -1;
	auto_close int fd = open_socket(data_dir, &folder, &address, err);

	if (fd < 0)
		return fd;
	if (unlinkat(folder, JOB_NEWS_SOCKET, 0) && errno != ENOENT)
		return err_errno(err, "%s/" JOB_NEWS_SOCKET, data_dir);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) || fchmodat(folder, JOB_NEWS_SOCKET, 0600, 0))
		return err_errno(err, "%s/" JOB_NEWS_SOCKET, data_dir);
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* An empty datagram looks like the end. */
static bool is_shut_down(int fd)
{
	struct pollfd end = {.fd = fd};

	return poll(&end, 1, 0) > 0;
}

bool job_news_receive(int fd, struct job_news_room *room, struct job_news *ret)
{
	for (;;) {
		ssize_t length = recv(fd, room->bytes, sizeof(room->bytes), 0);
		const char *fields[FIELDS], *at = room->bytes;
		size_t count = 0;

		if ((length == 0 && is_shut_down(fd)) || (length < 0 && errno != EINTR))
			return false;
		while (length > 0 && room->bytes[length - 1] == '\0' && count < FIELDS && at < room->bytes + length) {
			fields[count++] = at;
			at += strlen(at) + 1;
		}
		if (count < FIELDS || at != room->bytes + length)
			continue;
		*ret = (struct job_news){.owner = fields[0],
					 .conversation = fields[1],
					 .execution = *fields[2] ? fields[2] : NULL,
					 .name = *fields[3] ? fields[3] : NULL,
					 .name_length = strlen(fields[3])};
		return true;
	}
}

/* Nobody took the last one in time, so the next does not wait: a run that changed many files would keep all others waiting. */
static _Atomic bool tired;

void job_news_send(const char *data_dir, const struct job_news *news)
{
	const struct timeval patience = {.tv_sec = SEND_SECONDS};
	struct sockaddr_un address;
	auto_close int folder = -1;
	auto_close int fd = open_socket(data_dir, &folder, &address, NULL);
	auto_buf struct buf text = {0};

	buf_init(&text, sizeof(struct job_news_room));
	buf_add(&text, news->owner, strlen(news->owner) + 1);
	buf_add(&text, news->conversation, strlen(news->conversation) + 1);
	buf_puts(&text, news->execution ? news->execution : "");
	buf_putc(&text, '\0');
	buf_add(&text, news->name ? news->name : "", news->name ? news->name_length : 0);
	buf_putc(&text, '\0');
	if (fd < 0 || text.overflow)
		return;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	const int flags = MSG_NOSIGNAL | (tired ? MSG_DONTWAIT : 0);
	const int error = sendto(fd, text.data, text.length, flags, (const struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;

	if (error && error != ENOENT && error != ECONNREFUSED && !tired)
		log_event(LOG_WARN, "news not told", "error", strerror(error), NULL);
	tired = error == EAGAIN;
}
