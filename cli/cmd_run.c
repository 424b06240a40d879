/*
 * cmd_run.c - `sallyport run`: one program in a jail, from the shell.
 *
 * Nothing is recorded and no gateway is needed: the configured jailer, or a private one that lives as long as this
 * command, does the work. The exit code is the program's own as far as the shell's conventions allow
 * (sallyport-run(1)); a program that needs the truth reads --json or --meta. Everything that can be wrong with the
 * command line is found before the jailer is started; an error after the options were understood ends with 125, as
 * with timeout(1) and env(1), so that it can be told from the program's own 1 or 2.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/client/client_runners.h"
#include "lib/base/util.h"
#include "lib/job/job.h"
#include "run.h"
#include "show.h"

struct run {
	struct cli_common common;
	const char *language;
	bool network;
	struct bind_strings env, files;
	struct jail_limits limits;
	const char *output_dir, *meta, *servers, *upstream;
	bool forward_stdin;
};

#define FIRST_LINE_MAX 256
#define FIELD(member) offsetof(struct run, member)
#define VALUE_SECONDS "SECONDS"
#define VALUE_MEBI    "MB"
static const struct cli_option run_options[] = {
	{.name = "language",
	 .letter = 'l',
	 .type = CLI_STRING,
	 .offset = FIELD(language),
	 .value = "NAME",
	 .help = "use this runner, by name or alias [by FILE's extension, else by its #! line]"},
#define OPTION_LIMIT(option, letter_, field, unit, least, most, help_)                                                 \
	{.name = option,                                                                                               \
	 .letter = letter_,                                                                                            \
	 .type = CLI_##unit,                                                                                           \
	 .offset = FIELD(limits.field),                                                                                \
	 .min = least,                                                                                                 \
	 .max = most,                                                                                                  \
	 .value = VALUE_##unit,                                                                                        \
	 .help = help_},
#include "lib/base/limits.def"
	{.name = "network", .type = CLI_FLAG, .offset = FIELD(network),
	 .help = "allow the network, as far as network.allow goes; SHARE_NET=1 does the same [no network]"},
	{.name = "servers", .type = CLI_STRING, .offset = FIELD(servers), .value = "NAME[,NAME]",
	 .help = "let the program call the tools of these MCP servers [none]"},
	{.name = "upstream", .type = CLI_STRING, .offset = FIELD(upstream), .value = "FILE",
	 .help = "read the list of MCP servers from FILE [upstream.file]"},
	{.name = "env", .letter = 'e', .type = CLI_STRINGS, .offset = FIELD(env), .value = "NAME=VALUE",
	 .help = "set an environment variable; NAME alone copies the caller's value; repeatable"},
	{.name = "file", .letter = 'f', .type = CLI_STRINGS, .offset = FIELD(files), .value = "PATH[:NAME]",
	 .help = "copy a file into /data, under its own last name or as NAME; repeatable"},
	{.name = "output-dir", .letter = 'o', .type = CLI_STRING, .offset = FIELD(output_dir), .value = "DIR",
	 .help = "write the files that the program made or changed in /data to DIR"},
	{.name = "stdin", .type = CLI_FLAG, .offset = FIELD(forward_stdin),
	 .help = "pass standard input on to the program [/dev/null]"},
	{.name = "meta", .type = CLI_STRING, .offset = FIELD(meta), .value = "FILE",
	 .help = "write the result to FILE, with the keys of isolate(1)"},
	{0},
};
static const struct cli_group run_groups[] = {{run_options, 0}, {0}};

/* The program's text as a file that can be read from offset 0. */
static int code_open(const char *path, int *ret, struct err *err)
{
	bool standard_input = streq(path, "-");
	auto_close int fd =
		standard_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	auto_free char *code = NULL;
	size_t length;
	int result;

	if (fd < 0)
		return err_errno(err, "%s", standard_input ? "standard input" : path);
	result = read_fd(fd, RUN_CODE_MAX, &code, &length, err);
	if (result < 0)
		return err_wrap(err, "%s", standard_input ? "standard input" : path);
	*ret = memfd_with("code", code, length);
	return *ret < 0 ? err_errno(err, "memfd_create") : 0;
}

/* "#!/usr/bin/env -S python3.11 -u": python3.11, then python3, then python. */
static struct json_object *find_by_first_line(struct json_object *runners, int code_fd)
{
	char line[FIRST_LINE_MAX + 1];
	ssize_t length = pread(code_fd, line, FIRST_LINE_MAX, 0);
	char *rest = line + 2;

