/*
 * doors_repeat.h - answers that were lost. A client whose connection broke sends the same request again, a second or
 * two later; what it asked for must not run twice, and the record of a reward must not be another one.
 *
 * So a program whose client left runs on for DOORS_REPEAT_GRACE_MS, and then ends as cancelled, unless the same request
 * came again in that time: the same bytes for the same door by the same owner. An answer for nobody is kept for
 * DOORS_REPEAT_KEPT, and the first who sends the same gets it. Requests whose clients stayed have nothing to do with
 * each other, equal or not: each runs. Thread-safe.
 */
#pragma once

#include "cgi/http/reply.h"
#include "lib/store/db/crypto.h"

#define DOORS_REPEAT_GRACE_MS 5000
#define DOORS_REPEAT_KEPT_US  INT64_C(30000000)
#define DOORS_REPEAT_MAX      256        /* lost requests that are known, */
#define DOORS_REPEAT_BYTES    (16 << 20) /* and bytes of their answers; the oldest go */

/* Of each request: what makes it the same as another, and what is known of it here. */
struct doors_repeat {
	const void *door;
	const char *name; /* of the door, for metrics */
	char digest[SHA256_HEX_SIZE]; /* of owner and body */
	struct lost *lost; /* NULL: its client has not left */
};
/* It has come, and nothing of it is done yet: if it repeats one that runs for nobody, that one is not cancelled. */
void doors_repeat_came(const struct doors_repeat *repeat);
/* It has its turn. True: it repeats a lost one, whose answer is *reply now; waits for that one's end where it still
 * runs. */
bool doors_repeat_take(const struct doors_repeat *repeat, struct reply *reply);
/* Its client has left while it runs. Every one of these is followed by one doors_repeat_keep or _drop. */
void doors_repeat_lost(struct doors_repeat *repeat);
/* Is it time to cancel it? False: it was asked for again. */
bool doors_repeat_over(struct doors_repeat *repeat);
void doors_repeat_keep(struct doors_repeat *repeat, const struct reply *reply); /* nobody is there to take its answer */
void doors_repeat_drop(struct doors_repeat *repeat);                            /* it has none */
void doors_repeat_clear(void);                                                  /* at the end of the process */
