/*
 * relay_inside.c - whom the guest's bytes name; see relay_inside.h.
 *
 * At the beginning of a connection, TLS is tried first (relay_hello.c), behind PostgreSQL's request for it; what is no
 * ClientHello is looked at as text. Whether text is HTTP is judged as the most lenient server would, what it says
 * strictly: a server must not find another name there than we did.
 */
#include "relay_inside.h"

#include <string.h>
#include <strings.h>

#include "lib/base/util.h"
#include "relay_hello.h"
#include "relay_http.h"

static const char blanks[] = "\r\n \t", separators[] = " \t\v\f\r";

/* PostgreSQL's SSLRequest and GSSENCRequest: length 8, then the number of one. The server answers with a letter before
 * anything follows. */
static size_t postgres_requests(const char *data, size_t length)
{
	static const char start[] = {0, 0, 0, 8, 0x04, (char)0xd2, 0x16};
	size_t n = 0;

	while (length - n > sizeof(start) && memcmp(data + n, start, sizeof(start)) == 0 &&
	       (data[n + 7] == 0x2f || data[n + 7] == 0x30))
		n += sizeof(start) + 1;
	size_t rest = MIN(length - n, sizeof(start));
	return memcmp(data + n, start, rest) == 0 ? n + rest : n;
}

/* What a client may send before its second ClientHello: ChangeCipherSpec (RFC 8446 D.4); or an alert, and no hello at
 * all. */
static size_t small_records(const char *data, size_t length)
{
	static const char heads[][5] = {{20, 3, 3, 0, 1}, {21, 3, 3, 0, 2}};
	size_t n = 0, i;

	for (;;) {
		size_t rest = MIN(length - n, sizeof(heads[0]));

		for (i = 0; i < ARRAY_SIZE(heads) && memcmp(data + n, heads[i], rest) != 0; i++)
			;
		if (i == ARRAY_SIZE(heads))
			return n;
		size_t record = sizeof(heads[0]) + (size_t)heads[i][4];
		if (length - n < record)
			return length;
		n += record;
	}
}

/* `end` 0: it is in the format of SSL 2, which is nothing that a server could ask for again. */
static enum relay_inside look_at_tls(const struct relay_inside_rule *rule, enum relay_hello hello, const char *name,
				     size_t end)
{
	bool second = rule->place == RELAY_PLACE_SECOND;

	switch (hello) {
	case RELAY_HELLO_MORE:
		return RELAY_INSIDE_MORE;
	case RELAY_HELLO_NAMED:
		if (!streq(name, rule->host))
			return RELAY_INSIDE_ANOTHER;
		break;
	case RELAY_HELLO_NAMELESS:
		if (rule->named)
			return RELAY_INSIDE_NAMELESS;
		break;
	default:
		return RELAY_INSIDE_UNREADABLE;
	}
	if (second)
		return end ? RELAY_INSIDE_FINE : RELAY_INSIDE_UNREADABLE;
	return end ? RELAY_INSIDE_HELLO : RELAY_INSIDE_FINE;
}

static size_t word_length(const char *text, size_t length)
{
	size_t word = 0;

	while (word < length && relay_http_token(text + word, 1))
		word++;
	return word;
}

/* The beginning of the first line that is not empty: a method and a blank, or not yet. */
static bool like_request(const char *line, size_t length)
{
	size_t word = word_length(line, length);

	return word == length || (word > 0 && memchr(separators, line[word], strlen(separators)));
}

/* There may be NULs in it. Node's servers take RTSP and ICE for HTTP, too. */
static bool says_http(const char *line, const char *end)
{
	static const char *const names[] = {"HTTP/", "RTSP/", "ICE/"};

	for (; line < end; line++)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			size_t length = strlen(names[i]);

			if ((size_t)(end - line) >= length && strncasecmp(line, names[i], length) == 0)
				return true;
		}
	return false;
}

/* The PROXY protocol: behind it comes what some servers take for the beginning. It is for proxies, no program has a use
 * for it. */
static bool says_proxy(const char *data, size_t length, const char *line, const char *end)
{
	static const char version_1[] = "PROXY ", version_2[] = {'\r', '\n', '\r', '\n', '\0'};

	return (length >= sizeof(version_2) && memcmp(data, version_2, sizeof(version_2)) == 0) ||
	       (end && (size_t)(end - line) >= strlen(version_1) && memcmp(line, version_1, strlen(version_1)) == 0);
}

