/*
 * grade_source.c - see grade_source.h.
 *
 * Everything is read into memory at once: what is compiled, hashed for the cache and put into jails is the same bytes,
 * whatever happens to the folder meanwhile. The language is decided by the files' extensions alone, as the format wants
 * it.
 */
#include "grade_source.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/client/client_runners.h"
#include "lib/base/util.h"

#define DEPTH_MAX 16

/* -------- files --------------------------------------------------------------------------------------- */

struct grade_file *grade_source_file(const struct grade_source *source, const char *name)
{
	for (size_t i = 0; i < source->count; i++)
		if (streq(source->files[i].name, name))
			return &source->files[i];
	return NULL;
}

static int add_file(const struct grade_package *package, struct grade_source *source, const char *path,
		    const char *name, struct err *err)
{
	auto_close int fd = -1;
	auto_free char *data = NULL;
	size_t length, all = 0;
	struct stat st;
	int result;

	for (size_t i = 0; i < source->count; i++)
		all += source->files[i].length;
	result = package ? grade_package_file(package, path, &fd, err) : 0;
	if (result < 0)
		return result;
	if (!package && (fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
		return err_errno(err, "%s", path);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is not a regular file", path);
	if ((result = read_fd(fd, GRADE_SOURCE_BYTES - all, &data, &length, err)) < 0)
		return err_wrap(err, "%s", path);
	struct grade_file *file = grade_source_file(source, name);
	if (!file) {
		if (source->count == GRADE_SOURCE_FILES)
			return err_set(err, ERR_LIMIT, "%s: more than %d files", source->name, GRADE_SOURCE_FILES);
		source->files = xrealloc(source->files, source->count + 1, sizeof(*source->files));
		file = &source->files[source->count++];
		*file = (struct grade_file){.name = xstrdup(name)};
	}
	free(file->data);
	file->data = package ? grade_package_constants(package, data, length, &length) : NULL;
	if (!file->data)
		file->data = steal(&data);
	file->length = length;
	file->mode = st.st_mode & 0777;
	return 0;
}

static int add_folder(const struct grade_package *package, struct grade_source *source, const char *path,
		      const char *below, int depth, struct err *err)
{
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, NULL, alphasort), result = 0;

	if (n < 0)
		return err_errno(err, "%s", path);
	for (int i = 0; i < n; i++) {
		const char *entry = entries[i]->d_name;
		auto_free char *place = xasprintf("%s/%s", path, entry), *name = xasprintf("%s%s", below, entry);
		bool ignored = package ? grade_package_ignores(package, entry) : *entry == '.';
		struct stat st;

		if (!ignored && result == 0 && !stat(place, &st)) {
			auto_free char *deeper = xasprintf("%s/", name);

			if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
				result = add_folder(package, source, place, deeper, depth + 1, err);
			else if (S_ISREG(st.st_mode))
				result = add_file(package, source, place, name, err);
		}
		free(entries[i]);
	}
	free(entries);
	return result;
}

/* -------- language and entry point -------------------------------------------------------------------- */

bool grade_source_is_code(struct json_object *runner, const char *name)
{
	struct json_object *extensions = json_get(runner, "extensions", json_type_array);
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && extensions && i < json_object_array_length(extensions); i++)
		if (streq(json_object_get_string(json_object_array_get_idx(extensions, i)), dot))
			return true;
	return false;
}

bool grade_source_in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

bool grade_file_contains(const struct grade_file *file, const char *text)
{
	return memmem(file->data, file->length, text, strlen(text)) != NULL;
}

/* Does the line (without its comment) call a function of Python 2 only? */
static bool calls(const char *line, const char *name)
{
	const char *at = strstr(line, name);

	return at && at[strlen(name)] == '(' && (at == line || (!grade_source_in_name(at[-1]) && at[-1] != '.'));
}

/* A statement that Python 3 has not, or a function; `strings`: what looks like a statement may be in a long string. */
static bool python2_line(const struct grade_file *file, const char *line, bool strings)
{
	static const char *const names[] = {"raw_input", "xrange"};
	const char *print = line + strspn(line, " \t");

	if (!strings && str_starts(print, "print") && strchr(" \t", print[5]) && print[5]) {
		const char *what = print + 5 + strspn(print + 5, " \t");

		if (grade_source_in_name(*what) || *what == '"' || *what == '\'')
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!calls(line, names[i]))
			continue;
		auto_free char *given = xasprintf("%s =", names[i]), *defined = xasprintf("def %s", names[i]);

		if (!grade_file_contains(file, given) && !grade_file_contains(file, defined) &&
		    !grade_file_contains(file, "NameError"))
			return true;
	}
	return false;
}

