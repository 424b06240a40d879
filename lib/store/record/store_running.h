/*
 * store_running.h - what is under way in this database: runs whose row says `running`, and runs of tasks that wait for
 * their turn.
 */
#pragma once

#include "store_file.h"

struct store_running {
	char id[ID_SIZE]; /* of the execution; one that waits has no row yet */
	bool waits;
	char owner[STORE_OWNER_MAX + 1];
	char conversation[STORE_CONVERSATION_MAX + 1]; /* "": none, or it waits */
	char what[64]; /* the language; of one that waits the tool */
	int64_t since_us;
	char instance[ID_SIZE], program[16]; /* who runs it: "gateway" or "cli" */
	int64_t pid;
	bool alive; /* that process holds its lock; else the next start marks the run as interrupted */
};
/* Oldest first. */
int store_running_list(struct store *store, int (*each)(void *arg, const struct store_running *running), void *arg,
		       struct err *err);
