/*
 * job_workspace.h - the engine's side of a workspace (workspace.h): a turn of its conversation begins with reading the
 * folder, and ends with writing there what it changed. Part of the engine.
 */
#pragma once

#include "job_visit.h"

int job_workspace_start(struct job_engine *engine, struct err *err); /* opens it, if the configuration names one */
/* Is it a turn of the workspace's conversation? */
bool job_workspace_has(const struct job_turn *turn);
int job_workspace_read(struct job_work_item *work_item, struct err *err); /* I/O worker; the work item is a turn's */
void job_workspace_tell(struct job_turn *turn);                     /* what was read, as news; on the reactor */
/* I/O worker: what a run changed, and the request's own files. run.result.workspace says what is not there. */
int job_workspace_write(struct job_work_item *work_item, struct err *err);
/* The same of a visit's files; what is not there is its error. */
int job_workspace_write_visit(struct job_work_item *work_item, struct err *err);
