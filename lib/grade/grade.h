/*
 * grade.h - the verdicts of a judge, over the verdicts of a jail (jail.h): what a submission, a case, or a group of
 * cases is worth.
 *
 * A verdict is always taken outside of the program that is judged: from its jail's result and from a validator that
 * runs in another jail. JE is the judge's own fault (a validator that crashed, a sandbox that failed three times) and
 * never counts against the program. Sets of verdicts are bit masks: GRADE_BIT(GRADE_AC) | ….
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jail/client/jail.h"
#include "lib/base/err.h"

enum grade_verdict {
	GRADE_AC,   /* accepted */
	GRADE_WA,   /* wrong answer */
	GRADE_PE,   /* presentation error: only where a validator says so */
	GRADE_TLE,  /* too slow */
	GRADE_MLE,  /* too much memory */
	GRADE_OLE,  /* too much output */
	GRADE_RTE,  /* exit status not 0, or a signal */
	GRADE_CE,   /* does not compile */
	GRADE_JE,   /* the judge failed */
	GRADE_SKIP, /* no runner has the language */
	GRADE_VERDICTS
};
#define GRADE_BIT(verdict) (1u << (verdict))

#define GRADE_MESSAGE 512 /* one or a few lines for a person */
/* The beginning of the text, made printable. */
void grade_message(char ret[GRADE_MESSAGE], const char *text, size_t length);
void grade_say(char ret[GRADE_MESSAGE], const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the verdict and the message of what has both. */
#define GRADE_SAY(of, how, ...) ((of)->verdict = (how), grade_say((of)->message, __VA_ARGS__))

const char *grade_verdict_text(enum grade_verdict verdict);
/* The two or three letters; 0 or -1. */
int grade_verdict_parse(const char *text, enum grade_verdict *ret);
/* Which of two rejections counts where the worst does: JE, RTE, MLE, TLE, OLE, PE, WA (the format's order). */
enum grade_verdict grade_verdict_worse(enum grade_verdict a, enum grade_verdict b);
/* What a run's end means for a program that is judged; GRADE_AC: it ended well, and its output decides. */
enum grade_verdict grade_verdict_of(const struct jail_result *result);
