/*
 * grade_zip.c - a package as a ZIP archive, see grade_package.h.
 *
 * The list at the archive's end decides what is in it, as for every other program that unpacks it. Links are made when
 * all files and the folders of all names are there, and nobody else can write below the folder: so a name without ".."
 * leads where it says, and a link lies in real folders. It goes up before it goes down: so it leads to what is in the
 * folder.
 */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grade_package.h"
#include "lib/base/buf.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define BLOCK      65536
#define NAME_MAX_Z 255 /* bytes of one part of a name */

struct unpacking {
	struct archive *archive;
	const char *path;
	int top; /* descriptor of the folder */
	size_t entries;
	int64_t bytes;
};

static void archive_pointer(struct archive **archive)
{
	archive_read_free(*archive);
}

bool grade_zip_is(const char *path)
{
	static const char magic[] = {'P', 'K', 3, 4}, empty[] = {'P', 'K', 5, 6};
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char begins[sizeof(magic)];

	return fd >= 0 && read(fd, begins, sizeof(begins)) == (ssize_t)sizeof(begins) &&
	       (memcmp(begins, magic, sizeof(magic)) == 0 || memcmp(begins, empty, sizeof(empty)) == 0);
}

/* What is wrong with one entry; its name is the archive's and made printable. */
static int refuse(const struct unpacking *unpacking, const char *name, const char *why, struct err *err)
{
	auto_buf struct buf shown = {0};

	buf_init(&shown, 256);
	utf8_printable(&shown, name, strnlen(name, 80));
	return err_set(err, ERR_INVALID, "%s: \"%s\" %s", unpacking->path, shown.data ? shown.data : "", why);
}

/* NULL, or what is wrong. */
static const char *wrong_name(const char *name)
{
	size_t depth = 0;

	if (!*name || *name == '/')
		return "is an absolute name, or none";
	for (const char *part = name; *part; part += strspn(part, "/")) {
		size_t length = strcspn(part, "/");

		if (length > NAME_MAX_Z)
			return "has a part of more than 255 bytes";
		if (length == 2 && part[0] == '.' && part[1] == '.')
			return "leads out of the package";
		if (++depth > GRADE_ZIP_DEPTH)
			return "is in too many folders";
		part += length;
	}
	return NULL;
}

/* Does the link go up at most so far as to the top, and then down to something? */
static bool stays_inside(const char *name, const char *target)
{
	size_t above = 0, length;

	for (; name[length = strcspn(name, "/")]; name += length + strspn(name + length, "/"))
		above += !(length == 1 && *name == '.');
	for (; str_starts(target, "../"); target += strlen("../"))
		if (above-- == 0)
			return false;
	return !wrong_name(target);
}

