/*
 * last.c - see last.h.
 *
 * One pass over the tokens. At the depth of the program itself a statement begins behind a semicolon, and on a new line
 * where the line before may end and this one cannot go on with it. What is known of the newest statement is kept, and
 * asked when the text is over. Names that the program declares are collected on the way.
 */
#include "last.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "last_token.h"
#include "lib/base/util.h"

#define NAMES_MAX      256
#define SEMICOLONS_MAX 8
#define DIGITS         "0123456789"

/* A statement may go on behind them on the next line, though they look like a value. */
static const char open_words[] = "abstract accessor as async declare from get global infer interface is keyof module "
				 "namespace of override private protected public readonly set static type unique using";
/* With them bun may take the program for CommonJS (and show.cjs decides); it looks at its own text, has streams of its
 * own, or values that nobody can look through. */
static const char own_ways[] = "require module exports __filename __dirname meta stdout Proxy";
static const char tails_names[] = "Object Array Reflect Symbol Bun"; /* it has these of the engine, and console */
static const char *const own_text[] = {"main.ts", "/code", "argv[1]", "Bun.main"};
static const char constants[] = "true false null undefined NaN Infinity";
static const char declaring[] = "const let var class function";

/* const NAME = (…) =>, with a type before the arrow or without; or = NAME =>; or = function. */
enum arrow { ARROW_NONE, ARROW_NAME, ARROW_BEGUN, ARROW_INSIDE, ARROW_PARAMETERS, ARROW_TYPE };

struct name {
	const char *begin;
	size_t length;
	bool function; /* of the program: what a call of it throws was thrown inside */
};

struct scan {
	struct token_reader reader;
	struct token first; /* of the newest statement; none: there is no statement */
	struct token newest;
	bool closed; /* a semicolon is behind it */
	bool unsure; /* where it begins */
	bool loose;  /* since its last comma: not all of it is what instanceof would be given */
	bool odd;    /* no expression */
	bool fails;  /* an error may name one of its lines */
	const char *semicolons[SEMICOLONS_MAX];
	size_t n_semicolons;
	enum arrow arrow;
	struct name names[NAMES_MAX];
	size_t n_names;
};

static struct name *find(struct scan *scan, const struct token *token)
{
	for (size_t i = 0; i < scan->n_names; i++)
		if (scan->names[i].length == token->length &&
		    strncmp(scan->names[i].begin, token->begin, token->length) == 0)
			return &scan->names[i];
	return NULL;
}

static bool opens(const struct token *token, const char *brackets)
{
	return token->kind == TOKEN_OPEN && strchr(brackets, *token->begin);
}

/* Does the program give this name to something else, as far as can be seen? */
static bool takes_name(const struct token_reader *reader)
{
	const struct token *before = &reader->before;

	if (before->kind == TOKEN_DOT)
		return false;
	if (before->kind == TOKEN_KEYWORD && token_among(before, declaring))
		return true;
	return !*reader->at || !strchr(".(<[", *reader->at);
}

