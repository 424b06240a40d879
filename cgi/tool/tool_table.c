/* tool_table.c - see tool_table.h. One line per file. */
#include "tool_table.h"

#include "prompt_tools.h"
#include "tool_common.h"

/* list_runners takes no argument and comes first: probes call the first tool with {}. */
const struct tool *const tool_table[] = {
	&tool_list_runners,
	&tool_run_code,
	&tool_read_output,
	&tool_search_tools,
	&tool_describe_tools,
	&tool_list_files,
	&tool_read_file,
	&tool_write_file,
	&tool_delete_files,
	&tool_diff,
	&tool_restore_files,
	&tool_upload_file,
	&tool_reset_session,
	&tool_execute_code,
	&tool_execute_code_live,
	&tool_execute_code_both,
	&tool_initialize_sandbox,
	&tool_stop_sandbox,
	&tool_run_python,
	&tool_save_snippet,
	&tool_run_snippet,
	&tool_list_snippets,
	NULL,
};

const struct prompt *const prompt_table[] = {
	prompt_code,
	prompt_snippet,
	prompt_tools,
	NULL,
};
