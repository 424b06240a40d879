/*
 * job_check.c - is a request one that can run? Turns it into a job, or says which member is wrong; touches nothing
 * outside.
 *
 * The server's caps are checked here and again by the jailer (which refuses, never clamps): here the error names the
 * request's member and the range, there it protects the host from a gateway that was taken over.
 */
#include "job_internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "jail/client/client_runners.h"
#include "lib/base/utf8.h"

#define MEMBER_SIZE 64

static int check_map(const struct bind_map *map, const char *member, struct err *err)
{
	for (size_t i = 0; i < map->count; i++) {
		if (!job_variable_valid(map->keys[i], strlen(map->keys[i]))) {
			auto_buf struct buf shown = {0};

			buf_init(&shown, MEMBER_SIZE);
			utf8_printable(&shown, map->keys[i], strnlen(map->keys[i], MEMBER_SIZE / 4));
			return err_member(err, member,
					  "\"%s\" is not a valid variable name (letters, digits and _, not a digit "
					  "first)",
					  shown.data);
		}
	}
	return 0;
}

static bool map_has(const struct bind_map *map, const char *name)
{
	for (size_t i = 0; i < map->count; i++)
		if (streq(map->keys[i], name))
			return true;
	return false;
}

/* Arguments and environment together, as execve counts them. */
static int check_size(const struct job_request *request, const struct job_secrets *secrets, size_t more,
		      struct err *err)
{
	size_t size = more;

	for (size_t i = 0; i < request->args.count; i++)
		size += strlen(request->args.items[i]) + 1;
	for (size_t i = 0; i < request->environment.count; i++)
		size += strlen(request->environment.keys[i]) + strlen(request->environment.values[i]) + 2;
	for (size_t i = 0; i < secrets->count; i++)
		size += strlen(secrets->names[i]) + strlen(secrets->values[i]) + 2;
	if (size > JAIL_ARGUMENTS_MAX)
		return err_member(err, "environment",
				  "args, environment and secrets must have at most %d bytes together, not %zu",
				  JAIL_ARGUMENTS_MAX, size);
	return 0;
}

static void add_variable(struct job *job, size_t *count, struct json_object *record, const char *name,
			 const char *value, bool secret)
{
	job->run.env[(*count)++] = xasprintf("%s=%s", name, value);
	json_add_string(record, name, secret ? NULL : value);
}

static int take_environment(struct job *job, const struct job_request *request, struct err *err)
{
	const struct bind_map *environment = &request->environment;
	const struct config *config = job->engine->config;
	struct job_secrets *secrets = &job->run.secrets;
	auto_json struct json_object *record = NULL;
	auto_free char *url = NULL;
	size_t count = 0;
	int result;

	if ((result = check_map(environment, "environment", err)) < 0 ||
	    (result = check_map(&request->secrets, "secrets", err)) < 0)
		return result;
	for (size_t i = 0; i < request->secrets.count; i++)
		if (map_has(environment, request->secrets.keys[i]))
			return err_member(err, "secrets", "\"%s\" is also in environment: use one of the two",
					  request->secrets.keys[i]);
	result = job_secrets_take(config->tools.secrets_dir, request->owner, environment, &request->secrets, secrets,
				  err);
	if (result < 0)
		return result;
	if (request->conversation && *config->public_base_url && !map_has(environment, "FILE_BASE_URL") &&
	    !job_secrets_find(secrets, "FILE_BASE_URL"))
		url = xasprintf("%s/files/%s", config->public_base_url, job->asked.place);
	if ((result = check_size(request, secrets, url ? strlen(url) + sizeof("FILE_BASE_URL=") : 0, err)) < 0)
		return result;

	job->run.env = xcalloc(environment->count + secrets->count + 2, sizeof(*job->run.env));
	record = json_object_new_object();
	for (size_t i = 0; i < environment->count; i++)
		add_variable(job, &count, record, environment->keys[i], environment->values[i], false);
	for (size_t i = 0; i < secrets->count; i++)
		add_variable(job, &count, record, secrets->names[i], secrets->values[i], true);
	job->asked.row.secrets = (int64_t)secrets->count;
	if (url)
		add_variable(job, &count, record, "FILE_BASE_URL", url, false);
	job->asked.row.env_json = job_json_text(record);
	return 0;
}

static int runner_unknown(struct json_object *runners, const char *language, struct err *err)
{
	auto_buf struct buf known = {0}, shown = {0};

	buf_init(&known, ERR_TEXT_SIZE);
	for (size_t i = 0; i < json_object_array_length(runners); i++)
		buf_printf(&known, "%s%s", i ? ", " : "",
			   json_get_string(json_object_array_get_idx(runners, i), "name"));
	buf_init(&shown, MEMBER_SIZE);
	utf8_printable(&shown, language, strnlen(language, MEMBER_SIZE / 4));
	const char *near = jail_runner_near(runners, language);

	if (near)
		return err_member(err, "language", "\"%s\" is unknown, did you mean \"%s\"? There are %s", shown.data,
				  near, known.data);
	return err_member(err, "language", "\"%s\" is unknown; there are %s", shown.data, known.data);
}

static int runner_find(struct json_object *runners, const char *language, struct json_object **ret, struct err *err)
{
	struct json_object *runner = jail_runner_named(runners, language);

	if (!runners)
		return err_set(err, ERR_UNAVAILABLE,
			       "the jailer has not answered since this server was started, so nothing can run: try "
			       "again in a few seconds; "
			       "the operator's log says why");
	if (!runner)
		return runner_unknown(runners, language, err);
	if (!json_object_get_boolean(json_get(runner, "available", json_type_boolean))) {
		const char *install = json_get_string(runner, "install");

		return err_set(err, ERR_UNAVAILABLE, "language: %s is not installed on this server (%s)", language,
			       install ? install : "no package is known");
	}
	*ret = runner;
	return 0;
}

