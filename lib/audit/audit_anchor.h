/*
 * audit_anchor.h - handing a checkpoint to where the operator of this host cannot alter it.
 *
 *     file:PATH        the note is appended to the file, with an empty line behind it
 *     command:TEXT     /bin/sh -c TEXT gets the note on standard input; it failed unless it ends with 0
 *     witness:KEY URL  a C2SP witness checks that the log continues what it saw, and signs (audit_witness.h)
 *
 * What was handed to whom is in the signer's folder (file `anchored`), so that an anchor that failed gets the newest
 * checkpoint the next time.
 */
#pragma once

#include "audit_signer.h"

/* ERR_INVALID: not an anchor. */
int audit_anchor_check(const char *anchor, struct err *err);
/* The newest checkpoint to an anchor that does not have it yet. */
int audit_anchor_send(const struct audit_signer *signer, const char *anchor, struct err *err);
