/*
 * priority.c - batch work gives way to a gateway.
 *
 * Idle are the threads of this program, and the jails that it asks for (jail_client_background); not a private jailer,
 * which has deadlines to enforce while others want the processors. In a jail nothing shows it: a replayed program that
 * prints its nice value prints the recorded one.
 */
#include "priority.h"

#include <linux/ioprio.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "lib/base/util.h"

static const char *const priorities[] = {"idle", "normal", NULL};
const struct cli_option cli_priority_options[] = {
	{.name = "priority", .type = CLI_STRING, .value = "WHICH", .choices = priorities,
	 .help = "set the priority; idle uses only processor time that others leave [idle while a gateway serves data_dir, else normal]"},
	{0},
};

static bool gives_way;

void cli_give_way(const struct config *config, const struct cli_priority *priority)
{
	const struct sched_param none = {0};

	gives_way = priority->which ? streq(priority->which, "idle") : store_served(config->data_dir);
	if (!gives_way)
		return;
	/* Children begin anew. A kernel or a container that refuses one of these leaves us as we are. */
	sched_setscheduler(0, SCHED_IDLE | SCHED_RESET_ON_FORK, &none);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

void cli_priority_of(struct jail_client *client)
{
	if (gives_way)
		jail_client_background(client);
}
