/*
 * last_token.c - see last_token.h.
 *
 * What a slash or a brace means depends on what stands before it, so the newest two tokens are kept, and of each open
 * bracket what stood before that. Words are looked up in one table; operators in another, the longest first.
 */
#include "last_token.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$#"
#define DIGITS          "0123456789"
#define OPENING         "([{"
#define CLOSING         ")]}"

struct word {
	const char *text;
	enum token_kind kind;
};
/* In the order of strcmp. */
static const struct word words[] = {
	{"as", TOKEN_BETWEEN},        {"await", TOKEN_PREFIX},       {"break", TOKEN_KEYWORD},
	{"case", TOKEN_KEYWORD},      {"catch", TOKEN_KEYWORD},      {"class", TOKEN_KEYWORD},
	{"const", TOKEN_KEYWORD},     {"continue", TOKEN_KEYWORD},   {"debugger", TOKEN_KEYWORD},
	{"default", TOKEN_KEYWORD},   {"delete", TOKEN_PREFIX},      {"do", TOKEN_KEYWORD},
	{"else", TOKEN_KEYWORD},      {"enum", TOKEN_KEYWORD},       {"export", TOKEN_KEYWORD},
	{"extends", TOKEN_KEYWORD},   {"finally", TOKEN_KEYWORD},    {"for", TOKEN_KEYWORD},
	{"function", TOKEN_KEYWORD},  {"if", TOKEN_KEYWORD},         {"import", TOKEN_KEYWORD},
	{"in", TOKEN_BETWEEN},        {"instanceof", TOKEN_BETWEEN}, {"let", TOKEN_KEYWORD},
	{"new", TOKEN_PREFIX},        {"of", TOKEN_BETWEEN},         {"return", TOKEN_KEYWORD},
	{"satisfies", TOKEN_BETWEEN}, {"super", TOKEN_KEYWORD},      {"switch", TOKEN_KEYWORD},
	{"throw", TOKEN_KEYWORD},     {"try", TOKEN_KEYWORD},        {"typeof", TOKEN_PREFIX},
	{"var", TOKEN_KEYWORD},       {"void", TOKEN_PREFIX},        {"while", TOKEN_KEYWORD},
	{"with", TOKEN_KEYWORD},      {"yield", TOKEN_KEYWORD},
};
static const char heads[] = "if for while with switch catch function", bodies[] = "switch catch function";

/* The longest that fits comes first. */
static const struct {
	const char *text;
	enum token_kind kind;
} operators[] = {
	{">>>=", TOKEN_LOOSE},  {"...", TOKEN_SPREAD},  {"===", TOKEN_LOOSE},   {"!==", TOKEN_LOOSE},
	{"**=", TOKEN_LOOSE},   {"<<=", TOKEN_LOOSE},   {">>=", TOKEN_LOOSE},   {">>>", TOKEN_OPERATOR},
	{"&&=", TOKEN_LOOSE},   {"||=", TOKEN_LOOSE},   {"?\?=", TOKEN_LOOSE},  {"=>", TOKEN_LOOSE},
	{"==", TOKEN_LOOSE},    {"!=", TOKEN_LOOSE},    {"<=", TOKEN_OPERATOR}, {">=", TOKEN_OPERATOR},
	{"&&", TOKEN_LOOSE},    {"||", TOKEN_LOOSE},    {"??", TOKEN_LOOSE},    {"?.", TOKEN_DOT},
	{"++", TOKEN_STEP},     {"--", TOKEN_STEP},     {"+=", TOKEN_LOOSE},    {"-=", TOKEN_LOOSE},
	{"*=", TOKEN_LOOSE},    {"/=", TOKEN_LOOSE},    {"%=", TOKEN_LOOSE},    {"&=", TOKEN_LOOSE},
	{"|=", TOKEN_LOOSE},    {"^=", TOKEN_LOOSE},    {"<<", TOKEN_OPERATOR}, {">>", TOKEN_OPERATOR},
	{"**", TOKEN_OPERATOR}, {";", TOKEN_SEMICOLON}, {",", TOKEN_COMMA},     {".", TOKEN_DOT},
	{"+", TOKEN_SIGN},      {"-", TOKEN_SIGN},      {"!", TOKEN_NOT},       {"~", TOKEN_NOT},
	{"*", TOKEN_OPERATOR},  {"/", TOKEN_OPERATOR},  {"%", TOKEN_OPERATOR},  {"<", TOKEN_OPERATOR},
	{">", TOKEN_OPERATOR},  {"&", TOKEN_LOOSE},     {"|", TOKEN_LOOSE},     {"^", TOKEN_LOOSE},
	{"?", TOKEN_LOOSE},     {":", TOKEN_LOOSE},     {"=", TOKEN_LOOSE},     {"@", TOKEN_OTHER},
};