/* By its first line, else by what is no Python 3: the extension was Python 2's for many years. */
static bool python2(const struct grade_file *file)
{
	auto_free char *text = xstrndup(file->data, file->length);
	auto_free char *first = xstrndup(text, str_starts(text, "#!") ? strcspn(text, "\n") : 0);
	bool strings = strstr(text, "\"\"\"") || strstr(text, "'''");

	if (strstr(first, "python2"))
		return true;
	if (strstr(first, "python3"))
		return false;
	for (char *save = NULL, *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
		line[strcspn(line, "#")] = '\0';
		if (python2_line(file, line, strings))
			return true;
	}
	return false;
}

/* JavaScript for the shell of SpiderMonkey, which reads with readline(): Node has no such function. */
static bool spidermonkey(const struct grade_file *file)
{
	static const char *const others[] = {"require(", "import ", "process.", "readline =", "function readline"};
	auto_free char *text = xstrndup(file->data, file->length);
	bool reads = false;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (grade_file_contains(file, others[i]))
			return false;
	for (char *save = NULL, *line = strtok_r(text, "\r\n", &save); line && !reads;
	     line = strtok_r(NULL, "\r\n", &save))
		reads = calls(line, "readline");
	return reads;
}

/* The language of most of the files; where C and C++ are mixed, C++. */
static void find_language(struct json_object *runners, struct grade_source *source)
{
	struct json_object *found = NULL;
	size_t most = 0;

	for (size_t i = 0; i < source->count; i++) {
		struct json_object *runner = jail_runner_for_file(runners, source->files[i].name);
		size_t same = 0;

		for (size_t k = 0; runner && k < source->count; k++)
			same += grade_source_is_code(runner, source->files[k].name);
		if (same > most || (same == most && runner && streq(json_get_string(runner, "name"), "cpp"))) {
			found = runner;
			most = same;
		}
		if (!runner && !source->extension && strrchr(source->files[i].name, '.'))
			source->extension = xstrdup(strrchr(source->files[i].name, '.'));
	}
	if (found)
		source->runner = xstrdup(json_get_string(found, "name"));
}

bool grade_source_is_language(const char *text)
{
	return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789")];
}

static bool entry_named(const char *name, const char *stem)
{
	size_t length = strlen(stem);

	return strncmp(name, stem, length) == 0 && (name[length] == '.' || name[length] == '\0');
}

bool grade_file_names(const struct grade_file *file, const char *other)
{
	const char *slash = strrchr(other, '/');
	const char *base = slash ? slash + 1 : other, *dot = strrchr(base, '.');
	auto_free char *stem = xstrndup(base, dot ? (size_t)(dot - base) : strlen(base));
	auto_free char *import = xasprintf("import %s", stem), *from = xasprintf("from %s", stem);
	auto_free char *path = xasprintf("./%s", stem);

	return grade_file_contains(file, import) || grade_file_contains(file, from) || grade_file_contains(file, path);
}

/* The first source that is no part of another one, nor the mark of a package in Python, else the first. */
static void first_source(struct json_object *runner, struct grade_source *source)
{
	bool found = false;

	for (size_t i = 0; runner && i < source->count; i++) {
		const char *name = source->files[i].name;
		bool part = streq(name, "__init__.py");

		if (!grade_source_is_code(runner, name))
			continue;
		for (size_t k = 0; k < source->count && !part; k++)
			part = k != i && grade_file_names(&source->files[k], name);
		if (!part || !found)
			source->entry = i;
		if (!part)
			return;
		found = true;
	}
}

static void find_entry(struct json_object *runner, struct grade_source *source, const char *entry)
{
	static const char *const stems[] = {"__main__", "main", "entrypoint", "Main"};

	for (size_t i = 0; entry && i < source->count; i++)
		if (streq(source->files[i].name, entry)) {
			source->entry = i;
			return;
		}
	for (size_t k = 0; k < ARRAY_SIZE(stems); k++)
		for (size_t i = 0; i < source->count; i++)
			if (entry_named(source->files[i].name, stems[k]) &&
			    (!runner || grade_source_is_code(runner, source->files[i].name))) {
				source->entry = i;
				return;
			}
	first_source(runner, source);
}

/* ".pl" is Perl's and, in the format's table, Prolog's, which has no variables with a "$". */
static bool prolog(const struct grade_source *source)
{
	for (size_t i = 0; i < source->count; i++) {
		const struct grade_file *file = &source->files[i];

		if (str_ends(file->name, ".pl") && !grade_file_contains(file, "$") && grade_file_contains(file, ":-"))
			return true;
	}
	return false;
}

