/* commands.h - the entries that the cmd_*.c files export, one each. */
#pragma once

#include "cli.h"

extern const struct cli_command cmd_run, cmd_log, cmd_show, cmd_replay, cmd_grade, cmd_token, cmd_doctor;
extern const struct cli_command cmd_promote, cmd_normalisers, cmd_export, cmd_import;
extern const struct cli_command cmd_checkpoint, cmd_verify, cmd_prove, cmd_backup, cmd_restore;
extern const struct cli_command cmd_selftest;
extern const struct cli_command cmd_stdio, cmd_upstream;
extern const struct cli_command cmd_help, cmd_version;
