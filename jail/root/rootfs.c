/* rootfs.c - see rootfs.h. */
#include "rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/base/sys.h"
#include "lib/base/util.h"

#define ACCOUNTS_FIRST 1000 /* of persons, by Debian's custom */
#define ACCOUNTS_END   65534

/* Neither these nor anything below them, nor what contains them. */
static const char *const secret[] = {"/boot",      "/dev",        "/etc",         "/proc",    "/root",
				     "/run",       "/sys",        "/var/backups", "/var/log", "/var/mail",
				     "/var/spool", "/lost+found", "/var/run"};
/* Places of many, of which only a part can be meant. */
static const char *const whole[] = {"/home", "/media", "/mnt",     "/opt",     "/srv",
				    "/tmp",  "/usr",   "/var/lib", "/var/tmp", "/var/cache"};
/* Signs of a user's home, or of a place of keys. */
static const char *const keys[] = {".ssh",  ".gnupg", ".aws",    ".azure",          ".docker",
				   ".kube", ".netrc", ".pgpass", ".git-credentials"};
/* What a jail has there itself. */
static const char *const taken[] = {"/bin",    "/code", "/data", "/lib", "/lib32",         "/lib64",
				    "/libx32", "/sbin", "/tmp",  "/usr", "/opt/sallyport", "/var/tmp"};
/* Mount points of the jail, and what makes a system. */
static const char *const parts[] = {"proc", "dev", "tmp", "etc", "usr"};

static bool same_or_below(const char *path, const char *top)
{
	size_t length = strlen(top);

	return strncmp(path, top, length) == 0 && (path[length] == '\0' || path[length] == '/' || streq(top, "/"));
}

static int check_place(const char *member, const char *path, const char *state_dir, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(secret); i++)
		if (same_or_below(path, secret[i]) || same_or_below(secret[i], path))
			return err_member(
				err, member,
				"%s is not for guests: it is, holds or lies below %s. Name a directory of its own",
				path, secret[i]);
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
		if (streq(path, whole[i]))
			return err_member(err, member,
					  "%s is shared by many programs: name the directory in it that is meant",
					  path);
	auto_free char *state = state_dir[0] ? realpath(state_dir, NULL) : NULL;
	if (state && (same_or_below(path, state) || same_or_below(state, path)))
		return err_member(err, member, "%s is, holds or lies below data_dir, %s: name a directory elsewhere",
				  path, state);
	if (strstr(path, "/."))
		return err_member(err, member,
				  "%s: a folder whose name begins with a dot is not for guests: name another folder",
				  path);
	return 0;
}

/* With a single id guests are the user who started the jailer: what is closed to others is open to them. */
static int check_homes(const char *member, const char *path, struct err *err)
{
	bool held = false;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		auto_free char *key = xasprintf("%s/%s", path, keys[i]);
		struct stat st;

		if (lstat(key, &st) == 0)
			return err_member(err, member, "%s is not for guests: it has a %s. Name a directory in it",
					  path, keys[i]);
	}
	setpwent();
	for (struct passwd *user; !held && (user = getpwent());)
		held = user->pw_uid >= ACCOUNTS_FIRST && user->pw_uid < ACCOUNTS_END &&
		       same_or_below(user->pw_dir, path);
	endpwent();
	return held ? err_member(
			      err, member,
			      "%s is not for guests: it is, or holds, the home of an account. Name a directory in it",
			      path)
		    : 0;
}

/* No other user may put something there: neither into the directory nor in its place. */
static int check_owners(const char *member, const char *path, struct err *err)
{
	auto_free char *part = xstrdup(path);

	for (char *end = part + strlen(part); end; end = strrchr(part, '/')) {
		struct stat st;

		*end = '\0';
		if (stat(part[0] ? part : "/", &st))
			return err_member(err, member, "%s cannot be looked at: %s", part, strerror(errno));
		bool shared = (st.st_mode & 0022) && !(end != part + strlen(path) && (st.st_mode & S_ISVTX));
		if (shared || (st.st_uid != 0 && st.st_uid != geteuid()))
			return err_member(
				err, member,
				"%s can be changed by others than root and this user: chown and chmod go-w it", part);
	}
	return 0;
}

static int check_directory(const char *member, const char *path, const char *state_dir, struct err *err)
{
	struct stat st;

	if (path[0] != '/')
		return err_member(err, member, "must be an absolute path, not %s", path);
	auto_free char *real = realpath(path, NULL);
	if (!real)
		return err_member(err, member, "%s cannot be used: %s", path, strerror(errno));
	int result = check_place(member, real, state_dir, err);
	if (result < 0)
		return result;
	if (!streq(real, path))
		return err_member(err, member, "%s leads to %s: name that itself", path, real);
	if (stat(real, &st) || !S_ISDIR(st.st_mode))
		return err_member(err, member, "%s is not a directory", path);
	if (check_homes(member, real, err) < 0)
		return -ERR_INVALID;
	return check_owners(member, real, err);
}

int rootfs_check_bind(const char *member, const char *path, const char *state_dir, struct err *err)
{
	int result = check_directory(member, path, state_dir, err);

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(taken); i++)
		if (same_or_below(path, taken[i]))
			result = err_member(err, member,
					    "%s cannot be shown: a jail has its own %s. Name a directory elsewhere",
					    path, taken[i]);
	return result;
}

int rootfs_check(const char *member, const char *path, const char *state_dir, struct err *err)
{
	int result = check_directory(member, path, state_dir, err);

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(parts); i++) {
		auto_free char *part = xasprintf("%s/%s", path, parts[i]);
		struct stat st;

		if (lstat(part, &st) || !S_ISDIR(st.st_mode))
			result = err_member(err, member,
					    "%s has no directory /%s, so it is not a whole root file system: make one "
					    "with debootstrap, or "
					    "unpack all layers of an image",
					    path, parts[i]);
	}
	return result;
}

bool rootfs_has(const char *rootfs, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	auto_close int root = open(rootfs ? rootfs : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int fd = root < 0 ? -1 : sys_openat2(root, path, &how);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IXOTH);
}
