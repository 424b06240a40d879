/*
 * fcgi.h - requests over FastCGI: a pool of threads on one listening socket.
 *
 * Each thread accepts, serves one request and accepts again. There are always `spare` threads waiting in accept (so
 * that a long run never keeps a ping waiting), at most FCGI_THREADS_MAX in all; a thread that finds FCGI_SPARE_FACTOR
 * times as many others waiting ends: if it were as many, clients that are about as many as the spare threads would make
 * and end threads all the time.
 */
#pragma once

#include "http.h"
#include "server.h"

/* libfcgi looks at a new connection with select(2), whose sets end at descriptor 1023: this many threads stay well
 * below. */
#define FCGI_THREADS_MAX 256

#define FCGI_SPARE_FACTOR 2
#define FCGI_LARGE_BYTES  (1024 * 1024) /* of body and reply: memory goes back to the system behind it */

struct fcgi_pool;
/* A descriptor beyond libfcgi's select(2) must not come into being: better no descriptor than a broken stack. Called
 * with 0 before descriptors are divided up and the pool is started; afterwards with how many requests may be parked,
 * which are moved beyond them. */
void fcgi_cap_descriptors(size_t parked);
/* Serves `listen_fd` (stays the caller's) by `handle` on threads of its own. Signals must be blocked in the caller. */
int fcgi_pool_start(struct server *server, http_handler *handle, int listen_fd, int spare, struct fcgi_pool **ret,
		    struct err *err);
/* Waits for the requests that are being answered now, at most this long; returns how many are left. New ones are
 * accepted meanwhile. */
int fcgi_pool_settle(struct fcgi_pool *pool, int seconds);
/* No new requests from now on; returns when no thread is in accept any more. */
void fcgi_pool_stop_accepting(struct fcgi_pool *pool);
/* Behind it: answers what still waits on the socket. */
void fcgi_pool_answer_rest(struct fcgi_pool *pool);
/* Waits for the requests that are under way, at most this long; returns how many are left. Frees the pool if none is.
 */
int fcgi_pool_finish(struct fcgi_pool *pool, int seconds);

/* -------- fcgi_head.c: is the head of a request whole? ------------------------------------------------ */

#define FCGI_HEAD_BYTES   (64 * 1024) /* nginx sends at most large_client_header_buffers and its own parameters */
#define FCGI_HEAD_SECONDS 2           /* it writes them at once, when it has the whole request */

/* Asked before libfcgi reads it, which waits for ever and takes any amount. Waits until all parameters are in the
 * socket, without taking them out. False: they do not come in time, are too
 * many, their lengths are false, records of another kind or request are among them, or they are no FastCGI. */
bool fcgi_head_wait(int fd);
