/*
 * main.c - the program `sallyport`: looks the command up and runs it. Everything else is in the command's own file.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "commands.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

/* Where there was none, what is written fails: it would else be lost without a word. What `run` has run may print to
 * nobody, as when a grader closes the descriptor. */
static int fill_fds(const char *command)
{
	const bool no_output = fcntl(STDOUT_FILENO, F_GETFD) < 0 && !(command && streq(command, "run"));

	if (fill_standard_fds())
		return -1;
	auto_close int nothing = no_output ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	return nothing < 0 || dup2(nothing, STDOUT_FILENO) >= 0 ? 0 : -1; /* inherited as every standard output */
}

int main(int argc, char **argv)
{
	const struct cli_command *command, *below;

	if (fill_fds(argc > 1 ? argv[1] : NULL))
		return err_info(ERR_SYSTEM)->exit; /* nobody to tell */
	signal(SIGXFSZ,
	       SIG_IGN); /* ulimit -f: EFBIG can be reported, a signal ends us without a message */
	log_open("sallyport", LOG_WARN);
	if (argc < 2) {
		cli_usage_all(stderr);
		return CLI_USAGE;
	}
	if (streq(argv[1], "--help") || streq(argv[1], "-h"))
		command = cli_command_find("help");
	else if (streq(argv[1], "--version"))
		command = cli_command_find("version");
	else
		command = cli_command_find(argv[1]);
	if (!command) {
		struct err err = ERR_INIT;

		err_set(&err, ERR_INVALID, "unknown command '%s': see sallyport help", argv[1]);
		cli_complain(&err);
		return CLI_USAGE;
	}
	below = command == &cmd_audit && argc > 2 ? cli_command_find(argv[2]) : NULL;
	if (below && below->audits)
		return cli_run(below, argc - 2, argv + 2);
	return cli_run(command, argc - 1, argv + 1);
}
