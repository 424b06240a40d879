/*
 * job_replay.c - a recorded execution once more, on its stored inputs; nothing is recorded.
 *
 * Spec and program are built from the row alone: the limits as they were resolved then, arguments, environment,
 * standard input, code, and the files that /data was filled with, from the blob folder. Two things differ on purpose:
 * there is no CPU share (a busy machine must not turn a verdict into a time-out), and secrets come from the caller,
 * because they were never stored; what comes back is masked as it was then. A grading is graded again. It runs on the
 * caller's thread with a connection of the caller's own: a replay is a batch job and has no client that may vanish.
 */
#include "jail/client/client_once.h"
#include "job_grading.h"
#include "job_internal.h"
#include "job_known.h"
#include "job_secret.h"
#include "lib/base/utf8.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct replay {
	struct store *store;
	struct jail_client *client;
	const struct job_secrets *secrets;
	struct job_secrets used; /* by this run and those before it in its sandbox */
	struct job_cover cover;
	size_t masked_names;
	struct jail_once once;
	struct job_replay made; /* of the run that is under way */
	const struct job_replay_from *from;
	struct job_tools *tools; /* of that run; NULL: none */
	const char **tools_env;
	struct job_tools_wait wait;
	struct err error; /* the first file that could not be read */
	struct job_input *inputs;
	size_t n_inputs;
	char **args, **env;
	bool last;              /* of the runs of its sandbox that are wanted */
	struct job_known known; /* live: what /data holds by the record … */
	struct job_gone gone;   /* … and what of it the run must not find */
};

static void strings_free(char **strings)
{
	for (char **string = strings; string && *string; string++)
		free(*string);
	free(strings);
}

/* What belongs to one run. */
static void run_clear(struct replay *replay)
{
	job_inputs_free(replay->inputs, replay->n_inputs);
	job_gone_clear(&replay->gone);
	strings_free(replay->args);
	strings_free(replay->env);
	fd_close(&replay->once.program.code_fd);
	fd_close(&replay->once.program.stdin_fd);
	job_changes_free(replay->made.changes, replay->made.n_changes);
	store_tools_clear(&replay->made.tools);
	job_tools_release(&replay->tools);
	free(steal(&replay->tools_env));
	job_tools_wait_clear(&replay->wait);
	replay->made = (struct job_replay){0};
	replay->inputs = NULL;
	replay->n_inputs = 0;
	replay->args = replay->env = NULL;
}

/* -------- from the row -------------------------------------------------------------------------------- */

/* *ret is the caller's, also where it is of another type. */
static int parse_stored(const char *what, const char *text, enum json_type type, struct json_object **ret,
			struct err *err)
{
	if (!text)
		return err_set(err, ERR_INVALID, "the row has no %s", what);
	if (json_parse(text, strlen(text), ret, err) < 0)
		return err_set(err, ERR_INVALID, "the row's %s is not JSON", what);
	if (!json_object_is_type(*ret, type))
		return err_set(err, ERR_INVALID, "the row's %s has the wrong type", what);
	return 0;
}

static int load_arguments(struct replay *replay, const char *text, struct err *err)
{
	auto_json struct json_object *array = NULL;
	int result = parse_stored("arguments", text ? text : "[]", json_type_array, &array, err);
	size_t count;

	if (result < 0)
		return result;
	count = json_object_array_length(array);
	replay->args = xcalloc(count + 1, sizeof(*replay->args));
	for (size_t i = 0; i < count; i++) {
		struct json_object *item = json_object_array_get_idx(array, i);

		if (!json_object_is_type(item, json_type_string))
			return err_set(err, ERR_INVALID, "the row's arguments must be texts");
		replay->args[i] = xstrdup(json_object_get_string(item));
	}
	return 0;
}

