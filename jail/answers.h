/*
 * answers.h - what the runners' version commands answered, kept for the service that starts after this one: a file next
 * to the jailer's socket, SOCKET.answers.
 *
 * A jailer that was killed is started again while clients wait. Its commands cost seconds of processor time and answer
 * the same as before, unless a file changed on which the answer depends. Those files go into a key by device, inode,
 * size, time of change and time of modification (answers_key).
 *
 * The file has the mode 0600 and is the account's that starts the jailer, and so is the directory, which no other
 * account may write: else nothing is kept. Guests do not see it, and no process but the jailer has it open. Answers are
 * appended one by one, each with a checksum: a kill in the middle of a write costs that one answer.
 */
#pragma once

#include <sys/types.h>

#include "jail/cell/runner.h"

struct answer {
	char runner[32], command[16];
	uint64_t key;
	bool failed; /* by the command's own exit status, as when a library is not installed */
	bool wanted; /* answers_find found it */
	char *text;  /* standard output */
	size_t length;
};
struct answers {
	int fd; /* -1: nothing is kept */
	struct answer *items;
	size_t count;
};

/* Before the jailer leaves the host's namespaces; `owner` started it. -1, and a line in the log: nothing is kept. */
int answers_open(const char *socket_path, uid_t owner);
/* Of all that a runner's answers depend on: its file and those that it names, its interpreter, its libraries, the
 * system's packages, the jailer's program. While the host's files can be seen. 0: nothing of it is kept, because the
 * runner has binds, in which anything may be installed. */
uint64_t answers_key(const struct runner *runner);

/* Takes the descriptor over; never fails: what cannot be read is not there. */
void answers_load(struct answers *answers, int fd);
const struct answer *answers_find(struct answers *answers, const char *runner, const char *command, uint64_t key);
/* Frees what was loaded; in the file stays what was found. */
void answers_loaded(struct answers *answers);
void answers_keep(const struct answers *answers, const struct answer *answer);
