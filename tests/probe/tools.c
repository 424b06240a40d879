/* tools.c - probes N17: what a program can do with the socket by which it calls tools (lib/bridge/bridge_frame.h). The
 * other side is a bridge whose one server, "own", has the tools `echo` and `never` (cli/selftest_tools.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define SOCKET     "/code/.mcp"
#define ANSWER_MAX 4096
#define FLOOD      10000
#define DIALS      200
#define MORE_FDS   16

static int dial_with(int flags)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static int dial(void)
{
	int fd = dial_with(0);

	holds(fd >= 0, "the socket of tools cannot be reached: %s", strerror(errno));
	return fd;
}

static size_t frame(char *out, size_t size, const char *json)
{
	size_t length = strlen(json);
	unsigned char head[4] = {(unsigned char)(length >> 24), (unsigned char)(length >> 16),
				 (unsigned char)(length >> 8), (unsigned char)length};

	if (length + 4 > size)
		return 0;
	memcpy(out, head, 4);
	memcpy(out + 4, json, length);
	return length + 4;
}

static void say(int fd, const char *json)
{
	char out[ANSWER_MAX];
	size_t length = frame(out, sizeof(out), json);

	holds(send(fd, out, length, MSG_NOSIGNAL) == (ssize_t)length, "a frame cannot be sent: %s", strerror(errno));
}

/* The next frame as text; false: the connection ended. */
static bool hear(int fd, char answer[ANSWER_MAX])
{
	unsigned char head[4];

	if (recv(fd, head, 4, MSG_WAITALL) != 4)
		return false;
	size_t length = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	if (length >= ANSWER_MAX || recv(fd, answer, length, MSG_WAITALL) != (ssize_t)length)
		return false;
	answer[length] = '\0';
	return true;
}

static void hears(int fd, const char *part)
{
	char answer[ANSWER_MAX] = "the end";

	holds(hear(fd, answer) && strstr(answer, part), "answered %.200s, not %s", answer, part);
}

static void hears_end(int fd)
{
	char answer[ANSWER_MAX];

	holds(!hear(fd, answer), "the connection goes on");
}

#define CALL(id, server, tool, arguments)                                                                              \
	"{\"id\":" #id ",\"op\":\"call\",\"server\":\"" server "\",\"tool\":\"" tool "\",\"arguments\":" arguments "}"
#define ECHO_(id) CALL(id, "own", "echo", "{\"text\":\"x\"}")

/* Whatever was done to other connections: the next one is served. */
static void still_serves(void)
{
	int fd = dial();

	say(fd, "{\"id\":1,\"op\":\"servers\"}");
	hears(fd, "\"own\"");
	close(fd);
}

static void wrong_frames(void)
{
	static const struct {
		const char *bytes;
		size_t length;
	} frames[] = {
		{"\0\0\0\0", 4},
		{"\xff\xff\xff\xff", 4},
		{"\x7f\xff\xff\xff{}", 6},
		{"\0\0\0\4null", 8},
		{"\0\0\0\2[]", 6},
		{"\0\0\0\3{]}", 7},
		{"\0\0\0\4\xff\xfe\0\0", 8},
		{"\0\0\0\x0d{\"op\":\"call\"}", 17},
		{"GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n", 30},
	};

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		int fd = dial();

		holds(send(fd, frames[i].bytes, frames[i].length, MSG_NOSIGNAL) == (ssize_t)frames[i].length,
		      "frame %zu cannot be sent", i);
		hears(fd, "\"protocol\"");
		hears_end(fd);
		close(fd);
	}
	int half = dial();

	holds(send(half, "\0\0\1\0{\"id\":1", 11, MSG_NOSIGNAL) == 11, "half a frame cannot be sent");
	still_serves();
	close(half);
}

static void wrong_requests(void)
{
	static const char *const requests[][2] = {
		{CALL(1, "other", "echo", "{}"), "\"ok\":false"},
		{CALL(2, "../own", "echo", "{}"), "\"ok\":false"},
		{CALL(3, "own\\u0000", "echo", "{}"), "\"ok\":false"},
		{CALL(4, "own", "../echo", "{}"), "\"ok\":false"},
		{CALL(5, "own", "echo\\n", "{}"), "\"ok\":false"},
		{CALL(6, "own", "echo", "{\"text\":1}"), "\"ok\":false"},
		{CALL(7, "own", "echo", "{\"text\":\"x\",\"owner\":\"other\"}"), "\"ok\":false"},
		{CALL(8, "own", "echo", "[]"), "\"ok\":false"},
		{"{\"id\":9,\"op\":\"read\",\"server\":\"other\",\"uri\":\"file:///etc/passwd\"}", "\"ok\":false"},
		{"{\"id\":10,\"op\":\"answer\",\"call\":1}", "\"ok\":false"},
		{"{\"id\":11,\"op\":\"cancel\",\"call\":99}", "\"ok\":true"},
		{ECHO_(12), "\"ok\":true"},
		{ECHO_(12), "the id was used before"},
	};
	int fd = dial();

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		say(fd, requests[i][0]);
		hears(fd, requests[i][1]);
	}
	hears_end(fd);
	close(fd);
	still_serves();
}

