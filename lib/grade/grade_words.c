/* grade_words.c - see grade_words.h. */
#include "grade_words.h"

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

char **grade_words_split(char **list, const char *text)
{
	while (*(text += strspn(text, BLANKS))) {
		auto_free char *word = xcalloc(1, strlen(text) + 1);
		size_t length = 0;
		char quote = '\0';

		for (; *text && (quote || !strchr(BLANKS, *text)); text++) {
			bool opens = !quote && strchr("'\"", *text) && strchr(text + 1, *text);

			if (opens || *text == quote)
				quote = opens ? *text : '\0';
			else
				word[length++] = *text;
		}
		list = grade_words_add(list, word, length);
	}
	return list;
}
