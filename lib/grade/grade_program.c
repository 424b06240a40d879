/*
 * grade_program.c - see grade_program.h.
 *
 * A compiler is untrusted too: a source may make it read what it can, or run for ever (#include "/dev/stdin",
 * templates, .incbin). So it runs in a jail with the package's compile limits, and only the file that it must make
 * comes out. The cache is read by this program only; an executable from it runs in a jail like any other, so that a
 * wrong one can do no more than a submission.
 */
#include "grade_program.h"
#include "grade_load.h"
#include "grade_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/client/client_once.h"
#include "jail/client/client_runners.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

#define EXECUTABLE      ".program" /* what build runners make below /data */
#define EXECUTABLE_MAX  (256 << 20)
#define COMPILE_OUTPUT  (1 << 20)
#define COMPILE_PIDS    256
#define COMPILE_DATA    (512 << 20)
#define COMPILE_WALL    5 /* times the CPU time, of the wall clock: other work may have the processors */
#define IDLE_SHARE      50 /* a compiler that has less of it waits */
#define CACHE_VERSION   "1"

const char *const grade_program_env[] = {"PYTHONINTMAXSTRDIGITS=0", NULL};

/* -------- anonymous files ----------------------------------------------------------------------------- */

static int no_code = -1;

static void make_no_code(void)
{
	no_code = memfd_create("no code", MFD_CLOEXEC);
}

int grade_program_no_code(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_no_code);
	return no_code;
}

static void add_file(struct grade_program *program, const char *name, uint32_t mode, int fd)
{
	fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	program->files = xrealloc(program->files, program->count + 1, sizeof(*program->files));
	program->files[program->count++] = (struct jail_file){.name = xstrdup(name), .mode = mode, .fd = fd};
}

static int new_memfd(const char *name)
{
	return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

static int copy(int from, int to)
{
	for (off_t at = 0;;) {
		ssize_t n = copy_file_range(from, &at, to, NULL, EXECUTABLE_MAX, 0);
		char block[16384]; /* threads of the gateway have small stacks */

		if (n < 0 && (n = pread(from, block, sizeof(block), at)) > 0) {
			if (write_all(to, block, (size_t)n))
				return -1;
			at += n;
		}
		if (n <= 0)
			return n == 0 && at <= EXECUTABLE_MAX ? 0 : -1;
	}
}

static void clear_files(struct grade_program *program)
{
	for (size_t i = 0; i < program->count; i++) {
		free((void *)(uintptr_t)program->files[i].name);
		close(program->files[i].fd);
	}
	free(program->files);
	program->files = NULL;
	program->count = 0;
}

void grade_program_clear(struct grade_program *program)
{
	clear_files(program);
	free(program->runner);
	free(program->entry);
	*program = (struct grade_program){0};
}

/* -------- the cache ----------------------------------------------------------------------------------- */

char *grade_program_cache(void)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (base && *base == '/')
		return xasprintf("%s/sallyport/programs", base);
	return home && *home == '/' ? xasprintf("%s/.cache/sallyport/programs", home) : NULL;
}

static char *cache_path(const struct grade_maker *maker, const struct grade_source *source, struct json_object *build)
{
	char hex[SHA256_HEX_SIZE];
	struct sha256 *digest = sha256_new();
	auto_buf struct buf about = {0};

	buf_init(&about, 1 << 20);
	jail_runner_version(build, &about);
	sha256_add(digest, CACHE_VERSION, sizeof(CACHE_VERSION));
	sha256_add(digest, about.data, about.length + 1);
	if (source->said)
		sha256_add(digest, source->said, strlen(source->said) + 1);
	for (size_t i = 0; i < source->count; i++) {
		uint64_t length = source->files[i].length;

		sha256_add(digest, source->files[i].name, strlen(source->files[i].name) + 1);
		sha256_add(digest, &length, sizeof(length));
		sha256_add(digest, source->files[i].data, source->files[i].length);
	}
	sha256_finish(digest, hex);
	return xasprintf("%s/%s", maker->cache, hex);
}

static bool from_cache(struct grade_program *program, const char *path)
{
	auto_close int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int fd = from < 0 ? -1 : new_memfd("executable");

	if (fd < 0 || copy(from, fd) || lseek(fd, 0, SEEK_END) == 0) {
		close_pointer(&fd);
		return false;
	}
	add_file(program, EXECUTABLE, 0755, fd);
	program->from_cache = true;
	return true;
}

