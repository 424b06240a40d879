/* job_tools_internal.h - a job whose program calls tools: what goes into its jail, and what was called. On the
 * reactor. */
#pragma once

#include "job_internal.h"

int job_tools_fill(struct job *job, struct err *err); /* their files, into a jail whose program was not sent yet */
/* Opens them, and fills the jail unless that was done. *ret_env: the program's environment, to be freed, not its
 * strings. */
int job_tools_give(struct job *job, struct job_tools_given *ret, const char ***ret_env, struct err *err);
void job_tools_tell(struct job *job); /* the jailer, that the program waits for tools or goes on */
void job_tools_close(struct job *job); /* nothing more is called; what was is in the result */
