/* conformance_prompts.c - the fixtures' prompts; see conformance.h. */
#include "conformance.h"

#include "lib/base/util.h"

static int simple(struct mcp_call *call, struct json_object *arguments, struct json_object *messages)
{
	(void)call;
	(void)arguments;
	prompt_add_text(messages, "This is a simple prompt for testing.");
	return 0;
}

static int with_arguments(struct mcp_call *call, struct json_object *arguments, struct json_object *messages)
{
	const char *arg1 = json_get_string(arguments, "arg1"), *arg2 = json_get_string(arguments, "arg2");
	auto_free char *text =
		xasprintf("Prompt with arguments: arg1='%s', arg2='%s'", arg1 ? arg1 : "", arg2 ? arg2 : "");

	(void)call;
	prompt_add_text(messages, text);
	return 0;
}

static int complete_argument(struct mcp_call *call, const struct mcp_completion *ask, struct json_object *values,
			     struct err *err)
{
	static const char *const known[] = {"test1", "test2", "other"};

	(void)call;
	(void)err;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (str_starts(known[i], ask->value))
			json_object_array_add(values, json_object_new_string(known[i]));
	}
	return 0;
}

/* A message whose content is made here. */
static void add_content(struct json_object *messages, struct json_object *content)
{
	struct json_object *message = json_object_new_object();

	json_add_string(message, "role", "user");
	json_add(message, "content", content);
	json_object_array_add(messages, message);
}

static int with_resource(struct mcp_call *call, struct json_object *arguments, struct json_object *messages)
{
	struct json_object *content = json_object_new_object(), *resource = json_object_new_object();

	(void)call;
	json_add_string(resource, "uri", json_get_string(arguments, "resourceUri"));
	json_add_string(resource, "mimeType", "text/plain");
	json_add_string(resource, "text", "Embedded resource content for testing.");
	json_add_string(content, "type", "resource");
	json_add(content, "resource", resource);
	add_content(messages, content);
	prompt_add_text(messages, "Please process the embedded resource above.");
	return 0;
}

static int with_image(struct mcp_call *call, struct json_object *arguments, struct json_object *messages)
{
	struct json_object *content = json_object_new_object();

	(void)call;
	(void)arguments;
	json_add_string(content, "type", "image");
	json_add_string(content, "data", conformance_png);
	json_add_string(content, "mimeType", "image/png");
	add_content(messages, content);
	prompt_add_text(messages, "Please analyze the image above.");
	return 0;
}

static const struct prompt_argument two_arguments[] = {
	{"arg1", "First test argument", true},
	{"arg2", "Second test argument", true},
	{0},
};
static const struct prompt_argument resource_argument[] = {
	{"resourceUri", "URI of the resource to embed", true},
	{0},
};

#define FIXTURE(name_, title_, description_, ...)                                                                      \
	{                                                                                                              \
		.name = name_, .title = title_, .description = description_, __VA_ARGS__    \
	}

const struct prompt conformance_prompts[] = {
	FIXTURE("test_simple_prompt", "Simple", "A prompt without arguments", .get = simple),
	FIXTURE("test_prompt_with_arguments", "Arguments", "A prompt with two arguments", .arguments = two_arguments,
		.get = with_arguments, .complete = complete_argument),
	FIXTURE("test_prompt_with_embedded_resource", "Resource", "A prompt with a resource in it",
		.arguments = resource_argument, .get = with_resource),
	FIXTURE("test_prompt_with_image", "Image", "A prompt with an image in it", .get = with_image),
	FIXTURE("test_input_required_result_prompt", "Input", "A prompt that asks back",
		.get = conformance_prompt_input),
	{0},
};
