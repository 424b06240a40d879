/* test_bridge_jail.c - programs in a real jail call tools: in every language, plain and at once, failures, images, the
 * helper; what they find in /code; the report of their calls. */
#include "bridge_try.h"

#include <string.h>

static struct jail_client *client;
static struct bridge_try with;

static int start(void **state)
{
	(void)state;
	client = try_client(NULL);
	bridge_try_begin(&with, NULL);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	bridge_try_end(&with);
	jail_client_free(client);
	return 0;
}

/* Runs it and returns what it printed, the caller's. */
static char *run_in(struct try *try, const char *runner, const char *code, struct bridge_report *report)
{
	struct bridge_run *run = bridge_try_open(&with, &bridge_try_caps);
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	struct bridge_files files = {0};
	struct err err = ERR_INIT;
	const struct bridge_known known[] = {{"fs-1", "Files"}, {"other", "Not loaded"}};
	const struct bridge_files_spec spec = {
		.lists = with.lists, .count = 1, .runner = runner, .known = known, .n_known = 2};

	if (bridge_files_make(&spec, &files, &err) < 0 ||
	    jail_fill_code(try->jail, files.files, files.count, &err) < 0)
		fail_msg("%s", err.text);
	bridge_files_clear(&files);
	const struct jail_program program = {.code_fd = code_fd,
					     .stdin_fd = -1,
					     .stdout_fd = try->out_fd,
					     .stderr_fd = try->error_fd,
					     .env = bridge_environment,
					     .tools = true,
					     .tools_fd = bridge_run_socket(run)};
	if (jail_run(try->jail, &program, &err) || jail_collect(try->jail, &err))
		fail_msg("%s", err.text);
	if (jail_client_wait(client, try->jail, &err))
		fail_msg("%s", err.text);
	bridge_close(run, report);
	auto_free char *out = try_read(try->out_fd);
	auto_free char *error = try_read(try->error_fd);
	return xasprintf("%s%s", out, error);
}

static void expect_in(const char *runner, const char *code, const char *says, struct bridge_report *report)
{
	auto_try struct try try = {.jail = NULL};
	const struct jail_spec spec = {.runner = runner};

	try_begin(client, &try, &spec);
	auto_free char *out = run_in(&try, runner, code, report);
	if (!streq(out, says))
		fail_msg("%s printed: %s (%s)", runner, out, try.result.message);
}

static void expect(const char *runner, const char *code, const char *says)
{
	expect_in(runner, code, says, NULL);
}

static void python_calls_tools_as_functions(void **state)
{
	(void)state;
	expect("python",
	       "from tools import fs_1\n"
	       "import tools\n"
	       "print(fs_1.read_file(path='a'), tools['fs-1']['get-sum'](a=1, b=2), tools.fs_1.get_sum({'a': 2, 'b': "
	       "3}))\n"
	       "print(fs_1.read_file(path='b', from_=3), tools.call('fs-1', 'read_file', {'path': 'c'}))\n"
	       "print([one['tool'] for one in tools.search('read file')], tools.servers()[0]['tools'])\n"
	       "print(fs_1.read_file.signature)\n"
	       "block = fs_1.image()[0]\n"
	       "print(block, block.data, block.save('/data/hello.png'), tools.read('fs-1', 'test://1')[0].text)\n"
	       "from tools.fs_1 import read_file\n"
	       "print(read_file.full(path='d').text, __name__)\n",
	       "content of a {'sum': 3} {'sum': 5}\n"
	       "content of b content of c\n"
	       "['read_file'] 7\n"
	       "read_file(*, path: str, from_: int = 1) -> Any\n"
	       "<image image/png> b'hello' /data/hello.png resource\n"
	       "content of d __main__\n");
}

static void python_awaits_calls_together(void **state)
{
	(void)state;
	with.together = 5;
	expect("python",
	       "import asyncio\n"
	       "print(await asyncio.gather(*[tools.fs_1.later(n=n) for n in range(5)]))\n"
	       "try:\n tools.fs_1.read_file(path='a') + 'x'\n"
	       "except TypeError as e: print(e)\n",
	       "['later', 'later', 'later', 'later', 'later']\n"
	       "tools.fs_1.read_file(...) was called in a coroutine: write `await tools.fs_1.read_file(...)`, or "
	       "tools.fs_1.read_file.sync(...)\n");
	with.together = 3;
	expect("python",
	       "from concurrent.futures import ThreadPoolExecutor\n"
	       "with ThreadPoolExecutor(3) as pool: print(list(pool.map(lambda n: tools.fs_1.later(n=n), range(3))))\n",
	       "['later', 'later', 'later']\n");
	with.together = 1;
	expect("python",
	       "import asyncio\n"
	       "async def main(): return await tools.fs_1.read_file.aio(path='own loop')\n"
	       "print(asyncio.run(main()))\n",
	       "content of own loop\n");
}

