/*
 * fcgi.c - see fcgi.h; the only file that knows libfcgi.
 *
 * Stopping: a thread blocked in accept(2) is woken by a signal whose handler does nothing (no SA_RESTART). A signal
 * that arrives just before accept is lost, so the stopper repeats it until nobody waits any more. shutdown(2) on the
 * socket would need no repeating, but would end the socket for a supervisor that holds it too.
 *
 * FCGX_Accept_r reads request headers without a time or size limit, so a few silent connections could block all
 * threads. We accept connections ourselves, wait for the headers in fcgi_head.c, and hand the socket to libfcgi as if
 * it were a keep-alive connection; libfcgi then skips accept().
 *
 * Connections are not kept, whatever the web server asks for (keep_conn): a kept one would bind a thread to one worker
 * of nginx.
 */
#include "fcgi.h"

#include <errno.h>
#include <fcntl.h>
#include <fastcgi.h>
#include <fcgiapp.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "http.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "stream.h"

#define WAKE_SIGNAL     SIGUSR2
#define WAKE_EVERY_MS   20
#define ACCEPT_PAUSE_MS 100
#define BODY_SECONDS    60 /* nginx has read the body before it connects */
#define CHUNK           4096
#define FILE_CHUNK      (64 * 1024)
#define RECORD_MAX      65535 /* bytes of content; an empty socket takes them at once */

struct fcgi_pool {
	struct server *server;
	http_handler *handle;
	int listen_fd, spare;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int threads, waiting;
	atomic_bool stopping;
	unsigned generation;    /* of the requests that are accepted now */
	struct worker *workers; /* list of all threads */
};
struct worker {
	struct worker *next;
	struct fcgi_pool *pool;
	pthread_t thread;
	bool waiting; /* in accept */
	unsigned generation;
};

struct fcgi_connection {
	FCGX_Request fcgi; /* the argument of what a handler calls */
	bool parked;
	size_t moved;      /* bytes of the body and of the reply */
};

static int read_body(void *arg, struct buf *body, struct err *err)
{
	struct fcgi_connection *connection = container_of((FCGX_Request *)arg, struct fcgi_connection, fcgi);
	FCGX_Stream *in = connection->fcgi.in;
	char chunk[CHUNK];
	int n;

	while (!body->overflow && (n = FCGX_GetStr(chunk, sizeof(chunk), in)) > 0)
		buf_add(body, chunk, (size_t)n);
	connection->moved += body->length;
	if (FCGX_GetError(in) != 0)
		return err_set(err, ERR_INVALID, "Bad Request: the body did not arrive whole");
	return 0;
}