int job_take_language(struct json_object *runners, const char *language, char ret[32], struct err *err)
{
	struct json_object *runner;
	int result = runner_find(runners, language, &runner, err);

	if (result == 0)
		snprintf(ret, 32, "%s", json_get_string(runner, "name"));
	return result;
}

static int in_range(int64_t value, int64_t max, const char *member, struct err *err)
{
	if (value < 0 || value > max)
		return err_member(err, member, "must be between 1 and %lld, not %lld", (long long)max,
				  (long long)value);
	return 0;
}

/* What the caller did not say comes from the configuration; the CPU time is the wall time. */
static int take_limits(struct job *job, const struct job_request *request, struct err *err)
{
	const struct config_limits *limits = &job->engine->config->limits;
	int result = 0;

#define ASKED_LIMIT(argument, field, member, unit, ...)                                                                \
	if (result == 0)                                                                                               \
		result = in_range(request->argument, limits->member##_max, #argument, err);                            \
	if (result == 0)                                                                                               \
		job->asked.named.field = request->argument * LIMIT_##unit;
#include "lib/base/limits.def"
	if (request->limits)
		job->asked.named = *request->limits;
	return result < 0 ? result : limits_resolve(limits, &job->asked.named, &job->asked.limits, err);
}

void job_take_client(const struct store_client *client, struct store_execution *row)
{
	memcpy(row->request_id, client->request_id, sizeof(row->request_id));
	memcpy(row->client_address, client->address, sizeof(row->client_address));
	memcpy(row->client, client->program, sizeof(row->client));
	memcpy(row->door, client->door, sizeof(row->door));
	memcpy(row->caller, client->caller, sizeof(row->caller));
}

static void take_identity(struct job *job, const struct job_request *request)
{
	struct store_execution *row = &job->asked.row;

	if (request->client) {
		job->asked.client = *request->client;
		job_take_client(request->client, row);
	}
	snprintf(row->trace, sizeof(row->trace), "%s", request->trace ? request->trace : "");
	snprintf(row->task_id, sizeof(row->task_id), "%s", request->task_id ? request->task_id : "");
	if (request->id)
		memcpy(row->id, request->id, sizeof(row->id));
	else
		id_new(row->id);
	snprintf(row->owner, sizeof(row->owner), "%s", request->owner);
	snprintf(row->token_id, sizeof(row->token_id), "%s", request->token_id ? request->token_id : "");
	snprintf(row->session_id, sizeof(row->session_id), "%s", request->session_id ? request->session_id : "");
	snprintf(row->conversation, sizeof(row->conversation), "%s",
		 request->conversation ? request->conversation : "");
	row->created_us = clock_now_us();
	row->exit_code = -1;
	if (request->conversation)
		store_conversation_hash(job->engine->store, request->owner, request->conversation, job->asked.place);
	if (request->key) {
		job->asked.key = xstrdup(request->key);
		snprintf(job->asked.key_hash, sizeof(job->asked.key_hash), "%s", request->key_hash);
	}
}

int job_take_request(struct job *job, const struct job_request *request, struct json_object *runners, struct err *err)
{
	struct job_asked *asked = &job->asked;
	auto_json struct json_object *args = NULL;
	struct json_object *runner;
	int result;

	if (request->conversation &&
	    (result = job_conversation_check(request->conversation, "conversationId", err)) < 0)
		return result;
	take_identity(job, request);
	memcpy(job->run.result.id, asked->row.id, sizeof(asked->row.id)); /* what is known of it now */
	memcpy(job->run.result.conversation, asked->row.conversation, sizeof(asked->row.conversation));
	memcpy(job->run.result.conversation_hash, asked->place, sizeof(asked->place));
	if (request->live && !request->conversation)
		return err_member(err, "session", "needs a conversation");
	if (request->network && job->engine->config->network.allow.count == 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "network: not allowed on this server: network.allow in its configuration is empty");
	asked->row.network = request->network;
	asked->row.display = request->display;
	if ((result = runner_find(runners, request->language, &runner, err)) < 0)
		return result;
	snprintf(asked->row.language, sizeof(asked->row.language), "%s", json_get_string(runner, "name"));
	asked->live = request->live;
	asked->keeps_state = json_object_get_boolean(json_get(runner, "live", json_type_boolean));
	if (!request->code.data)
		return err_member(err, "code", "is missing");
	if ((result = take_limits(job, request, err)) < 0)
		return result;
	asked->files = (struct job_files){.owner = asked->row.owner,
					  .caller = {asked->row.token_id, &asked->client},
					  .conversation = asked->row.conversation,
					  .bytes_max = asked->limits.data_bytes};
	if ((result = job_take_files(request, false, &asked->files, err)) < 0 ||
	    (result = take_environment(job, request, err)) < 0)
		return result;
	asked->args = xcalloc(request->args.count + 1, sizeof(*asked->args));
	args = json_object_new_array();
	for (size_t i = 0; i < request->args.count; i++) {
		asked->args[i] = xstrdup(request->args.items[i]);
		json_object_array_add(args, json_object_new_string(asked->args[i]));
	}
	asked->row.args_json = job_json_text(args);
	asked->row.entry = request->entry ? xstrdup(request->entry) : NULL;
	return 0;
}
