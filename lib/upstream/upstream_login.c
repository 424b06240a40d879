/* upstream_login.c - see upstream_login.h. */
#include "upstream_login.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/util.h"

#define FOLDER       "logins"
#define LOGIN_MAX    (128 << 10)
#define LOCK_SECONDS 20
#define LOCK_STEP_NS 20000000
#define SECOND       INT64_C(1000000)
#define EARLY_US     (30 * SECOND)

static const struct {
	const char *name;
	size_t offset;
} texts[] = {
#define TEXT(name) {#name, offsetof(struct upstream_login, name)},
	UPSTREAM_LOGIN_TEXTS(TEXT)
#undef TEXT
};

static char **text_of(const struct upstream_login *login, size_t i)
{
	return (char **)(void *)((char *)unconst(login) + texts[i].offset);
}

void upstream_login_set(char **text, const char *value)
{
	char *copy = value != NULL ? xstrdup(value) : NULL; /* it may be the same text */

	if (*text != NULL)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = copy;
}

void upstream_login_clear(struct upstream_login *login)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		upstream_login_set(text_of(login, i), NULL);
}

bool upstream_login_possible(const struct upstream_server *server)
{
	for (size_t i = 0; i < server->headers.count; i++)
		if (!strcasecmp(server->headers.keys[i], "Authorization"))
			return false;
	return server->url != NULL;
}

static char *path_of(const char *data_dir, const struct upstream_server *server, const char *suffix)
{
	return xasprintf("%s/" FOLDER "/%s%s", data_dir, server->alias, suffix);
}

int upstream_login_read(const char *data_dir, const struct upstream_server *server, struct upstream_login *ret,
			struct err *err)
{
	auto_free char *path = path_of(data_dir, server, ".json"), *text = NULL;
	auto_json struct json_object *object = NULL;
	auto_login struct upstream_login login = {0};
	struct json_object *number;
	size_t length = 0;

	if (data_dir[0] == '\0' || server->url == NULL)
		return err_set(err, ERR_NOT_FOUND, "nobody signed in to %s", server->name);
	int result = read_file_at(AT_FDCWD, path, LOGIN_MAX, &text, &length, err);

	if (result < 0)
		return result;
	result = json_parse(text, length, &object, err);
	explicit_bzero(text, length);
	if (result < 0 || !json_object_is_type(object, json_type_object))
		return err_set(err, ERR_CORRUPT, "%s is damaged: sign in again, sallyport upstream login %s", path,
			       server->name);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		upstream_login_set(text_of(&login, i), json_get_string(object, texts[i].name));
	number = json_get(object, "got_us", json_type_int);
	login.got_us = number != NULL ? json_object_get_int64(number) : 0;
	number = json_get(object, "expires_us", json_type_int);
	login.expires_us = number != NULL ? json_object_get_int64(number) : 0;
	if (login.url == NULL || !streq(login.url, server->url))
		return err_set(err, ERR_NOT_FOUND, "nobody signed in to %s at %s", server->name, server->url);
	*ret = login;
	login = (struct upstream_login){0};
	return 0;
}

/* The folder, made where it is missing. */
static int open_folder(const char *data_dir, struct err *err)
{
	auto_free char *path = xasprintf("%s/" FOLDER, data_dir);

	if (data_dir[0] == '\0')
		return err_set(err, ERR_UNAVAILABLE, "signing in needs data_dir in the configuration");
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_errno(err, "making %s", path);
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_errno(err, "opening %s", path) : fd;
}

int upstream_login_lock(const char *data_dir, const struct upstream_server *server, const atomic_bool *stop,
			struct err *err)
{
	auto_close int folder = open_folder(data_dir, err);
	auto_free char *name = xasprintf("%s.lock", server->alias);
	const int64_t late_us = clock_monotonic_us() + LOCK_SECONDS * SECOND;

	if (folder < 0)
		return folder;
	auto_close int fd = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_errno(err, "opening %s/" FOLDER "/%s", data_dir, name);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_errno(err, "locking %s/" FOLDER "/%s", data_dir, name);
		if (stop != NULL && *stop)
			return err_set(err, ERR_CANCELLED, "stopped");
		if (clock_monotonic_us() > late_us)
			return err_set(err, ERR_BUSY, "another process has been signing in to %s for %d s",
				       server->name, LOCK_SECONDS);
		nanosleep(&(struct timespec){.tv_nsec = LOCK_STEP_NS}, NULL);
	}
	return steal_fd(&fd);
}

int upstream_login_write(const char *data_dir, const struct upstream_server *server, const struct upstream_login *login,
			 struct err *err)
{
	auto_free char *part = xasprintf("%s.json.part", server->alias), *name = xasprintf("%s.json", server->alias);
	auto_json struct json_object *object = json_object_new_object();
	auto_buf struct buf out = {0};
	auto_close int folder = open_folder(data_dir, err);

	if (folder < 0)
		return folder;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (*text_of(login, i) != NULL)
			json_add_string(object, texts[i].name, *text_of(login, i));
	json_add_int(object, "got_us", login->got_us);
	json_add_int(object, "expires_us", login->expires_us);
	buf_init(&out, LOGIN_MAX);
	json_print_pretty(&out, object);
	if (out.overflow)
		return err_set(err, ERR_LIMIT, "the tokens of %s have more than %d bytes", server->name, LOGIN_MAX);
	unlinkat(folder, part, 0);
	auto_close int fd = openat(folder, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	bool written = fd >= 0 && write_all(fd, out.data, out.length) == 0 && fsync(fd) == 0 &&
		       renameat(folder, part, folder, name) == 0 && fsync(folder) == 0;

	explicit_bzero(out.data, out.length);
	return written ? 0 : err_errno(err, "writing %s/" FOLDER "/%s", data_dir, name);
}

int upstream_login_remove(const char *data_dir, const struct upstream_server *server, struct err *err)
{
	auto_free char *path = path_of(data_dir, server, ".json");

	return unlink(path) == 0 || errno == ENOENT ? 0 : err_errno(err, "removing %s", path);
}

uint64_t upstream_login_version(const char *data_dir, const struct upstream_server *server)
{
	auto_free char *path = path_of(data_dir, server, ".json");
	struct stat status;

	if (data_dir[0] == '\0' || stat(path, &status) < 0)
		return 0;
	const uint64_t hash = fnv1a(fnv1a(FNV1A_BEGIN, &status.st_ino, sizeof(status.st_ino)), &status.st_mtim,
				    sizeof(status.st_mtim));

	return hash != 0 ? hash : 1;
}

bool upstream_login_due(const struct upstream_login *login, int64_t now_us)
{
	const int64_t lifetime_us = login->expires_us - login->got_us;

	return login->expires_us != 0 && now_us >= login->expires_us - MIN(EARLY_US, lifetime_us / 10);
}