static int add_file(struct unpacking *unpacking, struct archive_entry *entry, const char *name, struct err *err)
{
	mode_t mode = archive_entry_perm(entry) & 0777;
	auto_close int fd = openat(unpacking->top, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	const void *data;
	size_t length;
	la_int64_t at;
	int64_t end = 0;
	int result;

	if (fd < 0 && (errno == EEXIST || errno == ENOTDIR || errno == EISDIR))
		return refuse(unpacking, name, "is there twice", err);
	if (fd < 0)
		return err_errno(err, "unpacking %s", name);
	while ((result = archive_read_data_block(unpacking->archive, &data, &length, &at)) == ARCHIVE_OK) {
		if (at < end || at + (int64_t)length > archive_entry_size(entry))
			return refuse(unpacking, name, "is larger than the archive says", err);
		end = at + (int64_t)length;
		if (lseek(fd, at, SEEK_SET) < 0 || write_all(fd, data, length))
			return err_errno(err, "unpacking %s (TMPDIR has no room?)", name);
	}
	if (result != ARCHIVE_EOF)
		return refuse(unpacking, name, archive_error_string(unpacking->archive), err);
	return fchmod(fd, mode | 0600) ? err_errno(err, "unpacking %s", name) : 0;
}

static int check_size(struct unpacking *unpacking, struct archive_entry *entry, const char *name, struct err *err)
{
	if (!archive_entry_size_is_set(entry) || archive_entry_size(entry) > GRADE_ZIP_MEMBER)
		return refuse(unpacking, name, "is larger than 256 MiB, or does not say how large it is", err);
	unpacking->bytes += archive_entry_size(entry);
	if (unpacking->bytes > GRADE_ZIP_BYTES)
		return err_set(err, ERR_LIMIT, "%s holds more than %lld GiB", unpacking->path, GRADE_ZIP_BYTES >> 30);
	return 0;
}

static int check_entry(struct unpacking *unpacking, struct archive_entry *entry, struct err *err)
{
	const char *name = archive_entry_pathname(entry);
	const char *wrong = name ? wrong_name(name) : "has a name that cannot be read";
	mode_t type = archive_entry_filetype(entry);

	if (++unpacking->entries > GRADE_ZIP_ENTRIES)
		return err_set(err, ERR_LIMIT, "%s has more than %d entries", unpacking->path, GRADE_ZIP_ENTRIES);
	if (wrong)
		return refuse(unpacking, name ? name : "", wrong, err);
	if (archive_entry_is_encrypted(entry))
		return refuse(unpacking, name, "is encrypted", err);
	if (type == AE_IFLNK && !stays_inside(name, archive_entry_symlink(entry) ?: ""))
		return refuse(unpacking, name,
			      "is a link that leads out of the package: pack what it leads to (zip without -y)", err);
	if (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK)
		return refuse(unpacking, name, "is a special file", err);
	return type == AE_IFREG ? check_size(unpacking, entry, name, err) : 0;
}

static int add_entry(struct unpacking *unpacking, struct archive_entry *entry, struct err *err)
{
	const char *name = archive_entry_pathname(entry);
	auto_free char *part = xstrdup(name);

	/* All folders above the last part of the name; an archive need not list them. */
	for (char *slash = strchr(part, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(unpacking->top, part, 0700) && errno != EEXIST)
			return err_errno(err, "unpacking %s", name);
		*slash = '/';
	}
	if (archive_entry_filetype(entry) == AE_IFLNK)
		return 0;
	if (archive_entry_filetype(entry) == AE_IFREG)
		return add_file(unpacking, entry, name, err);
	if (mkdirat(unpacking->top, name, 0700) && errno != EEXIST)
		return err_errno(err, "unpacking %s", name);
	return 0;
}

static int add_link(struct unpacking *unpacking, struct archive_entry *entry, struct err *err)
{
	const char *name = archive_entry_pathname(entry);

	if (archive_entry_filetype(entry) != AE_IFLNK)
		return 0;
	if (symlinkat(archive_entry_symlink(entry), unpacking->top, name))
		return errno == EEXIST ? refuse(unpacking, name, "is there twice", err)
				       : err_errno(err, "unpacking %s", name);
	return 0;
}

typedef int each_entry(struct unpacking *unpacking, struct archive_entry *entry, struct err *err);

static int walk(struct unpacking *unpacking, each_entry *each, struct err *err)
{
	__attribute__((cleanup(archive_pointer))) struct archive *archive = archive_read_new();
	struct archive_entry *entry;
	int next;

	unpacking->archive = archive;
	archive_read_support_format_zip_seekable(archive);
	if (archive_read_open_filename(archive, unpacking->path, BLOCK) != ARCHIVE_OK)
		return err_set(err, ERR_INVALID, "%s: %s", unpacking->path, archive_error_string(archive));
	while ((next = archive_read_next_header(archive, &entry)) == ARCHIVE_OK || next == ARCHIVE_WARN) {
		int result = each(unpacking, entry, err);

		if (result < 0)
			return result;
	}
	if (next != ARCHIVE_EOF)
		return err_set(err, ERR_INVALID, "%s: %s", unpacking->path, archive_error_string(archive));
	return 0;
}

/* -------- where the package is ------------------------------------------------------------------------ */

static bool is_package(const char *folder)
{
	auto_free char *yaml = xasprintf("%s/problem.yaml", folder);
	auto_free char *ini = xasprintf("%s/" GRADE_DOMJUDGE_INI, folder);

	return access(yaml, F_OK) == 0 || access(ini, F_OK) == 0;
}

/* The top, or the one folder below it that has a problem.yaml. */
static int find_package(const char *path, const char *top, char **ret, struct err *err)
{
	auto_free char *found = NULL;
	struct dirent **entries = NULL;
	int n = is_package(top) ? 0 : scandir(top, &entries, NULL, alphasort), packages = 0;

	for (int i = 0; i < n; i++) {
		auto_free char *folder = xasprintf("%s/%s", top, entries[i]->d_name);

		if (entries[i]->d_name[0] != '.' && is_package(folder) && packages++ == 0)
			found = steal(&folder);
		free(entries[i]);
	}
	free(entries);
	if (n > 0 && packages != 1)
		return err_set(err, ERR_INVALID, "%s is not a problem package: %s", path,
			       packages ? "it has several folders with a problem.yaml"
					: "it has no problem.yaml, neither at its top nor in one folder");
	*ret = found ? steal(&found) : xstrdup(top);
	return 0;
}

int grade_zip_unpack(const char *path, const char *folder, char **ret_package, struct err *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	size_t length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
	auto_free char *top = xasprintf("%s/%.*s", folder, (int)length, name);

	if (mkdir(top, 0700))
		return err_errno(err, "making %s", top);
	auto_close int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_errno(err, "making %s", top);
	struct unpacking unpacking = {.path = path, .top = fd};
	/* Names marked as UTF-8 need a locale that has their characters. */
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
	/* Nothing is written before all names have been looked at. */
	int result = walk(&unpacking, check_entry, err);
	if (result == 0)
		result = walk(&unpacking, add_entry, err);
	if (result == 0)
		result = walk(&unpacking, add_link, err);
	if (utf8) {
		uselocale(before);
		freelocale(utf8);
	}
	return result < 0 ? result : find_package(path, top, ret_package, err);
}
