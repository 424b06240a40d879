/*
 * server_start.h - sets up and takes down what requests share (cgi/http/server.h): the one place that knows all rooms.
 *
 * A process that stays (the gateway, stdio) sets all of it up before the first request. As a plain CGI program only
 * what the request needs is set up: server_engine starts the engine when the first tool asks for it.
 */
#pragma once

#include "cgi/http/server.h"

#define SERVER_EXPIRE_SECONDS 3600 /* between two server_expire of the thread that server_stay starts */

/* A process that serves HTTP needs a public_base_url. */
int server_check_url(const struct config *config, struct err *err);
/* Opens the store, and what one request needs. */
int server_open(struct server *server, const struct config *config, enum store_mode mode, struct err *err);
/* What a process has besides that serves more than one request: tasks, news of other processes, the engine from the
 * beginning, and a thread that removes what is past its time. */
int server_stay(struct server *server, struct err *err);
/* store_reap and store_expire; notifies the clients whose list has become shorter. */
int server_expire(struct server *server, int64_t now_us, struct err *err);
/* Nobody may use the server any more: drains the jobs and gives everything back. */
void server_close(struct server *server);
