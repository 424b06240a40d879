/*
 * job_secret.c - see job_secret.h.
 *
 * Where what passes the mask: the two output streams on the request's thread (progress) and where they are stored
 * (job_cover_shown, under the cover's lock), files on an I/O worker before they become blobs, names and the result
 * where the job gets its outcome. A replay uses the same functions, so that masked and recorded output are comparable.
 */
#include "job_secret.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "job.h"
#include "lib/base/util.h"

#define CHUNK      65536
#define VALUE_MAX  JAIL_ARGUMENTS_MAX
#define TEXT_BYTES 65536 /* so far a NUL says that a file is no text */

/* -------- values -------------------------------------------------------------------------------------- */

static void wipe(char *text)
{
	explicit_bzero(text, strlen(text));
	free(text);
}

const char *job_secrets_find(const struct job_secrets *secrets, const char *name)
{
	for (size_t i = 0; i < secrets->count; i++)
		if (streq(secrets->names[i], name))
			return secrets->values[i];
	return NULL;
}

static void append(struct job_secrets *secrets, const char *name, const char *value)
{
	secrets->names = xrealloc(secrets->names, secrets->count + 1, sizeof(*secrets->names));
	secrets->values = xrealloc(secrets->values, secrets->count + 1, sizeof(*secrets->values));
	secrets->names[secrets->count] = xstrdup(name);
	secrets->values[secrets->count++] = xstrdup(value);
}

void job_secrets_add(struct job_secrets *secrets, const char *name, const char *value)
{
	for (size_t i = 0; i < secrets->count; i++)
		if (streq(secrets->names[i], name)) {
			wipe(secrets->values[i]);
			secrets->values[i] = xstrdup(value);
			return;
		}
	append(secrets, name, value);
}

void job_secrets_join(struct job_secrets *to, const struct job_secrets *from)
{
	for (size_t i = 0; i < from->count; i++) {
		bool there = false;

		for (size_t j = 0; j < to->count; j++)
			there = there || streq(to->values[j], from->values[i]);
		if (!there)
			append(to, from->names[i], from->values[i]);
	}
}

void job_secrets_clear(struct job_secrets *secrets)
{
	for (size_t i = 0; i < secrets->count; i++) {
		free(secrets->names[i]);
		wipe(secrets->values[i]);
	}
	free(secrets->names);
	free(secrets->values);
	*secrets = (struct job_secrets){0};
}

struct mask *job_secrets_mask(const struct job_secrets *secrets)
{
	auto_free struct mask_value *values = xcalloc(secrets->count + 1, sizeof(*values));

	for (size_t i = 0; i < secrets->count; i++)
		values[i] = (struct mask_value){secrets->values[i], strlen(secrets->values[i])};
	return mask_new(values, secrets->count);
}

/* -------- the operator's ------------------------------------------------------------------------------ */

static int read_one(int dir, const char *owner, const char *name, struct job_secrets *secrets, struct err *err)
{
	auto_free char *text = NULL;
	size_t length;
	int result = read_file_at(dir, name, VALUE_MAX, &text, &length, err);

	if (result == -ERR_NOT_FOUND) /* it went since the folder was read */
		return err_set(err, ERR_UNAVAILABLE, "the secret %s of %s is gone", name, owner);
	if (result < 0)
		return err_wrap(err, "the secret %s of %s", name, owner);
	if (length > 0 && text[length - 1] == '\n')
		text[--length] = '\0';
	if (strlen(text) != length || (length > 0 && length < MASK_LEAST))
		result = err_set(err, ERR_UNAVAILABLE,
				 "the secret %s of %s in tools.secrets_dir must be a text of at least %d bytes", name,
				 owner, MASK_LEAST);
	else
		job_secrets_add(secrets, name, text);
	explicit_bzero(text, length);
	return result;
}

