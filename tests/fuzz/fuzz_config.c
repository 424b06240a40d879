/* Any bytes as configuration file: taken, then its promises hold; or refused with a reason that names the file. */
#include <unistd.h>

#include "fuzz.h"
#include "lib/base/config.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	auto_close int fd = memfd_with("configuration", data, length);
	auto_free char *path = xasprintf("/proc/self/fd/%d", fd);
	struct config config;
	struct err err = ERR_INIT;

	PROMISE(fd >= 0);
	if (config_load(path, &config, &err) < 0) {
		PROMISE(str_starts(err.text, path) && utf8_valid(err.text, strlen(err.text)));
		return 0;
	}
	PROMISE(config.limits.wall_seconds >= 1 && config.limits.wall_seconds <= config.limits.wall_seconds_max);
	PROMISE(config.limits.memory_mb <= config.limits.memory_mb_max && config.limits.pids <= config.limits.pids_max);
	PROMISE(config.limits.data_mb <= config.limits.data_mb_max && config.limits.cpu_percent != 0);
	PROMISE(config.data_dir != NULL && (config.data_dir[0] == '\0' || config.data_dir[0] == '/'));
	PROMISE(config.gateway.socket != NULL && config.jailer.socket != NULL && config.jailer.cgroup[0] != '\0');
	config_clear(&config);
	return 0;
}