	if (length < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	for (char *word; (word = strsep(&rest, " \t\r"));) {
		char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
		struct json_object *found = NULL;

		if (!*name || *name == '-' || streq(name, "env"))
			continue;
		while (!(found = jail_runner_named(runners, name)) && strpbrk(name, "0123456789."))
			if (strspn(name + strlen(name) - 1, "0123456789."))
				name[strlen(name) - 1] = '\0';
			else
				break;
		return found;
	}
	return NULL;
}

int run_runner_choose(struct json_object *runners, const char *language, const char *path, int code_fd,
		      struct json_object **ret, struct err *err)
{
	struct json_object *runner = NULL, *available;
	auto_buf struct buf names;

	buf_init(&names, 1024);
	for (size_t i = 0; i < json_object_array_length(runners); i++) {
		const char *name = json_get_string(json_object_array_get_idx(runners, i), "name");

		buf_printf(&names, "%s%s", i ? ", " : "", name ? name : "?");
	}
	if (language) {
		runner = jail_runner_named(runners, language);
		if (!runner)
			return err_set(err, ERR_INVALID, "unknown language '%s': there are %s", language, names.data);
	} else {
		runner = jail_runner_for_file(runners, path);
		if (!runner)
			runner = find_by_first_line(runners, code_fd);
		if (!runner)
			return err_set(err, ERR_INVALID,
				       "the language of '%s' is not clear: name it with --language (%s)", path,
				       names.data);
	}
	available = json_get(runner, "available", json_type_boolean);
	if (available && !json_object_get_boolean(available)) {
		const char *install = json_get_string(runner, "install");

		return err_set(err, ERR_UNAVAILABLE, "the interpreter of %s is missing: %s",
			       json_get_string(runner, "name"), install ? install : "install it");
	}
	*ret = runner;
	return 0;
}

/* Fills env, a zeroed array of options->count + 1; its strings are the caller's. */
static int env_build(const struct bind_strings *options, char **env, struct err *err)
{
	size_t total = 0, n = 0;

	for (size_t i = 0; i < options->count; i++) {
		const char *item = options->items[i];
		size_t name_length = strcspn(item, "=");
		const char *value = item[name_length] ? NULL : getenv(item);

		if (!job_variable_valid(item, name_length))
			return err_set(err, ERR_INVALID, "--env %s: a name has letters, digits and _, no digit first",
				       item);
		if (!item[name_length] && !value)
			continue; /* as docker and podman do: not set here, not set there */
		env[n] = value ? xasprintf("%s=%s", item, value) : xstrdup(item);
		total += strlen(env[n++]) + 1;
	}
	if (total > JAIL_ARGUMENTS_MAX)
		return err_set(err, ERR_LIMIT, "--env: %zu bytes are more than %d", total, JAIL_ARGUMENTS_MAX);
	return 0;
}

/* What one invocation holds; given back in one place. */
struct prepared {
	int code_fd, meta_fd;
	char **env;
	struct jail_file *inputs;
	size_t n_inputs;
	struct run_tools tools;
	const char **tools_env; /* p->env and what the tools need */
	struct run_outcome outcome;
};

static void prepared_clear(struct prepared *p)
{
	for (size_t i = 0; p->env && p->env[i]; i++)
		free(p->env[i]);
	free(p->env);
	for (size_t i = 0; i < p->n_inputs; i++)
		fd_close(&p->inputs[i].fd);
	free(p->inputs);
	free(p->tools_env);
	run_tools_clear(&p->tools);
	fd_close(&p->code_fd);
	fd_close(&p->meta_fd);
	jail_once_clear(&p->outcome.once);
	run_files_clear(&p->outcome.files);
}
#define auto_prepared __attribute__((cleanup(prepared_clear)))

static int check_options(const struct run *run, struct err *err)
{
	if (run->servers && run->network)
		return err_set(
			err, ERR_INVALID,
			"--servers: cannot be combined with --network, whose traffic no policy of tools sees");
	if (run->upstream && !run->servers)
		return err_set(err, ERR_INVALID, "--upstream: without --servers the program calls nothing");
	if (run->forward_stdin && streq(run->common.args[0], "-"))
		return err_set(err, ERR_INVALID, "--stdin: standard input is the program itself: put it into a file");
	return 0;
}

/* Everything that needs no jailer, so that a mistake is reported at once. */
static int prepare(const struct run *run, struct prepared *p, struct err *err)
{
	const char *path = run->common.args[0];
	int result = check_options(run, err);

	if (result < 0)
		return result;
	if (run->files.count > RUN_FILES_MAX)
		return err_set(err, ERR_LIMIT, "--file: more than %d files", RUN_FILES_MAX);
	p->env = xcalloc(run->env.count + 1, sizeof(*p->env));
	result = env_build(&run->env, p->env, err);
	p->inputs = xcalloc(run->files.count + 1, sizeof(*p->inputs));
	for (size_t i = 0; i < run->files.count && result == 0; i++) {
		result = run_input_open(run->files.items[i], &p->inputs[i], err);
		if (result == 0)
			p->n_inputs++;
	}
	if (result == 0)
		result = code_open(path, &p->code_fd, err);
	if (result == 0 && run->output_dir)
		result = run_folder_open(run->output_dir, &p->outcome.files.output_dir, err);
	if (result == 0 && run->meta) {
		p->meta_fd = open(run->meta, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (p->meta_fd < 0)
			result = err_errno(err, "--meta %s", run->meta);
	}
	return result;
}

static int execute(const struct run *run, struct prepared *p, struct err *err)
{
	auto_config struct config config = {0};
	auto_jailer struct jail_client *client = NULL;
	auto_json struct json_object *runners = NULL, *info = NULL;
	struct json_object *runner = NULL;
	int result = config_load(run->common.config, &config, err);

	if (result == 0)
		result = cli_open_jailer(&config, &client, 1, err);
	if (result == 0 && run->meta) {
		result = jail_client_info(client, &info, err);
		const char *cgroup = result < 0 ? NULL : json_get_string(info, "cgroup");

		p->outcome.grouped = cgroup && !streq(cgroup, "none");
	}
	if (result == 0)
		result = jail_client_runners_known(client, &runners, err);
	if (result == 0)
		result = run_runner_choose(runners, run->language, run->common.args[0], p->code_fd, &runner, err);
	if (result < 0)
		return result;
	const struct run_tools_spec tools = {
		.config = &config, .servers = run->servers, .runner = json_get_string(runner, "name")};

	if (run->upstream)
		config.upstream.file = run->upstream;
	result = run_tools_begin(&p->tools, &tools, err);
	if (result < 0) {
		run_tools_stop(&p->tools); /* before the configuration goes */
		return result;
	}
	p->tools_env = job_tools_environment(p->env, p->tools.given.env);
	struct run_request request = {
		.spec = {.runner = json_get_string(runner, "name"),
			 .limits = run->limits,
			 .network = run->network,
			 .label = "run"},
		.program = {.code_fd = p->code_fd, .args = run->common.rest, .env = p->tools_env,
			    .tools = run->servers != NULL,
			    .tools_fd = p->tools.given.socket},
		.inputs = p->inputs,
		.n_inputs = p->n_inputs,
		.forward_stdin = run->forward_stdin,
		.live = !run->common.json,
		.tools = run->servers ? &p->tools : NULL,
	};
	result = run_session(client, &request, &p->outcome, err);
	run_tools_stop(&p->tools);
	return result;
}

static int run_run(void *options, struct err *err)
{
	struct run *run = options;
	auto_prepared struct prepared p = {.code_fd = -1,
					   .meta_fd = -1,
					   .outcome = {.files = {.output_dir = -1}}};
	const char *share_net = getenv("SHARE_NET"); /* of scripts that this command replaces */

	run->network = run->network || (share_net && streq(share_net, "1"));
	int result = prepare(run, &p, err);

	if (result == 0)
		result = execute(run, &p, err);
	if (result < 0)
		p.outcome.once.failure = *err;
	if (result < 0 && p.outcome.once.done)
		cli_complain(err); /* the program ended well, its output did not get through */
	if (p.meta_fd >= 0 && run_meta_write(p.meta_fd, &p.outcome, err) < 0) {
		cli_complain(err);
		return CLI_RUN_REFUSED;
	}
	if (run->common.json) {
		auto_json struct json_object *object = run_json(&p.outcome);

		if (run->servers)
			show_tools_print_json(&p.tools.calls, object);
		cli_print_json(stdout, object, true);
	} else {
		run_remarks(&p.outcome, isatty(STDERR_FILENO));
	}
	return result < 0 ? CLI_RUN_REFUSED : run_exit_code(&p.outcome);
}

const struct cli_command cmd_run = {
	.name = "run",
	.summary = "Run a program in a jail",
	.arguments = "FILE|-",
	.help = "FILE is the program; - reads it from standard input. "
		"Arguments after -- are passed to the program. "
		"Its standard output and error are passed on as they arrive. "
		"Files that it makes in /data are lost unless --output-dir names a folder for them. "
		"Nothing is recorded.",
	.examples = "echo 'print(6 * 7)' | sallyport run -l python -\n"
		"sallyport run --timeout 2.5 --file data.csv --output-dir out plot.py -- --title Rain\n",
	.exits = "N the program's own exit code, or that of its failed compile step\n"
		"124 the wall or CPU time was used up\n"
		"125 the run was refused, or the sandbox failed\n"
		"137 the memory limit was reached, or there was too much output\n"
		"128+N signal N ended the program; 130 after Ctrl-C\n",
	.groups = run_groups,
	.size = sizeof(struct run),
	.min_args = 1,
	.max_args = 1,
	.takes_rest = true,
	.run = run_run,
};
