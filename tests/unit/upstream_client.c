/*
 * upstream_client.c - what the official conformance suite drives as the client under test: `upstream_client … URL`,
 * with the scenario's name and context in the environment. It is the client of lib/upstream and nothing else: it reads
 * the list of tools and calls, all at once, what the context names, or each tool with arguments that fit its schema.
 * Asked something, it accepts with the defaults of the form.
 */
#include <curl/curl.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/upstream/upstream.h"
#include "lib/upstream/upstream_sign_in.h"

#define CALLS_MAX    64
#define LIST_SECONDS 20
#define SIGN_INS_MAX 3
#define REDIRECT     "http://127.0.0.1:33418/callback"
#define METADATA_URL "https://conformance-test.local/client-metadata.json"
#define COMMAND      "sallyport upstream login "

struct calls {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	int open, failed;
	char problem[ERR_TEXT_SIZE]; /* of one that failed */
};
static struct calls calls = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
static struct upstream *upstream;

/* A value that fits a property's schema. */
static struct json_object *value_for(struct json_object *schema)
{
	const char *type = json_get_string(schema, "type");
	struct json_object *value;

	if (json_object_object_get_ex(schema, "default", &value))
		return json_object_get(value);
	if (type != NULL && streq(type, "boolean"))
		return json_object_new_boolean(true);
	if (type != NULL && (streq(type, "number") || streq(type, "integer")))
		return json_object_new_int(5);
	if (type != NULL && streq(type, "object"))
		return json_object_new_object();
	return json_object_new_string("text");
}

static struct json_object *object_for(struct json_object *schema)
{
	struct json_object *object = json_object_new_object();
	struct json_object *properties = json_get(schema, "properties", json_type_object);

	if (properties != NULL) {
		json_object_object_foreach(properties, name, property) json_add(object, name, value_for(property));
	}
	return object;
}

static void answer(void *arg, const struct upstream_asked *question)
{
	auto_json struct json_object *asked = NULL, *reply = json_object_new_object();
	auto_buf struct buf out;

	(void)arg;
	buf_init(&out, 1 << 20);
	json_parse(question->parameters, question->length, &asked, NULL);
	json_add_string(reply, "action", "accept");
	json_add(reply, "content", object_for(json_get(asked, "requestedSchema", json_type_object)));
	json_print(&out, reply);
	upstream_reply(upstream, question->question, out.data, out.length);
}

static void done(void *arg, const struct upstream_answer *ended)
{
	const char *tool = arg;

	fprintf(stderr, "%s: %s %s\n", tool, upstream_kind_name(ended->kind),
		ended->kind == UPSTREAM_RESULT ? ended->result : ended->text);
	pthread_mutex_lock(&calls.lock);
	calls.open--;
	calls.failed += ended->kind != UPSTREAM_RESULT;
	if (ended->kind != UPSTREAM_RESULT)
		snprintf(calls.problem, sizeof(calls.problem), "%s", ended->text);
	pthread_cond_signal(&calls.ended);
	pthread_mutex_unlock(&calls.lock);
}

static void call(const struct upstream_key *key, struct upstream_list *list, const char *tool,
		 struct json_object *arguments)
{
	auto_buf struct buf text;
	struct upstream_call one = {.key = *key, .tool = tool, .list = list};

	buf_init(&text, 1 << 20);
	json_print(&text, arguments);
	one.arguments = text.data;
	one.length = text.length;
	if (upstream_list_find(list, tool, &one.definition, NULL) < 0)
		return;
	pthread_mutex_lock(&calls.lock);
	calls.open++;
	pthread_mutex_unlock(&calls.lock);
	upstream_call(upstream, &one, done, unconst(one.definition->name));
}

static void call_each(const struct upstream_key *key, struct upstream_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct upstream_tool *tool = &list->tools[i];
		struct json_object *schema = json_get(tool->object, "inputSchema", json_type_object);
		auto_json struct json_object *arguments = object_for(schema);

		if (streq(tool->name, "json_schema_echo"))
			json_add(arguments, "schema",
				 json_object_get(json_get(list->tools[0].object, "inputSchema", json_type_object)));
		call(key, list, tool->name, arguments);
	}
}

static void call_context(const struct upstream_key *key, struct upstream_list *list, struct json_object *wanted)
{
	for (size_t i = 0; i < json_object_array_length(wanted); i++) {
		struct json_object *item = json_object_array_get_idx(wanted, i);

		call(key, list, json_get_string(item, "name"), json_get(item, "arguments", json_type_object));
	}
}

