/* test_upstream_config.c - upstream.file as people have it in their clients; names; who may call what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/upstream/upstream.h"
#include "lib/upstream/upstream_cause.h"
#include "lib/upstream/upstream_policy.h"

static char folder[] = "/tmp/sallyport-upstream-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static void put(const char *name, const char *text)
{
	auto_free char *path = xasprintf("%s/%s", folder, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
}

static int tear_down(void **state)
{
	static const char *const files[] = {"mcp.json", "FROM_FILE"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		auto_free char *path = xasprintf("%s/%s", folder, files[i]);

		unlink(path);
	}
	return rmdir(folder);
}

static int load(const char *text, struct upstream_file *ret, struct err *err)
{
	auto_free char *path = xasprintf("%s/mcp.json", folder);
	const char *binds[] = {"/srv/a"};
	struct config config = {
		.data_dir = "",
		.public_base_url = "http://127.0.0.1:8080",
		.upstream = {.file = path, .secrets_dir = folder, .binds = {binds, 1}},
	};

	put("mcp.json", text);
	return upstream_config_load(&config, ret, err);
}

static bool keeps_secret(const struct upstream_server *server, const char *text)
{
	for (size_t i = 0; i < server->secrets.count; i++)
		if (streq(server->secrets.items[i], text))
			return true;
	return false;
}

/* As it is in the documentation of clients, pasted. */
static void a_pasted_entry_is_taken(void **state)
{
	struct upstream_file file;
	struct err err = ERR_INIT;

	(void)state;
	setenv("UPSTREAM_TOKEN", "ghp_0123456789", 1);
	unsetenv("UPSTREAM_ABSENT");
	put("FROM_FILE", "filed-secret\n");
	assert_int_equal(load("{ // pasted\n\"mcpServers\": {"
			      "\"github\": {\"type\": \"http\", \"url\": \"https://api.example.com/mcp/\","
			      " \"headers\": {\"Authorization\": \"Bearer ${UPSTREAM_TOKEN}\"}, \"autoApprove\": []},"
			      "\"file-system\": {\"command\": \"npx\", \"jail\": false, \"args\": [\"-y\", \"x\", "
			      "\"${UPSTREAM_ABSENT:-/data}\"],"
			      " \"env\": {\"KEY\": \"${FROM_FILE}\", \"PLAIN\": \"$HOME\"}},"
			      "\"broken\": {\"command\": \"x\", \"args\": [\"a\", \"${UPSTREAM_ABSENT}\"]},"
			      "\"odd\": {\"command\": \"x\", \"comand\": 1},"
			      "\"off\": {\"command\": \"x\", \"disabled\": true}}}",
			      &file, &err),
			 0);
	assert_int_equal(file.count, 5);
	const struct upstream_server *server = &file.servers[0];

	assert_null(server->problem);
	assert_string_equal(server->headers.values[0], "Bearer ghp_0123456789");
	assert_true(keeps_secret(server, "ghp_0123456789"));
	assert_null(strstr(server->identity, "ghp_"));
	assert_int_equal(file.warnings.count, 1);
	server = &file.servers[1];
	assert_null(server->problem);
	assert_string_equal(server->alias, "file_system");
	assert_string_equal(server->args.items[2], "/data");
	assert_string_equal(server->env.values[0], "filed-secret");
	assert_string_equal(server->env.values[1], "$HOME");
	assert_false(server->jail);
	assert_int_equal(server->timeout_seconds, 60);
	assert_string_equal(file.servers[2].problem,
			    "mcpServers.broken.args[1]: the variable UPSTREAM_ABSENT is not set");
	assert_string_equal(file.servers[3].problem,
			    "mcpServers.odd.comand: unknown member, did you mean \"command\"?");
	assert_string_equal(file.servers[4].problem, "mcpServers.off.disabled: is true");
	upstream_config_clear(&file);
}

#define KEEPS_ALONE                                                                                                    \
	"data: \"keep\" goes with one process at a time: neither with \"share\": \"run\" nor with several instances"

