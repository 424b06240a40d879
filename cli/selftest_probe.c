/*
 * selftest_probe.c - runs one probe and judges it, see selftest.h.
 *
 * The probes are one static program, which is put into /data of a fresh jail for each of them and started by the bash
 * runner: the jailer needs to know nothing of it, and what is tried is exactly what a guest could try. Scripts are run
 * by their own runner. A judge sees the result, the output and the files that came out; he says the first thing that is
 * not as promised.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/client/client_once.h"
#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "selftest.h"

#define OUTPUT_MAX   (64 * 1024 * 1024) /* what the jailer records at most is less */
#define SAID_MAX     (64 * 1024)
#define NAMES_MAX    4096
#define PROGRAM_NAME "probe"
#define PLANTED      "planted\n"
#define HELD         "held\n"

/* One jail with one run of a probe. */
struct attempt {
	struct jail_once once;
	struct selftest_tools *tools; /* NULL: none */
	bool wrote;
	struct buf kept, left;             /* names, percent-encoded, with commas */
	char foul[JAIL_NAME_MAX * 3 + 64]; /* what is wrong with a file that came out; "": nothing */
};

/* -------- events -------------------------------------------------------------------------------------- */
static void on_output(void *arg, int64_t out, int64_t error)
{
	((struct attempt *)arg)->wrote = out + error > 0;
}

/* Every file that comes out is the probe's own: what the host has does not begin so. */
static const char *foul(int fd)
{
	struct stat st;
	char start[4] = "";

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return "is not a regular file";
	if (st.st_uid == 0 || st.st_gid == 0)
		return "belongs to root";
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
		return "can be written to";
	if (st.st_size && (pread(fd, start, 3, 0) < 1 || (start[0] && !streq(start, "own"))))
		return "is not what the probe wrote";
	return NULL;
}

static void on_file(void *arg, const struct jail_change *change)
{
	struct attempt *attempt = arg;
	const char *wrong = NULL;

	struct buf *list = change->kind == JAIL_FILE_NOT_KEPT ? &attempt->left : &attempt->kept;

	if (list->length)
		buf_putc(list, ',');
	for (const unsigned char *c = (const unsigned char *)change->name; *c; c++)
		if (*c <= ' ' || *c >= 0x7f || strchr("%,\"", *c))
			buf_printf(list, "%%%02X", *c);
		else
			buf_putc(list, (char)*c);
	if (change->fd >= 0) {
		wrong = change->mode & 06000 ? "has a setuid bit" : foul(change->fd);
		close(change->fd);
	}
	if (wrong)
		snprintf(attempt->foul, sizeof(attempt->foul), "the file %s %s", change->name, wrong);
}

/* -------- running ------------------------------------------------------------------------------------- */
static void attempt_clear(struct attempt *attempt)
{
	jail_once_clear(&attempt->once);
	selftest_tools_close(attempt->tools);
	buf_clear(&attempt->kept);
	buf_clear(&attempt->left);
}
#define auto_attempt __attribute__((cleanup(attempt_clear)))

static int attempt_start(const struct probe_place *place, const struct probe_entry *probe, const char *more,
			 struct attempt *ret, struct err *err)
{
	const struct jail_file file = {.name = PROGRAM_NAME, .mode = 0755, .fd = place->program_fd};
	const char *const args[] = {probe->name, more, NULL};
	/* One of the probes looks at the environment: without what bash adds to it. */
	static const char verb[] = "exec env -u PWD -u OLDPWD -u SHLVL /data/" PROGRAM_NAME " \"$@\"\n";
	auto_close int code_fd = probe->script ? open(probe->script, O_RDONLY | O_CLOEXEC)
					       : memfd_with("selftest", verb, sizeof(verb) - 1);
	struct jail_limits limits = probe->terms.limits;

	if (code_fd < 0)
		return err_errno(err, "%s", probe->script ? probe->script : "memfd_create");
	if (probe->terms.tools && selftest_tools_open(&ret->tools, err) < 0)
		return -(int)err->code;
	limits.wall_us *= place->patience;
	limits.compile_wall_us *= place->patience;
	buf_init(&ret->kept, NAMES_MAX);
	buf_init(&ret->left, NAMES_MAX);
	ret->once = (struct jail_once){
		.spec = {.runner = probe->terms.runner[0] ? probe->terms.runner : "bash",
			 .label = "selftest",
			 .live = place->live,
			 .limits = limits},
		.program = {.code_fd = code_fd,
			    .args = args,
			    .stdin_fd = -1,
			    .tools = ret->tools != NULL,
			    .tools_fd = ret->tools != NULL ? selftest_tools_socket(ret->tools) : -1},
		.capture = true,
		.files = &file,
		.n_files = probe->script ? 0 : 1,
		.output = on_output,
		.file = on_file,
		.arg = ret,
	};
	return jail_once_begin(place->client, &ret->once, err);
}

