/*
 * fcgi_head.h - is the head of a FastCGI request whole? Asked before libfcgi reads it, which waits for ever and takes
 * any amount.
 *
 * Facts: FastCGI specification 3.3 (records), 6.2 (the parameters end with an empty record of theirs).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define FCGI_HEAD_BYTES   (64 * 1024) /* nginx sends at most large_client_header_buffers and its own parameters */
#define FCGI_HEAD_SECONDS 2           /* it writes them at once, when it has the whole request */

/* Waits until all parameters are in the socket, without taking them out. False: they do not come in time, are too
 * many, their lengths are false, records of another kind or request are among them, or they are no FastCGI. */
bool fcgi_head_wait(int fd);
