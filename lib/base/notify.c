/* notify.c - see notify.h. */
#include "notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "util.h"

/* "@name" is a socket of the abstract name space: its name begins with NUL. */
static int dial(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	auto_close int fd = -1;

	if ((path[0] != '/' && path[0] != '@') || length >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		return -1;
	return steal_fd(&fd);
}

static int64_t watchdog_us(void)
{
	const char *every = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t us, whose;

	if (every == NULL || parse_u64(every, 1, INT64_MAX, &us) < 0)
		return 0;
	if (pid != NULL && (parse_u64(pid, 1, INT64_MAX, &whose) < 0 || whose != (uint64_t)getpid()))
		return 0;
	return MAX((int64_t)us / 2, 1);
}

void notify_open(struct notify *ret)
{
	const char *path = getenv("NOTIFY_SOCKET");

	*ret = NOTIFY_NONE;
	if (path == NULL)
		return;
	ret->fd = dial(path);
	if (ret->fd < 0)
		log_event(LOG_WARN, "no notifications to the service manager", "socket", path, NULL);
	else
		ret->every_us = watchdog_us();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void notify_close(struct notify *notify)
{
	close_pointer(&notify->fd);
	*notify = NOTIFY_NONE;
}

/* Not blocking: a manager that does not read must not hold a service. */
static void say(const struct notify *notify, const char *text)
{
	if (notify->fd >= 0)
		(void)!send(notify->fd, text, strlen(text), MSG_NOSIGNAL);
}

void notify_ready(struct notify *notify)
{
	say(notify, "READY=1");
	if (notify->every_us > 0)
		notify->deadline_us = clock_monotonic_us() + notify->every_us;
}

void notify_stopping(struct notify *notify)
{
	say(notify, "STOPPING=1");
	notify->deadline_us = INT64_MAX;
}

void notify_tick(struct notify *notify)
{
	int64_t now = notify->deadline_us == INT64_MAX ? 0 : clock_monotonic_us();

	if (now < notify->deadline_us)
		return;
	say(notify, "WATCHDOG=1");
	notify->deadline_us = now + notify->every_us;
}