static void python_raises_what_failed(void **state)
{
	(void)state;
	expect("python",
	       "import tools\n"
	       "try: tools.fs_1.fails()\n"
	       "except tools.ToolError as e: print(e.kind, e.server, e.tool, e.text, e.content[0].text)\n"
	       "for bad in ({}, {'path': 1}, {'path': 'a', 'pat': 2}):\n"
	       " try: tools.fs_1.read_file(bad)\n"
	       " except tools.InvalidArguments as e: print(e)\n"
	       "try: tools.call('fs-1', 'read_fil')\n"
	       "except tools.InvalidArguments as e: print(e.text)\n"
	       "try: tools.fs_1.nothing\n"
	       "except AttributeError as e: print(str(e)[:36])\n"
	       "try: tools.call('fs-1', 'never', timeout=0.01)\n"
	       "except tools.Timeout as e: print(e.kind)\n"
	       "try: tools.fs_1.read_file(path=float('nan'))\n"
	       "except ValueError as e: print('NaN')\n",
	       "tool fs-1 fails no such thing no such thing\n"
	       "fs-1.read_file failed: path: is missing\nsignature: read_file(*, path: str, from_: int = 1) -> Any\n"
	       "fs-1.read_file failed: path: must be a string, not a number\n"
	       "signature: read_file(*, path: str, from_: int = 1) -> Any\n"
	       "fs-1.read_file failed: pat: is not an argument of this tool: did you mean path?\n"
	       "signature: read_file(*, path: str, from_: int = 1) -> Any\n"
	       "fs-1 has no tool \"read_fil\", did you mean \"read_file\"?\n"
	       "server fs-1 has no tool nothing; it \n"
	       "timeout\n"
	       "NaN\n");
}

/* An error that nobody catches shows the program's own lines, and no others. */
static void python_shows_only_lines_of_the_program(void **state)
{
	(void)state;
	expect("python", "def f():\n    return 1 / 0\nf()\n",
	       "Traceback (most recent call last):\n  File \"/code/main.py\", line 3, in <module>\n    f()\n"
	       "  File \"/code/main.py\", line 2, in f\n    return 1 / 0\n           ~~^~~\n"
	       "ZeroDivisionError: division by zero\n");
	expect("python", "async def f():\n    return 1 / 0\nawait f()\n",
	       "Traceback (most recent call last):\n  File \"/code/main.py\", line 3, in <module>\n    await f()\n"
	       "  File \"/code/main.py\", line 2, in f\n    return 1 / 0\n           ~~^~~\n"
	       "ZeroDivisionError: division by zero\n");
	expect("python", "import asyncio\nasyncio.run(asyncio.sleep(0))\nraise SystemExit('left')\n", "left\n");
	expect("python", "print(1)\nif x\n    pass\n",
	       "  File \"/code/main.py\", line 2\n    if x\n        ^\nSyntaxError: expected ':'\n");
	/* What the compiler warns of is said once, with the program's file; nothing runs twice. */
	expect("python", "print(1 is 1)\nf = lambda: (lambda: __file__)\nprint(f.__code__.co_filename, f()())\n",
	       "True\n/code/main.py /code/main.py\n"
	       "/code/main.py:1: SyntaxWarning: \"is\" with a literal. Did you mean \"==\"?\n  print(1 is 1)\n");
	expect("python", "from __future__ import annotations\nimport sys\ndef f(x: nothing): pass\n"
	       "print(f.__annotations__, sys.gettrace(), __name__)\n", "{'x': 'nothing'} None __main__\n");
}

static void python_code_of_the_seed_still_runs(void **state)
{
	(void)state;
	expect("python",
	       "import mcp.runtime as runtime\n"
	       "result = await mcp_fs_1.read_file(path='a')\n"
	       "print(result['content'][0]['text'], (await mcp_fs_1.fails())['isError'])\n"
	       "print((await mcp_servers['fs-1'].get_sum(a=1, b=1))['structuredContent'], LOADED_MCP_SERVERS)\n"
	       "print(runtime.list_servers_sync(), await runtime.list_servers(), runtime.discovered_servers())\n"
	       "print(runtime.discovered_servers(detailed=True)[1], runtime.describe_server('fs-1')['tools'][1])\n"
	       "print((await runtime.query_tool_docs('fs-1', 'get-sum'))['toolAlias'])\n"
	       "print([one['tool'] for one in await runtime.search_tool_docs('read', limit=3)])\n"
	       "from mcp.servers.fs_1 import *\n"
	       "print((await get_sum(a=1, b=2))['structuredContent'], TOOL_MAP['get_sum']['name'], len(TOOLS))\n"
	       "try: await runtime.call_tool('other', 'x')\n"
	       "except runtime.MCPError as e: print(e)\n",
	       "content of a True\n"
	       "{'sum': 2} ('fs-1',)\n"
	       "('fs-1',) ('fs-1',) ('fs-1', 'other')\n"
	       "{'name': 'other', 'description': 'Not loaded'} {'name': 'get-sum', 'alias': 'get_sum', 'description': "
	       "'Adds.', "
	       "'input_schema': {'type': 'object', 'properties': {'a': {'type': 'number'}, 'b': {'type': 'number'}}, "
	       "'required': ['a', 'b']}}\n"
	       "get_sum\n"
	       "['read_file']\n"
	       "{'sum': 3} get-sum 7\n"
	       "Server 'other' is not available\n");
}

