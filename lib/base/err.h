/*
 * err.h - an error as a value: a code, a text for people, and where it applies the member of the input that is wrong.
 *
 * Every function that can fail returns 0 or a negative code (one of enum err_code, negated) and takes `struct err *` as
 * its last parameter; NULL is allowed where the caller does not care for the text. Output parameters are written only
 * on success. On its way up an error is wrapped: err_wrap(err, "opening the store") turns "no such file" into "opening
 * the store: no such file". One table (err_info) maps codes to JSON-RPC code, HTTP status and exit code.
 */
#pragma once

#include <stdarg.h>

#define ERR_TEXT_SIZE 512
#define ERR_MEMBER_SIZE 96

enum err_code {
	ERR_NONE = 0,
	ERR_INVALID,     /* the input is wrong: the text names the member and what was expected */
	ERR_NOT_FOUND,   /* no such thing, or not the caller's */
	ERR_DENIED,      /* known, and not allowed */
	ERR_CONFLICT,    /* exists already, or changed meanwhile */
	ERR_LIMIT,       /* larger than a limit, or a cap is used up */
	ERR_BUSY,        /* a bounded queue is full: try again later */
	ERR_UNAVAILABLE, /* refused: this host or configuration lacks what was asked for; the text names the remedy */
	ERR_CANCELLED,   /* the caller withdrew it */
	ERR_SYSTEM,      /* a system call failed; the text ends with strerror(errno) */
	ERR_CORRUPT,     /* stored data is not what it must be */
	ERR_INTERNAL,    /* a bug of ours */
	ERR_CODES
};

struct err {
	enum err_code code;
	char text[ERR_TEXT_SIZE];     /* one sentence without a full stop, UTF-8, no newline */
	char member[ERR_MEMBER_SIZE]; /* "files[2].filename"; empty if no single member is at fault */
};

#define ERR_INIT ((struct err){.code = ERR_NONE})

struct err_info {
	const char *name; /* "invalid": stable, for scripts and logs */
	int rpc;          /* JSON-RPC error code */
	int http;         /* HTTP status */
	int exit;         /* exit code of the CLI */
};
const struct err_info *err_info(enum err_code code);

/* Sets code and text (cut on a character's boundary if too long) and returns -code, so: return err_set(err, ERR_…,
 * "…"). */
int err_set(struct err *err, enum err_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* ERR_INVALID about a member: the text becomes "MEMBER: text". */
int err_member(struct err *err, const char *member, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The text without "MEMBER: ", or without the ": " that an item of an array has there. */
const char *err_reason(const struct err *err);
/* ERR_SYSTEM: the text with ": " and strerror(errno) behind it, and the limit to raise where errno is about one.
 * Call it before anything else changes errno, which it keeps. */
int err_errno(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts "context: " in front of the text and returns -code again (-ERR_INTERNAL for err NULL: keep the first function's
 * result then). */
int err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