/* How much of a request is passed on before all of its head is there: its first line, up to what the most lenient
 * server takes for its end. */
static size_t first_line(const char *data, const char *line, const char *end)
{
	const char *cr = memchr(line, '\r', (size_t)(end - line));

	return (size_t)((cr && says_http(line, cr) ? cr : end) - data);
}

/* Letters without end are not a request; but a method may be of any length. */
static enum relay_inside look_at_word(const char *data, size_t length, struct buf *forward, size_t *ret_used)
{
	size_t word = word_length(data, length);

	if (word < length && memchr(separators, data[word], strlen(separators)))
		return RELAY_INSIDE_UNREADABLE;
	buf_add(forward, data, length);
	if (word < length)
		return RELAY_INSIDE_FINE;
	*ret_used = length;
	return length > 0 ? RELAY_INSIDE_WORD : RELAY_INSIDE_MORE;
}

/* As much of one word as is looked at: it is not known yet whether it is a method. */
static bool endless_word(const char *line, const char *end, size_t length)
{
	return length == RELAY_INSIDE_MAX && line < end &&
	       word_length(line, (size_t)(end - line)) == (size_t)(end - line);
}

static enum relay_inside look_at_text(const struct relay_inside_rule *rule, const char *data, size_t length,
				      struct buf *forward, size_t *ret_used)
{
	bool again = rule->place == RELAY_PLACE_AGAIN;
	size_t start = 0;

	while (start < length && memchr(blanks, data[start], strlen(blanks)))
		start++;
	const char *line = data + start, *end = memchr(line, '\n', length - start);
	if (says_proxy(data, length, line, end))
		return RELAY_INSIDE_UNREADABLE;
	if (!like_request(line, length - start) || (end && !says_http(line, end))) {
		buf_add(forward, data, length);
		return again ? RELAY_INSIDE_UNREADABLE : RELAY_INSIDE_FINE;
	}
	size_t head = relay_http_head(line, length - start);
	if (!again && endless_word(line, data + length, length)) {
		buf_add(forward, data, length);
		*ret_used = length;
		return RELAY_INSIDE_WORD;
	}
	if (!head) {
		buf_add(forward, data, first_line(data, line, end ? end : data + length));
		return length == RELAY_INSIDE_MAX ? RELAY_INSIDE_UNREADABLE : RELAY_INSIDE_MORE;
	}
	buf_add(forward, data, start);
	switch (relay_http_origin(line, head, rule->host, forward)) {
	case RELAY_ORIGIN_ALONE:
		*ret_used = start + head;
		return RELAY_INSIDE_REQUEST;
	case RELAY_ORIGIN_LAST:
		buf_add(forward, line + head, length - start - head);
		return RELAY_INSIDE_FINE;
	case RELAY_ORIGIN_ANOTHER:
		return RELAY_INSIDE_ANOTHER;
	default:
		return RELAY_INSIDE_UNREADABLE;
	}
}

enum relay_inside relay_inside(const struct relay_inside_rule *rule, const char *data, size_t length,
			       struct buf *forward, size_t *ret_used)
{
	char name[HOST_SIZE];
	size_t end = 0;

	length = MIN(length, (size_t)RELAY_INSIDE_MAX);
	if (rule->place == RELAY_PLACE_WORD)
		return look_at_word(data, length, forward, ret_used);
	if (rule->place == RELAY_PLACE_AGAIN)
		return look_at_text(rule, data, length, forward, ret_used);
	bool second = rule->place == RELAY_PLACE_SECOND;
	size_t before = second ? small_records(data, length) : postgres_requests(data, length);
	if (before == length && length < RELAY_INSIDE_MAX) {
		buf_add(forward, data, length);
		return RELAY_INSIDE_MORE;
	}
	enum relay_hello hello = relay_hello_parse(data + before, length - before, name, &end);
	if (hello == RELAY_HELLO_NONE && !second)
		return look_at_text(rule, data, length, forward, ret_used);
	enum relay_inside found = look_at_tls(rule, hello, name, end);
	if (found == RELAY_INSIDE_MORE && length == RELAY_INSIDE_MAX)
		found = RELAY_INSIDE_UNREADABLE;
	if (found == RELAY_INSIDE_HELLO)
		*ret_used = before + end;
	buf_add(forward, data, found == RELAY_INSIDE_FINE ? length : before + (found == RELAY_INSIDE_HELLO ? end : 0));
	return found;
}