static int load_environment(struct replay *replay, const char *text, struct err *err)
{
	auto_json struct json_object *object = NULL;
	int result = parse_stored("environment", text ? text : "{}", json_type_object, &object, err);
	size_t count = 0;

	if (result < 0)
		return result;
	replay->env = xcalloc((size_t)json_object_object_length(object) + 1, sizeof(*replay->env));
	json_object_object_foreach(object, name, value)
	{
		bool left_out = json_object_is_type(value, json_type_boolean);
		const char *content = value ? json_object_get_string(value) : NULL;

		if (!value || left_out) { /* a secret, or not in the bundle */
			content = replay->secrets ? job_secrets_find(replay->secrets, name) : NULL;
			if (!content)
				return err_set(err, ERR_INVALID, "the secret %s is missing (give it with --secret)",
					       name);
			const struct job_secrets one = {(char *[]){name}, (char *[]){(char *)(uintptr_t)content}, 1};

			if (!left_out)
				job_secrets_join(&replay->used, &one);
		}
		replay->env[count++] = xasprintf("%s=%s", name, content);
	}
	return 0;
}

static int load_text(struct replay *replay, const struct store_text *text, int *ret_fd, struct err *err)
{
	if (*text->blob)
		return store_blob_open(replay->store, text->blob, ret_fd, NULL, err);
	*ret_fd = memfd_with("text", text->data ? text->data : "", text->data ? text->length : 0);
	return *ret_fd < 0 ? err_errno(err, "cannot make an anonymous file") : 0;
}

static int add_input(void *arg, const struct store_execution_file *found)
{
	struct replay *replay = arg;

	if (!job_known_has(&replay->known, &found->file))
		job_inputs_add(&replay->inputs, &replay->n_inputs, &found->file);
	return 0;
}

static int load(struct replay *replay, const struct store_execution *execution, struct err *err)
{
	auto_json struct json_object *limits = NULL;
	int result;

	if ((result = load_arguments(replay, execution->args_json, err)) < 0 ||
	    (result = load_environment(replay, execution->env_json, err)) < 0 ||
	    (result = parse_stored("limits", execution->limits_json, json_type_object, &limits, err)) < 0)
		return result;
	if (bind_parse(jail_limits_table, limits, &replay->once.spec.limits, err) < 0)
		return err_wrap(err, "the row's limits");
	replay->once.spec.limits.cpu_percent = -1;
	if ((result = load_text(replay, &execution->code, &replay->once.program.code_fd, err)) < 0)
		return result;
	if ((execution->stdin_text.data || *execution->stdin_text.blob) &&
	    (result = load_text(replay, &execution->stdin_text, &replay->once.program.stdin_fd, err)) < 0)
		return result;
	job_known_begin(&replay->known);
	result = store_execution_files(replay->store, execution->id, STORE_BEFORE, add_input, replay, err);
	if (result == 0)
		job_known_gone(&replay->known, &replay->gone);
	return result;
}

/* -------- what the run made ------------------------------------------------------------------------- */

static void on_file(void *arg, const struct jail_change *change)
{
	struct replay *replay = arg;
	struct job_replay *result = &replay->made;
	struct job_change *copy;

	result->changes = xrealloc(result->changes, result->n_changes + 1, sizeof(*result->changes));
	copy = &result->changes[result->n_changes++];
	*copy = (struct job_change){.kind = change->kind, .name = xstrdup(change->name)};
	snprintf(copy->reason, sizeof(copy->reason), "%s", change->reason ? change->reason : "");
	copy->file = (struct store_file){.name = copy->name,
					 .name_length = strlen(change->name),
					 .mode = change->mode,
					 .mtime_us = change->mtime_us,
					 .size = change->size};
	job_mask_name(replay->cover.mask, copy, &replay->masked_names);
	if (change->fd < 0)
		return;
	auto_close int fd = change->fd;
	struct err err = ERR_INIT;

	if (job_mask_file(replay->cover.mask, &fd, &err) < 0) {
		copy->kind = JAIL_FILE_NOT_KEPT;
		snprintf(copy->reason, sizeof(copy->reason), "%.*s",
			 (int)utf8_cut(err.text, strlen(err.text), sizeof(copy->reason) - 1), err.text);
	} else if (sha256_fd(fd, copy->file.blob, &copy->file.size) == 0) {
		job_media_type(copy->file.name, fd, copy->file.media_type);
	} else if (replay->error.code == ERR_NONE) {
		err_errno(&replay->error, "reading a file that the program made");
	}
	copy->masked = copy->masked || fd != change->fd;
}

