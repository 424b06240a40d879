/*
 * init_template.c - a process of the jailer's becomes a template: an interpreter that copies of itself are led into
 * jails (jail/cell/cell_join.c). Its files are a jail's; it has the jailer's ids and namespaces but for the mounts, no
 * descriptor but its socket to the jailer, and of the capabilities those with which a jail is entered.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jail/client/wire_fd.h"
#include "join.h"
#include "lib/base/util.h"

_Noreturn void init_template_main(struct init_setup *setup, const struct init_order *order, const char *strings)
{
	struct join_answer failed = {.serves = true};
	const uint32_t n = order->n_args + order->n_env;
	char **argv = xcalloc(n + 2, sizeof(*argv)), **next = argv;
	const char *at = strings + strlen(strings) + 1; /* behind the source's name */

	for (uint32_t i = 0; i < n; i++, at += strlen(at) + 1) {
		if (i == order->n_args)
			next++;
		*next++ = unconst(at);
	}
	init_forget_jailer(setup);
	const char *step = init_setup_template(setup);
	if (!step) {
		execve(argv[0], argv, argv + order->n_args + 1);
		step = INIT_STEP_EXEC;
	}
	failed.error = errno;
	snprintf(failed.step, sizeof(failed.step), "%s", step);
	/* The descriptor may not have moved yet. */
	if (send(setup->control, &failed, sizeof(failed), MSG_NOSIGNAL) < 0)
		send(JOIN_TEMPLATE_FD, &failed, sizeof(failed), MSG_NOSIGNAL);
	_exit(1);
}
