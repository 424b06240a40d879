/* store_audit_config.h - the entry of a start that says what changed in the configuration since the last one. */
#pragma once

#include "lib/base/json.h"
#include "lib/store/store.h"

/* `shown`: what is set (config_shown), its secrets masked so that another secret is another text; `sum`: of all of
 * it. */
int store_audit_config(struct store *store, struct json_object *shown, const char sum[SHA256_HEX_SIZE],
		       struct err *err);
