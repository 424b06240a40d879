/*
 * last_token.h - cuts a program in TypeScript into tokens, as far as last.c has to know them.
 *
 * Strings, comments, templates and regular expressions are skipped; brackets are matched. What cannot be told without
 * a parser, or is rare (characters beyond ASCII in names, a slash behind a block), ends the reading: `broken`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TOKEN_DEPTH_MAX 64

enum token_kind {
	TOKEN_END,
	TOKEN_NAME,    /* also this, null, true, false; whatever stands behind a dot */
	TOKEN_KEYWORD, /* begins or belongs to a statement, or to a function or class */
	TOKEN_PREFIX,  /* await, typeof, void, delete, new */
	TOKEN_BETWEEN, /* in, instanceof, as, satisfies, of */
	TOKEN_LITERAL, /* number, string, template, regular expression */
	TOKEN_OPEN,    /* a bracket, or a template up to its first ${ */
	TOKEN_CLOSE,   /* its end */
	TOKEN_MIDDLE,  /* of a template: from } to the next ${ */
	TOKEN_SEMICOLON,
	TOKEN_COMMA,
	TOKEN_DOT,      /* . ?. */
	TOKEN_STEP,     /* ++ -- */
	TOKEN_SIGN,     /* + - */
	TOKEN_NOT,      /* ! ~ */
	TOKEN_OPERATOR, /* that binds as much as instanceof, or more */
	TOKEN_LOOSE,    /* that binds less */
	TOKEN_SPREAD,   /* ... */
	TOKEN_OTHER,
};

struct token {
	enum token_kind kind;
	const char *begin;
	size_t length;
	bool line;    /* the first of its line */
	bool value;   /* a value ends with it: what follows is an operator, or another statement */
	size_t depth; /* of brackets around it */
};

struct token_reader {
	const char *at, *end;      /* a NUL is at the end */
	struct token last, before; /* the newest token, and the one before it */
	struct {
		char open;  /* '`' for ${ */
		bool head;  /* of if, for, while, function …: no value ends with it */
		bool value; /* one ended before it: it is a call's, or an index */
		bool block; /* statements stand in it */
		bool body;  /* of function, catch, switch: a body follows */
	} brackets[TOKEN_DEPTH_MAX];
	size_t depth;
	bool broken;
};

void token_begin(struct token_reader *reader, const char *text, size_t length);
/* The next token is reader->last; false: there is none, or the reading is broken. */
bool token_next(struct token_reader *reader);
bool token_is(const struct token *token, const char *text);
bool token_among(const struct token *token, const char *among); /* words with a blank between them */