void token_begin(struct token_reader *reader, const char *text, size_t length)
{
	*reader = (struct token_reader){.at = text, .end = text + length};
	/* Other ends of lines, and of texts; comments of HTML; a first line for the shell. */
	reader->broken = strlen(text) != length || strstr(text, "\xe2\x80\xa8") || strstr(text, "\xe2\x80\xa9") ||
			 strstr(text, "<!--") || strstr(text, "-->") || str_starts(text, "#!");
}

bool token_is(const struct token *token, const char *text)
{
	return token->length == strlen(text) && strncmp(token->begin, text, token->length) == 0;
}

bool token_among(const struct token *token, const char *among)
{
	for (const char *word = among; word; word = strchr(word, ' ') ? strchr(word, ' ') + 1 : NULL)
		if (strncmp(word, token->begin, token->length) == 0 && strchr(" ", word[token->length]))
			return true;
	return false;
}

static int compare(const void *key, const void *element)
{
	const struct token *token = key;
	const struct word *word = element;
	const int order = strncmp(token->begin, word->text, token->length);

	return order != 0 ? order : -(word->text[token->length] != '\0');
}

static const char *stop(struct token_reader *reader)
{
	reader->broken = true;
	return reader->end;
}

static bool has_line_end(const char *from, const char *to)
{
	return memchr(from, '\n', (size_t)(to - from)) || memchr(from, '\r', (size_t)(to - from));
}

/* Behind blanks and comments; is a new line begun there? */
static bool skip_blanks(struct token_reader *reader)
{
	bool line = false;

	for (;;) {
		const char *at = reader->at + strspn(reader->at, " \t\r\n\v\f");

		if (str_starts(at, "//")) {
			at += strcspn(at, "\r\n");
		} else if (str_starts(at, "/*")) {
			const char *close = strstr(at + 2, "*/");

			at = close ? close + 2 : stop(reader);
		}
		if (at == reader->at)
			return line;
		line = line || has_line_end(reader->at, at);
		reader->at = at;
	}
}

/* All of these go from `at`, behind the beginning, to behind the end. */
static const char *skip_string(struct token_reader *reader, const char *at, char quote)
{
	for (; *at && *at != '\n' && *at != '\r'; at++) {
		if (*at == quote)
			return at + 1;
		if (*at == '\\' && at[1])
			at++;
	}
	return stop(reader);
}

static const char *skip_regular(struct token_reader *reader, const char *at)
{
	bool class = false;

	for (; *at && *at != '\n' && *at != '\r'; at++) {
		if (*at == '/' && !class)
			return at + 1 + strspn(at + 1, NAME_CHARACTERS);
		if (*at == '\\' && at[1] && at[1] != '\n')
			at++;
		else if (*at == '[')
			class = true;
		else if (*at == ']')
			class = false;
	}
	return stop(reader);
}

static const char *skip_number(const char *at)
{
	const bool hexadecimal = at[0] == '0' && strchr("xX", at[1]);

	for (;;) {
		at += strspn(at, NAME_CHARACTERS ".");
		if (hexadecimal || !*at || !strchr("+-", *at) || !strchr("eE", at[-1]))
			return at;
		at++;
	}
}

static void push(struct token_reader *reader, char open)
{
	const struct token *last = &reader->last;
	const struct token *word = token_is(last, "await") ? &reader->before : last; /* for await ( */

	if (reader->depth == TOKEN_DEPTH_MAX) {
		stop(reader);
		return;
	}
	reader->brackets[reader->depth].open = open;
	reader->brackets[reader->depth].value = last->value;
	reader->brackets[reader->depth].block =
		open == '{' && (last->kind == TOKEN_CLOSE || token_is(last, "=>") ||
				(last->kind == TOKEN_KEYWORD && !token_is(last, "return")));
	reader->brackets[reader->depth].body =
		open == '(' &&
		(last->kind == TOKEN_KEYWORD ? token_among(last, bodies) : token_is(&reader->before, "function"));
	reader->brackets[reader->depth++].head = open == '(' && word->kind == TOKEN_KEYWORD && token_among(word, heads);
}