/* -------- the run ------------------------------------------------------------------------------------- */

static int open_input(void *arg, size_t index, struct jail_file *ret, struct err *err)
{
	struct replay *replay = arg;
	const struct store_file *file = &replay->inputs[index].file;

	*ret = (struct jail_file){.name = file->name, .mode = file->mode, .mtime_us = file->mtime_us};
	return store_blob_open(replay->store, file->blob, &ret->fd, NULL, err) < 0
		       ? err_wrap(err, "the file \"%s\"", file->name)
		       : 0;
}

/* jail_once, while the program's wall clock may stand still. */
static int run_waiting(struct replay *replay, struct err *err)
{
	struct jail_once *once = &replay->once;
	int result = jail_once_begin(replay->client, once, err);

	while (result == 0 && !once->over) {
		struct pollfd polled[] = {
			{.fd = jail_client_fd(replay->client), .events = jail_client_poll_events(replay->client)},
			{.fd = replay->wait.event, .events = POLLIN},
		};

		if (poll(polled, ARRAY_SIZE(polled), -1) < 0 && errno != EINTR)
			return err_errno(err, "poll");
		if (polled[1].revents & POLLIN)
			job_tools_wait_step(&replay->wait, once->jail);
		result = jail_client_dispatch(replay->client, err);
	}
	return result == 0 ? jail_once_end(replay->client, once, err) : result;
}

/* With what answers its calls. */
static int run_in_jail(struct replay *replay, const struct store_execution *execution, struct err *err)
{
	struct jail_once *once = &replay->once;
	const struct job_replay_from *from = replay->from;
	struct job_tools_given given = {.socket = -1};
	const struct job_tools_run run = {
		.execution = execution->id, .waits = job_tools_wait_note, .arg = &replay->wait};
	int result = from->tools ? from->tools(from->tools_arg, execution, &replay->tools, err) : 0;

	if (result == 0 && replay->tools)
		result = job_tools_wait_begin(&replay->wait, err);
	if (result == 0 && replay->tools)
		result = replay->tools->open(replay->tools, &run, &given, err);
	if (result < 0)
		return result;
	once->program.tools = replay->tools != NULL;
	once->program.tools_fd = given.socket;
	once->code_files = replay->tools ? replay->tools->files : NULL;
	once->n_code_files = replay->tools ? replay->tools->n_files : 0;
	if (!replay->tools)
		return jail_once(replay->client, once, err);
	once->program.env = replay->tools_env = job_tools_environment(replay->env, given.env);
	result = run_waiting(replay, err);
	replay->tools->close(replay->tools, &replay->made.tools);
	job_tools_veil(replay->cover.mask, &replay->made.tools);
	return result;
}

/* What is shown stands behind standard output, as in records from before it was a stream of its own. */
static int put_value(const struct jail_once *once, struct err *err)
{
	const char *value = once->result.value ? json_object_get_string(once->result.value) : "";

	if (lseek(once->program.stdout_fd, 0, SEEK_END) < 0 ||
	    write_all(once->program.stdout_fd, value, strlen(value)) < 0)
		return err_errno(err, "keeping the value");
	return 0;
}

int job_replay_stdout(struct store *store, const struct store_execution *execution, char **ret, size_t *ret_length,
		      struct err *err)
{
	const char *text = execution->generation <= 1 ? execution->result_json : NULL;
	auto_json struct json_object *more = NULL;
	int result = store_text_read(store, &execution->stdout_text, ret, ret_length, err);

	if (result < 0 || !text || json_parse(text, strlen(text), &more, NULL) < 0)
		return result;
	const char *value = json_get_string(more, "value");
	const size_t length = value ? strlen(value) : 0;

