/*
 * upstream_redirected.h - what an authorization server says in the address that it sends a browser to (OAuth 2.1,
 * section 4.1.2; RFC 9207).
 */
#pragma once

/* NULL: not there. */
struct upstream_redirected {
	char *code, *state, *iss, *error, *error_description;
};
void upstream_redirected_clear(struct upstream_redirected *answer);
#define auto_redirected __attribute__((cleanup(upstream_redirected_clear)))
/* Of an address, or of its query alone; *ret is zeroed. 0, or -1: one of the above is there twice, or is no text. */
int upstream_redirected_read(const char *text, struct upstream_redirected *ret);