/* Calls without end that nobody reads the answers of, and more connections than are served: as many as are taken. */
static void flood(void)
{
	static int dialled[DIALS];
	char out[ANSWER_MAX], json[256];
	int fd = dial_with(SOCK_NONBLOCK), sent = 0;

	for (int i = 1; i <= FLOOD && fd >= 0; i++, sent++) {
		snprintf(json, sizeof(json),
			 "{\"id\":%d,\"op\":\"call\",\"server\":\"own\",\"tool\":\"%s\",\"arguments\":{%s}}", i,
			 i % 2 ? "echo" : "never", i % 2 ? "\"text\":\"x\"" : "");
		size_t length = frame(out, sizeof(out), json);
		if (send(fd, out, length, MSG_NOSIGNAL) != (ssize_t)length)
			break;
	}
	holds(sent > 0, "not one call is taken");
	for (int i = 0; i < DIALS; i++)
		dialled[i] = dial_with(SOCK_NONBLOCK);
	for (int i = 0; i < DIALS; i++)
		close(dialled[i]);
	close(fd);
	still_serves();
}

/* The control messages that come with the next byte: descriptors and credentials. */
static void look_at_control(int fd)
{
	union {
		struct cmsghdr align;
		char bytes[512];
	} room;
	char byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof(room)};

	holds(recvmsg(fd, &message, MSG_CMSG_CLOEXEC) == 1, "there is no answer");
	for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
		struct ucred sender = {.pid = -1};

		holds(head->cmsg_type != SCM_RIGHTS, "the answer has descriptors");
		if (head->cmsg_type == SCM_CREDENTIALS)
			memcpy(&sender, CMSG_DATA(head), sizeof(sender));
		holds(head->cmsg_type != SCM_CREDENTIALS || sender.pid == 0, "the other side's process is %d",
		      (int)sender.pid);
	}
}

static void descriptors(void)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(MORE_FDS * sizeof(int))];
	} room = {.head = {.cmsg_len = CMSG_LEN(MORE_FDS * sizeof(int)),
			   .cmsg_level = SOL_SOCKET,
			   .cmsg_type = SCM_RIGHTS}};
	char out[ANSWER_MAX], rest[ANSWER_MAX];
	struct iovec part = {out, frame(out, sizeof(out), ECHO_(1))};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof(room)};
	int fd = dial(), on = 1, fds[MORE_FDS];
	struct ucred peer = {.pid = -1};
	socklen_t length = sizeof(peer);

	for (int i = 0; i < MORE_FDS; i++)
		fds[i] = fd;
	memcpy(CMSG_DATA(&room.head), fds, sizeof(fds));
	holds(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.pid <= 1,
	      "process %d listens on the socket", (int)peer.pid);
	setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	holds(sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)part.iov_len, "a call with descriptors cannot be sent");
	look_at_control(fd);
	holds(recv(fd, rest, 3, MSG_WAITALL) == 3, "the answer has no end");
	holds(recv(fd, rest, sizeof(rest), 0) > 0, "the answer is empty");
	close(fd);
	still_serves();
}

/* The path is the program's to spoil, for itself: what is connected goes on, also in another process. What is under way
 * when the program ends is nobody's trouble. */
static void replaced(void)
{
	int fd = dial(), status = -1;

	unlink(SOCKET);
	mkdir(SOCKET, 0700);
	say(fd, ECHO_(1));
	hears(fd, "\"ok\":true");
	pid_t child = fork();
	if (child == 0) {
		say(fd, ECHO_(2));
		_exit(0);
	}
	waitpid(child, &status, 0);
	holds(status == 0, "a child cannot call");
	hears(fd, "\"ok\":true");
	rmdir(SOCKET);
	say(fd, CALL(3, "own", "never", "{}"));
}

#define TOOLS "tools=1 pids=32"
const struct probe probes_tools[] = {
	PROBE_TERMS("N17", "the socket of tools: frames that are none", wrong_frames, TOOLS),
	PROBE_TERMS("N17b", "the socket of tools: servers, tools and ids of others", wrong_requests, TOOLS),
	PROBE_TERMS("N17c", "the socket of tools: 10,000 calls, 200 connections, answers unread", flood, TOOLS),
	PROBE_TERMS("N17d", "the socket of tools: descriptors, credentials", descriptors, TOOLS),
	PROBE_TERMS("N17e", "the socket of tools: replaced, inherited, left with calls under way", replaced, TOOLS),
	{0},
};
