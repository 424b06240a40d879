/* grade.c - see grade.h. */
#include "grade.h"

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