/* The servers' file: one, with this URL. */
static void write_file(const char *path, const char *url, const char *scenario, struct json_object *context)
{
	auto_json struct json_object *document = json_object_new_object();
	struct json_object *servers = json_object_new_object(), *entry = json_object_new_object(),
			   *oauth = json_object_new_object();
	const char *id = context != NULL ? json_get_string(context, "client_id") : NULL;
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	auto_buf struct buf text;

	json_add_string(entry, "url", url);
	json_add_bool(entry, "private", true);
	json_add_string(entry, "elicitation", "relay");
	if (streq(scenario, "auth/basic-cimd"))
		json_add_string(oauth, "client_metadata_url", METADATA_URL);
	if (id != NULL) {
		json_add_string(oauth, "client_id", id);
		json_add_string(oauth, "client_secret", json_get_string(context, "client_secret"));
	}
	json_add(entry, "oauth", oauth);
	json_add(servers, "suite", entry);
	json_add(document, "mcpServers", servers);
	buf_init(&text, 1 << 20);
	json_print(&text, document);
	if (fd < 0 || write_all(fd, text.data, text.length) < 0)
		abort();
}

/* Where the address redirects to; the caller's. */
static char *open_address(const char *address)
{
	CURL *curl = curl_easy_init();
	const char *to = NULL;

	curl_easy_setopt(curl, CURLOPT_URL, address);
	curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &to);
	char *copy = xstrdup(to != NULL ? to : "");

	curl_easy_cleanup(curl);
	return copy;
}

/* Does what the problem says, if it asks for a sign-in; false: it does not, or this was often enough. */
static bool sign_in(const struct config *config, const struct upstream_server *server, const char *problem)
{
	static int count;
	const char *command = strstr(problem, COMMAND), *scope = command != NULL ? strstr(command, "--scope \"") : NULL;
	auto_sign_in struct upstream_sign_in *flow = NULL;
	auto_login struct upstream_login login = {0};
	struct err err = ERR_INIT;

	fprintf(stderr, "%s\n", problem);
	if (command == NULL || count++ == SIGN_INS_MAX)
		return false;
	scope = scope != NULL ? strchr(scope, '"') + 1 : NULL;
	auto_free char *scopes = scope != NULL ? xstrndup(scope, strcspn(scope, "\"")) : NULL;

	if (upstream_sign_in_begin(config, server, REDIRECT, scopes, &flow, &err) == 0) {
		auto_free char *answer = open_address(upstream_sign_in_url(flow));

		if (upstream_sign_in_end(flow, answer, &login, &err) == 0)
			return true;
	}
	fprintf(stderr, "%s\n", err.text);
	return false;
}

/* One round; *problem is what failed. */
static int act(const struct upstream_key *key, const char *scenario, struct json_object *context, struct err *problem)
{
	auto_upstream_list struct upstream_list *list = NULL;
	struct json_object *wanted;

	if (upstream_list(upstream, key, clock_monotonic_us() + LIST_SECONDS * INT64_C(1000000), &list, problem) < 0)
		return 1;
	if (streq(scenario, "initialize") || strstr(scenario, "no-deref") != NULL)
		return 0;
	wanted = context != NULL ? json_get(context, "toolCalls", json_type_array) : NULL;
	if (wanted != NULL)
		call_context(key, list, wanted);
	else
		call_each(key, list);
	pthread_mutex_lock(&calls.lock);
	while (calls.open > 0)
		pthread_cond_wait(&calls.ended, &calls.lock);
	const bool failed = calls.failed > 0;

	calls.failed = 0;
	snprintf(problem->text, sizeof(problem->text), "%s", calls.problem);
	pthread_mutex_unlock(&calls.lock);
	return failed;
}

static void remove_all(const char *folder, const char *logins, const char *file)
{
	auto_free char *login = xasprintf("%s/suite.json", logins), *lock = xasprintf("%s/suite.lock", logins);

	unlink(login);
	unlink(lock);
	rmdir(logins);
	unlink(file);
	rmdir(folder);
}

int main(int argc, char **argv)
{
	const char *scenario = getenv("MCP_CONFORMANCE_SCENARIO"), *text = getenv("MCP_CONFORMANCE_CONTEXT");
	auto_json struct json_object *context = NULL;
	char folder[] = "/tmp/sallyport-client-XXXXXX";
	struct config config;
	struct err err = ERR_INIT;
	size_t count;
	int code;

	if (argc < 2 || config_load(NULL, &config, &err) < 0 || mkdtemp(folder) == NULL) {
		fprintf(stderr, "usage: upstream_client URL %s\n", err.text);
		return 2;
	}
	scenario = scenario != NULL ? scenario : "";
	log_open("client", LOG_DEBUG);
	if (text != NULL)
		json_parse(text, strlen(text), &context, NULL);
	auto_free char *path = xasprintf("%s/servers.json", folder), *logins = xasprintf("%s/logins", folder);

	write_file(path, argv[argc - 1], scenario, context);
	config.upstream.file = path;
	config.data_dir = folder;
	if (upstream_open(&config, &upstream, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 2;
	}
	upstream_on_ask(upstream, answer, NULL);
	const struct upstream_key key = {&upstream_servers(upstream, &count)[0], "suite", ""};

	while ((code = act(&key, scenario, context, &err)) != 0 && sign_in(&config, key.server, err.text))
		err = ERR_INIT;
	upstream_close(upstream);
	config_clear(&config);
	remove_all(folder, logins, path);
	return code;
}
