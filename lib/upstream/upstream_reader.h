/*
 * upstream_reader.h - what servers send, checked, taken apart and masked once. A small text is read where it comes; a
 * large one by a thread of its own, so that the thread of all servers never waits for it.
 *
 * A reading belongs to the transport that made it, and to the thread of servers; reader_free may come at any time,
 * also while the reader has it.
 */
#pragma once

#include "lib/base/mask.h"
#include "upstream_raw.h"

#define READING_LARGE (64 << 10) /* bytes from which on the reader's thread has it: some 0.2 ms */
#define READING_BATCH 100        /* messages in one text: revision 2025-03-26 sends arrays of them */

enum incoming_part { PART_METHOD, PART_ID, PART_PARAMETERS, PART_RESULT, PART_ERROR, PARTS };
enum result_part {
	RESULT_TYPE,
	RESULT_TASK,
	RESULT_IS_ERROR,
	RESULT_STATE,
	RESULT_REQUESTS,
	RESULT_STATUS,
	RESULT_NESTED,
	RESULT_TOOLS,
	RESULT_CURSOR,
	RESULT_PARTS
};

/* One JSON-RPC message. */
struct incoming {
	struct raw parts[PARTS];
	struct raw result[RESULT_PARTS]; /* members of PART_RESULT */
	struct buf masked;               /* PART_RESULT through the mask; data NULL: the text was small */
};

struct reader; /* the thread */
struct reading {
	struct reading *next;
	char *text; /* as it came */
	size_t length;
	struct buf clean; /* what raw_check made of it: the messages point into it */
	struct mask *mask;
	struct err err;
	int result;                /* 0 or the error of raw_check; also more than READING_BATCH messages */
	struct incoming *messages; /* what is no object is left out */
	size_t count;
	int64_t took_us;  /* processor time of the reader's thread */
	enum { READING_WAITS, READING_READ, READING_FORGOTTEN } state; /* under the reader's lock */
	struct reader *reader; /* NULL: it was read where it came */
};

/* `wake` is called on the reader's thread whenever a large text was read. */
struct reader *reader_open(void (*wake)(void *arg), void *arg);
void reader_close(struct reader *reader); /* when no reading is left but those that were freed */

/* Takes the text over, of which at most `max` bytes may be left after raw_check. */
struct reading *reader_read(struct reader *reader, char *text, size_t length, size_t max, struct mask *mask);
bool reader_done(const struct reading *reading);
void reader_free(struct reading *reading); /* NULL is fine */
void reader_free_pointer(struct reading **reading);
#define auto_reading __attribute__((cleanup(reader_free_pointer)))
