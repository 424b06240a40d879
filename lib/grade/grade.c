/* grade.c - see grade.h. */
#include "grade.h"

#include <stdarg.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

/* By verdict; `worst`: the larger decides in a group. */
static const struct {
	const char *text;
	int worst;
} verdicts[GRADE_VERDICTS] = {
	[GRADE_AC] = {"AC", 0},   [GRADE_WA] = {"WA", 1},   [GRADE_PE] = {"PE", 2},   [GRADE_OLE] = {"OLE", 3},
	[GRADE_TLE] = {"TLE", 4}, [GRADE_MLE] = {"MLE", 5}, [GRADE_RTE] = {"RTE", 6}, [GRADE_CE] = {"CE", 7},
	[GRADE_JE] = {"JE", 8},   [GRADE_SKIP] = {"SKIP", 0},
};

const char *grade_verdict_text(enum grade_verdict verdict)
{
	return verdicts[verdict].text;
}

int grade_verdict_parse(const char *text, enum grade_verdict *ret)
{
	for (int i = 0; i < GRADE_VERDICTS; i++)
		if (streq(text, verdicts[i].text)) {
			*ret = (enum grade_verdict)i;
			return 0;
		}
	return -1;
}

enum grade_verdict grade_verdict_worse(enum grade_verdict a, enum grade_verdict b)
{
	return verdicts[a].worst >= verdicts[b].worst ? a : b;
}

enum grade_verdict grade_verdict_of(const struct jail_result *result)
{
	switch (result->verdict) {
	case JAIL_OK:
		return GRADE_AC;
	case JAIL_RE:
	case JAIL_SG:
		return GRADE_RTE;
	case JAIL_TO:
		return GRADE_TLE;
	case JAIL_ML:
		return GRADE_MLE;
	case JAIL_OL:
		return GRADE_OLE;
	case JAIL_CE:
		return GRADE_CE;
	default:
		return GRADE_JE;
	}
}

void grade_message(char ret[GRADE_MESSAGE], const char *text, size_t length)
{
	auto_buf struct buf shown = {0};

	buf_init(&shown, GRADE_MESSAGE - 1);
	utf8_printable(&shown, text, MIN(length, (size_t)(GRADE_MESSAGE / 4)));
	snprintf(ret, GRADE_MESSAGE, "%s", shown.data);
}

void grade_say(char ret[GRADE_MESSAGE], const char *format, ...)
{
	char text[GRADE_MESSAGE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	grade_message(ret, text, strlen(text));
}
