/* init_fill.c - puts a file below /data, or takes one away. Done by init, so that the pages are charged to the jail;
 * see init.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "init.h"
#include "lib/base/beneath.h"
#include "lib/base/util.h"

#define DEPTH_MAX 32 /* of folders that make way: a descriptor each */

/* Directory of `name` below root, made where it is missing; -1 with errno. */
static int open_parent(int root, const char *name)
{
	const char *slash = strrchr(name, '/');
	auto_free char *path = slash ? xstrndup(name, (size_t)(slash - name)) : NULL;

	if (!slash)
		return fcntl(root, F_DUPFD_CLOEXEC, 0);
	int fd = beneath_open(root, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	auto_close int parent = open_parent(root, path);
	const char *last = strrchr(path, '/');
	last = last ? last + 1 : path;
	if (parent < 0 || (mkdirat(parent, last, 0755) && errno != EEXIST))
		return -1;
	return beneath_open(parent, last, O_RDONLY | O_DIRECTORY, 0);
}

int init_copy(int to, int from, off_t offset)
{
	ssize_t n;

	/* With an offset of its own, the descriptor's position (shared with others who read the same blob) stays alone.
	 */
	do
		n = sendfile(to, from, &offset, 1 << 30);
	while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -1 : 0;
}

int init_remove_file(int root, const char *name)
{
	const size_t folder = jail_folder(name); /* then the name stands for one that has nothing in it */
	auto_free char *path = xstrndup(name, folder ? folder : strlen(name));
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
	auto_close int parent =
		slash ? beneath_open(root, path, O_RDONLY | O_DIRECTORY, 0) : fcntl(root, F_DUPFD_CLOEXEC, 0);

	if (parent >= 0 && unlinkat(parent, slash ? slash + 1 : path, folder ? AT_REMOVEDIR : 0) == 0)
		return 0;
	/* The program may have put something else in its place, or into the folder. */
	return folder || errno == ENOENT || errno == ENOTDIR || errno == EISDIR || errno == ELOOP ? 0 : -1;
}

static int make_way(int parent, const char *name, int depth);

static int empty_directory(int parent, const char *name, int depth)
{
	int fd = beneath_open(parent, name, O_RDONLY | O_DIRECTORY, 0);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	int result = 0;

	if (!list) {
		close_pointer(&fd);
		return -1;
	}
	for (struct dirent *entry; result == 0 && (entry = readdir(list));)
		if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
			result = make_way(fd, entry->d_name, depth);
	int error = errno;

	closedir(list);
	errno = error;
	return result;
}

/* What a file takes the place of: a file, or a directory; what the record knows of that was taken out before, the rest
 * is lost to it. */
static int make_way(int parent, const char *name, int depth)
{
	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -1;
	if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
		return 0;
	if (errno != ENOTEMPTY || depth == 0)
		return -1;
	return empty_directory(parent, name, depth - 1) ? -1 : unlinkat(parent, name, AT_REMOVEDIR);
}

int init_put_file(int root, const char *name, uint32_t mode, int64_t mtime_us, int from_fd)
{
	auto_close int parent = open_parent(root, name);
	const char *slash = strrchr(name, '/');
	const char *last = slash ? slash + 1 : name;
	int64_t seconds = mtime_us / 1000000 - (mtime_us % 1000000 < 0);
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
				    {.tv_sec = seconds, .tv_nsec = (mtime_us - seconds * 1000000) * 1000}};

	if (parent >= 0 && jail_folder(name))
		return 0;
	if (parent < 0 || make_way(parent, last, DEPTH_MAX))
		return -1;
	auto_close int to = beneath_open(parent, last, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (to < 0 || init_copy(to, from_fd, 0))
		return -1;
	return fchmod(to, mode) || futimens(to, times) ? -1 : 0;
}

int init_listen(int socket)
{
	const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JAIL_SOCKET};
	const char *name = strrchr(JAIL_SOCKET, '/') + 1;
	auto_close int root = open(JAIL_CODE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (root < 0 || make_way(root, name, DEPTH_MAX))
		return -1;
	if (bind(socket, (const struct sockaddr *)&address, sizeof(address)))
		return -1;
	return listen(socket, INIT_BACKLOG);
}
