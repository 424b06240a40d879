/*
 * init_live.c - talks to the driver of a live jail: a program that keeps an interpreter's state from run to run
 * (jail/runners/live.*).
 *
 * The driver is started as any program is, with descriptor 3 as the one thing more: a SOCK_SEQPACKET socket.
 *   to the driver     path of the source NUL, show the last value: 0 or 1 NUL, number of arguments NUL, argument NUL …,
 *                     NAME=value NUL …; one packet a run
 *   from the driver   one byte: the run has ended with this exit status
 *
 * It is the guest's: whatever runs in it can say anything, say it twice, close the socket or leave it to its children.
 * So nothing is believed that matters: a wrong status is the guest's own loss; anything but one byte, a closed socket
 * or orders that are not taken end the driver, and with it the jail; silence ends at the wall limit. Answers that were
 * not asked for are thrown away before the next order.
 *
 * Standard input is one file of ours for all runs, written anew for each: a descriptor cannot be handed to an
 * interpreter that runs.
 */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init.h"
#include "lib/base/util.h"

#define STALE_MAX 64 /* answers without a question; a program that sends more is not the driver any more */

void init_program_close(struct init_program *program)
{
	const int fds[] = {program->listener, program->talk, program->input};

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close_pointer(&fds[i]);
	*program = INIT_PROGRAM_NONE;
}

int init_drive(const struct init_program *driver, const char *order, size_t length, int input)
{
	const int to = driver->input;
	char stale;
	int n = 0;

	if (ftruncate(to, 0) || lseek(to, 0, SEEK_SET) < 0 ||
	    (input >= 0 && init_copy(to, input, lseek(input, 0, SEEK_CUR))) || lseek(to, 0, SEEK_SET) < 0)
		return -1;
	while (n < STALE_MAX && recv(driver->talk, &stale, 1, MSG_DONTWAIT) > 0)
		n++;
	if (n == STALE_MAX || send(driver->talk, order, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		kill(driver->pid, SIGKILL);
	return 0;
}

bool init_driver_answer(struct init_program *driver, int *ret_status)
{
	unsigned char bytes[2];
	ssize_t n = recv(driver->talk, bytes, sizeof(bytes),
			 MSG_DONTWAIT); /* descriptors that come with it are dropped by the kernel */

	if (n == 1) {
		*ret_status = bytes[0] << 8;
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	kill(driver->pid, SIGKILL);
	close(steal_fd(&driver->talk));
	return false;
}
