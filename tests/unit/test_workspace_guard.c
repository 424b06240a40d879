/* test_workspace_guard.c - which names in a workspace are held back, in every spelling that some file system accepts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/util.h"
#include "lib/job/workspace_guard.h"

static void git_is_known_in_every_spelling(void **state)
{
	static const char *const git[] = {
		".git",   ".GIT",       ".Git.",      ".git ",      ".git. .",    "git~1",
		"GIT~12", ".g\u200cit", ".\u202egit", "\ufeff.git", ".git\u206f", ".git::$INDEX_ALLOCATION",
		".git:x",
	};
	static const char *const other[] = {"git", ".gitignore", ".github", "git~x", "a.git", ".git-blame-ignore-revs",
					    "",    "..git"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(git); i++)
		assert_true(workspace_guard_git(git[i]));
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		assert_false(workspace_guard_git(other[i]));
}

static void the_list_holds_names_folders_and_paths(void **state)
{
	static const char *const held[] = {
		"docs/HEAD",
		"head",
		".envrc",
		"a/b/.ENVRC",
		".vscode/tasks.json",
		"x/.vscode/a/b",
		".claude/settings.json",
		".mcp.json",
		".cursor/mcp.json",
		".husky/pre-commit",
		".gitmodules",
		".github/workflows/x.yml",
		"sub/.github/workflows/deep/x.yml",
		"conftest.py",
		"tests/conftest.py",
		"AGENTS.md",
		"CLAUDE.md",
		"x.code-workspace",
		".idea/a.xml",
		"app.pth",
		".v\u017fcode/tasks.json",
		".hus\u212ay/pre-commit",
		".vscode./tasks.json",
		".envrc::$DATA",
		".clinerules",
		".clinerules/a.md",
	};
	static const char *const new[] = {"Makefile", "sub/makefile", "GNUmakefile", "docker-compose.yaml"};
	static const char *const plain[] = {
		"main.py",           "header.h", "docs/HEADER",     ".gitignore",  ".github/README.md",
		"vscode/tasks.json", "envrc",    "workflows/x.yml", "Makefile.am", "github/workflows/x.yml",
		".vscode",           "a.envrc",  "package.json",    "data.csv",
	};
	const struct config config = {.data_dir = ""};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		assert_int_equal(workspace_guard(&config, held[i], false), WORKSPACE_HELD);
	for (size_t i = 0; i < ARRAY_SIZE(new); i++)
		assert_int_equal(workspace_guard(&config, new[i], false), WORKSPACE_HELD_NEW);
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		assert_int_equal(workspace_guard(&config, plain[i], false), WORKSPACE_FREE);
}

static void users_add_and_remove_patterns(void **state)
{
	const char *hold[] = {"*.sql", "deploy/"}, *allow[] = {"makefile", ".vscode/settings.json"},
		   *given[] = {"docs/"};
	const struct config config = {
		.workspace = {.hold = {hold, ARRAY_SIZE(hold)}, .allow = {allow, ARRAY_SIZE(allow)}},
		.workspace_folder.allow = {given, ARRAY_SIZE(given)},
	};

	(void)state;
	assert_int_equal(workspace_guard(&config, "a/x.SQL", false), WORKSPACE_HELD);
	assert_int_equal(workspace_guard(&config, "deploy/x", false), WORKSPACE_HELD);
	assert_int_equal(workspace_guard(&config, "Makefile", false), WORKSPACE_FREE);
	assert_int_equal(workspace_guard(&config, ".vscode/settings.json", false), WORKSPACE_FREE);
	assert_int_equal(workspace_guard(&config, ".vscode/tasks.json", false), WORKSPACE_HELD);
	assert_int_equal(workspace_guard(&config, "docs/HEAD", false), WORKSPACE_FREE);
}

static void all_below_a_repository_is_held(void **state)
{
	const struct config config = {.data_dir = ""};
	char deep[2048];

	(void)state;
	assert_int_equal(workspace_guard(&config, "repo.git/config", true), WORKSPACE_HELD);
	assert_int_equal(workspace_guard(&config, "main.py", true), WORKSPACE_HELD);
	for (size_t i = 0; i < sizeof(deep) - 1; i++)
		deep[i] = i % 2 ? '/' : 'a';
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(workspace_guard(&config, deep, false), WORKSPACE_HELD); /* deeper than SEGMENTS_MAX */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(git_is_known_in_every_spelling),
		cmocka_unit_test(the_list_holds_names_folders_and_paths),
		cmocka_unit_test(users_add_and_remove_patterns),
		cmocka_unit_test(all_below_a_repository_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
