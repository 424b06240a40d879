/*
 * options.c - command lines by table: parsing, usage, running one command.
 *
 * A command's options stand in groups; the common group (--config, --json, --help) belongs to every command without
 * being listed. Each table line says where in the command's struct the value goes, so the parser is one switch over the
 * type. Long options take their value as --name V or --name=V, letters as -x V or -xV; nothing may be abbreviated,
 * since a script that relies on an abbreviation breaks when an option is added. Options may stand among the positional
 * arguments; "--" ends them, and what follows it is the command's `rest` (the arguments of a program that is to
 * be run), not more positional arguments. A lone "-" is positional: standard input.
 *
 * What a table calls an input is looked for before the command begins, so that a path which is not there has the same
 * exit code everywhere.
 *
 * Positional arguments are gathered at the front of argv, in order, so that nothing is allocated but the arrays of
 * repeatable options, which hold at most as many values as there are arguments.
 */
#include "cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"

const struct cli_option cli_common_options[] = {
	{.name = "config", .type = CLI_STRING, .offset = offsetof(struct cli_common, config), .value = "FILE",
	 .help = "read this configuration, see sallyport.conf(5) [SALLYPORT_CONFIG, else the user's, else the machine's, else the built-in defaults]"},
	{.name = "json", .type = CLI_FLAG, .offset = offsetof(struct cli_common, json), .help = "print JSON"},
	{.name = "help", .letter = 'h', .type = CLI_FLAG, .offset = offsetof(struct cli_common, help),
	 .help = "print this help"},
	{0},
};

/* Group number n of a command, the common one first; false when there are no more. */
static bool group_at(const struct cli_command *command, size_t n, struct cli_group *ret)
{
	if (n == 0) {
		*ret = (struct cli_group){cli_common_options, 0};
		return true;
	}
	if (!command->groups)
		return false;
	for (size_t i = 0; command->groups[i].options; i++) {
		if (i == n - 1) {
			*ret = command->groups[i];
			return true;
		}
	}
	return false;
}

static const struct cli_option *option_find(const struct cli_command *command, const char *name, size_t length,
					    char letter, size_t *ret_offset)
{
	struct cli_group group;

	for (size_t n = 0; group_at(command, n, &group); n++) {
		for (const struct cli_option *option = group.options; option->name; option++) {
			if (letter ? option->letter != letter
				   : strlen(option->name) != length || memcmp(option->name, name, length) != 0)
				continue;
			*ret_offset = group.offset + option->offset;
			return option;
		}
	}
	return NULL;
}

static int choice_check(const struct cli_option *option, const char *text, struct err *err)
{
	char list[160] = "";

	for (size_t i = 0; option->choices[i]; i++) {
		size_t used = strlen(list);

		if (streq(option->choices[i], text))
			return 0;
		snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", option->choices[i]);
	}
	return err_set(err, ERR_INVALID, "--%s: '%s' is not one of %s", option->name, text, list);
}

static int string_set(const struct cli_option *option, const char *text, const char **ret, struct err *err)
{
	if (!*text)
		return err_set(err, ERR_INVALID, "--%s: must not be empty", option->name);
	if (option->choices && choice_check(option, text, err) < 0)
		return -ERR_INVALID;
	*ret = text;
	return 0;
}

static int int_set(const struct cli_option *option, const char *text, int64_t unit, int64_t *ret, struct err *err)
{
	int64_t min = option->min / unit, max = option->max / unit;
	uint64_t number;

	if (parse_u64(text, (uint64_t)min, (uint64_t)max, &number))
		return err_set(err, ERR_INVALID, "--%s: '%s' is not a whole number from %lld to %lld", option->name,
			       text, (long long)min, (long long)max);
	*ret = (int64_t)number * unit;
	return 0;
}

static int value_set(const struct cli_option *option, const char *text, void *field, size_t n_max, struct err *err)
{
	struct bind_strings *strings = field;

	switch (option->type) {
	case CLI_FLAG:
		*(bool *)field = true;
		return 0;
	case CLI_STRING:
		return string_set(option, text, field, err);
	case CLI_STRINGS:
		if (!strings->items)
			strings->items = xcalloc(n_max, sizeof(*strings->items));
		if (string_set(option, text, &strings->items[strings->count], err) < 0)
			return -ERR_INVALID;
		strings->count++;
		return 0;
	case CLI_INT:
		return int_set(option, text, 1, field, err);
	case CLI_MEBI:
		return int_set(option, text, LIMIT_MEBI, field, err);
	case CLI_SECONDS:
		return cli_parse_seconds(text, option->min, option->max, field, err)
			       ? err_wrap(err, "--%s", option->name)
			       : 0;
	case CLI_TIME:
		return cli_parse_time(text, clock_now_us(), field, err) ? err_wrap(err, "--%s", option->name) : 0;
	}
	return err_set(err, ERR_INTERNAL, "--%s: option of unknown type", option->name);
}