int job_secrets_folder(const char *folder, const char *owner, struct job_secrets *secrets, struct err *err)
{
	auto_free char *path = xasprintf("%s/%s", folder, owner);
	struct dirent *entry;
	int result = 0;

	if (*folder == '\0' || *owner == '\0')
		return 0;
	DIR *dir = opendir(path);

	if (!dir)
		return errno == ENOENT ? 0 : err_errno(err, "opening %s", path);
	while (result == 0 && (entry = readdir(dir)))
		if (job_variable_valid(entry->d_name, strlen(entry->d_name)))
			result = read_one(dirfd(dir), owner, entry->d_name, secrets, err);
	closedir(dir);
	return result;
}

int job_secrets_take(const char *folder, const char *owner, const struct bind_map *environment,
		     const struct bind_map *asked, struct job_secrets *ret, struct err *err)
{
	struct job_secrets own = {0};
	int result = 0;

	for (size_t i = 0; result == 0 && i < asked->count; i++) {
		const size_t length = strlen(asked->values[i]);

		if (length > 0 && length < MASK_LEAST)
			result = err_member(err, "secrets",
					    "\"%s\" has %zu bytes: fewer than %d cannot be kept out of the output. Put it into environment if it is not secret",
					    asked->keys[i], length, MASK_LEAST);
		else
			job_secrets_add(ret, asked->keys[i], asked->values[i]);
	}
	if (result == 0)
		result = job_secrets_folder(folder, owner, &own, err);
	for (size_t i = 0; result == 0 && i < own.count; i++) {
		bool named = job_secrets_find(ret, own.names[i]) != NULL;

		for (size_t j = 0; j < environment->count; j++)
			named = named || streq(environment->keys[j], own.names[i]);
		if (!named)
			job_secrets_add(ret, own.names[i], own.values[i]);
	}
	job_secrets_clear(&own);
	return result;
}

/* -------- what comes back ----------------------------------------------------------------------------- */

static int veil_open(struct job_veil *veil, const struct mask *mask, int raw, struct err *err)
{
	*veil = (struct job_veil){.raw = raw, .shown = memfd_create("masked", MFD_CLOEXEC)};
	mask_stream_init(&veil->stream, mask);
	return veil->shown < 0 ? err_errno(err, "an anonymous file for masked output") : 0;
}

static void veil_close(struct job_veil *veil)
{
	mask_stream_clear(&veil->stream);
	fd_close(&veil->shown);
}

static int veil_pass(struct job_veil *veil, bool end, struct err *err)
{
	auto_free char *chunk = xmalloc(CHUNK);
	auto_buf struct buf masked = {0};
	ssize_t got;
	int result = 0;

	buf_init(&masked, SIZE_MAX);
	while (result == 0 && (got = pread(veil->raw, chunk, CHUNK, veil->taken)) > 0) {
		mask_stream_add(&veil->stream, chunk, (size_t)got, &masked);
		veil->taken += got;
		result = write_all(veil->shown, masked.data, masked.length);
		buf_reset(&masked);
	}
	if (end)
		mask_stream_end(&veil->stream, &masked);
	if (result < 0 || got < 0 || write_all(veil->shown, masked.data, masked.length) < 0)
		return err_errno(err, "masking the program's output");
	return 0;
}

void job_cover_init(struct job_cover *cover)
{
	*cover = (struct job_cover){.lock = PTHREAD_MUTEX_INITIALIZER};
	cover->veils[0].shown = cover->veils[1].shown = -1;
}

void job_cover_clear(struct job_cover *cover)
{
	for (size_t i = 0; i < ARRAY_SIZE(cover->veils); i++)
		veil_close(&cover->veils[i]);
	pthread_mutex_destroy(&cover->lock);
	mask_free(cover->mask);
}

int job_cover_put(struct job_cover *cover, int raw_stdout, int raw_stderr, struct err *err)
{
	const int raw[] = {raw_stdout, raw_stderr};
	int result = 0;

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(raw); i++) {
		veil_close(&cover->veils[i]);
		result = veil_open(&cover->veils[i], cover->mask, raw[i], err);
	}
	return result;
}