static void entries_that_are_wrong(void **state)
{
	static const struct {
		const char *entry, *problem;
	} cases[] = {
		{"{}", "command: there must be either command or url"},
		{"{\"command\": \"x\", \"url\": \"http://a/\"}", "command: there must be either command or url"},
		{"{\"url\": \"ftp://a/\"}", "url: must begin with http:// or https://"},
		{"{\"url\": \"http://me:pw@a/\"}", "url: must not have a user: put credentials into headers"},
		{"{\"url\": \"http://a/\", \"type\": \"ws\"}", "type: \"ws\" is not spoken: use stdio or http"},
		{"{\"url\": \"http://a/\", \"type\": \"stdio\"}", "type: \"stdio\" does not go with url"},
		{"{\"url\": \"http://a/\", \"headers\": {\"a b\": \"c\"}}",
		 "headers: \"a b\" is not the name of a header"},
		{"{\"url\": \"http://a/\", \"headers\": {\"A\": \"c\\nd\"}}",
		 "headers: the value of \"A\" must be one line"},
		{"{\"command\": \"x\", \"args\": [\"${input:token}\"]}",
		 "args[0]: ${input:token} is not known here: use ${NAME} or ${NAME:-default} with a variable's name"},
		{"{\"command\": \"x\", \"share\": \"none\"}", "share: must be one of \"owner\", \"run\", \"all\""},
		{"{\"command\": \"x\", \"start\": \"gateway\"}",
		 "start: \"gateway\" goes with \"share\": \"all\": else nobody is there to start it for"},
		{"{\"command\": \"/usr/bin/npx\"}",
		 "command: npx cannot work in a jail: install the server into a folder of upstream.binds and name its "
		 "program (node, python3 or its path), or say \"jail\": false"},
		{"{\"command\": \"x\", \"cwd\": \"srv\"}", "cwd: must be an absolute path, as the jail has it"},
		{"{\"command\": \"x\", \"binds\": [\"/srv/a\", \"/srv/b\"]}",
		 "binds: /srv/b is not one of upstream.binds in the configuration"},
		{"{\"command\": \"x\", \"binds\": [], \"jail\": false}", "binds: goes with a command in a jail"},
		{"{\"url\": \"http://a/\", \"data\": \"keep\"}", "data: \"keep\" goes with a command in a jail"},
		{"{\"command\": \"x\", \"data\": \"keep\", \"jail\": false}",
		 "data: \"keep\" goes with a command in a jail"},
		{"{\"command\": \"x\", \"data\": \"keep\", \"share\": \"run\"}", KEEPS_ALONE},
		{"{\"command\": \"x\", \"data\": \"keep\", \"instances\": 2}", KEEPS_ALONE},
		{"{\"command\": \"x\", \"data\": \"keep\"}", "data: \"keep\" needs data_dir in the configuration"},
		{"{\"command\": \"x\", \"network\": [\"*.a.com:443\"]}",
		 "network: \"*.a.com:443\" must be HOST:PORT, and the server in a jail"},
		{"7", ": must be an object"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free char *text =
			xasprintf("{\"servers\": {\"a\": %s, \"b\": {\"command\": \"x\"}}}", cases[i].entry);
		auto_free char *problem =
			xasprintf("mcpServers.a%s%s", &"."[cases[i].problem[0] == ':'], cases[i].problem);
		struct upstream_file file;

		assert_int_equal(load(text, &file, NULL), 0);
		assert_string_equal(file.servers[0].problem, problem);
		assert_null(file.servers[1].problem);
		upstream_config_clear(&file);
	}
}

static void files_that_are_wrong(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"{\"mcpServers\": {\"my-tool\": {\"command\": \"x\"}, \"My_Tool\": {\"command\": \"x\"}}}",
		 "mcpServers.my-tool and mcpServers.My_Tool are both `My_Tool` in programs: rename one of them"},
		{"{\"mcpServers\": {\"search\": {\"command\": \"x\"}}}",
		 "mcpServers.search: `search` is a word of the module `tools`: give the server another name"},
		{"{\"mcpServers\": {\"a b\": {\"command\": \"x\"}}}",
		 "mcpServers: the name \"a b\" must have no blanks and none of \" \\ , / *"},
		{"{\"mcpServers\": {\"us\": {\"url\": \"http://127.0.0.1:8080/mcp\"}}}",
		 "mcpServers.us.url: is this gateway itself"},
		{"{\"mcpServers\": 1}", "mcpServers: must be there, an object of servers"},
		{"{", "not JSON: the text ends too early at byte 2 (line 1)"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free char *error = xasprintf("upstream.file %s/mcp.json: %s", folder, cases[i].error);
		struct upstream_file file;
		struct err err = ERR_INIT;

		assert_true(load(cases[i].text, &file, &err) < 0);
		assert_string_equal(err.text, error);
	}
}

