/*
 * upstream_bare.h - starts the upstream servers whose entries say "jail": false: as children of this process, with its
 * account, PATH, HOME and LANG, each in a process group of its own, which ends as a whole.
 */
#pragma once

#include "upstream_pipe.h"

extern const struct launcher bare_launcher;
