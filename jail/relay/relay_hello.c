/*
 * relay_hello.c - see relay_hello.h.
 *
 * A ClientHello is read in three steps: what the connection begins with (read_first, read_ssl2), the message out of its
 * records (relay_hello_parse), the name out of the message (read_hello and below). They are as strict as can be:
 * several servers take more than the standards allow, each something else, and a reader that takes less than all of
 * them is not talked into another name. Of a server's answer only one thing is wanted, so its ServerHello is looked
 * for, wherever it begins. Every read is bounded by `struct bytes`: what is taken from it is within it.
 */
#include "relay_hello.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/util.h"

enum {
	RECORD_HEAD = 5,
	RECORD_MAX = 16384,
	RECORD_FIRST = 20, /* the kinds of records: ChangeCipherSpec … */
	RECORD_HANDSHAKE = 22,
	RECORD_LAST = 24, /* … heartbeat */
	RECORD_SHORT = 2, /* as long as an alert */
	MESSAGE_HEAD = 4,
	MESSAGE_CLIENT_HELLO = 1,
	MESSAGE_SERVER_HELLO = 2,
	VERSION_MAJOR = 3, /* SSL 3.0 and all of TLS */
	VERSION_END = 16,
	HELLO_FIXED = 34, /* version and random */
	EXTENSION_SERVER_NAME = 0,
	EXTENSION_ECH = 0xfe0d,
	NAME_HOST = 0,
	SSL2_HEAD = 5,
	SSL2_LONG = 0x80, /* a length of two bytes follows */
};

struct bytes {
	const uint8_t *at;
	size_t left;
};

static bool take(struct bytes *from, size_t n, struct bytes *ret)
{
	if (n > from->left)
		return false;
	*ret = (struct bytes){from->at, n};
	from->at += n;
	from->left -= n;
	return true;
}

static size_t number(const uint8_t *at, size_t width)
{
	size_t value = 0;

	for (size_t i = 0; i < width; i++)
		value = value << 8 | at[i];
	return value;
}

/* What a length of `width` bytes precedes. */
static bool take_vector(struct bytes *from, size_t width, struct bytes *ret)
{
	struct bytes length;

	return take(from, width, &length) && take(from, number(length.at, width), ret);
}

/* RFC 6066 3: one name; other kinds of names were never defined. */
static bool read_server_name(struct bytes body, char host[HOST_SIZE])
{
	struct bytes list, kind, name;

	if (!take_vector(&body, 2, &list) || body.left || !take(&list, 1, &kind) || kind.at[0] != NAME_HOST ||
	    !take_vector(&list, 2, &name) || list.left || !name.left)
		return false;
	if (host_normalise((const char *)name.at, name.left, host) < 0)
		host[0] = '\0';
	return true;
}

static enum relay_hello read_extensions(struct bytes list, char ret_host[HOST_SIZE])
{
	char host[HOST_SIZE];
	bool named = false;

	while (list.left) {
		struct bytes type, body;

		if (!take(&list, 2, &type) || !take_vector(&list, 2, &body))
			return RELAY_HELLO_UNREADABLE;
		if (number(type.at, 2) == EXTENSION_ECH)
			return RELAY_HELLO_UNREADABLE;
		if (number(type.at, 2) != EXTENSION_SERVER_NAME)
			continue;
		if (named || !read_server_name(body, host))
			return RELAY_HELLO_UNREADABLE;
		named = true;
	}
	if (!named)
		return RELAY_HELLO_NAMELESS;
	memcpy(ret_host, host, strlen(host) + 1);
	return RELAY_HELLO_NAMED;
}

static enum relay_hello read_hello(struct bytes hello, char ret_host[HOST_SIZE])
{
	struct bytes fixed, session, ciphers, compression, extensions;

	if (!take(&hello, HELLO_FIXED, &fixed) || !take_vector(&hello, 1, &session) ||
	    !take_vector(&hello, 2, &ciphers) || !take_vector(&hello, 1, &compression))
		return RELAY_HELLO_UNREADABLE;
	if (!hello.left)
		return RELAY_HELLO_NAMELESS;
	if (!take_vector(&hello, 2, &extensions) || hello.left)
		return RELAY_HELLO_UNREADABLE;
	return read_extensions(extensions, ret_host);
}

/*
 * What comes first may be more than a hello in an honest record. The version must be ignored (RFC 8446 5.1),
 * and Go's servers take every one below 16.0; they drop warnings that come before the hello, OpenSSL an empty
 * ChangeCipherSpec. NAMED: it is such a record.
 */
static enum relay_hello read_first(struct bytes from)
{
	struct bytes head;

