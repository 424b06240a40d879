/*
 * doors_repeat.h - answers that were lost. A client whose connection broke sends the same request again, a second or
 * two later; what it asked for must not run twice, and the record of a reward must not be another one.
 *
 * So a program whose client left runs on for DOORS_REPEAT_GRACE, and then ends as cancelled, unless the same request
 * came again in that time: the same bytes for the same door by the same owner. An answer for nobody is kept for
 * DOORS_REPEAT_KEPT, and the first who sends the same gets it. Requests whose clients stayed have nothing to do with
 * each other, equal or not: each runs. Thread-safe.
 */
#pragma once

#include "doors.h"

#define DOORS_REPEAT_GRACE_MS 5000
#define DOORS_REPEAT_KEPT_US  INT64_C(30000000)
#define DOORS_REPEAT_MAX      256        /* lost requests that are known, */
#define DOORS_REPEAT_BYTES    (16 << 20) /* and bytes of their answers; the oldest go */

/* A request has come, of which nothing is done yet: if it repeats one that runs for nobody, that one is not cancelled. */
void doors_repeat_came(struct doors_call *call);
/* The request has its turn. True: it repeats a lost one, whose answer is the call's reply now; waits for that one's end
 * where it still runs. */
bool doors_repeat_take(struct doors_call *call);
/* Its client has left while it runs. Every one of these is followed by one doors_repeat_keep or _drop. */
void doors_repeat_lost(struct doors_call *call);
/* Is it time to cancel it? False: it was asked for again. */
bool doors_repeat_over(struct doors_call *call);
/* Its answer is the call's reply, and nobody is there to take it. */
void doors_repeat_keep(struct doors_call *call);
void doors_repeat_drop(struct doors_call *call); /* it has none */
void doors_repeat_clear(void);                   /* at the end of the process */
