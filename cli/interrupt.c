/*
 * interrupt.c - SIGINT and SIGTERM end a batch command at once, with the exit code that says "incomplete".
 *
 * A thread waits for them. What is complete was printed or stored by then, and everything that runs dies with the
 * connections to the jailer.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/util.h"

static struct {
	sigset_t signals;
	const char *text;
} interrupt;

static void *wait_for_interrupt(void *arg)
{
	int signal;

	(void)arg;
	sigwait(&interrupt.signals, &signal);
	write_all(STDERR_FILENO, interrupt.text, strlen(interrupt.text));
	_exit(CLI_INCOMPLETE);
}

int cli_catch_interrupts(const char *text, struct err *err)
{
	pthread_t thread;

	if (interrupt.text)
		return 0; /* several replays of one command */
	interrupt.text = text;
	sigemptyset(&interrupt.signals);
	sigaddset(&interrupt.signals, SIGINT);
	sigaddset(&interrupt.signals, SIGTERM);
	if (pthread_sigmask(SIG_BLOCK, &interrupt.signals, NULL) ||
	    pthread_create(&thread, NULL, wait_for_interrupt, NULL) || pthread_detach(thread))
		return err_set(err, ERR_SYSTEM, "cannot wait for signals");
	return 0;
}