	if ((from.left > 0 && (from.at[0] < RECORD_FIRST || from.at[0] > RECORD_LAST)) ||
	    (from.left > 1 && from.at[1] >= VERSION_END))
		return RELAY_HELLO_NONE;
	if (from.left > 1 && from.at[0] == RECORD_HANDSHAKE && from.at[1] == VERSION_MAJOR)
		return RELAY_HELLO_NAMED;
	if (!take(&from, RECORD_HEAD, &head))
		return RELAY_HELLO_MORE;
	size_t length = number(head.at + 3, 2);
	if (head.at[0] != RECORD_HANDSHAKE || length == 0)
		return length <= RECORD_SHORT ? RELAY_HELLO_UNREADABLE : RELAY_HELLO_NONE;
	if (!from.left)
		return RELAY_HELLO_MORE;
	return from.at[0] == MESSAGE_CLIENT_HELLO ? RELAY_HELLO_UNREADABLE : RELAY_HELLO_NONE;
}

/* The head of a record; its body may be there in part. */
static enum relay_hello read_record(struct bytes *from, size_t *ret_length)
{
	struct bytes head;

	if ((from->left > 0 && from->at[0] != RECORD_HANDSHAKE) || (from->left > 1 && from->at[1] != VERSION_MAJOR))
		return RELAY_HELLO_UNREADABLE;
	if (!take(from, RECORD_HEAD, &head))
		return RELAY_HELLO_MORE;
	*ret_length = number(head.at + 3, 2);
	return *ret_length > 0 && *ret_length <= RECORD_MAX ? RELAY_HELLO_NAMED : RELAY_HELLO_UNREADABLE;
}

/* With SSL 2's message around it: length, 1 for the hello, version 3.x. */
static enum relay_hello read_ssl2(struct bytes from)
{
	if ((from.left > 0 && !(from.at[0] & SSL2_LONG)) || (from.left > 2 && from.at[2] != MESSAGE_CLIENT_HELLO) ||
	    (from.left > 3 && from.at[3] != VERSION_MAJOR))
		return RELAY_HELLO_NONE;
	return from.left < SSL2_HEAD ? RELAY_HELLO_MORE : RELAY_HELLO_NAMELESS;
}

enum relay_hello relay_hello_parse(const void *data, size_t length, char ret_host[HOST_SIZE], size_t *ret_end)
{
	uint8_t message[RELAY_HELLO_MAX]; /* without the records' heads */
	struct bytes from = {data, MIN(length, (size_t)RELAY_HELLO_MAX)};
	enum relay_hello ssl2 = read_ssl2(from), first = read_first(from);
	size_t n = 0, needed = MESSAGE_HEAD, record = 0;

	if (ssl2 == RELAY_HELLO_NAMELESS)
		*ret_end = 0;
	if (ssl2 != RELAY_HELLO_NONE)
		return ssl2;
	if (first != RELAY_HELLO_NAMED)
		return first;
	while (n < needed) {
		struct bytes body;
		enum relay_hello head = read_record(&from, &record);

		if (head != RELAY_HELLO_NAMED)
			return head;
		bool whole = from.left >= record;
		take(&from, MIN(from.left, record), &body);
		memcpy(message + n, body.at, body.left);
		n += body.left;
		if (n > 0 && message[0] != MESSAGE_CLIENT_HELLO)
			return RELAY_HELLO_UNREADABLE;
		if (n >= MESSAGE_HEAD)
			needed = MESSAGE_HEAD + number(message + 1, 3);
		/* Nothing follows it in its last record. */
		if (needed > RELAY_HELLO_MAX || (n >= MESSAGE_HEAD && n - body.left + record > needed))
			return RELAY_HELLO_UNREADABLE;
		if (!whole)
			return RELAY_HELLO_MORE;
	}
	enum relay_hello found = read_hello((struct bytes){message + MESSAGE_HEAD, needed - MESSAGE_HEAD}, ret_host);
	if (found != RELAY_HELLO_UNREADABLE)
		*ret_end = (size_t)(from.at - (const uint8_t *)data);
	return found;
}

/* A ServerHello's fixed beginning is in one record: servers that make records smaller do not make them as small as
 * that. */
enum relay_reply relay_hello_reply(const void *data, size_t length)
{
	/* SHA-256 of "HelloRetryRequest", in the place of the random */
	static const uint8_t again[] = {
		0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
		0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
	};
	struct bytes from = {data, MIN(length, (size_t)RELAY_REPLY_MAX)};

	for (; from.left > 0; from.at++, from.left--) {
		struct bytes rest = from, head, message, version, random;

		if (!take(&rest, RECORD_HEAD, &head) || !take(&rest, MESSAGE_HEAD, &message) ||
		    !take(&rest, 2, &version) || !take(&rest, sizeof(again), &random))
			break;
		if (head.at[0] == RECORD_HANDSHAKE && head.at[1] == VERSION_MAJOR &&
		    message.at[0] == MESSAGE_SERVER_HELLO && message.at[1] == 0 && version.at[0] == VERSION_MAJOR)
			return memcmp(random.at, again, sizeof(again)) == 0 ? RELAY_REPLY_AGAIN : RELAY_REPLY_HELLO;
	}
	return RELAY_REPLY_MORE;
}