/* May what it has of its own change how its value is shown? */
static bool has_own_ways(const struct token_reader *reader)
{
	const struct token *token = &reader->last;

	if (token->kind != TOKEN_NAME)
		return false;
	if (token_among(token, own_ways))
		return true;
	if (token_among(token, tails_names))
		return takes_name(reader);
	if (!token_is(token, "console"))
		return false;
	const char *at = reader->at; /* something else than console.NAME( may be an assignment */
	return *at != '.' || at[1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyzE")] != '(';
}

static bool goes_on(const struct token *token)
{
	switch (token->kind) {
	case TOKEN_OPEN:
		return opens(token, "([`");
	case TOKEN_LITERAL:
		return *token->begin == '`';
	case TOKEN_CLOSE:
	case TOKEN_COMMA:
	case TOKEN_DOT:
	case TOKEN_SIGN:
	case TOKEN_OPERATOR:
	case TOKEN_LOOSE:
	case TOKEN_BETWEEN:
		return true;
	default:
		return false;
	}
}

/* Does a statement begin with this token, which is in no bracket? */
static bool begins(struct scan *scan, const struct token *token, const struct token *before)
{
	if (!scan->first.begin || scan->closed)
		return true;
	if (!token->line || !before->value)
		return false;
	if (goes_on(token)) {
		/* Not behind a block. */
		scan->unsure |= token->kind != TOKEN_CLOSE && before->kind == TOKEN_CLOSE && *before->begin == '}';
		return false;
	}
	if (before->kind == TOKEN_NAME && token_among(before, open_words)) {
		scan->unsure = true;
		return false;
	}
	return true;
}

static void begin(struct scan *scan, const struct token *token)
{
	scan->first = *token;
	scan->closed = scan->unsure = scan->loose = scan->odd = scan->fails = false;
	scan->n_semicolons = 0;
	scan->arrow = ARROW_NONE;
}

static bool is_plain_number(const struct token *token)
{
	size_t length = strspn(token->begin, DIGITS);

	if (length > 1 && *token->begin == '0')
		return false;
	if (token->begin[length] == '.')
		length += 1 + strspn(token->begin + length + 1, DIGITS);
	return length == token->length;
}

static bool is_plain_literal(const struct token *token)
{
	return strchr(DIGITS, *token->begin)
		       ? is_plain_number(token)
		       : strchr("'\"`", *token->begin) && !memchr(token->begin, '\\', token->length);
}

static bool is_safe_name(struct scan *scan, const struct token *token, const struct token *before, bool first)
{
	const struct name *name = find(scan, token);

	if (!first && before->kind == TOKEN_PREFIX) /* what is awaited is a call, too */
		return name && name->function;
	return (first || !before->value) && (name || token_among(token, constants));
}

/* With this token the newest statement is still one that cannot fail, but inside of a function that it calls. */
static bool is_safe(struct scan *scan, const struct token *token, const struct token *before, bool first)
{
	const bool value = !first && before->value;
	const struct name *called = value ? find(scan, before) : NULL;

	switch (token->kind) {
	case TOKEN_NAME:
		return is_safe_name(scan, token, before, first);
	case TOKEN_PREFIX:
		return first && token_is(token, "await");
	case TOKEN_LITERAL:
		return !value && is_plain_literal(token);
	case TOKEN_COMMA:
		return token->depth > 0 && value;
	case TOKEN_OPEN:
		return opens(token, "[") ? !value
					 : opens(token, "(") && token->depth == 0 && called && called->function;
	case TOKEN_CLOSE:
		return *token->begin != '}';
	default:
		return false;
	}
}

static void note_arrow(struct scan *scan, const struct token *token)
{
	struct name *name = scan->arrow == ARROW_NONE ? NULL : &scan->names[scan->n_names - 1];

	switch (scan->arrow) {
	case ARROW_NONE:
		return;
	case ARROW_NAME:
		scan->arrow = token_is(token, "=") ? ARROW_BEGUN : ARROW_NONE;
		return;
	case ARROW_BEGUN:
		if (token_is(token, "async"))
			return;
		name->function = token_is(token, "function");
		scan->arrow = opens(token, "(")           ? ARROW_INSIDE
			      : token->kind == TOKEN_NAME ? ARROW_PARAMETERS
							  : ARROW_NONE;
		return;
	case ARROW_INSIDE:
		scan->arrow = ARROW_PARAMETERS;
		return;
	case ARROW_PARAMETERS:
		name->function = token_is(token, "=>");
		scan->arrow = token_is(token, ":") ? ARROW_TYPE : ARROW_NONE;
		return;
	case ARROW_TYPE:
		name->function = token_is(token, "=>");
		if (name->function || token_is(token, "=") || token_is(token, "?"))
			scan->arrow = ARROW_NONE;
		return;
	}
}

/* Of tokens in no bracket: is it a declaration's name? */
static void note_name(struct scan *scan, const struct token *token, const struct token *before)
{
	note_arrow(scan, token);
	if (before->kind != TOKEN_KEYWORD || !token_among(before, declaring) || token->kind != TOKEN_NAME ||
	    scan->n_names == NAMES_MAX)
		return;
	if (scan->first.kind != TOKEN_KEYWORD && !token_is(&scan->first, "async")) /* declare const … */
		return;
	scan->names[scan->n_names++] = (struct name){token->begin, token->length, token_is(before, "function")};
	scan->arrow = token_is(before, "const") ? ARROW_NAME : ARROW_NONE;
}

static bool begins_value(const struct token *token)
{
	switch (token->kind) {
	case TOKEN_NAME:
	case TOKEN_KEYWORD:
	case TOKEN_PREFIX:
	case TOKEN_SPREAD:
		return true;
	case TOKEN_LITERAL:
		return *token->begin != '`';
	case TOKEN_OPEN:
		return *token->begin == '{';
	case TOKEN_NOT:
		return !token->value;
	default:
		return false;
	}
}

/* May a value not come before it? */
static bool needs_none(const struct scan *scan, const struct token *token, const struct token *before)
{
	const struct token_reader *reader = &scan->reader;

	switch (token->kind) {
	case TOKEN_CLOSE: /* the bracket that was closed lies at the depth now; elsewhere that place may be none */
		return before->kind == TOKEN_OPEN || before->kind == TOKEN_SEMICOLON ||
		       (before->kind == TOKEN_COMMA &&
			(*token->begin != ')' || reader->brackets[reader->depth].value));
	case TOKEN_SEMICOLON:
		return before->kind == TOKEN_SEMICOLON || before->kind == TOKEN_KEYWORD;
	case TOKEN_DOT:
		return before->kind == TOKEN_KEYWORD;
	case TOKEN_LOOSE:
		return token_is(token, "=>") && before->kind == TOKEN_CLOSE;
	case TOKEN_MIDDLE:
	case TOKEN_COMMA:
	case TOKEN_OPERATOR:
	case TOKEN_BETWEEN:
		return false;
	default:
		return true;
	}
}

/* May a value begin on its own behind another one: does a statement begin there? */
static bool begins_statement(const struct token_reader *reader, const struct token *token, const struct token *before)
{
	const bool braces = token->depth > 0 && reader->brackets[token->depth - 1].open == '{';

	if (opens(token, "{") && before->kind == TOKEN_CLOSE)
		return braces; /* of a method, or behind a block */
	return braces && reader->brackets[token->depth - 1].block &&
	       (token->line || (before->kind == TOKEN_CLOSE && *before->begin == '}'));
}

/* Is it a declaration, or a mistake (behind which the engine would go on, and name the tail, too)? Values and operators
 * take turns in an expression. */
static bool is_odd(const struct scan *scan, const struct token *token, const struct token *before)
{
	const struct token_reader *reader = &scan->reader;

	if (token->kind == TOKEN_OTHER || (token->kind == TOKEN_SPREAD && token->depth == 0))
		return true;
	if (before->kind == TOKEN_DOT)
		return token->kind != TOKEN_NAME && !opens(token, "([`") && *token->begin != '`';
	if (!before->value)
		return !needs_none(scan, token, before);
	if (token->kind == TOKEN_SEMICOLON && token->depth > 0)
		return !reader->brackets[token->depth - 1].block && !reader->brackets[token->depth - 1].head;
	return begins_value(token) && !begins_statement(reader, token, before);
}

static void note(struct scan *scan, const struct token *token, const struct token *before)
{
	const bool first = token->begin == scan->first.begin;
	struct name *assigned = token_is(token, "=") && scan->arrow != ARROW_NAME ? find(scan, before) : NULL;

	if (assigned)
		assigned->function = false;
	scan->odd = scan->odd || (!first && is_odd(scan, token, before));
	scan->fails = scan->fails || !is_safe(scan, token, before, first);
	scan->newest = *token;
	if (token->depth > 0)
		return;
	if (token->kind == TOKEN_LOOSE)
		scan->loose = true;
	if (token->kind == TOKEN_COMMA)
		scan->loose = false;
	if (first)
		return;
	note_name(scan, token, before);
}

static bool ends_in_expression(const struct scan *scan)
{
	const struct token *first = &scan->first, *newest = &scan->newest;

	if (!first->begin || scan->unsure || scan->loose || scan->odd || (scan->closed && scan->fails))
		return false;
	if (!newest->value || (newest->kind == TOKEN_CLOSE && newest->length == 1 && *newest->begin == '}'))
		return false;
	switch (first->kind) {
	case TOKEN_NAME:
		return !token_among(first, open_words);
	case TOKEN_OPEN:
		return opens(first, "([`");
	case TOKEN_LITERAL:
	case TOKEN_PREFIX:
	case TOKEN_STEP:
	case TOKEN_SIGN:
	case TOKEN_NOT:
		return true;
	default:
		return false;
	}
}

/* A mistake that makes the engine misread what follows, also where it stands in an earlier statement. */
static bool is_wrong(const struct token_reader *reader)
{
	const size_t depth = reader->last.depth;

	return depth > 0 && reader->brackets[depth - 1].head && reader->before.value && begins_value(&reader->last);
}

static bool read_program(struct scan *scan)
{
	struct token_reader *reader = &scan->reader;

	while (token_next(reader)) {
		const struct token *token = &reader->last;

		if (has_own_ways(reader) || is_wrong(reader))
			return false;
		if (token->kind == TOKEN_SEMICOLON && token->depth == 0) {
			scan->closed = true;
			if (scan->n_semicolons == SEMICOLONS_MAX)
				return false;
			scan->semicolons[scan->n_semicolons++] = token->begin;
			continue;
		}
		if (token->depth == 0 && begins(scan, token, &reader->before))
			begin(scan, token);
		note(scan, token, &reader->before);
	}
	return !reader->broken && reader->depth == 0;
}

bool last_open(const char *text, size_t length, struct buf *ret)
{
	struct scan scan = {.closed = false};

	for (size_t i = 0; i < ARRAY_SIZE(own_text); i++)
		if (strstr(text, own_text[i]))
			return false;
	token_begin(&scan.reader, text, length);
	if (!read_program(&scan) || !ends_in_expression(&scan))
		return false;
	const char *from = text;
	for (size_t i = 0; i < scan.n_semicolons; i++) {
		buf_add(ret, from, (size_t)(scan.semicolons[i] - from));
		buf_putc(ret, ' ');
		from = scan.semicolons[i] + 1;
	}
	buf_add(ret, from, (size_t)(text + length - from));
	return true;
}

/* All that it holds, with a NUL behind it; NULL: it is too long. */
static char *text_of(int fd, size_t *ret_length)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || st.st_size > LAST_TEXT_MAX)
		return NULL;
	auto_free char *text = xcalloc(1, (size_t)st.st_size + 1);
	if (pread(fd, text, (size_t)st.st_size, 0) != st.st_size)
		return NULL;
	*ret_length = (size_t)st.st_size;
	return steal(&text);
}

int last_file(int code, int tail)
{
	size_t length, of_tail;
	auto_free char *text = text_of(code, &length), *behind = text_of(tail, &of_tail);
	auto_buf struct buf open = {0};

	buf_init(&open, SIZE_MAX);
	if (!text || !behind || !last_open(text, length, &open))
		return -1;
	const char *code_of_tail = behind; /* comments would be read again in each run */
	while (str_starts(code_of_tail, "//"))
		code_of_tail += strcspn(code_of_tail, "\n") + (strchr(code_of_tail, '\n') != NULL);
	buf_puts(&open, "\ninstanceof\n");
	buf_add(&open, code_of_tail, of_tail - (size_t)(code_of_tail - behind));
	return memfd_with("code", open.data, open.length);
}