/* A client that takes nothing must not hold a thread for good: the web server's buffers are full by then. */
static void set_patience(const FCGX_Request *fcgi)
{
	const struct timeval patience = {.tv_sec = STREAM_SEND_SECONDS};

	setsockopt(fcgi->ipcFd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

/* Once is enough: libfcgi's farewell must not wait as long again, for each of its records. */
static int give_up(const FCGX_Request *fcgi)
{
	shutdown(fcgi->ipcFd, SHUT_RDWR);
	return -1;
}

static int send_now(void *arg, const void *data, size_t length)
{
	FCGX_Request *fcgi = arg;

	set_patience(fcgi);
	if (length > INT_MAX || FCGX_PutStr(data, (int)length, fcgi->out) < 0 || FCGX_FFlush(fcgi->out) < 0)
		return give_up(fcgi);
	return 0;
}

/* The web server takes END_REQUEST for the end and hangs up; this thread goes on. */
static void end_now(void *arg)
{
	FCGX_FClose(((FCGX_Request *)arg)->out);
}

static FCGI_Header header_of(unsigned id, uint8_t type, size_t length)
{
	return (FCGI_Header){
		.version = FCGI_VERSION_1,
		.type = type,
		.requestIdB1 = (uint8_t)(id >> 8),
		.requestIdB0 = (uint8_t)id,
		.contentLengthB1 = (uint8_t)(length >> 8),
		.contentLengthB0 = (uint8_t)length,
	};
}

static int send_parts(int fd, struct iovec *parts, size_t count)
{
	while (count > 0) {
		ssize_t n = writev(fd, parts, (int)count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		for (; count > 0 && (size_t)n >= parts->iov_len; parts++, count--)
			n -= (ssize_t)parts->iov_len;
		if (count > 0) {
			parts->iov_base = (char *)parts->iov_base + n;
			parts->iov_len -= (size_t)n;
		}
	}
	return 0;
}

/*
 * A reply that fits one record, past libfcgi: the record, the end of the stream and the end of the request in one
 * write, then the connection is closed. libfcgi copies it in pieces of 8 KiB, and before it closes waits for the web
 * server to hang up: a third thread switch and three system calls, needed only where the request was not read to its
 * end (the kernel then takes the answer back).
 */
static int send_last(int fd, unsigned id, struct iovec head, struct iovec body)
{
	struct {
		FCGI_Header stream;
		FCGI_EndRequestRecord request;
	} end = {.stream = header_of(id, FCGI_STDOUT, 0),
		 .request = {.header = header_of(id, FCGI_END_REQUEST, sizeof(end.request.body)),
			     .body = {.protocolStatus = FCGI_REQUEST_COMPLETE}}};
	FCGI_Header begin = header_of(id, FCGI_STDOUT, head.iov_len + body.iov_len);
	struct iovec parts[] = {{&begin, sizeof(begin)}, head, body, {&end, sizeof(end)}};

	return send_parts(fd, parts, ARRAY_SIZE(parts));
}

static void send_whole(FCGX_Request *fcgi, const struct buf *head, const struct reply *reply)
{
	if (send_last(fcgi->ipcFd, (unsigned)fcgi->requestId, (struct iovec){head->data, head->length},
		      (struct iovec){reply->body.data, reply->head ? 0 : reply->body.length}) < 0)
		give_up(fcgi);
	FCGX_Detach(fcgi); /* close it and no more */
	FCGX_Free(fcgi, 1);
}

/* -------- requests that leave their thread ------------------------------------------------------------ */

/* The reply of a request that libfcgi knows no longer: a head, and a body in memory. */
static void answer_parked(const struct request_parked *parked, const struct reply *reply)
{
	const struct timeval patience = {.tv_sec = STREAM_SEND_SECONDS};
	auto_buf struct buf head = {0};
	size_t sent = 0;
	int result = 0;

	buf_init(&head, 2 * HTTP_HEADER_MAX);
	reply_print_head(reply, &head);
	setsockopt(parked->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (!reply->gone && result == 0 && head.length + reply->body.length - sent > RECORD_MAX) {
		FCGI_Header begin = header_of(parked->id, FCGI_STDOUT, RECORD_MAX);
		struct iovec parts[] = {{&begin, sizeof(begin)},
					{head.data, head.length},
					{reply->body.data + sent, RECORD_MAX - head.length}};

		sent += parts[2].iov_len;
		result = send_parts(parked->fd, parts, ARRAY_SIZE(parts));
		buf_reset(&head);
	}
	if (!reply->gone && result == 0)
		send_last(parked->fd, parked->id, (struct iovec){head.data, head.length},
			  (struct iovec){reply->body.data + sent, reply->body.length - sent});
	close(parked->fd);
}

/* The connection moves to a descriptor beyond those that libfcgi's select(2) knows, which are needed for new ones. */
static bool park(void *arg, struct request_parked *ret)
{
	FCGX_Request *fcgi = arg;
	struct fcgi_connection *connection = container_of(fcgi, struct fcgi_connection, fcgi);
	int fd = fcntl(fcgi->ipcFd, F_DUPFD_CLOEXEC, FD_SETSIZE);

	if (fd < 0)
		return false;
	*ret = (struct request_parked){.fd = fd, .id = (unsigned)fcgi->requestId, .answer = answer_parked};
	connection->parked = true;
	FCGX_Detach(fcgi);
	FCGX_Free(fcgi, 1); /* closes its descriptor; the connection stays */
	return true;
}

/* ------------------------------------------------------------------------------------------------------ */

static void send_file(FCGX_Stream *out, const struct reply *reply)
{
	auto_free char *chunk = xmalloc(FILE_CHUNK);
	const int64_t end = reply->file_offset + reply->file_length;
	int64_t offset = reply->file_offset;

	while (offset < end) {
		ssize_t n = pread(reply->file_fd, chunk, (size_t)MIN((int64_t)FILE_CHUNK, end - offset), offset);

		if (n < 0 && errno == EINTR)
			continue;
		/* Too short: the web server sees fewer bytes than Content-Length and reports to the client that it
		 * failed.
		 */
		if (n <= 0 || FCGX_PutStr(chunk, (int)n, out) < 0)
			return;
		offset += n;
	}
}

static void send_reply(FCGX_Request *fcgi, struct reply *reply)
{
	auto_buf struct buf head = {0};

	if (reply->gone || reply->streamed)
		return;
	buf_init(&head, 2 * HTTP_HEADER_MAX);
	reply_print_head(reply, &head);
	if (reply->file_fd < 0 && head.length + reply->body.length <= RECORD_MAX && FCGX_HasSeenEOF(fcgi->in)) {
		send_whole(fcgi, &head, reply);
		return;
	}
	FCGX_PutStr(head.data, (int)head.length, fcgi->out);
	if (reply->head)
		return;
	if (reply->file_fd >= 0 || reply->body.length > FILE_CHUNK)
		set_patience(fcgi); /* less than that fits the socket */
	if (reply->file_fd >= 0)
		send_file(fcgi->out, reply);
	else if (reply->body.length > 0)
		FCGX_PutStr(reply->body.data, (int)reply->body.length, fcgi->out);
	if (FCGX_GetError(fcgi->out) != 0)
		give_up(fcgi);
}

static void serve_one(const struct fcgi_pool *pool, struct fcgi_connection *connection)
{
	FCGX_Request *fcgi = &connection->fcgi;
	const struct request request = {
		.params = (const char *const *)fcgi->envp,
		.read_body = read_body,
		.send = send_now,
		.end = end_now,
		.park = park,
		.arg = fcgi,
		.hangup_fd = fcgi->ipcFd,
	};
	auto_reply struct reply reply;

	reply_init(&reply);
	pool->handle(pool->server, &request, &reply);
	connection->moved += reply.body.length;
	if (!connection->parked)
		send_reply(fcgi, &reply);
}

static int spawn(struct fcgi_pool *pool, struct err *err);

/* Before and after accept; both under the lock. False: this thread is not needed any more. */
static bool begin_waiting(struct worker *worker)
{
	struct fcgi_pool *pool = worker->pool;

	if (pool->stopping || pool->waiting >= FCGI_SPARE_FACTOR * pool->spare)
		return false;
	worker->waiting = true;
	pool->waiting++;
	pthread_cond_broadcast(&pool->changed);
	return true;
}

static void end_waiting(struct worker *worker)
{
	struct fcgi_pool *pool = worker->pool;
	struct err err = ERR_INIT;

	worker->waiting = false;
	worker->generation = pool->generation;
	pool->waiting--;
	pthread_cond_broadcast(&pool->changed);
	if (!pool->stopping && pool->waiting == 0 && pool->threads < FCGI_THREADS_MAX && spawn(pool, &err) < 0)
		log_event(LOG_WARN, "no thread to accept with", "error", err.text, NULL);
}

static void leave(struct worker *worker)
{
	struct fcgi_pool *pool = worker->pool;

	for (struct worker **p = &pool->workers; *p; p = &(*p)->next) {
		if (*p == worker) {
			*p = worker->next;
			break;
		}
	}
	pool->threads--;
	pthread_cond_broadcast(&pool->changed);
}

/* A request on this connection, which is libfcgi's from now on. */
static bool begin_request(FCGX_Request *fcgi, int fd)
{
	const struct timeval patience = {.tv_sec = BODY_SECONDS};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	fcgi->ipcFd = fd;
	fcgi->keepConnection = 1;
	/* A head that is none: it closes the connection and has nowhere to accept another one from. */
	if (FCGX_Accept_r(fcgi) != 0)
		return false;
	fcgi->keepConnection = 0; /* what the client asked for: libfcgi would not close it, and nobody reads it again */
	return true;
}

static void serve_connection(const struct fcgi_pool *pool, struct fcgi_connection *connection, int fd)
{
	connection->moved = 0;
	connection->parked = false;
	if (!fcgi_head_wait(fd)) {
		close(fd);
	} else if (begin_request(&connection->fcgi, fd)) {
		serve_one(pool, connection);
		if (!connection->parked)
			FCGX_Finish_r(&connection->fcgi);
	}
	/* glibc keeps what a thread has freed for that thread: with each thread's largest request, for good. */
	if (connection->moved > FCGI_LARGE_BYTES)
		malloc_trim(0);
}

/* One line a second at most: each thread fails ten times in that time. */
static void log_failure(int error)
{
	static _Atomic int64_t logged_us;
	const int64_t now = clock_monotonic_us();
	int64_t last = logged_us;

	if ((last == 0 || now - last >= 1000000) && atomic_compare_exchange_strong(&logged_us, &last, now))
		log_event(LOG_WARN, "accept failed", "error", strerror(error), NULL);
}

/* The next connection; -1: try again. A thread that finds no descriptor pauses here, where it counts as waiting: no
 * other thread is started in its place. */
static int next_connection(struct fcgi_pool *pool)
{
	int fd = accept4(pool->listen_fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= FD_SETSIZE) { /* all that libfcgi knows are in use */
		fd_close(&fd);
		errno = EMFILE;
	}
	if (fd < 0 && !pool->stopping && errno != EINTR && errno != ECONNABORTED) {
		log_failure(errno);
		poll(NULL, 0, ACCEPT_PAUSE_MS);
	}
	return fd;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct fcgi_pool *pool = worker->pool;
	struct fcgi_connection connection = {0};

	FCGX_InitRequest(&connection.fcgi, -1, 0);
	pthread_mutex_lock(&pool->lock);
	while (begin_waiting(worker)) {
		pthread_mutex_unlock(&pool->lock);
		int fd = next_connection(pool);

		pthread_mutex_lock(&pool->lock);
		end_waiting(worker);
		pthread_mutex_unlock(&pool->lock);
		if (fd >= 0)
			serve_connection(pool, &connection, fd);
		pthread_mutex_lock(&pool->lock);
	}
	FCGX_Free(&connection.fcgi, 1);
	leave(worker);
	pthread_mutex_unlock(&pool->lock);
	free(worker);
	return NULL;
}

/* Under the lock. */
static int spawn(struct fcgi_pool *pool, struct err *err)
{
	struct worker *worker = xcalloc(1, sizeof(*worker));

	worker->pool = pool;
	worker->generation = pool->generation;
	int error = server_thread(&worker->thread, true, work, worker);

	if (error != 0) {
		free(worker);
		errno = error;
		return err_errno(err, "starting a thread");
	}
	worker->next = pool->workers;
	pool->workers = worker;
	pool->threads++;
	return 0;
}

void fcgi_cap_descriptors(size_t parked)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || (limit.rlim_cur <= FD_SETSIZE && parked == 0))
		return;
	limit.rlim_cur = MIN(FD_SETSIZE + parked, limit.rlim_max);
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void woken(int signal_number)
{
	(void)signal_number;
}

int fcgi_pool_start(struct server *server, http_handler *handle, int listen_fd, int spare, struct fcgi_pool **ret,
		    struct err *err)
{
	struct fcgi_pool *pool = xcalloc(1, sizeof(*pool));
	const struct sigaction action = {.sa_handler = woken};
	int result = 0;

	sigaction(WAKE_SIGNAL, &action, NULL);
	FCGX_Init();
	*pool = (struct fcgi_pool){
		.server = server, .handle = handle, .listen_fd = listen_fd, .spare = MIN(spare, FCGI_THREADS_MAX)};
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
	pthread_mutex_lock(&pool->lock);
	for (int i = 0; i < pool->spare && result == 0; i++)
		result = spawn(pool, err);
	pthread_mutex_unlock(&pool->lock);
	if (result < 0) {
		fcgi_pool_stop_accepting(pool);
		fcgi_pool_finish(pool, 1);
		return result;
	}
	*ret = pool;
	return 0;
}

static struct timespec after_ms(int64_t ms)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_sec += ms / 1000;
	time.tv_nsec += ms % 1000 * 1000000;
	if (time.tv_nsec >= 1000000000) {
		time.tv_sec++;
		time.tv_nsec -= 1000000000;
	}
	return time;
}

/* Under the lock. */
static int count_older(const struct fcgi_pool *pool)
{
	int count = 0;

	for (const struct worker *worker = pool->workers; worker; worker = worker->next)
		count += !worker->waiting && worker->generation != pool->generation;
	return count;
}

int fcgi_pool_settle(struct fcgi_pool *pool, int seconds)
{
	struct timespec until = after_ms(seconds * 1000LL);
	int result = 0, left;

	pthread_mutex_lock(&pool->lock);
	pool->generation++;
	while ((left = count_older(pool)) > 0 && result != ETIMEDOUT)
		result = pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
	pthread_mutex_unlock(&pool->lock);
	return left;
}

void fcgi_pool_answer_rest(struct fcgi_pool *pool)
{
	struct fcgi_connection connection = {0};
	struct pollfd wait = {.fd = pool->listen_fd, .events = POLLIN};
	int fd;

	FCGX_InitRequest(&connection.fcgi, -1, 0);
	while (poll(&wait, 1, 0) == 1 && (fd = accept4(pool->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		serve_connection(pool, &connection, fd);
	FCGX_Free(&connection.fcgi, 1);
}

void fcgi_pool_stop_accepting(struct fcgi_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->stopping = true;
	while (pool->waiting > 0) {
		struct timespec until = after_ms(WAKE_EVERY_MS);

		for (struct worker *worker = pool->workers; worker; worker = worker->next) {
			if (worker->waiting)
				pthread_kill(worker->thread, WAKE_SIGNAL);
		}
		pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
	}
	pthread_mutex_unlock(&pool->lock);
}

int fcgi_pool_finish(struct fcgi_pool *pool, int seconds)
{
	struct timespec until = after_ms(seconds * 1000LL);
	int result = 0;

	pthread_mutex_lock(&pool->lock);
	while (pool->threads > 0 && result != ETIMEDOUT)
		result = pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
	int left = pool->threads;

	pthread_mutex_unlock(&pool->lock);
	if (left == 0) {
		pthread_cond_destroy(&pool->changed);
		pthread_mutex_destroy(&pool->lock);
		free(pool);
	}
	return left;
}
