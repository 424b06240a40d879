/*
 * serve.c - see serve.h.
 *
 * The first thread takes no requests: it waits for SIGTERM or SIGINT. An orderly stop: new requests are refused at once
 * (503 and Retry-After), no new runs begin, the ones under way drain for JOB_DRAIN_SECONDS (then their runs end as
 * cancelled and are recorded so), the answers go out, the socket and the store are closed. SIGHUP changes nothing: the
 * configuration is read at the start.
 */
#include "serve.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cgi/doors/doors.h"
#include "cgi/http/fcgi.h"
#include "cgi/mcp/mcp_request.h"
#include "lib/base/log.h"
#include "lib/base/notify.h"
#include "lib/base/util.h"
#include "routes.h"
#include "server_start.h"

#define BACKLOG        512
#define SUBMIT_SECONDS 2 /* for requests that are between their check and the queue */
#define LEAVE_SECONDS  5 /* for answers after the last job ended */
/* Open files: of the store, the engine, log, sockets; of each thread: its connection and what it reads. */
#define DESCRIPTORS_BASE   64
#define DESCRIPTORS_THREAD 2

static int address_of(const char *path, struct sockaddr_un *ret, struct err *err)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(ret->sun_path))
		return err_set(err, ERR_INVALID, "gateway.socket: longer than %zu bytes", sizeof(ret->sun_path) - 1);
	memcpy(ret->sun_path, path, strlen(path));
	return 0;
}

/* Removes a socket that nobody listens on. Anything that is no socket stays: bind then says that the name is taken. */
static int remove_stale(const char *path, const struct sockaddr_un *address, struct err *err)
{
	struct stat status;
	auto_close int fd = -1;

	if (lstat(path, &status) < 0)
		return errno == ENOENT ? 0 : err_errno(err, "gateway.socket %s", path);
	if (!S_ISSOCK(status.st_mode))
		return err_set(err, ERR_CONFLICT,
			       "gateway.socket %s: there is something that is not a socket: name another place", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(err, "socket");
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN)
		return err_set(err, ERR_CONFLICT, "gateway.socket %s: another program listens there: stop it first",
			       path);
	if (errno != ECONNREFUSED)
		return err_errno(err, "gateway.socket %s", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(err, "gateway.socket %s: removing the stale socket", path);
	return 0;
}

int serve_listen(const char *path, int *ret_fd, struct err *err)
{
	struct sockaddr_un address;
	auto_close int fd = -1;
	int result = address_of(path, &address, err);

	if (result == 0)
		result = remove_stale(path, &address, err);
	if (result < 0)
		return result;
	/* Blocking, as libfcgi wants it. The account and its group (the web server's) may connect: who speaks FastCGI
	 * says from which address a request comes. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, "socket");
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return err_errno(err, "gateway.socket %s: its folder must exist and be writable", path);
	if (chmod(path, 0660) < 0 || listen(fd, BACKLOG) < 0)
		return err_errno(err, "gateway.socket %s", path);
	*ret_fd = steal_fd(&fd);
	return 0;
}

static bool is_listening(int fd)
{
	int listening = 0;
	socklen_t size = sizeof(listening);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening;
}

/* Returns when a signal asks to stop. */
static void wait_for_signal(const sigset_t *signals)
{
	for (;;) {
		int number = sigwaitinfo(signals, NULL);

		if (number == SIGHUP) {
			log_event(LOG_WARN,
				  "SIGHUP is ignored: the configuration is read at the start, restart for another",
				  NULL);
			continue;
		}
		if (number > 0) {
			log_event(LOG_INFO, "stopping", "signal", number == SIGTERM ? "TERM" : "INT", NULL);
			return;
		}
	}
}

/* `socket`: ours, to be removed; NULL: it was inherited, and what waits on it is the next process's. */
static void stop(struct server *server, struct fcgi_pool *pool, const char *socket)
{
	server->closing = true;
	server_stop(server);
	doors_stop(server);
	hub_stop(server->hub); /* idle streams end */
	/* Nobody may be inside the engine when it goes; waiting for a job is not inside. What runs longer than the
	 * engine's drain ends as cancelled, and its requests with it. */
	if (fcgi_pool_settle(pool, SUBMIT_SECONDS) > 0) {
		server_drain(server);
		fcgi_pool_settle(pool, LEAVE_SECONDS);
	}
	if (socket)
		unlink(socket);
	fcgi_pool_stop_accepting(pool);
	if (socket)
		fcgi_pool_answer_rest(pool);
	if (fcgi_pool_finish(pool, LEAVE_SECONDS) == 0)
		server_close(server);
	else /* a thread that writes to a client that does not read: the process ends, everything acknowledged is
		durable */
		log_event(LOG_WARN, "requests left at the end", NULL);
}

/* With fewer it would serve, and fail at every turn. */
static int check_descriptors(const struct config *config, struct err *err)
{
	const rlim_t needed = (rlim_t)(DESCRIPTORS_BASE + DESCRIPTORS_THREAD * config->gateway.threads);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= needed)
		return 0;
	return err_set(err, ERR_INVALID,
		       "%llu open files are allowed, and a gateway of %lld threads needs %llu: raise LimitNOFILE= "
		       "(ulimit -n), "
		       "or lower gateway.threads",
		       (unsigned long long)limit.rlim_cur, (long long)config->gateway.threads,
		       (unsigned long long)needed);
}

int serve_fcgi(const struct config *config, struct err *err)
{
	bool inherited = is_listening(STDIN_FILENO);
	struct server server;
	struct fcgi_pool *pool;
	struct notify notify;
	auto_close int own_fd = -1;
	sigset_t signals;

	if (!inherited && (!config->gateway.socket || !config->gateway.socket[0]))
		return err_set(
			err, ERR_INVALID,
			"gateway.socket: must be set in the configuration (or descriptor 0 be a listening socket)");
	if (server_check_url(config, err) < 0)
		return -ERR_INVALID;
	notify_open(&notify);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	fcgi_cap_descriptors(0); /* the job engine, which is started before the pool, plans with what there is */
	if (check_descriptors(config, err) < 0)
		return -ERR_INVALID;
	/* The store first: its lock keeps a second gateway of this database from touching the first one's socket. */
	int result = server_open(&server, config, STORE_SERVE, err);

	routes_declare();
	mcp_declare(&server.tables);
	if (result == 0)
		result = server_stay(&server, err);
	if (result == 0 && !inherited)
		result = serve_listen(config->gateway.socket, &own_fd, err);
	if (result == 0)
		result = fcgi_pool_start(&server, routes_handle, inherited ? STDIN_FILENO : own_fd,
					 (int)config->gateway.threads, &pool, err);
	if (result < 0) {
		notify_close(&notify);
		server_close(&server);
		return result;
	}
	notify_ready(&notify);
	log_event(LOG_INFO, "serving", "socket", inherited ? "descriptor 0" : config->gateway.socket, NULL);
	wait_for_signal(&signals);
	notify_stopping(&notify);
	stop(&server, pool, inherited ? NULL : config->gateway.socket);
	notify_close(&notify);
	log_event(LOG_INFO, "stopped", NULL);
	return 0;
}