/* As text: it may hold NULs. */
static int text_of(const struct attempt *attempt, char **ret, struct err *err)
{
	size_t length;
	int result = jail_once_output(&attempt->once, 1, OUTPUT_MAX, ret, &length, err);

	for (size_t i = 0; result == 0 && i < length; i++)
		if ((*ret)[i] == '\0')
			(*ret)[i] = '?';
	return result;
}

/* -------- judging ------------------------------------------------------------------------------------- */
static bool detail_fits(const struct probe_terms *terms, const struct jail_result *result)
{
	uint64_t number;

	if (!terms->detail[0])
		return true;
	if (parse_u64(terms->detail, 0, 255, &number))
		return streq(terms->detail, result->limit);
	return (result->signal ? result->signal : result->exit_code) == (int)number;
}

static void complain(struct probe_outcome *outcome, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void complain(struct probe_outcome *outcome, const char *format, ...)
{
	va_list arguments;

	if (outcome->result == PROBE_BROKEN)
		return; /* the first one counts */
	outcome->result = PROBE_BROKEN;
	va_start(arguments, format);
	vsnprintf(outcome->message, sizeof(outcome->message), format, arguments);
	va_end(arguments);
}

static void judge_names(struct probe_outcome *ret, const char *what, const char *wanted, const struct buf *names)
{
	const char *came = names->length ? names->data : "";

	if (!streq(wanted, "*") && !streq(wanted, came))
		complain(ret, "%s \"%.80s\" instead of \"%.80s\"", what, came, wanted);
}

static enum jail_verdict expected(const struct probe_place *place, const struct probe_terms *terms,
				  enum jail_verdict came)
{
	if (!place->counted)
		return terms->weaker_ends;
	if (place->live && terms->live_ends != JAIL_VERDICTS)
		return terms->live_ends;
	return came == terms->also ? terms->also : terms->ends;
}

static void judge(const struct probe_place *place, const struct probe_terms *terms, struct attempt *attempt,
		  const char *said, struct probe_outcome *ret)
{
	const struct jail_result *result = &attempt->once.result;
	enum jail_verdict ends = expected(place, terms, result->verdict);
	int64_t cpu = result->run.cpu_user_us + result->run.cpu_system_us;

	if (strstr(said, "BROKEN"))
		complain(ret, "something worked that must not");
	if (result->verdict != ends || (ends == terms->ends && !detail_fits(terms, result)))
		complain(ret, "%s instead of %s%s%s: %.160s", jail_verdict_text(result->verdict),
			 jail_verdict_text(ends), terms->detail[0] ? ":" : "", terms->detail, result->message);
	if (ends == JAIL_OK && !str_ends(said, HELD))
		complain(ret, "it did not finish");
	/* On a slow machine starting a program takes longer than that. */
	if (terms->cpu_below_us && place->patience == 1 && cpu >= terms->cpu_below_us)
		complain(ret, "it used %lld us of CPU time", (long long)cpu);
	if (attempt->foul[0])
		complain(ret, "%s", attempt->foul);
	judge_names(ret, "kept", terms->kept, &attempt->kept);
	judge_names(ret, "left out", terms->left, &attempt->left);
}

/* One run; *ret_said is what it printed. */
static int run_once(const struct probe_place *place, const struct probe_entry *probe, struct probe_outcome *ret,
		    char **ret_said, struct err *err)
{
	auto_attempt struct attempt attempt = {0};
	int result = attempt_start(place, probe, NULL, &attempt, err);

	if (result == 0)
		result = jail_once_end(place->client, &attempt.once, err);
	if (result == 0)
		result = text_of(&attempt, ret_said, err);
	if (result < 0)
		return result;
	judge(place, &probe->terms, &attempt, *ret_said, ret);
	int64_t calls = selftest_tools_close(steal(&attempt.tools));
	if (calls > SELFTEST_CALLS)
		complain(ret, "%lld calls of tools came through, the limit is %d", (long long)calls, SELFTEST_CALLS);
	return 0;
}

/* The first one stays while the second looks; see selftest.h. */
static int run_planted(const struct probe_place *place, const struct probe_entry *probe, struct probe_outcome *ret,
		       char **ret_said, struct err *err)
{
	auto_attempt struct attempt plant = {0};
	auto_free char *planted = NULL;
	int result = attempt_start(place, probe, "plant", &plant, err);

	while (result == 0 && !plant.wrote && !plant.once.over) {
		struct pollfd poller = {.fd = jail_client_fd(place->client),
					.events = jail_client_poll_events(place->client)};

		result = poll(&poller, 1, -1) < 0 ? err_errno(err, "poll") : jail_client_dispatch(place->client, err);
	}
	if (result == 0)
		result = run_once(place, probe, ret, ret_said, err);
	if (result < 0)
		return result;
	if (plant.once.over)
		complain(ret, "what was to stay has ended: %.200s", plant.once.result.message);
	jail_cancel(plant.once.jail);
	result = jail_once_end(place->client, &plant.once, err);
	if (result == 0)
		result = text_of(&plant, &planted, err);
	if (result < 0)
		return result;
	if (!planted || !streq(planted, PLANTED))
		complain(ret, "what was to stay did not plant anything: %.200s", planted ? planted : "");
	if (ret->result == PROBE_BROKEN)
		return 0;
	free(steal(ret_said));
	return run_once(place, probe, ret, ret_said, err);
}

/* Is there no use in trying it here? PROBE_HELD: there is. */
static enum probe_result untried(const struct probe_place *place, const struct probe_terms *terms)
{
	if ((terms->weaker && !place->counted) || (terms->weaker_single && place->single))
		return PROBE_WEAKER;
	bool installed = !terms->runner[0];

	for (size_t i = 0; i < json_object_array_length(place->runners); i++) {
		struct json_object *one = json_object_array_get_idx(place->runners, i);

		if (streq(json_get_string(one, "name"), terms->runner))
			installed = json_object_get_boolean(json_get(one, "available", json_type_boolean));
	}
	return !installed || (terms->heavy && place->patience > 1) ? PROBE_ABSENT : PROBE_HELD;
}

int selftest_probe_run(const struct probe_place *place, const struct probe_entry *probe, struct probe_outcome *ret,
		       struct err *err)
{
	const struct probe_terms *terms = &probe->terms;
	struct probe_outcome outcome = {.result = untried(place, terms)};
	auto_free char *said = NULL, *first = NULL;
	int result;

	if (outcome.result != PROBE_HELD) {
		*ret = outcome;
		ret->said = xstrdup("");
		return 0;
	}
	if (terms->plant)
		result = run_planted(place, probe, &outcome, &said, err);
	else
		result = run_once(place, probe, &outcome, &said, err);
	if (result == 0 && terms->twice) {
		first = steal(&said);
		result = run_once(place, probe, &outcome, &said, err);
		if (result == 0 && streq(first, said))
			complain(&outcome, "it printed the same twice");
	}
	if (result < 0)
		return result;
	*ret = outcome;
	ret->said = xstrndup(said, strnlen(said, SAID_MAX));
	return 0;
}

void selftest_outcome_clear(struct probe_outcome *outcome)
{
	free(outcome->said);
	*outcome = (struct probe_outcome){.said = NULL};
}

int selftest_place_open(struct jail_client *client, const char *folder, struct probe_place *ret, struct err *err)
{
	auto_free char *path = xasprintf("%s/jail_probe", folder);
	struct probe_place place = {.client = client, .patience = 1, .program_fd = -1};
	auto_json struct json_object *info = NULL;
	int result = jail_client_info(client, &info, err);

	if (result == 0)
		result = jail_client_runners(client, &place.runners, err);
	if (result == 0 && (place.program_fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		result = err_errno(err, "%s", path);
	if (result < 0) {
		selftest_place_close(&place);
		return result;
	}
	const char *cgroup = json_get_string(info, "cgroup"), *mode = json_get_string(info, "mode");
	place.single = mode && streq(mode, "single-id");
	place.counted = cgroup && !streq(cgroup, "none");
	*ret = place;
	return 0;
}

void selftest_place_close(struct probe_place *place)
{
	if (place->program_fd >= 0)
		close(place->program_fd);
	json_object_put(place->runners);
	*place = (struct probe_place){.program_fd = -1};
}
