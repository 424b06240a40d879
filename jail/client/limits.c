/* limits.c - see limits.h. */
#include "limits.h"

const struct bind jail_limits_table[] = {
#define RUN_LIMIT(field, standard, most, least_)                                                                       \
	{.name = #field,                                                                                               \
	 .type = BIND_INT,                                                                                             \
	 .offset = offsetof(struct jail_limits, field),                                                                \
	 .min = least_,                                                                                                \
	 .max = LIMITS_MAX},
#include "lib/base/limits.def"
	{0},
};

static int resolve(int64_t *value, const char *name, int64_t standard, int64_t most, struct err *err)
{
	if (*value == 0)
		*value = standard;
	if (*value > most)
		return err_set(err, ERR_LIMIT, "limits.%s: %lld is more than this server allows, %lld", name,
			       (long long)*value, (long long)most);
	return 0;
}

int limits_resolve(const struct config_limits *limits, const struct jail_limits *asked, struct jail_limits *ret,
		   struct err *err)
{
	struct jail_limits resolved = *asked;

#define RUN_LIMIT(field, standard, most, ...)                                                                          \
	if (resolve(&resolved.field, #field, standard, most, err) < 0)                                                 \
		return -ERR_LIMIT;
#include "lib/base/limits.def"
	if (resolved.cpu_us == 0)
		resolved.cpu_us = resolved.wall_us;
	*ret = resolved;
	return 0;
}

static void print_pair(struct json_object *object, const char *name, int64_t standard, int64_t most)
{
	struct json_object *pair = json_object_new_object();

	json_add_int(pair, "default", standard);
	json_add_int(pair, "max", most);
	json_add(object, name, pair);
}

struct json_object *limits_print(const struct config_limits *limits)
{
	struct json_object *object = json_object_new_object();
	struct jail_limits standard_limits = {0};

	limits_resolve(limits, &standard_limits, &standard_limits, NULL);
#define RUN_LIMIT(field, standard, most, ...) print_pair(object, #field, standard_limits.field, most);
#include "lib/base/limits.def"
	return object;
}
