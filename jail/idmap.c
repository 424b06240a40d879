/*
 * idmap.c - see idmap.h.
 *
 * Forked before the jailer gives anything up, it waits for one word ("m": the user namespace is made), writes the maps,
 * and answers with an err. In private mode that is all. As a service it drops to an id of its own and does one thing at
 * a time: accept, look at the peer's id, hand over or refuse. While the jailer is too busy to take another connection,
 * clients wait in the listen queue.
 */
#include "idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "jail/client/wire_fd.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define BACKLOG      128
#define GONE_SECONDS 1
#define REFUSAL                                                                                                        \
	"{\"v\":1,\"event\":\"error\",\"code\":\"denied\",\"text\":\"this user may not connect: add it to "            \
	"jailer.allowed_users\"}"

int idmap_users(const struct config *config, struct idmap_spec *spec, struct err *err)
{
	const struct bind_strings *names = &config->jailer.allowed_users;

	if (names->count > IDMAP_USERS_MAX)
		return err_member(err, "jailer.allowed_users", "at most %d users", IDMAP_USERS_MAX);
	for (size_t i = 0; i < names->count; i++) {
		struct passwd *user = getpwnam(names->items[i]);
		uint64_t number;

		if (user)
			number = user->pw_uid;
		else if (parse_u64(names->items[i], 0, UINT32_MAX - 1, &number))
			return err_member(err, "jailer.allowed_users", "there is no user %s on this host",
					  names->items[i]);
		spec->users[spec->n_users++] = (uid_t)number;
	}
	return 0;
}

/* The id-map helper of a jailer that was killed still listens until it notices: then the connection ends without a
 * word. */
static bool has_listener(const struct sockaddr_un *address)
{
	const struct timeval patience = {.tv_sec = GONE_SECONDS};
	auto_close int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char word;

	if (probe < 0 || connect(probe, (const struct sockaddr *)address, sizeof(*address)))
		return false;
	setsockopt(probe, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	ssize_t n = recv(probe, &word, 1, 0);
	return n > 0 || (n < 0 && errno != ECONNRESET);
}

int idmap_listen(const char *path, int *ret_fd, struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return err_set(err, ERR_INVALID, "jailer.socket is longer than %zu bytes: %s",
			       sizeof(address.sun_path) - 1, path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (has_listener(&address))
		return err_set(err, ERR_CONFLICT, "another jailer listens at %s", path);
	struct stat st;
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(path);
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* Every user may connect: the peer's id decides whether the connection is kept. */
	mode_t mask = umask(0);
	int result = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, BACKLOG) ? -1 : 0;
	umask(mask);
	if (result < 0)
		return err_errno(err, "listening at %s", path);
	*ret_fd = steal_fd(&fd);
	return 0;
}

int idmap_receive(int socket)
{
	char mark;
	int fd = -1;
	struct wire_fds fds = {.fds = &fd, .room = 1};
	ssize_t n = wire_fd_receive(socket, &mark, 1, MSG_DONTWAIT, &fds);

	if (n == 1 && fds.count == 1)
		return fd;
	errno = n < 0 ? errno : EPIPE;
	return -1;
}

/* The jailer's end is full while it is busy: then clients wait. False: the jailer is gone. Too many descriptors in
 * flight (ETOOMANYREFS) cost this client its connection, and no other client. */
static bool hand_over(int socket, int client)
{
	struct pollfd wait = {.fd = socket, .events = POLLOUT};

	for (;;) {
		if (wire_fd_send(socket, "c", 1, &client, 1) == 0)
			return true;
		if (errno != EAGAIN)
			return errno != EPIPE && errno != ECONNRESET;
		if (poll(&wait, 1, -1) < 0 && errno != EINTR)
			return false;
	}
}

/* One connection at a time, until the jailer's end of the socket closes. */
static int serve(const struct idmap_spec *spec, int socket)
{
	struct pollfd wait[] = {{.fd = spec->listen_fd, .events = POLLIN}, {.fd = socket, .events = POLLIN}};

	for (;;) {
		if (poll(wait, ARRAY_SIZE(wait), -1) < 0 && errno != EINTR)
			return 1;
		if (wait[1].revents)
			return 0;
		auto_close int client = accept4(spec->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct ucred peer;
		socklen_t size = sizeof(peer);
		if (client < 0 || getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size))
			continue;
		bool allowed = peer.uid == 0 || peer.uid == spec->identity->started_uid;
		for (size_t i = 0; i < spec->n_users; i++)
			allowed = allowed || spec->users[i] == peer.uid;
		if (allowed) {
			if (!hand_over(socket, client))
				return 0;
			continue;
		}
		auto_free char *who = xasprintf("%u", peer.uid);
		log_event(LOG_WARN, "connection refused", "uid", who, NULL);
		send(client, REFUSAL, strlen(REFUSAL), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

/* An id that is neither the jailer's nor any guest's, so that neither may touch this process. */
static int drop(const struct identity *identity)
{
	uid_t uid = identity->host_uid + identity->ids - 1;
	gid_t gid = identity->host_gid + identity->ids - 1;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	if (identity->mode != IDENTITY_ROOT)
		return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return -1;
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* the change of ids cleared it */
}

static int idmap_main(const struct idmap_spec *spec, int socket, pid_t jailer)
{
	struct err err = ERR_INIT;
	char command;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	prctl(PR_SET_NAME, "jailer-idmap", 0, 0, 0);
	/* Signals of the terminal are for the jailer; we go when it goes. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	if (recv(socket, &command, 1, 0) != 1)
		return 0;
	int result = identity_write_maps(spec->identity, jailer, &err);
	if (send(socket, &err, sizeof(err), MSG_NOSIGNAL) < 0 || result < 0 || spec->listen_fd < 0)
		return result < 0 ? 1 : 0;
	if (drop(spec->identity))
		return 1;
	return serve(spec, socket);
}

int idmap_start(const struct idmap_spec *spec, int *ret_socket, struct err *err)
{
	int pair[2];
	pid_t jailer = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_errno(err, "making a socket for the id-map helper");
	auto_close int ours = pair[0];
	auto_close int theirs = pair[1];
	pid_t pid = fork();
	if (pid < 0)
		return err_errno(err, "starting the id-map helper");
	if (pid == 0) {
		close(ours);
		/* Nothing of the jailer's may be held open here: its lock, its client. Standard error stays for the
		 * log. */
		for (int fd = 3; fd < 1024; fd++)
			if (fd != theirs && fd != spec->listen_fd)
				close(fd);
		_exit(idmap_main(spec, theirs, jailer));
	}
	close_pointer(&spec->listen_fd);
	*ret_socket = steal_fd(&ours);
	return 0;
}

int idmap_maps(int socket, struct err *err)
{
	struct err answer = ERR_INIT;

	if (send(socket, "m", 1, MSG_NOSIGNAL) != 1 ||
	    recv(socket, &answer, sizeof(answer), 0) != (ssize_t)sizeof(answer))
		return err_set(err, ERR_INTERNAL, "the id-map helper is gone");
	if (answer.code) {
		if (err)
			*err = answer;
		return -(int)answer.code;
	}
	return 0;
}
