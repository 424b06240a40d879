/* test_jail_folders.c - what a service may name: the folders of upstream.binds that its jail is shown, and the
 * directory in which a program starts. */
#include "jail_try.h"

#include <string.h>

#define LOOK "for f in $FOLDERS; do cat $f/name || ls -A $f; done; pwd"

static struct jail_client *client;
static char top[] = "/srv/test_jail_folders.XXXXXX";
static char *folders[2], *config_path;

static void put(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, 0644), 0);
}

static int start(void **state)
{
	(void)state;
	if (getuid() != 0 || !mkdtemp(top)) /* jails are shown nothing below /tmp or a home */
		return 0;
	assert_int_equal(chmod(top, 0755), 0);
	for (int i = 0; i < 2; i++) {
		auto_free char *inner = xasprintf("%s/%c/inner", top, 'a' + i);
		folders[i] = xasprintf("%s/%c", top, 'a' + i);
		auto_free char *name = xasprintf("%s/name", folders[i]);

		assert_int_equal(mkdir(folders[i], 0755) || chmod(folders[i], 0755) || mkdir(inner, 0755), 0);
		put(name, i ? "folder b\n" : "folder a\n");
	}
	config_path = xasprintf("%s/config", top);
	auto_free char *text = xasprintf("{\"upstream\":{\"binds\":[\"%s\",\"%s\"]},\"jailer\":{%s}," TRY_LIMITS "}",
					 folders[0], folders[1], try_jailer_members());
	put(config_path, text);
	client = try_client(config_path);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	if (!client)
		return 0;
	jail_client_free(client);
	for (int i = 0; i < 2; i++) {
		auto_free char *name = xasprintf("%s/name", folders[i]), *inner = xasprintf("%s/inner", folders[i]);

		unlink(name);
		rmdir(inner);
		rmdir(folders[i]);
		free(folders[i]);
	}
	unlink(config_path);
	free(config_path);
	return rmdir(top);
}

static void need_folders(void)
{
	if (!client)
		skip();
}

static void run_in(struct try *try, const struct jail_spec *spec, const char *cwd, const char *code)
{
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	auto_free char *variable = xasprintf("FOLDERS=%s %s", folders[0], folders[1]);
	const char *env[] = {variable, NULL};
	struct err err = ERR_INIT;

	try_begin(client, try, spec);
	const struct jail_program program = {.code_fd = code_fd,
					     .env = env,
					     .cwd = cwd,
					     .stdin_fd = -1,
					     .stdout_fd = try->out_fd,
					     .stderr_fd = try->error_fd};
	if (jail_run(try->jail, &program, &err))
		fail_msg("%s", err.text);
	try_end(client, try);
}

static void sees(const struct bind_strings *binds, const char *expected)
{
	const struct jail_spec spec = {.runner = "stdio-server", .service = true, .binds = binds};
	auto_try struct try try = {.jail = NULL};

	run_in(&try, &spec, NULL, LOOK);
	if (try.failed)
		fail_msg("%s", try.err.text);
	assert_string_equal(try.out, expected);
}

/* Those that are not shown are there, and empty. */
static void a_service_sees_the_folders_that_it_names(void **state)
{
	(void)state;
	need_folders();
	const char *items[] = {folders[0], folders[1]};
	const struct bind_strings first = {items, 1}, second = {items + 1, 1}, none = {.items = NULL};

	sees(NULL, "folder a\nfolder b\n/data\n");
	sees(&first, "folder a\n/data\n");
	sees(&second, "folder b\n/data\n");
	sees(&none, "/data\n");
}

static void refused(const struct jail_spec *spec, const char *why)
{
	auto_try struct try try = {.jail = NULL};

	run_in(&try, spec, NULL, "echo ran");
	assert_true(try.failed);
	assert_int_equal(try.err.code, ERR_INVALID);
	assert_string_equal(try.err.member, "binds");
	assert_non_null(strstr(try.err.text, why));
	assert_string_equal(try.out, "");
}

/* Whatever a client asks for: below or above a folder of the configuration is another folder. */
static void no_other_folder_is_shown(void **state)
{
	(void)state;
	need_folders();
	auto_free char *inner = xasprintf("%s/inner", folders[0]), *slash = xasprintf("%s/", folders[0]);
	const char *const others[] = {inner, slash, top, "/srv", "/etc", "/", ""};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		const char *items[] = {folders[0], others[i]};
		const struct bind_strings binds = {items, 2};

		refused(&(struct jail_spec){.runner = "stdio-server", .service = true, .binds = &binds},
			"is not a folder of upstream.binds");
	}
	const char *first[] = {folders[0]};
	const struct bind_strings one = {first, 1};

	refused(&(struct jail_spec){.runner = "bash", .binds = &one}, "is for services");
}

static void a_program_starts_where_it_is_told(void **state)
{
	const struct jail_spec service = {.runner = "stdio-server", .service = true}, ordinary = {.runner = "bash"};

	(void)state;
	need_folders();
	auto_free char *inner = xasprintf("%s/inner", folders[1]), *said = xasprintf("%s\n", inner);
	auto_try struct try there = {.jail = NULL}, tmp = {.jail = NULL}, absent = {.jail = NULL},
			    relative = {.jail = NULL};

	run_in(&there, &service, inner, "pwd");
	assert_string_equal(there.out, said);
	run_in(&tmp, &ordinary, "/tmp", "pwd");
	assert_string_equal(tmp.out, "/tmp\n");
	run_in(&absent, &service, "/srv/absent", "echo ran");
	assert_int_equal(absent.result.verdict, JAIL_XX);
	assert_string_equal(absent.out, "");
	assert_string_equal(absent.result.message,
			    "The sandbox failed at \"working directory\": No such file or directory. The directory in "
			    "which the program is to start (cwd) must be one of the jail, below /data or a folder that "
			    "is shown, and the program must be allowed to enter it.");
	run_in(&relative, &service, "data", "echo ran");
	assert_true(relative.failed);
	assert_string_equal(relative.err.member, "cwd");
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(a_service_sees_the_folders_that_it_names),
		cmocka_unit_test(no_other_folder_is_shown),
		cmocka_unit_test(a_program_starts_where_it_is_told),
	};

	return try_run(tests, argc, argv, start, stop);
}
