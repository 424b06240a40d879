/*
 * cgi.h - one request as a plain CGI program (RFC 3875): variables in the environment, body on standard input.
 *
 * For servers without FastCGI, and for tests. A request is a process, so calls in one conversation are put in order
 * only as far as the database does it, and a client that leaves does not cancel.
 */
#pragma once

#include "cgi/http/server.h"

/* Were we started as a CGI program? */
bool cgi_started(void);
/* Serves the one request; ERR_SYSTEM if the reply could not be written. */
int cgi_serve(struct server *server, struct err *err);
/* The reply when the server could not be set up: 503, the reason goes to the log only. */
void cgi_unavailable(void);
