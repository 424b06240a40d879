/* limits.c - see limits.h. */
#include "limits.h"

#include "lib/base/util.h"

#define SECOND INT64_C(1000000)
#define MEBI   INT64_C(1048576)

struct bound {
	const char *name;
	size_t offset;
	int64_t standard, most; /* default and cap */
};

#define BOUND(field, standard_value, most_value)                                                                       \
	{                                                                                                              \
#field, offsetof(struct jail_limits, field), standard_value, most_value                                \
	}
#define BOUNDS 11

static void bounds_of(const struct config_limits *config, struct bound ret[BOUNDS])
{
	const struct bound bounds[] = {
		BOUND(wall_us, config->wall_seconds * SECOND, config->wall_seconds_max * SECOND),
		/* CPU time: as the wall time; several cores may use more, so the cap is generous. */
		BOUND(cpu_us, 0, config->wall_seconds_max * SECOND * 64),
		BOUND(cpu_percent, config->cpu_percent, 1000000),
		BOUND(memory_bytes, config->memory_mb * MEBI, config->memory_mb_max * MEBI),
		BOUND(pids, config->pids, config->pids_max),
		BOUND(data_bytes, config->data_mb * MEBI, config->data_mb_max * MEBI),
		BOUND(data_inodes, config->data_inodes, config->data_inodes),
		BOUND(tmp_bytes, config->tmp_mb * MEBI, config->tmp_mb * MEBI),
		BOUND(output_bytes, config->output_mb * MEBI, config->output_mb * MEBI),
		BOUND(compile_wall_us, config->compile_seconds * SECOND, config->compile_seconds * SECOND),
		BOUND(compile_memory_bytes, config->compile_memory_mb * MEBI, config->compile_memory_mb * MEBI),
	};

	_Static_assert(ARRAY_SIZE(bounds) == BOUNDS, "one bound a limit");
	__builtin_memcpy(ret, bounds, sizeof(bounds));
}

int limits_resolve(const struct config_limits *config, const struct jail_limits *asked, struct jail_limits *ret,
		   struct err *err)
{
	struct bound bounds[BOUNDS];
	struct jail_limits limits = *asked;

	bounds_of(config, bounds);
	for (size_t i = 0; i < BOUNDS; i++) {
		int64_t *value = (int64_t *)(void *)((char *)&limits + bounds[i].offset);

		if (*value == 0)
			*value = bounds[i].standard;
		if (*value > bounds[i].most)
			return err_set(err, ERR_LIMIT, "limits.%s: %lld is more than this server allows, %lld",
				       bounds[i].name, (long long)*value, (long long)bounds[i].most);
	}
	if (limits.cpu_us == 0)
		limits.cpu_us = limits.wall_us;
	*ret = limits;
	return 0;
}

struct json_object *limits_print(const struct config_limits *config)
{
	struct json_object *object = json_object_new_object();
	struct bound bounds[BOUNDS];

	bounds_of(config, bounds);
	for (size_t i = 0; i < BOUNDS; i++) {
		struct json_object *pair = json_object_new_object();

		json_add_int(pair, "default", bounds[i].standard ? bounds[i].standard : config->wall_seconds * SECOND);
		json_add_int(pair, "max", bounds[i].most);
		json_add(object, bounds[i].name, pair);
	}
	return object;
}
