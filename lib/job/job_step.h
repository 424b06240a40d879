/*
 * job_step.h - where a job is, and what takes it on.
 *
 * A job is in one step at a time, and only the reactor moves it on: job_advance() looks the event up in the table
 * below, does what is due and sets the next step. Other threads (the request's, an I/O worker, the store's writer) work
 * on a job only while it is lent to them for a step, and post "returned, code" when they are done; they never choose
 * the next step. An event that the table does not list changes nothing: what it says of the jail has been noted and
 * counts when the job returns.
 *
 *     step        who works on it         event         next step
 *     ----------  ----------------------  ------------  ---------------------------------------------------------
 *     receiving   request's thread:       returned      waiting; failed: over
 *                 inputs into blobs
 *     waiting     nobody                  turn          in a workspace (workspace.h): reading; else STARTING
 *                                         turned away   over
 *     reading     I/O worker: the folder      returned      STARTING; failed: over
 *     (STARTING)  reactor                               beginning; the jail cannot be opened: over, but with an
 *                                                       idempotency key beginning (its first result may be there)
 *     beginning   writer: the row;        returned      preparing; its files are many: beginning, behind others;
 *                 jailer: the jail                      failed: over; its key's first call has a result: recalling
 *     recalling   I/O worker: that result     returned      over
 *     preparing   I/O worker: opens the       returned      filling, which goes on at once if there is room;
 *                 next files                            failed, cancelled or its jail is over: ENDING
 *     filling     reactor: sends them     room          preparing while files are left, then running;
 *                                                       failed, cancelled: ENDING
 *                                         jail over     ENDING
 *     running     jail: the program       verdict       collecting
 *                                         jail over     ENDING
 *     collecting  jail, I/O workers:          file stored   ENDING
 *                 files that changed      jail over     ENDING
 *     writing     I/O worker: the folder      returned      as ENDING says of what comes behind
 *     storing     I/O worker: long output     returned      recording; failed: over
 *     recording   writer: files, if they  returned      recording while many are left; over
 *                 are many; the row's end
 *     over        I/O worker: running/ID.*    returned      (freed)
 *
 * ENDING is the one way to the end of a row that was begun: collecting until the jail is over and no file is on its way
 * to a blob, then writing in a workspace where files changed, then storing where the output is too long for the row,
 * else recording. "Jail over" means: collected, failed, or lost with its jailer.
 *
 * An upload, an edit or a reset takes its turn of a conversation with the same steps: receiving, waiting, (reading,)
 * recording, (writing,) over.
 */
#pragma once

enum job_step {
	JOB_RECEIVING,
	JOB_WAITING,
	JOB_READING,
	JOB_BEGINNING,
	JOB_RECALLING,
	JOB_PREPARING,
	JOB_FILLING,
	JOB_RUNNING,
	JOB_COLLECTING,
	JOB_WRITING,
	JOB_STORING,
	JOB_RECORDING,
	JOB_OVER,
	JOB_STEPS
};
const char *job_step_text(enum job_step step); /* "receiving" … "over" */

enum job_event {
	JOB_RETURNED, /* the thread that had the job is through; the work item's code says how it went */
	JOB_TURN,     /* it may start */
	JOB_TURNED_AWAY,
	JOB_ROOM, /* the jailer takes more messages */
	JOB_VERDICT,
	JOB_JAIL_OVER,
	JOB_FILE_STORED,
	JOB_EVENTS
};
