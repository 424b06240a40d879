/* skill_table.c - see tool_table.h. One table a skill: its files, of the folder cgi/tool/skills. */
#include "lib/base/embed.h"
#include "tool_common.h"
#include "tool_table.h"

#define FOLDER "cgi/tool/skills/"
EMBED(skill_run_code, FOLDER "run-code/SKILL.md");
EMBED(skill_run_code_files, FOLDER "run-code/references/files.md");
EMBED(skill_tools, FOLDER "call-tools-from-code/SKILL.md");
EMBED(skill_grade, FOLDER "grade/SKILL.md");
EMBED(skill_grade_judge, FOLDER "grade/scripts/judge.py");

static const struct skill_file run_code[] = {
	{SKILL_MANIFEST, skill_run_code, skill_run_code_end},
	{"references/files.md", skill_run_code_files, skill_run_code_files_end},
	{0},
};
static const struct skill_file tools[] = {
	{SKILL_MANIFEST, skill_tools, skill_tools_end},
	{0},
};
static const struct skill_file grade[] = {
	{SKILL_MANIFEST, skill_grade, skill_grade_end},
	{"scripts/judge.py", skill_grade_judge, skill_grade_judge_end},
	{0},
};

const struct skill skill_table[] = {
	{.name = "run-code", .files = run_code},
	{.name = "call-tools-from-code", .files = tools, .enabled = tool_servers_code},
	{.name = "grade", .files = grade},
	{0},
};