	*ret = xrealloc(*ret, *ret_length + length + 1, 1);
	memcpy(*ret + *ret_length, value ? value : "", length + 1);
	*ret_length += length;
	return 0;
}

/* A grading once more, case by case. */
static int replay_grading(struct replay *replay, const struct store_execution *execution, job_replay_each *each,
			  void *arg, struct err *err)
{
	struct job_replay *made = &replay->made;
	auto_json struct json_object *runners = NULL, *asked = NULL;
	auto_free char *code = NULL, *text = NULL;
	auto_batch struct grade_batch_result graded = {0};
	auto_buf struct buf lines = {0};
	auto_close int out = -1, said = -1;
	size_t code_length = 0, length = 0;
	int result = load(replay, execution, err);

	if (result == 0)
		result = store_text_read(replay->store, &execution->code, &code, &code_length, err);
	if (result == 0)
		result = store_text_read(replay->store, &execution->stdin_text, &text, &length, err);
	if (result == 0)
		result = json_parse(text, length, &asked, err);
	if (result == 0)
		result = jail_client_runners_known(replay->client, &runners, err);
	const struct grade_batch batch = {.client = replay->client,
					  .runners = runners,
					  .language = execution->language,
					  .code = code,
					  .asked = asked,
					  .limits = replay->once.spec.limits};

	if (result == 0)
		result = grade_batch(&batch, &graded, err);
	if (result < 0)
		return result;
	job_grading_end(&graded, &made->jail);
	buf_init(&lines, SIZE_MAX / 2);
	grade_batch_print(&graded, &lines);
	made->stdout_fd = out = memfd_with("stdout", lines.data, lines.length);
	made->stderr_fd = said = memfd_with("stderr", graded.message, graded.count == 0 ? strlen(graded.message) : 0);
	return out < 0 || said < 0 ? err_errno(err, "cannot make an anonymous file")
				   : each(arg, execution, made, err);
}

/* One run, in the jail that is open or the one to open, shown to `each`. */
static int replay_run(struct replay *replay, const struct store_execution *execution, job_replay_each *each, void *arg,
		      struct err *err)
{
	struct jail_once *once = &replay->once;
	struct job_replay *made = &replay->made;
	int result = load(replay, execution, err);

	if (result < 0)
		return result;
	once->spec.runner = execution->language;
	once->spec.network = execution->network;
	once->spec.label = execution->id;
	once->program.entry = execution->entry;
	once->program.display = execution->display;
	once->program.wall_us = once->spec.live ? once->spec.limits.wall_us : 0;
	once->program.clock_us = replay->from->deterministic ? execution->created_us : 0;
	once->program.args = (const char *const *)replay->args;
	once->program.env = (const char *const *)replay->env;
	once->removed = replay->gone.files;
	once->n_removed = replay->gone.count;
	once->n_files = replay->n_inputs;
	mask_free(replay->cover.mask);
	replay->cover.mask = job_secrets_mask(&replay->used);
	replay->masked_names = 0;
	result = run_in_jail(replay, execution, err);
	if (result == 0 && replay->error.code != ERR_NONE) {
		if (err)
			*err = replay->error;
		result = -(int)replay->error.code;
	}
	if (result < 0)
		return result;
	result = put_value(once, err);
	if (result < 0)
		return result;
	made->jail = once->result;
	made->stdout_fd = once->program.stdout_fd;
	made->stderr_fd = once->program.stderr_fd;
	if (replay->cover.mask) {
		result = job_cover_put(&replay->cover, made->stdout_fd, made->stderr_fd, err);
		if (result == 0)
			result = made->stdout_fd = job_cover_shown(&replay->cover, 1, true, err);
		if (result >= 0)
			result = made->stderr_fd = job_cover_shown(&replay->cover, 2, true, err);
		job_mask_result(replay->cover.mask, &made->jail);
	}
	if (result < 0)
		return result;
	lseek(made->stdout_fd, 0, SEEK_SET);
	lseek(made->stderr_fd, 0, SEEK_SET);
	return each(arg, execution, made, err);
}

