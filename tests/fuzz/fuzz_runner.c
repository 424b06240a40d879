/*
 * Runner files: each input is the one file of a runners' directory. What is accepted has a name, a plain source file
 * and absolute interpreters, is found by its name and every alias, and prints as JSON; what is refused names the file
 * and leaves nothing behind.
 */
#include <fcntl.h>
#include <unistd.h>

#include "fuzz.h"
#include "jail/cell/runner.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define FILE_NAME "input.json"

static char folder[] = "/dev/shm/fuzz_runner.XXXXXX"; /* in memory: on a disk each input would cost milliseconds */
static int directory = -1;

static void remove_folder(void)
{
	unlinkat(directory, FILE_NAME, 0);
	rmdir(folder);
}

static void put_file(const uint8_t *data, size_t length)
{
	if (directory < 0) {
		PROMISE(mkdtemp(folder) != NULL);
		directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		PROMISE(directory >= 0 && atexit(remove_folder) == 0);
	}
	auto_close int fd = openat(directory, FILE_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	PROMISE(fd >= 0 && write_all(fd, data, length) == 0);
}

static void accepted(const struct runners *runners)
{
	const struct runner *runner = &runners->items[0];

	PROMISE(runners->count == 1 && runner->name[0] != '\0');
	PROMISE(runner->source[0] != '.' && strchr(runner->source, '/') == NULL && runner->source[0] != '\0');
	PROMISE(runner->run.count > 0 && runner->interpreters.count > 0);
	PROMISE(runner->family < SECCOMP_FAMILIES && runner->family_compile < SECCOMP_FAMILIES);
	PROMISE(runners_find(runners, runner->name) == runner);
	for (size_t i = 0; i < runner->aliases.count; i++)
		PROMISE(runners_find(runners, runner->aliases.items[i]) == runner);
	for (size_t i = 0; i < runner->interpreters.count; i++)
		PROMISE(runner->interpreters.items[i][0] == '/');
	for (size_t i = 0; i < runner->env.count; i++)
		PROMISE(strchr(runner->env.items[i], '=') != NULL);
	for (size_t i = 0; i < runner->run.count; i++) {
		auto_free char *word = runner_expand(runner, runner->run.items[i], 256 << 20);

		PROMISE(word != NULL);
	}
	auto_json struct json_object *list = runners_print(runners);
	PROMISE(json_object_array_length(list) == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct runners runners = {.items = NULL};
	struct err err = ERR_INIT;

	put_file(data, length);
	if (runners_load(folder, &(struct runners_host){"", "", NULL}, &runners, &err)) {
		PROMISE(err.text[0] != '\0' && utf8_valid(err.text, strlen(err.text)));
		PROMISE(strstr(err.text, FILE_NAME) != NULL || strstr(err.text, "two runners are called") != NULL);
		PROMISE(runners.items == NULL);
		return 0;
	}
	accepted(&runners);
	runners_clear(&runners);
	return 0;
}
