/*
 * warm.h - the extension module `warm` of a template: an interpreter that waits for jails to join and is forked for
 * each of them. What it is for: jail/cell/template.h; who says what to whom: jail/init/join.h.
 *
 * It is loaded by the starter of a language (jail/guest/python_warm.py) from /code/.warm.so, in the template alone. It
 * knows Python by the functions of the stable ABI that warm_module.c declares, so it is built without Python's headers.
 *
 *     serve(descriptor)   in the template: for ever. Returns in each process that has joined a jail
 *     wait()              in that process: waits for the jail's program. Returns its arguments, each with a NUL behind
 *                         it; or nothing where another program must take this process's place
 *     become(how)         the program's limits, filter, descriptors. WARM_EXEC: becomes another program and does not
 *                         return. Else it returns in the program's place: what follows is the guest's
 *
 * A process that joins goes through what init goes through, and init_become() is what every program goes through; it
 * is not dumpable, has no capability and the guest's id before it hears what it is to run. Any error ends it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "jail/init/join.h"

/* warm_join.c: leads a copy of this process into a jail. 0 in the template (*ret_error, *ret_step: what came of it), 1
 * in the copy, with *ret_init, the socket to the jail's init. */
int warm_join(const struct join_order *order, const int *fds, struct join_answer *ret, int *ret_init);
/* In the copy, after its interpreter knows that it is one: NULL, or the step that failed and errno. */
const char *warm_enter(const struct join_order *order, const int *fds, int *init);
/* Is this process fit to be copied? NULL, or what is wrong with it. */
const char *warm_unfit(void);

/* warm_program.c */
int warm_program_prepare(void); /* in the template: what a program of its own command would be given; -1 and errno */
_Noreturn void warm_program_fail(int init, const char *step, int error);
/* Waits. The arguments behind the command's first two, or NULL: exec. */
const char *warm_program_wait(int init, size_t *ret_length);
void warm_program_become(int init, bool exec);