/* -------- a live sandbox's runs ----------------------------------------------------------------------- */

struct runs {
	char (*ids)[ID_SIZE];
	size_t count;
};

static void runs_clear(struct runs *runs)
{
	free(runs->ids);
}

static int add_run(void *arg, const char *id)
{
	struct runs *runs = arg;

	runs->ids = xrealloc(runs->ids, runs->count + 1, sizeof(*runs->ids));
	snprintf(runs->ids[runs->count++], ID_SIZE, "%s", id);
	return 0;
}

/* /data after a run as it was then: by that it is known what the next one was given. */
static int note_change(void *arg, const struct store_execution_file *found)
{
	struct job_known *known = arg;

	if (streq(found->change, "deleted"))
		job_known_remove(known, found->file.name);
	else if (!streq(found->change, "lost"))
		job_known_put(known, &found->file);
	return 0;
}

/* One of them. Returns 1 where the sandbox ended with it. */
static int replay_in_turn(struct replay *replay, const struct store_execution *execution, job_replay_each *each,
			  void *arg, struct err *err)
{
	int result;

	if (!replay->last && streq(execution->verdict, "CX")) /* it never began, else it had ended the sandbox */
		return 0;
	result = replay_run(replay, execution, each, arg, err);
	if (result == 0) {
		job_known_forget(&replay->known, &replay->gone);
		for (size_t i = 0; i < replay->n_inputs; i++)
			job_known_put(&replay->known, &replay->inputs[i].file);
		result = store_execution_files(replay->store, execution->id, STORE_AFTER, note_change, &replay->known,
					       err);
		for (size_t i = 0; i < replay->made.n_changes; i++)
			if (replay->made.changes[i].masked) /* then the next run got the masked one */
				job_known_remove(&replay->known, replay->made.changes[i].name);
	}
	if (result == 0 && replay->made.jail.ended)
		result = 1;
	run_clear(replay);
	return result;
}

/* The runs of its sandbox up to `execution`, which was read already. */
static int replay_sandbox(struct replay *replay, const struct store_execution *execution, job_replay_each *each,
			  void *arg, struct err *err)
{
	__attribute__((cleanup(runs_clear))) struct runs runs = {0};
	int result =
		store_sandbox_runs(replay->store, execution->sandbox_id, execution->sandbox_seq, add_run, &runs, err);

	replay->once.spec.live = true;
	for (size_t i = 0; result == 0 && i < runs.count && !streq(runs.ids[i], execution->id); i++) {
		struct store_execution earlier = {0};

		result = store_execution_find(replay->store, runs.ids[i], &earlier, err);
		if (result < 0)
			break;
		result = replay_in_turn(replay, &earlier, each, arg, err);
		store_execution_clear(&earlier);
	}
	replay->last = true;
	return result == 0 ? replay_in_turn(replay, execution, each, arg, err) : MIN(result, 0);
}

int job_replay(const struct job_replay_from *from, const struct store_execution *execution, job_replay_each *each,
	       void *arg, struct err *err)
{
	struct replay replay = {
		.from = from,
		.store = from->store,
		.client = from->client,
		.secrets = from->secrets,
		.once = {.capture = true, .open_file = open_input, .file = on_file},
		.wait = {.event = -1},
	};
	int result;

	replay.once.program.code_fd = replay.once.program.stdin_fd = -1;
	replay.once.arg = &replay;
	job_cover_init(&replay.cover);
	result = execution->grading       ? replay_grading(&replay, execution, each, arg, err)
		 : *execution->sandbox_id ? replay_sandbox(&replay, execution, each, arg, err)
					  : replay_run(&replay, execution, each, arg, err);
	jail_once_clear(&replay.once);
	run_clear(&replay);
	job_known_clear(&replay.known);
	job_cover_clear(&replay.cover);
	job_secrets_clear(&replay.used);
	return MIN(result, 0);
}
