/*
 * audit_witness.h - the client of a C2SP tlog-witness: a program of somebody else that remembers the newest checkpoint
 * of this log, and signs the next one only if the log still begins as it did.
 *
 *     witness:NAME+ID+KEY https://witness.example.org
 *
 * We POST to URL/add-checkpoint: "old SIZE", the consistency proof from SIZE on, an empty line, the checkpoint. The
 * witness answers with its signature, which has its time in it. A history that was rewritten, even with the
 * signer's key, gets no signature. The checkpoint with both signatures goes to cosigned.log in the signer's folder:
 *
 *     sallyport verify --key WITNESS_KEY --key LOG_KEY --anchor cosigned.log
 */
#pragma once

#include "audit_signer.h"

/* "KEY URL" is a witness's key and an address of http or https. ERR_INVALID. */
int audit_witness_check(const char *witness, struct err *err);
/* `had`: the size of the checkpoint that the witness signed last, as far as we know. ERR_CORRUPT: the witness saw
 * another history. ERR_UNAVAILABLE: it cannot be reached or does not sign. */
int audit_witness_send(const struct audit_signer *signer, const char *witness, const struct buf *note, int64_t had,
		       struct err *err);