#define SCRIPT                                                                                                         \
	"const all = await Promise.all([fs_1.read_file({ path: 'a' }), tools['fs-1']['get-sum']({ a: 1, b: 2 })]);\n"  \
	"console.log(JSON.stringify(all));\n"                                                                          \
	"try { await tools.fs_1.fails(); } catch (e) { console.log(e instanceof ToolError, e.kind, e.text); }\n"       \
	"try { await tools.fs_1.read_file({}); } catch (e) { console.log(e.name, e.message); }\n"                      \
	"console.log((await tools.fs_1.image())[0].data.toString(), (await tools.search('read file'))[0].tool);\n"     \
	"console.log((await tools.read('fs-1', 'test://1'))[0].text, await read_file({ path: 'b' }));\n"
#define SAYS                                                                                                           \
	"[\"content of a\",{\"sum\":3}]\ntrue tool no such thing\n"                                                    \
	"InvalidArguments fs-1.read_file failed: path: is missing\n"                                                   \
	"signature: read_file(*, path: str, from_: int = 1) -> Any\nhello read_file\nresource content of b\n"

static void javascript_calls_tools_by_every_import(void **state)
{
	(void)state;
	expect("javascript",
	       "import { fs_1, ToolError } from 'tools';\nimport { read_file } from 'tools/fs_1';\n" SCRIPT, SAYS);
	expect("javascript",
	       "const { fs_1 } = require('tools');\nfs_1.read_file({ path: 'a' }).then((text) => console.log(text));\n",
	       "content of a\n");
	expect("javascript", "tools.fs_1.read_file({ path: 'global' }).then(console.log);\n", "content of global\n");
}

static void typescript_calls_tools_as_javascript_does(void **state)
{
	(void)state;
	expect("typescript",
	       "import { fs_1, ToolError } from 'tools';\nimport { read_file } from 'tools/fs_1';\nconst n: number = "
	       "1;\n" SCRIPT,
	       SAYS);
}

static void the_program_mcp_calls_tools_for_shells(void **state)
{
	struct bridge_report report = {0};

	(void)state;
	expect_in("bash",
		  "exec 2>&1\n"
		  "mcp call fs-1.read_file path=notes.txt\n"
		  "mcp call fs_1 get-sum a:=1 b:=2.5\n"
		  "echo '{\"path\":\"in\"}' | mcp call fs-1.read_file --json -\n"
		  "mcp call fs-1.fails; echo $?\n"
		  "mcp call fs-1.read_file path:=1; echo $?\n"
		  "mcp call fs-1.never --timeout 0.01; echo $?\n"
		  "mcp servers; mcp search sum; mcp tools fs-1 | wc -l; mcp describe fs-1.get-sum | grep -c get_sum\n"
		  "for i in 1 2 3; do mcp call fs-1.read_file path=$i & done | sort; wait\n"
		  "head -1 /code/tools/index.txt; grep -c def /code/tools/stubs/fs_1.pyi\n",
		  "content of notes.txt\n{\"sum\":3.5}\ncontent of in\nno such thing\nsignature: fails() -> Any\n1\n"
		  "path: must be a string, not a number\nsignature: read_file(*, path: str, from_: int = 1) -> Any\n2\n"
		  "no answer within the call's time\n5\n"
		  "fs-1 - Files\nfs-1.get_sum(*, a: float, b: float) -> {'sum'?: float}  # Adds.\n7\n1\n"
		  "content of 1\ncontent of 2\ncontent of 3\nfs-1.read_file - Read one file.\n7\n",
		  &report);
	assert_int_equal(report.count, 9);
	assert_int_equal(report.calls, 9);
	assert_string_equal(report.records[0].server, "fs-1");
	assert_string_equal(report.records[0].tool, "read_file");
	assert_string_equal(report.records[0].state, "done");
	assert_string_equal(report.records[0].decision, "allow");
	assert_string_equal(report.records[0].arguments, "{\"path\":\"notes.txt\"}");
	assert_string_equal(report.records[3].state, "failed");
	assert_true(report.records[3].is_error);
	assert_string_equal(report.records[4].state, "refused");
	assert_string_equal(report.records[4].kind, "invalid");
	assert_string_equal(report.records[5].kind, "timeout");
	bridge_report_clear(&report);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(python_calls_tools_as_functions),
		cmocka_unit_test(python_awaits_calls_together),
		cmocka_unit_test(python_raises_what_failed),
		cmocka_unit_test(python_shows_only_lines_of_the_program),
		cmocka_unit_test(python_code_of_the_seed_still_runs),
		cmocka_unit_test(javascript_calls_tools_by_every_import),
		cmocka_unit_test(typescript_calls_tools_as_javascript_does),
		cmocka_unit_test(the_program_mcp_calls_tools_for_shells),
	};

	return try_run(tests, argc, argv, start, stop);
}
