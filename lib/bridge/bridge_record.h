/* bridge_record.h - a run's servers and calls as the store keeps them. */
#pragma once

#include "bridge.h"
#include "lib/store/record/store_tool.h"

/* Takes what is in the report, which is empty then. */
void bridge_record(struct upstream_list *const *lists, size_t count, struct bridge_report *report,
		   struct store_tools *ret);
/* SHA-256 over arguments in their canonical form: members sorted, no blanks; numbers as they are written. */
void bridge_record_hash(const char *arguments, size_t length, char ret[SHA256_HEX_SIZE]);
