/* limits.h - what a client may ask for: defaults and caps of the configuration, in the units of jail.h. */
#pragma once

#include "jail/client/jail.h"
#include "lib/base/config.h"
#include "lib/base/err.h"

/* 0 becomes the default. ERR_LIMIT names the limit and its cap. */
int limits_resolve(const struct config_limits *config, const struct jail_limits *asked, struct jail_limits *ret,
		   struct err *err);
/* {"wall_us":{"default":…,"max":…},…} */
struct json_object *limits_print(const struct config_limits *config);
