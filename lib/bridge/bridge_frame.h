/*
 * bridge_frame.h - what a program in a jail and the bridge say to each other, as bytes.
 *
 * A frame is four bytes, its length (big-endian), and that many bytes of JSON: one object. The socket is JAIL_SOCKET;
 * each process that wants to call makes connections of its own. From the program:
 *
 *     {"id":1,"op":"call","server":"github","tool":"list_issues","arguments":{…},"timeout":30}
 *     {"id":2,"op":"search","query":"…","limit":10,"detail":"names|summary|full","server":"github"}
 *     {"id":3,"op":"describe","server":"github","tool":"list_issues","detail":…}     without tool: all of the server
 *     {"id":4,"op":"servers"}      {"id":5,"op":"read","server":"github","uri":"…"} {"id":6,"op":"cancel","call":1}
 *
 * and to it, in any order:
 *
 *     {"id":1,"ok":true,"wrap":false,"result":…}                       of a call: bytes as the server sent them
 *     {"id":1,"ok":false,"error":{"kind":"tool","server":…,"tool":…,"text":…,"signature":…}}
 *     {"error":{"kind":"protocol","text":…}}                           the last frame: the connection ends
 *
 * Ids are integers of a connection, each used once. Whatever a program sends is a request of its run, nothing more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/json.h"

#define BRIDGE_HEAD     4
#define BRIDGE_NAME_MAX 256 /* bytes of a server's or tool's name, or of a query */
#define BRIDGE_URI_MAX  2048

enum bridge_op { BRIDGE_CALL, BRIDGE_SEARCH, BRIDGE_DESCRIBE, BRIDGE_SERVERS, BRIDGE_READ, BRIDGE_CANCEL };

struct bridge_frame {
	int64_t id;
	enum bridge_op op;
	const char *server, *tool, *query, *uri, *detail; /* into `object`; NULL: not given */
	int64_t limit, call;
	double timeout;        /* seconds, 0: not given */
	const char *arguments; /* into the bytes that were parsed; NULL: none */
	size_t length;
	struct json_object *values; /* the same, parsed */
	struct json_object *object;
};
/* The JSON of one frame. `bytes` must live as long as *ret. ERR_INVALID; ret->id is set as soon as it is known (else
 * -1), so that the answer can name it. */
int bridge_frame_parse(const char *bytes, size_t length, struct bridge_frame *ret, struct err *err);
void bridge_frame_clear(struct bridge_frame *frame);

/* The length in front: room is kept by _begin, and filled in by _end. */
void bridge_frame_begin(struct buf *out);
void bridge_frame_end(struct buf *out);
uint32_t bridge_frame_length(const unsigned char head[BRIDGE_HEAD]);

struct bridge_failure {
	const char *kind, *server, *tool; /* server, tool NULL: none */
	const char *text, *signature;     /* signature NULL: none */
	const char *result;               /* of a tool that said that it failed; NULL: none */
	size_t length;
};
void bridge_frame_failure(struct buf *out, int64_t id, const struct bridge_failure *failure); /* id < 0: none */
void bridge_frame_result(struct buf *out, int64_t id, bool wrap, const char *result, size_t length);