int job_cover_open(struct job_cover *cover, int *ret_stdout, int *ret_stderr, struct err *err)
{
	*ret_stdout = memfd_create("raw output", MFD_CLOEXEC);
	*ret_stderr = memfd_create("raw output", MFD_CLOEXEC);
	if (*ret_stdout < 0 || *ret_stderr < 0)
		return err_errno(err, "an anonymous file for the output");
	return job_cover_put(cover, *ret_stdout, *ret_stderr, err);
}

int job_cover_shown(struct job_cover *cover, int stream, bool end, struct err *err)
{
	struct job_veil *veil = &cover->veils[stream - 1];

	pthread_mutex_lock(&cover->lock);
	int result = veil_pass(veil, end, err);
	pthread_mutex_unlock(&cover->lock);
	return result < 0 ? result : veil->shown;
}

int job_mask_file(const struct mask *mask, int *fd, struct err *err)
{
	auto_free char *head = xmalloc(TEXT_BYTES);
	__attribute__((cleanup(veil_close))) struct job_veil veil = {.shown = -1};

	if (!mask)
		return 0;
	ssize_t got = pread(*fd, head, TEXT_BYTES, 0);
	bool text = got >= 0 && !memchr(head, '\0', (size_t)got);
	int result = veil_open(&veil, mask, *fd, err);

	if (result == 0)
		result = veil_pass(&veil, true, err);
	if (result < 0 || veil.stream.marks == 0)
		return result;
	if (!text)
		return err_set(err, ERR_INVALID, "it holds a secret and is not text");
	close(*fd);
	*fd = steal_fd(&veil.shown);
	return 0;
}

void job_mask_name(const struct mask *mask, struct job_change *change, size_t *count)
{
	auto_buf struct buf masked = {0};

	buf_init(&masked, SIZE_MAX);
	if (!mask || change->kind == JAIL_FILE_DELETED ||
	    mask_bytes(mask, change->name, strlen(change->name), &masked) == 0)
		return;
	buf_printf(&masked, " (%zu)", ++*count); /* two may look the same now */
	free(change->name);
	change->file.name = change->name = buf_steal(&masked, &change->file.name_length);
	change->kind = JAIL_FILE_NOT_KEPT;
	change->masked = true;
	snprintf(change->reason, sizeof(change->reason), "its name holds a secret");
}

static void mask_json(const struct mask *mask, struct json_object **object)
{
	auto_buf struct buf text = {0}, masked = {0};

	if (!*object)
		return;
	buf_init(&text, SIZE_MAX);
	buf_init(&masked, SIZE_MAX);
	json_print(&text, *object);
	if (mask_bytes(mask, text.data, text.length, &masked) == 0)
		return;
	json_object_put(steal(object));
	if (json_parse(masked.data, masked.length, object, NULL) < 0)
		*object = NULL;
}

/* Not as JSON, which would escape what is looked for. */
static void mask_string(const struct mask *mask, struct json_object **string)
{
	auto_buf struct buf masked = {0};

	if (!*string)
		return;
	buf_init(&masked, SIZE_MAX);
	const size_t length = (size_t)json_object_get_string_len(*string);
	if (mask_bytes(mask, json_object_get_string(*string), length, &masked) == 0)
		return;
	json_object_put(steal(string));
	*string = json_new_safe(masked.data, masked.length);
}

void job_mask_result(const struct mask *mask, struct jail_result *result)
{
	if (!mask)
		return;
	mask_text(mask, result->message, sizeof(result->message));
	mask_json(mask, &result->denied);
	mask_json(mask, &result->network);
	mask_string(mask, &result->value);
	mask_string(mask, &result->warnings);
	mask_string(mask, &result->left_in_tmp);
}
