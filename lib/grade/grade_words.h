/* grade_words.h - lists of strings, ended by NULL: arguments and names. NULL is a list without any. */
#pragma once

#include <stddef.h>

/* Adds `length` bytes of the text; the list is moved. */
char **grade_words_add(char **list, const char *text, size_t length);
/* Adds the words of a text as a shell splits them: a quoted part keeps its blanks and loses its quotes; a mark without
 * its partner is a character. */
char **grade_words_split(char **list, const char *text);
void grade_words_free(char **list);