/* One option at argv[*i]; moves *i onto its value if that is a word of its own. */
static int option_parse(const struct cli_command *command, int argc, char **argv, int *i, void *options,
			struct err *err)
{
	const char *word = argv[*i];
	bool is_long = word[1] == '-';
	const char *name = word + (is_long ? 2 : 1);
	size_t length = is_long ? strcspn(name, "=") : 1;
	const char *value = NULL;
	size_t offset = 0;
	const struct cli_option *option = option_find(command, name, length, is_long ? 0 : *name, &offset);

	if (!option)
		return err_set(err, ERR_INVALID, "unknown option '%s': see sallyport %s --help", word, command->name);
	if (is_long && name[length] == '=')
		value = name + length + 1;
	else if (!is_long && name[1])
		value = name + 1;
	if (option->type == CLI_FLAG && value)
		return err_set(err, ERR_INVALID, "%s: takes no value", word);
	if (option->type != CLI_FLAG && !value) {
		if (*i + 1 >= argc)
			return err_set(err, ERR_INVALID, "%s: wants a value (%s)", word, option->value);
		value = argv[++*i];
	}
	return value_set(option, value, (char *)options + offset, (size_t)argc, err);
}

static int input_check(const char *path, struct err *err)
{
	if (streq(path, "-") || access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
		return 0;
	return err_set(err, ERR_NOT_FOUND, "%s: %s", path, strerror(errno));
}

/* What a command reads is there, or it does not begin. */
static int inputs_check(const struct cli_command *command, const void *options, struct err *err)
{
	const struct cli_common *common = options;
	struct cli_group group;
	int result = 0;

	for (size_t i = 0; result == 0 && i < MIN(common->n_args, command->n_inputs); i++)
		result = input_check(common->args[i], err);
	for (size_t n = 0; group_at(command, n, &group); n++) {
		for (const struct cli_option *option = group.options; option->name; option++) {
			const void *field = (const char *)options + group.offset + option->offset;
			const struct bind_strings *strings = field;

			if (!option->input || result < 0)
				continue;
			if (option->type == CLI_STRING && *(const char *const *)field)
				result = input_check(*(const char *const *)field, err);
			for (size_t i = 0; option->type == CLI_STRINGS && result == 0 && i < strings->count; i++)
				result = input_check(strings->items[i], err);
		}
	}
	return result;
}

int cli_options_parse(const struct cli_command *command, int argc, char **argv, void *ret_options, struct err *err)
{
	struct cli_common *common = ret_options;
	int result = 0;
	size_t n_args = 0;

	common->args = (const char *const *)(argv + 1);
	for (int i = 1; i < argc && result == 0; i++) {
		if (streq(argv[i], "--")) {
			common->rest = (const char *const *)(argv + i + 1);
			common->n_rest = (size_t)(argc - i - 1);
			break;
		}
		if (argv[i][0] == '-' && argv[i][1])
			result = option_parse(command, argc, argv, &i, ret_options, err);
		else
			argv[1 + n_args++] = argv[i];
	}
	common->n_args = n_args;
	if (result < 0)
		return result;
	if (common->help)
		return 0;
	if (common->n_args < command->min_args)
		return err_set(err, ERR_INVALID, "%s wants %s: see sallyport %s --help", command->name,
			       command->arguments, command->name);
	if (common->n_args > command->max_args)
		return err_set(err, ERR_INVALID, "'%s' is one argument too many: see sallyport %s --help",
			       common->args[command->max_args], command->name);
	if (common->rest && !command->takes_rest)
		return err_set(err, ERR_INVALID, "%s takes nothing behind '--'", command->name);
	return inputs_check(command, ret_options, err);
}

void cli_options_clear(const struct cli_command *command, void *options)
{
	struct cli_group group;

	for (size_t n = 0; group_at(command, n, &group); n++) {
		for (const struct cli_option *option = group.options; option->name; option++) {
			if (option->type == CLI_STRINGS) {
				struct bind_strings *strings =
					(void *)((char *)options + group.offset + option->offset);

				free(strings->items);
				*strings = (struct bind_strings){0};
			}
		}
	}
}

#define OPTION_COLUMNS 26 /* of "  -x, --name VALUE" */
#define EXIT_COLUMNS   7  /* of "  128+N" */
#define EXIT_OK        "0 done\n"
#define EXIT_USAGE     "2 the command line or the configuration is wrong\n"
#define EXIT_MISSING   "3 a file or folder that it reads is not there\n"

static void usage_option(const struct cli_option *option, FILE *out)
{
	const char *bracket = strstr(option->help, " ["); /* the default */
	const char *standard = bracket ? bracket : strchr(option->help, '\0');
	auto_buf struct buf left, text;
	int used = OPTION_COLUMNS;

	buf_init(&left, SIZE_MAX / 2);
	buf_init(&text, SIZE_MAX / 2);
	buf_puts(&left, "  ");
	if (option->letter)
		buf_printf(&left, "-%c, ", option->letter);
	buf_printf(&left, "--%s%s%s", option->name, option->value ? " " : "", option->value ? option->value : "");
	buf_add(&text, option->help, (size_t)(standard - option->help));
	for (size_t i = 0; option->choices && option->choices[i]; i++)
		buf_printf(&text, "%s%s", i ? ", " : ": ", option->choices[i]);
	buf_puts(&text, standard);
	fprintf(out, "%-*s", OPTION_COLUMNS, left.data);
	if (left.length > OPTION_COLUMNS) {
		fputc('\n', out);
		used = 0;
	}
	cli_print_wrapped(out, text.data, used, OPTION_COLUMNS + 1);
	fputc('\n', out);
}

/* One line "CODE WHEN\n". */
static void usage_exit(const char *line, FILE *out)
{
	const size_t code = strcspn(line, " "), length = strcspn(line, "\n");
	auto_free char *when = xasprintf("%.*s", (int)(length - code - 1), line + code + 1);

	fprintf(out, "  %-*.*s", EXIT_COLUMNS - 2, (int)code, line);
	cli_print_wrapped(out, when, EXIT_COLUMNS, EXIT_COLUMNS + 1);
	fputc('\n', out);
}

static bool has_inputs(const struct cli_command *command)
{
	struct cli_group group;
	bool any = command->n_inputs > 0;

	for (size_t n = 0; group_at(command, n, &group); n++)
		for (const struct cli_option *option = group.options; option->name; option++)
			any |= option->input;
	return any;
}

/* What every command has (2), and every command that reads files (3), is said where its own list lacks it. */
static void usage_exits(const struct cli_command *command, FILE *out)
{
	const char *exits = command->exits;
	bool usage = false, missing = !has_inputs(command);

	fputs("\nExit codes:\n", out);
	for (const char *line = exits ? exits : EXIT_OK; *line; line += strcspn(line, "\n") + 1) {
		const long code = strtol(line, NULL, 10); /* 0 of "N" */

		if (code > CLI_USAGE && !usage)
			usage_exit(EXIT_USAGE, out);
		if (code > CLI_MISSING && !missing)
			usage_exit(EXIT_MISSING, out);
		usage |= code >= CLI_USAGE;
		missing |= code >= CLI_MISSING;
		usage_exit(line, out);
	}
	if (!usage)
		usage_exit(EXIT_USAGE, out);
	if (!missing)
		usage_exit(EXIT_MISSING, out);
	fputs("Other exit codes: sallyport(1).\n", out);
}

void cli_usage(const struct cli_command *command, FILE *out)
{
	const char *arguments = command->arguments ? command->arguments : "";
	struct cli_group group;

	for (const char *at = arguments, *end; at; at = end ? end + strlen(" | ") : NULL) {
		end = strstr(at, " | ");
		fprintf(out, "%s sallyport %s [OPTION]…%s%.*s%s\n", at == arguments ? "Usage:" : "      ",
			command->name, *at ? " " : "", (int)(end ? (size_t)(end - at) : strlen(at)), at,
			command->takes_rest ? " [-- ARGUMENT…]" : "");
	}
	fprintf(out, "\n%s.\n", command->summary);
	if (command->help) {
		fputc('\n', out);
		cli_print_wrapped(out, command->help, 0, 0);
		fputc('\n', out);
	}
	fputs("\nOptions:\n", out);
	for (size_t n = 1; group_at(command, n, &group); n++) {
		for (const struct cli_option *option = group.options; option->name; option++)
			usage_option(option, out);
	}
	for (const struct cli_option *option = cli_common_options; option->name; option++)
		usage_option(option, out);
	fputs("\nExamples:\n", out);
	for (const char *line = command->examples, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		fprintf(out, "  %.*s\n", (int)(end - line), line);
	}
	usage_exits(command, out);
}

int cli_complain(const struct err *err)
{
	fputs("sallyport: ", stderr);
	cli_print_safe(stderr, err->text, strlen(err->text));
	fputc('\n', stderr);
	return err_info(err->code)->exit;
}

int cli_run(const struct cli_command *command, int argc, char **argv)
{
	auto_free void *options = xcalloc(1, command->size);
	struct err err = ERR_INIT;
	int result = 0;

	if (cli_options_parse(command, argc, argv, options, &err) < 0) {
		result = cli_complain(&err);
		cli_options_clear(command, options);
		return result == CLI_MISSING ? result : CLI_USAGE;
	}
	if (((struct cli_common *)options)->help)
		cli_usage(command, stdout);
	else
		result = command->run(options, &err);
	if (result >= 0 && (fflush(stdout) || ferror(stdout)))
		result = err_errno(&err, "writing the output");
	if (result < 0)
		result = cli_complain(&err);
	cli_options_clear(command, options);
	return result;
}
