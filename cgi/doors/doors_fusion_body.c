/* doors_fusion_body.c - see doors_fusion.h. */
#include <math.h>

#include "doors_fusion.h"
#include "lib/base/util.h"

#define TIMEOUT_MOST  1e6
#define PATIENCE_MORE INT64_C(10000000) /* us: clients wait for compile_timeout + run_timeout + this */
#define KILLED        9                 /* SIGKILL: what ended a program at its limit of memory or output */

/* Their names, and ours. */
static const char *const languages[][2] = {
	{"python", "python"}, {"cpp", "cpp"},	    {"nodejs", "javascript"}, {"go", "go"},
	{"java", "java"},     {"php", "php"},	    {"csharp", "csharp"},     {"bash", "bash"},
	{"sql", "sql"},	      {"rust", "rust"},	    {"lua", "lua"},	      {"R", "r"},
	{"perl", "perl"},     {"ruby", "ruby"},	    {"typescript", "typescript"}, {"pytest", "pytest"},
};

int doors_fusion_refuse(struct reply *reply, const char *member, const char *type, const char *text)
{
	auto_json struct json_object *object = json_object_new_object();
	struct json_object *list = json_object_new_array(), *one = json_object_new_object(),
			   *place = json_object_new_array();

	json_object_array_add(place, json_object_new_string("body"));
	if (member)
		json_object_array_add(place, json_object_new_string(member));
	json_add_string(one, "type", type);
	json_add(one, "loc", place);
	json_add_string(one, "msg", text);
	json_object_array_add(list, one);
	json_add(object, "detail", list);
	reply_json(reply, 422, object);
	return -ERR_INVALID;
}

struct json_object *doors_fusion_languages(void)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < ARRAY_SIZE(languages); i++)
		json_object_array_add(list, json_object_new_string(languages[i][0]));
	return list;
}

const char *doors_fusion_language(struct reply *reply, const char *theirs)
{
	auto_buf struct buf text = {0};

	for (size_t i = 0; i < ARRAY_SIZE(languages); i++)
		if (streq(languages[i][0], theirs))
			return languages[i][1];
	buf_init(&text, 1024);
	buf_puts(&text, "Input should be ");
	for (size_t i = 0; i < ARRAY_SIZE(languages); i++)
		buf_printf(&text, "%s'%s'", i ? ", " : "", languages[i][0]);
	doors_fusion_refuse(reply, "language", "literal_error", text.data);
	return NULL;
}

static int take_language(struct reply *reply, struct json_object *document, struct fusion_body *ret)
{
	const char *language = json_get_string(document, "language");

	if (!language)
		return doors_fusion_refuse(reply, "language", "missing", "Field required");
	ret->language = doors_fusion_language(reply, language);
	return ret->language ? 0 : -ERR_INVALID;
}

int doors_fusion_seconds(struct reply *reply, struct json_object *document, const char *name, double standard,
			 double *ret)
{
	struct json_object *value = NULL;

	*ret = standard;
	if (!json_object_object_get_ex(document, name, &value) || !value)
		return 0;
	if (!json_object_is_type(value, json_type_double) && !json_object_is_type(value, json_type_int))
		return doors_fusion_refuse(reply, name, "float_type", "Input should be a valid number");
	*ret = json_object_get_double(value);
	if (!isfinite(*ret) || *ret <= 0)
		return doors_fusion_refuse(reply, name, "greater_than", "Input should be greater than 0");
	*ret = MIN(*ret, TIMEOUT_MOST);
	return 0;
}

int doors_fusion_memory(struct reply *reply, struct json_object *document, const char *name, int64_t *ret_bytes)
{
	struct json_object *memory = NULL;

	*ret_bytes = 0;
	if (!json_object_object_get_ex(document, name, &memory) || !memory)
		return 0;
	if (!json_object_is_type(memory, json_type_int) && !json_object_is_type(memory, json_type_double))
		return doors_fusion_refuse(reply, name, "int_type", "Input should be a valid integer");
	const int64_t megabytes = json_object_get_int64(memory);

	*ret_bytes = megabytes > 0 ? MIN(megabytes, INT32_MAX) << 20 : 0;
	return 0;
}

