/* grade_words.c - see grade_words.h. */
#include "grade_words.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"

#define BLANKS " \t\r\n" /* a text over several lines ends with one */

void grade_words_free(char **list)
{
	for (char **word = list; word && *word; word++)
		free(*word);
	free(list);
}

char **grade_words_add(char **list, const char *text, size_t length)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	list = xrealloc(list, n + 2, sizeof(*list));
	list[n] = xstrndup(text, length);
	list[n + 1] = NULL;
	return list;
}

/* A word that begins with a quotation mark goes on to the next one, where that is its end. */
static size_t quoted(const char *text)
{
	const char *close = *text == '"' || *text == '\'' ? strchr(text + 1, *text) : NULL;

	return close && (close[1] == '\0' || strchr(BLANKS, close[1])) ? (size_t)(close - text) - 1 : SIZE_MAX;
}

char **grade_words_split(char **list, const char *text)
{
	while (*(text += strspn(text, BLANKS))) {
		size_t length = quoted(text);

		if (length != SIZE_MAX) {
			list = grade_words_add(list, text + 1, length);
			text += length + 2;
		} else {
			length = strcspn(text, BLANKS);
			list = grade_words_add(list, text, length);
			text += length;
		}
	}
	return list;
}