/* A template, or its rest behind }. */
static const char *read_template(struct token_reader *reader, const char *at, struct token *token)
{
	const bool rest = *at == '}';

	for (at++; *at; at++) {
		if (*at == '\\' && at[1]) {
			at++;
		} else if (*at == '`') {
			reader->depth -= rest;
			token->kind = rest ? TOKEN_CLOSE : TOKEN_LITERAL;
			token->value = true;
			token->depth = reader->depth;
			return at + 1;
		} else if (str_starts(at, "${")) {
			token->kind = rest ? TOKEN_MIDDLE : TOKEN_OPEN;
			if (!rest)
				push(reader, '`');
			return at + 2;
		}
	}
	return stop(reader);
}

static const char *read_close(struct token_reader *reader, const char *at, struct token *token)
{
	const char *const which = strchr(CLOSING, *at);

	if (reader->depth == 0)
		return stop(reader);
	if (*at == '}' && reader->brackets[reader->depth - 1].open == '`')
		return read_template(reader, at, token);
	reader->depth--;
	if (reader->brackets[reader->depth].open != OPENING[which - CLOSING])
		return stop(reader);
	token->kind = TOKEN_CLOSE;
	token->depth = reader->depth;
	token->value = !reader->brackets[reader->depth].head;
	if (*at == ')' && reader->last.kind == TOKEN_OPEN && !reader->brackets[reader->depth].value)
		token->value = false; /* () of a function that follows */
	return at + 1;
}

static const char *read_word(const struct token_reader *reader, const char *at, struct token *token)
{
	token->begin = at;
	token->length = strspn(at, NAME_CHARACTERS);
	const struct word *word = reader->last.kind == TOKEN_DOT
					  ? NULL
					  : bsearch(token, words, ARRAY_SIZE(words), sizeof(*words), compare);
	token->kind = word ? word->kind : TOKEN_NAME;
	token->value = token->kind == TOKEN_NAME;
	return at + token->length;
}

static const char *read_operator(struct token_reader *reader, const char *at, struct token *token)
{
	const bool value = reader->last.value;

	for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
		if (!str_starts(at, operators[i].text))
			continue;
		token->kind = operators[i].kind;
		/* i++, and what TypeScript takes for a value that is there: x! */
		token->value = value && !token->line &&
			       (token->kind == TOKEN_STEP || (token->kind == TOKEN_NOT && *at == '!'));
		return at + strlen(operators[i].text);
	}
	return stop(reader);
}

static const char *read_slash(struct token_reader *reader, const char *at, struct token *token)
{
	if (reader->last.kind == TOKEN_CLOSE && reader->last.begin[0] == '}')
		return stop(reader); /* behind a block, or an object? */
	if (reader->last.value)
		return read_operator(reader, at, token);
	token->kind = TOKEN_LITERAL;
	token->value = true;
	return skip_regular(reader, at + 1);
}

static const char *read_token(struct token_reader *reader, struct token *token)
{
	const char *at = reader->at;

	if (strchr(DIGITS, *at) || (*at == '.' && at[1] && strchr(DIGITS, at[1]))) {
		token->kind = TOKEN_LITERAL;
		token->value = true;
		return skip_number(at);
	}
	if (strchr(NAME_CHARACTERS, *at))
		return read_word(reader, at, token);
	if (*at == '\'' || *at == '"') {
		token->kind = TOKEN_LITERAL;
		token->value = true;
		return skip_string(reader, at + 1, *at);
	}
	if (*at == '`')
		return read_template(reader, at, token);
	if (strchr(OPENING, *at)) {
		token->kind = TOKEN_OPEN;
		push(reader, *at);
		return at + 1;
	}
	if (strchr(CLOSING, *at))
		return read_close(reader, at, token);
	return *at == '/' ? read_slash(reader, at, token) : read_operator(reader, at, token);
}

bool token_next(struct token_reader *reader)
{
	if (reader->broken)
		return false;
	const bool line = skip_blanks(reader) || !reader->last.begin;
	struct token token = {.begin = reader->at, .length = 1, .line = line, .depth = reader->depth};

	if (reader->last.kind == TOKEN_CLOSE && *reader->last.begin == ')' && reader->brackets[reader->depth].body &&
	    *reader->at != '{' && *reader->at != ':')
		stop(reader);
	if (reader->broken || reader->at == reader->end)
		return false;
	const char *end = read_token(reader, &token);

	token.length = (size_t)(end - token.begin);
	reader->at = end;
	reader->before = reader->last;
	reader->last = token;
	return !reader->broken;
}
