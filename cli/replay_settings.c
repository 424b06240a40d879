/*
 * replay_settings.c - what is compared, and what results depend on.
 */
#include <stdlib.h>
#include <string.h>

#include "jail/client/client_runners.h"
#include "lib/base/util.h"
#include "replay.h"

#define BY_DEFAULT (REPLAY_BY_VERDICT | REPLAY_BY_EXIT | REPLAY_BY_STDOUT | REPLAY_BY_STDERR | REPLAY_BY_FILES)

static const struct {
	const char *name;
	unsigned bit;
} bys[] = {
	{"verdict", REPLAY_BY_VERDICT}, {"exit", REPLAY_BY_EXIT},   {"stdout", REPLAY_BY_STDOUT},
	{"stderr", REPLAY_BY_STDERR},   {"files", REPLAY_BY_FILES}, {"cpu", REPLAY_BY_CPU},
	{"memory", REPLAY_BY_MEMORY},   {"default", BY_DEFAULT},    {"all", 2 * REPLAY_BY_MEMORY - 1},
};

int replay_settings_by(const char *list, unsigned *ret, struct err *err)
{
	unsigned which = list && *list != '-' ? 0 : BY_DEFAULT;

	while (list && *list) {
		size_t length = strcspn(list, ","), i = 0;
		bool less = *list == '-';

		while (i < ARRAY_SIZE(bys) &&
		       (strlen(bys[i].name) != length - less || memcmp(bys[i].name, list + less, length - less) != 0))
			i++;
		if (i == ARRAY_SIZE(bys))
			return err_set(
				err, ERR_INVALID,
				"--compare takes verdict, exit, stdout, stderr, files, cpu and memory, not \"%.*s\"",
				(int)MIN(length, (size_t)64), list);
		which = less ? which & ~bys[i].bit : which | bys[i].bit;
		list += length + (list[length] == ',');
	}
	*ret = which;
	return 0;
}

void replay_settings_item_key(const char key[SHA256_HEX_SIZE], int64_t generation, char ret[SHA256_HEX_SIZE])
{
	auto_free char *both = xasprintf("%s %lld", key, (long long)generation);

	if (generation > 1)
		sha256_hex(both, strlen(both), ret);
	else
		memcpy(ret, key, SHA256_HEX_SIZE);
}

int replay_settings_secrets(const struct bind_strings *list, struct job_secrets *ret, struct err *err)
{
	for (size_t i = 0; i < list->count; i++) {
		const char *text = list->items[i], *equals = strchr(text, '=');
		auto_free char *name = xstrndup(text, equals ? (size_t)(equals - text) : strlen(text));
		const char *value = equals ? equals + 1 : getenv(name);

		if (!job_variable_valid(name, strlen(name)))
			return err_set(err, ERR_INVALID, "--secret takes NAME=VALUE or NAME, not \"%s\"", name);
		if (!value)
			return err_set(err, ERR_INVALID, "--secret %s: there is no such variable in our environment",
				       name);
		job_secrets_add(ret, name, value);
	}
	return 0;
}

void replay_settings_key(const struct replay_settings *settings, struct json_object *runners, char ret[SHA256_HEX_SIZE])
{
	auto_buf struct buf text = {0};

	buf_init(&text, SIZE_MAX / 2);
	buf_printf(&text, "1 %u %lld %s", settings->by, (long long)settings->repeat,
		   settings->deterministic ? "deterministic " : "");
	if (settings->live)
		buf_puts(&text, "live ");
	normalise_version(settings->normalisers, &text);
	for (size_t i = 0; settings->secrets && i < settings->secrets->count; i++)
		buf_printf(&text, "%s ", settings->secrets->names[i]);
	jail_runners_versions(runners, &text);
	if (settings->old_runners)
		jail_runners_versions(settings->old_runners, &text);
	sha256_hex(text.data, text.length, ret);
}