/* What cannot be kept is compiled again next time. */
static void keep(const struct grade_program *program, const char *path)
{
	auto_free char *half = xasprintf("%s.%d.%p", path, (int)getpid(), (const void *)program);

	for (char *slash = strchr(half + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(half, 0700);
		*slash = '/';
	}
	auto_close int fd = open(half, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && (copy(program->files[0].fd, fd) || rename(half, path)))
		unlink(half);
}

/* -------- building ------------------------------------------------------------------------------------ */

struct building {
	struct grade_program *program;
	bool all;    /* every file that changed comes out, not only the executable */
	bool failed;
};

static void on_file(void *arg, const struct jail_change *change)
{
	struct building *building = arg;
	auto_close int fd = change->fd;
	bool wanted = building->all ? change->fd >= 0 : streq(change->name, EXECUTABLE) && change->fd >= 0;

	if (!wanted || change->size > EXECUTABLE_MAX)
		return;
	int made = new_memfd("executable");
	if (made < 0 || copy(fd, made)) {
		close_pointer(&made);
		building->failed = true;
		return;
	}
	add_file(building->program, change->name, change->mode | 0400, made);
}

static struct jail_limits compile_limits(const struct grade_package *package)
{
	return (struct jail_limits){
		.wall_us = MAX(package->compile_us, MIN(COMPILE_WALL * package->compile_us, GRADE_LOAD_WALL_US)),
		.cpu_us = package->compile_us,
		.cpu_percent = -1,
		.memory_bytes = package->compile_bytes,
		.pids = COMPILE_PIDS,
		.data_bytes = COMPILE_DATA,
		.output_bytes = COMPILE_OUTPUT,
	};
}

/* Sources in the jail, for the time of the build. */
static int source_files(const struct grade_source *source, struct grade_program *ret)
{
	for (size_t i = 0; i < source->count; i++) {
		const struct grade_file *file = &source->files[i];
		auto_close int fd = new_memfd("source");

		if (fd < 0 || write_all(fd, file->data, file->length))
			return -1;
		add_file(ret, file->name, file->mode | 0444, steal_fd(&fd));
	}
	return 0;
}

/* What it means that a build did not come to its end. */
static void refuse(struct grade_program *program, const struct jail_once *once)
{
	const struct jail_usage *run = &once->result.run;
	int64_t cpu_us = run->cpu_user_us + run->cpu_system_us;
	auto_free char *text = NULL;
	size_t length = 0;

	GRADE_SAY(program, GRADE_CE, "%s", once->result.message);
	if (once->result.verdict == JAIL_TO && streq(once->result.limit, "wall") && cpu_us > run->wall_us / IDLE_SHARE)
		GRADE_SAY(program, GRADE_JE, GRADE_LOAD_TEXT, (double)cpu_us * 1e-6, (double)run->wall_us * 1e-6,
			  GRADE_TRIES);
	else if (once->result.verdict == JAIL_RE &&
		 jail_once_output(once, 2, COMPILE_OUTPUT, &text, &length, NULL) == 0 && length)
		grade_message(program->message, text, length); /* the compiler's own words */
}

/* Runs `runner` over the sources; its files come out as building says. True: it ran to its end and refused them. */
static bool run_build(const struct grade_maker *maker, const struct grade_source *source, const char *runner,
		      const char *entry, const char *const *args, struct building *building)
{
	struct grade_program *program = building->program;
	auto_free char *said = source->said ? xasprintf("SALLYPORT_ENTRY=%s", source->said) : NULL;
	const char *const env[] = {said, NULL};

	for (int try = 0; try < GRADE_TRIES; try++) {
		auto_program struct grade_program sources = {0};
		struct err err = ERR_INIT;

		if (source_files(source, &sources)) {
			GRADE_SAY(program, GRADE_JE, "no memory for the sources");
			return false;
		}
		auto_once struct jail_once once = {
			.spec = {.runner = runner, .limits = compile_limits(maker->package), .label = "compile"},
			.program = {.code_fd = grade_program_no_code(),
				    .entry = entry,
				    .args = args,
				    .env = env,
				    .stdin_fd = -1},
			.capture = true,
			.files = sources.files,
			.n_files = sources.count,
			.file = on_file,
			.arg = building,
		};
		clear_files(program);
		program->verdict = GRADE_AC;
		if (jail_once(maker->client, &once, &err) < 0 || once.result.verdict == JAIL_XX) {
			GRADE_SAY(program, GRADE_JE, "%s", err.code ? err.text : once.result.message);
			continue;
		}
		if (once.result.verdict != JAIL_OK) {
			refuse(program, &once);
			if (program->verdict == GRADE_JE)
				continue;
		} else if (building->failed) {
			GRADE_SAY(program, GRADE_JE, "the executable could not be copied");
		} else if (!program->count && !building->all) {
			GRADE_SAY(program, GRADE_CE, "the compiler made no program");
		}
		return once.result.verdict == JAIL_RE;
	}
	return false;
}

/* What a package's program in C++ is tried with when the compiler refuses it: some are newer than the runner's C++20,
 * many were written before C++17 took names like data, size and byte into std, some before C++14 took gets away. What
 * the compiler said first counts where that fails, too. `end`: where the standard is added to the arguments. */
static void build_otherwise(const struct grade_maker *maker, const struct grade_source *source, const char *runner,
			char *const *args, char **end, struct grade_program *program)
{
	static const char *const standards[] = {"-std=gnu++23", "-std=gnu++14", "-std=gnu++11"};

	for (size_t i = 0; i < ARRAY_SIZE(standards) && program->verdict != GRADE_AC; i++) {
		auto_program struct grade_program other = {0};

		*end = xstrdup(standards[i]);
		run_build(maker, source, runner, NULL, (const char *const *)args,
			  &(struct building){.program = &other});
		free(steal(end));
		if (other.verdict != GRADE_AC)
			continue;
		clear_files(program);
		program->verdict = GRADE_AC;
		*program->message = '\0';
		program->files = steal(&other.files);
		program->count = other.count;
		other.count = 0;
	}
}

/* The arguments of a compiler, the caller's; there is room for one more. Returns how many. */
static size_t compiler_arguments(const struct grade_source *source, struct json_object *language, char ***ret)
{
	char **args = xcalloc(source->count + 5, sizeof(*args));
	const bool go = streq(source->runner, "go");
	size_t n = 0;

	for (size_t i = 0; i < source->count; i++)
		if (grade_source_is_code(language, source->files[i].name) &&
		    !(go && strchr(source->files[i].name, '/'))) /* else a package that the others import */
			args[n++] = xasprintf("/data/%s", source->files[i].name);
	if (source->wrapper) {
		args[n++] = xstrdup("-wrapper");
		args[n++] = xstrdup(source->wrapper);
	}
	if (source->library)
		args[n++] = xstrdup(source->library);
	*ret = args;
	return n;
}

static void compile(const struct grade_maker *maker, const struct grade_source *source, struct json_object *language,
		    struct json_object *build, struct grade_program *program)
{
	auto_free char *path = maker->cache ? cache_path(maker, source, build) : NULL;
	auto_free char **args = NULL;
	bool packaged = maker->package->path != NULL; /* not so the programs of tasks */

	program->compiled = true;
	program->runner = xstrdup("executable");
	program->entry = xstrdup(EXECUTABLE);
	if (path && from_cache(program, path))
		return;
	size_t n = compiler_arguments(source, language, &args);
	const char *runner = json_get_string(build, "name");
	bool refused = run_build(maker, source, runner, NULL, (const char *const *)args,
				 &(struct building){.program = program});
	if (refused && packaged && streq(source->runner, "cpp"))
		build_otherwise(maker, source, runner, args, &args[n], program);
	while (n > 0)
		free(args[--n]);
	if (program->verdict == GRADE_AC && path)
		keep(program, path);
}

/* Judges compile Python before they run it: a source that is none is a compile error, not one of each case. Whatever
 * else goes wrong here goes wrong, or not, when it runs. */
static void check_python(const struct grade_maker *maker, const struct grade_source *source,
			 struct json_object *language, struct grade_program *program)
{
	static const char code[] = "import sys\n"
				   "for name in sys.argv[1:]:\n"
				   "    try: compile(open(name, 'rb').read(), name, 'exec', dont_inherit=True)\n"
				   "    except (SyntaxError, ValueError) as e: sys.stderr.write(str(e)); sys.exit(3)\n";
	auto_free const char **args = xcalloc(source->count + 1, sizeof(*args));
	auto_close int fd = memfd_with("check", code, strlen(code));
	auto_free char *text = NULL;
	size_t n = 0, length = 0;
	auto_once struct jail_once once = {
		.spec = {.runner = source->runner, .limits = compile_limits(maker->package), .label = "compile"},
		.program = {.code_fd = fd, .args = args, .stdin_fd = -1},
		.capture = true,
		.files = program->files,
		.n_files = program->count,
	};

	for (size_t i = 0; i < source->count; i++)
		if (grade_source_is_code(language, source->files[i].name))
			args[n++] = source->files[i].name;
	if (fd < 0 || jail_once(maker->client, &once, NULL) < 0 || once.result.verdict != JAIL_RE ||
	    once.result.exit_code != 3 || jail_once_output(&once, 2, COMPILE_OUTPUT, &text, &length, NULL) < 0)
		return;
	program->verdict = GRADE_CE;
	grade_message(program->message, text, length);
}

/* A folder with `build` and `run`: after `build`, `run` is the program. */
static void run_scripts(const struct grade_maker *maker, const struct grade_source *source,
			struct grade_program *program)
{
	auto_program struct grade_program made = {0};

	program->runner = xstrdup("executable");
	program->entry = xstrdup(source->script);
	if (grade_source_file(source, "build")) {
		run_build(maker, source, "bash", "build", NULL, &(struct building){.program = &made, .all = true});
		if (made.verdict != GRADE_AC)
			return GRADE_SAY(program, made.verdict, "%s", made.message);
	}
	if (source_files(source, program))
		return GRADE_SAY(program, GRADE_JE, "no memory for the sources");
	for (size_t i = 0; i < made.count; i++)
		add_file(program, made.files[i].name, made.files[i].mode, fcntl(made.files[i].fd, F_DUPFD_CLOEXEC, 3));
	for (size_t i = 0; i < program->count; i++)
		if (streq(program->files[i].name, program->entry))
			return;
	GRADE_SAY(program, GRADE_CE, "its build made no file called %s (a link is not kept)", program->entry);
}

static void mark_entry_executable(struct grade_program *program)
{
	for (size_t i = 0; i < program->count; i++)
		if (streq(program->files[i].name, program->entry))
			program->files[i].mode |= 0555;
}

/* Does a file define the name as 42, as C, the compiler's command or an enumeration do it? */
static bool defines_42(const struct grade_file *file, const char *name)
{
	const char *at = file->data, *end = file->data + file->length;

	while ((at = memmem(at, (size_t)(end - at), name, strlen(name)))) {
		at += strlen(name);
		while (at < end && strchr(" \t=(", *at) && *at)
			at++;
		if (end - at >= 2 && at[0] == '4' && at[1] == '2')
			return true;
	}
	return false;
}

/* testlib's own header has 0 for "ok"; the copies that speak the package format's codes have 42. A script that comes
 * with a checker speaks for it, in the format's codes. */
static bool is_testlib(const struct grade_source *source)
{
	for (size_t i = 0; i < source->count; i++)
		if (defines_42(&source->files[i], "OK_EXIT_CODE") || defines_42(&source->files[i], "_ok"))
			return false;
	return !grade_source_file(source, "run") && (grade_source_contains(source, "registerTestlibCmd") ||
						      grade_source_contains(source, "registerInteraction"));
}

void grade_program_make(const struct grade_maker *maker, const struct grade_source *source, struct grade_program *ret)
{
	struct grade_program program = {.testlib = is_testlib(source)};
	struct json_object *language = source->runner ? jail_runner_named(maker->runners, source->runner) : NULL;
	auto_free char *build = xasprintf("build-%s", source->runner ? source->runner : "");
	struct json_object *builder = jail_runner_named(maker->runners, build);

	if (source->script && maker->own) {
		run_scripts(maker, source, &program);
	} else if (!language) {
		GRADE_SAY(&program, GRADE_SKIP, "no runner has the language of %s files",
			  source->extension ? source->extension : "these");
	} else if (!json_object_get_boolean(json_get(language, "available", json_type_boolean))) {
		GRADE_SAY(&program, GRADE_SKIP, "the runner %s is not installed: %s", source->runner,
			  json_get_string(language, "install"));
	} else if (builder) {
		compile(maker, source, language, builder, &program);
	} else {
		program.runner = xstrdup(source->runner);
		program.entry = xstrdup(source->files[source->entry].name);
		if (source_files(source, &program))
			GRADE_SAY(&program, GRADE_JE, "no memory for the sources");
		else if (!maker->own && streq(source->runner, "python"))
			check_python(maker, source, language, &program);
	}
	snprintf(program.language, sizeof(program.language), "%s", source->runner ? source->runner : "");
	if (program.entry)
		mark_entry_executable(&program);
	*ret = program;
}