/* The one file that says itself what runs it; archives lose the mode that says so, too. */
static void find_script(struct grade_source *source)
{
	const char *found = NULL;
	size_t n = 0;

	for (size_t i = 0; i < source->count; i++) {
		const struct grade_file *file = &source->files[i];

		if (file->length > 2 && memcmp(file->data, "#!", 2) == 0) {
			found = file->name;
			n++;
		}
	}
	if (n == 1)
		source->script = xstrdup(found);
}

/* No runner has it: its files are called as those of another language. */
static void refuse_lookalikes(struct grade_source *source)
{
	const struct grade_file *entry = &source->files[source->entry];
	const char *runner = source->runner ? source->runner : "", *found = NULL;

	if (streq(runner, "python") && python2(entry))
		found = "Python 2";
	else if (streq(runner, "perl") && prolog(source))
		found = "Prolog";
	else if (streq(runner, "javascript") && spidermonkey(entry))
		found = "SpiderMonkey";
	if (!found)
		return;
	free(steal(&source->runner));
	free(source->extension);
	source->extension = xstrdup(found);
}

/* Language and entry point. What names the language for people only, as "F#", says less than the files' endings. True:
 * the hint told the language. */
static bool find_program(struct json_object *runners, const struct grade_hint *hint, struct grade_source *source)
{
	/* The codes of the format's table of languages that are not a runner's name or alias. */
	static const char *const codes[][2] = {
		{"python3", "python"}, {"python3numpy", "python"}, {"cppgmp", "cpp"}, {"cgmp", "c"}};
	const char *said = hint ? hint->language : NULL, *name = said;

	for (size_t i = 0; i < ARRAY_SIZE(codes) && said; i++)
		if (streq(codes[i][0], said))
			name = codes[i][1];
	struct json_object *named = name ? jail_runner_named(runners, name) : NULL;
	bool told = said && (named || grade_source_is_language(said));

	if (told) {
		source->runner = named ? xstrdup(json_get_string(named, "name")) : NULL;
		source->extension = xstrdup(said);
	} else {
		find_language(runners, source);
	}
	if (!source->runner && !source->script)
		find_script(source);
	source->said = hint && hint->entry ? xstrdup(hint->entry) : NULL;
	find_entry(source->runner ? jail_runner_named(runners, source->runner) : NULL, source,
		   source->said);
	return told;
}

int grade_source_read(const struct grade_package *package, struct json_object *runners, const char *path,
		      const struct grade_hint *hint, struct grade_source *ret, struct err *err)
{
	auto_source struct grade_source source = {.name = xstrdup(path)};
	const char *slash = strrchr(path, '/');
	struct stat st;
	int result;

	if (stat(path, &st))
		return err_errno(err, "%s", path);
	result = S_ISDIR(st.st_mode) ? add_folder(package, &source, path, "", 0, err)
				     : add_file(package, &source, path, slash ? slash + 1 : path, err);
	if (result < 0)
		return result;
	if (source.count == 0)
		return err_set(err, ERR_NOT_FOUND, "%s has no files", path);
	if (S_ISDIR(st.st_mode) && (grade_source_file(&source, "build") || grade_source_file(&source, "run")))
		source.script = xstrdup("run");
	if (!find_program(runners, hint, &source))
		refuse_lookalikes(&source);
	*ret = source;
	source = (struct grade_source){0};
	return 0;
}

int grade_source_include(const struct grade_package *package, struct grade_source *source, struct err *err)
{
	const char *codes[] = {"default", source->runner, streq(source->runner, "python") ? "python3" : source->runner};
	size_t before = source->count;
	int result = 0;

	for (size_t i = 0; i < ARRAY_SIZE(codes) && result == 0; i++) {
		auto_free char *folder = xasprintf("%s/include/%s", package->path, codes[i]);
		struct stat st;

		if ((i < 2 || codes[i] != source->runner) && stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
			result = add_folder(package, source, folder, "", 0, err);
	}
	/* A driver among what was laid over it is the entry point, by its name, or as it calls the submission; else
	 * that stays what it was. */
	size_t entry = source->entry;
	for (size_t i = before; i < source->count; i++)
		if (entry_named(source->files[i].name, "main") || entry_named(source->files[i].name, "__main__") ||
		    (source->entry == entry && i != entry &&
		     grade_file_names(&source->files[i], source->files[entry].name)))
			source->entry = i;
	return result;
}

bool grade_source_contains(const struct grade_source *source, const char *text)
{
	for (size_t i = 0; i < source->count; i++)
		if (grade_file_contains(&source->files[i], text))
			return true;
	return false;
}

void grade_source_clear(struct grade_source *source)
{
	for (size_t i = 0; i < source->count; i++) {
		free(source->files[i].name);
		free(source->files[i].data);
	}
	free(source->files);
	free(source->name);
	free(source->runner);
	free(source->extension);
	free(source->script);
	free(source->said);
	free(source->wrapper);
	*source = (struct grade_source){0};
}