int doors_fusion_files(struct reply *reply, struct json_object *document, struct json_object **ret_files,
		       struct json_object **ret_fetch)
{
	struct json_object *files = json_get(document, "files", json_type_object);
	size_t count = 0;

	*ret_files = files;
	*ret_fetch = json_get(document, "fetch_files", json_type_array);
	if (!files)
		return 0;
	json_object_object_foreach(files, name, content)
	{
		if (content && !json_object_is_type(content, json_type_string))
			return doors_fusion_refuse(reply, "files", "string_type",
						   "Input should be a valid base64 string");
		if (!doors_path(name))
			return doors_fusion_refuse(reply, "files", "value_error",
						   "a file's path must lead below the program's folder");
		count += content != NULL;
	}
	if (count >= JOB_FILES_MAX)
		return doors_fusion_refuse(reply, "files", "too_long", "too many files with one request: at most 63");
	return 0;
}

int doors_fusion_body(struct doors_call *call, struct fusion_body *ret)
{
	struct reply *reply = call->exchange.reply;
	struct err err = ERR_INIT;
	int result;

	*ret = (struct fusion_body){0};
	if (json_parse(call->body.data, call->body.length, &ret->document, &err) < 0)
		return doors_fusion_refuse(reply, NULL, "json_invalid", err.text);
	struct json_object *document = ret->document;

	if (!json_object_is_type(document, json_type_object))
		return doors_fusion_refuse(reply, NULL, "model_attributes_type", "Input should be an object");
	ret->code = json_get(document, "code", json_type_string);
	ret->input = json_get(document, "stdin", json_type_string);
	if (!ret->code)
		return doors_fusion_refuse(reply, "code", "missing", "Field required");
	if ((result = take_language(reply, document, ret)) < 0 ||
	    (result = doors_fusion_seconds(reply, document, "compile_timeout", DOORS_FUSION_SECONDS,
					   &ret->compile_seconds)) < 0 ||
	    (result = doors_fusion_seconds(reply, document, "run_timeout", DOORS_FUSION_SECONDS,
					   &ret->run_seconds)) < 0 ||
	    (result = doors_fusion_memory(reply, document, "memory_limit_MB", &ret->memory_bytes)) < 0)
		return result;
	if (streq(ret->language, "pytest")) /* in the original, too, of no other */
		ret->args = json_get(document, "args", json_type_array);
	return doors_fusion_files(reply, document, &ret->files, &ret->fetch);
}

/* -------- what gradings answer, too ------------------------------------------------------------------- */

int64_t doors_fusion_patience(double compile_seconds, double run_seconds)
{
	return (int64_t)((compile_seconds + run_seconds) * 1e6) + PATIENCE_MORE;
}

void doors_fusion_late(struct reply *reply)
{
	reply_refuse(reply, 504, "the server is busy and the program has not begun: try again");
}

struct json_object *doors_fusion_step(int64_t wall_us, bool timed_out, int code, struct json_object *out,
				      struct json_object *error)
{
	struct json_object *object = json_object_new_object();

	json_add_string(object, "status", timed_out ? "TimeLimitExceeded" : "Finished");
	json_add_rounded(object, "execution_time", (double)wall_us / 1e6, 6);
	json_add(object, "return_code", timed_out ? NULL : json_object_new_int(code));
	json_add(object, "stdout", out);
	json_add(object, "stderr", error);
	return object;
}

int doors_fusion_code(enum jail_verdict verdict, int exit_code, int signal)
{
	if (verdict == JAIL_ML || verdict == JAIL_OL)
		return -KILLED;
	return signal ? -signal : exit_code;
}