static void names_become_identifiers(void **state)
{
	static const char *const cases[][2] = {
		{"github", "github"},  {"my-tool", "my_tool"},       {"get--sum", "get_sum"},
		{"3d", "_3d"},         {"class", "class_"},          {"from", "from_"},
		{"typeof", "typeof_"}, {"\xc3\xa9t\xc3\xa9", "_t_"}, {"", "_"},
		{"Get.It", "Get_It"},
	};
	char alias[UPSTREAM_ALIAS_SIZE], longest[400];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		upstream_name_alias(cases[i][0], alias);
		assert_string_equal(alias, cases[i][1]);
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	upstream_name_alias(longest, alias);
	assert_int_equal(strlen(alias), UPSTREAM_NAME_MAX);
	assert_true(upstream_name_reserved("then"));
	assert_false(upstream_name_reserved("github"));
}

static void the_stricter_of_grant_and_entry_decides(void **state)
{
	static const struct {
		const char *grant, *tool;
		enum upstream_pin pin;
		enum upstream_decision decision;
		const char *rule;
	} cases[] = {
		{NULL, "get_x", 0, UPSTREAM_DENY, "the token is not given this server"},
		{"files", "get_x", 0, UPSTREAM_DENY, "the token is not given this server"},
		{"github", "get_x", 0, UPSTREAM_ALLOW, "github.tools.allow get_*"},
		{"*", "get_x", 0, UPSTREAM_ALLOW, "github.tools.allow get_*"},
		{"github", "get_secret", 0, UPSTREAM_DENY, "github.tools.deny *secret*"},
		{"github", "send", 0, UPSTREAM_ASK, "github.tools.ask send"},
		{"github", "other", 0, UPSTREAM_ASK, "github.tools.default"},
		{"github.send", "get_x", 0, UPSTREAM_DENY, "the token is not given this tool"},
		{"github.send,files", "send", 0, UPSTREAM_ASK, "github.tools.ask send"},
		{"ask:github.get_*", "get_x", 0, UPSTREAM_ASK, "token ask:github.get_*"},
		{"github,deny:github.get_*", "get_x", 0, UPSTREAM_DENY, "token deny:github.get_*"},
		{"deny:github.get_*,github", "get_x", 0, UPSTREAM_DENY, "token deny:github.get_*"},
		{"ask:github,github.get_*", "get_x", 0, UPSTREAM_ALLOW, "github.tools.allow get_*"},
		{"github", "get_x", UPSTREAM_PIN_CHANGED, UPSTREAM_ASK,
		 "github: the tool's definition changed: `sallyport upstream accept`"},
	};
	const char *allow[] = {"get_*"}, *ask[] = {"send"}, *deny[] = {"*secret*"};
	struct upstream_server server = {
		.name = "github",
		.alias = "github",
		.tools = {{allow, 1}, {ask, 1}, {deny, 1}, UPSTREAM_ASK},
	};
	char rule[UPSTREAM_RULE_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct upstream_question question = {cases[i].grant, &server, cases[i].tool, NULL, cases[i].pin};

		assert_string_equal(upstream_decision_name(upstream_decide(&question, rule)),
				    upstream_decision_name(cases[i].decision));
		assert_string_equal(rule, cases[i].rule);
	}
	server.pin = true;
	struct upstream_question question = {"*", &server, "get_x", NULL, UPSTREAM_PIN_CHANGED};

	assert_int_equal(upstream_decide(&question, rule), UPSTREAM_DENY);
}

/* A server that the operator named for a token may be called, also where nobody can be asked. */
static void without_a_default_named_servers_are_allowed(void **state)
{
	static const char *const notes[] = {"{}", "{\"annotations\":{\"destructiveHint\":false}}",
					    "{\"annotations\":{\"destructiveHint\":true}}"};
	const char *ask[] = {"send"};
	struct upstream_server server = {
		.name = "s", .alias = "s", .tools = {.otherwise = UPSTREAM_UNSAID, .ask = {ask, 1}}};
	char rule[UPSTREAM_RULE_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		auto_json struct json_object *object = NULL;

		assert_int_equal(json_parse(notes[i], strlen(notes[i]), &object, NULL), 0);
		const struct upstream_tool tool = {.name = "t", .object = object};
		struct upstream_question question = {"s", &server, "t", &tool, UPSTREAM_PIN_KNOWN};

		assert_int_equal(upstream_decide(&question, rule), i == 2 ? UPSTREAM_ASK : UPSTREAM_ALLOW);
		assert_true(upstream_policy_lenient(&question));
		question.grant = "ask:s";
		assert_int_equal(upstream_decide(&question, rule), UPSTREAM_ASK);
		assert_false(upstream_policy_lenient(&question));
		question.grant = "other";
		assert_int_equal(upstream_decide(&question, rule), UPSTREAM_DENY);
	}
	struct upstream_question named = {"s", &server, "send", NULL, UPSTREAM_PIN_KNOWN};
	assert_int_equal(upstream_decide(&named, rule), UPSTREAM_ASK);
	assert_false(upstream_policy_lenient(&named));
}

static void the_cause_of_an_end_is_one_line(void **state)
{
	static const struct {
		const char *errors, *cause;
	} cases[] = {
		{"", ""},
		{"starting\nno licence\n", "no licence"},
		{"file:///srv/s.mjs:7\nif (!there) throw new Error(`Cannot open ${it}`);\n            ^\n\n"
		 "Error: Cannot open /x\n    at file:///srv/s.mjs:7:9\n",
		 "Error: Cannot open /x"},
		{"node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/srv/x.js'\n"
		 "    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)\n"
		 "  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v22.1.0\n",
		 "Error: Cannot find module '/srv/x.js'"},
		{"Traceback (most recent call last):\n  File \"/srv/s.py\", line 3, in <module>\n    import nothing\n"
		 "ModuleNotFoundError: No module named 'nothing'\n",
		 "ModuleNotFoundError: No module named 'nothing'"},
		{"Usage: mcp-server-filesystem <allowed-directory>\n",
		 "Usage: mcp-server-filesystem <allowed-directory>"},
		{"Error accessing directory /srv/docs: Error: ENOENT: no such file\nbye\n",
		 "Error accessing directory /srv/docs: Error: ENOENT: no such file"},
	};
	const char *folders[] = {"/srv/shown"}, *path = NULL;
	const struct bind_strings shown = {folders, 1};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_buf struct buf out = {0};

		buf_init(&out, 4096);
		upstream_cause(cases[i].errors, strlen(cases[i].errors), &out);
		buf_putc(&out, '\0');
		assert_string_equal(out.data, cases[i].cause);
	}
	assert_int_equal(upstream_cause_unseen("no /srv/shown/a, /usr/x and http://h/x", &shown, &path), 0);
	assert_int_equal(upstream_cause_unseen("open '/srv/docs' failed", &shown, &path), strlen("/srv/docs"));
	assert_memory_equal(path, "/srv/docs'", 10);
}

static void patterns_match(void **state)
{
	(void)state;
	assert_true(upstream_policy_matches("*", ""));
	assert_true(upstream_policy_matches("a*c", "abcbc"));
	assert_false(upstream_policy_matches("a*c", "abcb"));
	assert_false(upstream_policy_matches("", "a"));
	assert_int_equal(upstream_policy_check("github,files.read_*,ask:mail.send,deny:x.*", NULL), 0);
	assert_true(upstream_policy_check("github,,files", NULL) < 0);
	assert_true(upstream_policy_check("git hub", NULL) < 0);
	assert_true(upstream_policy_check(".x", NULL) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pasted_entry_is_taken),
		cmocka_unit_test(entries_that_are_wrong),
		cmocka_unit_test(files_that_are_wrong),
		cmocka_unit_test(names_become_identifiers),
		cmocka_unit_test(the_stricter_of_grant_and_entry_decides),
		cmocka_unit_test(without_a_default_named_servers_are_allowed),
		cmocka_unit_test(the_cause_of_an_end_is_one_line),
		cmocka_unit_test(patterns_match),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
