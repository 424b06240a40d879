/*
 * conformance_input.c - fixtures whose result asks the client for input (modern era, multi-round-trip requests); see
 * conformance.h.
 *
 * Nothing is kept between the rounds: how far a call has come stands in requestState, which is signed for owner and
 * tool and expires. A state that is not ours is an error, a missing or malformed answer makes the tool ask again.
 */
#include "cgi/mcp/signed.h"
#include "conformance.h"
#include "lib/base/util.h"

#define STATE_MAX        1024
#define STATE_SECONDS    600
#define REQUESTS_MAX     4
#define ELICITATION(message)                                                                                           \
	"{\"message\":\"" message                                                                                      \
	"\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},"                 \
	"\"required\":[\"name\"]}}"
#define SAMPLING(text)                                                                                                 \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}],\"maxTokens\":100}"

/* What a client can be asked, by the key of the request. */
static const struct question {
	const char *key, *capability, *method, *params;
} questions[] = {
	{"user_name", "elicitation", "elicitation/create", ELICITATION("What is your name?")},
	{"user_context", "elicitation", "elicitation/create", ELICITATION("What is this about?")},
	{"step1", "elicitation", "elicitation/create", ELICITATION("Step 1: What is your name?")},
	{"step2", "elicitation", "elicitation/create", ELICITATION("Step 2: What is your favourite colour?")},
	{"capital_question", "sampling", "sampling/createMessage", SAMPLING("What is the capital of France?")},
	{"greeting", "sampling", "sampling/createMessage", SAMPLING("Say hello.")},
	{"client_roots", "roots", "roots/list", "{}"},
};

/* What each tool asks, round by round. */
static const struct plan {
	const char *name;
	bool state;
	const char *rounds[2][REQUESTS_MAX];
} plans[] = {
	{"test_input_required_result_elicitation", false, {{"user_name"}}},
	{"test_input_required_result_sampling", false, {{"capital_question"}}},
	{"test_input_required_result_list_roots", false, {{"client_roots"}}},
	{"test_input_required_result_request_state", true, {{"user_name"}}},
	{"test_input_required_result_multiple_inputs", true, {{"user_name", "greeting", "client_roots"}}},
	{"test_input_required_result_multi_round", true, {{"step1"}, {"step2"}}},
	{"test_input_required_result_tampered_state", true, {{"user_name"}}},
	{"test_input_required_result_capabilities", false, {{"user_name", "capital_question"}}},
	{"test_input_required_result_prompt", false, {{"user_context"}}},
	{"test_tool_with_task", true, {{"user_name"}}},
};

static const struct question *question_of(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
		if (streq(questions[i].key, key))
			return &questions[i];
	}
	abort(); /* the plans name only what is there */
}

static const struct plan *plan_of(struct mcp_call *call)
{
	const char *name = json_get_string(call->message->params, "name");

	for (size_t i = 0; name && i < ARRAY_SIZE(plans); i++) {
		if (streq(plans[i].name, name))
			return &plans[i];
	}
	return NULL;
}

/* The round that the client's state stands for; negative: the call has failed. */
static int round_of(struct mcp_call *call, const struct plan *plan)
{
	struct json_object *value;
	auto_buf struct buf text = {0};
	uint64_t round, expires;

	if (!json_object_object_get_ex(call->message->params, "requestState", &value) || !value)
		return 0;
	const char *state = json_get_string(call->message->params, "requestState");
	auto_free char *purpose = xasprintf("state %s", plan->name);

	buf_init(&text, STATE_MAX);
	if (!state || strlen(state) > STATE_MAX ||
	    signed_read(call->exchange->server->store, purpose, call->exchange->token.owner, state, &text, NULL) < 0)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: requestState: not one of this server");
	char *colon = strchr(text.data, ':');

	if (!colon)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: requestState: not one of this server");
	*colon = '\0';
	if (parse_u64(text.data, 0, 1, &round) < 0 || parse_u64(colon + 1, 0, INT64_MAX, &expires) < 0)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: requestState: not one of this server");
	if ((int64_t)expires < clock_now_us())
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: requestState: expired");
	return (int)round;
}

/* Did the client answer everything that it could be asked in this round? */
static bool answered(struct mcp_call *call, const struct plan *plan, int round)
{
	struct json_object *responses = json_get(call->message->params, "inputResponses", json_type_object);

	for (size_t i = 0; i < REQUESTS_MAX && plan->rounds[round][i]; i++) {
		const struct question *question = question_of(plan->rounds[round][i]);

		if (mcp_offers(call, question->capability) && !json_get(responses, question->key, json_type_object))
			return false;
	}
	return true;
}

static int ask_for(struct mcp_call *call, const struct plan *plan, int round)
{
	struct json_object *requests = json_object_new_object();
	auto_free char *state = xasprintf("%d:%lld", round, (long long)(clock_now_us() + STATE_SECONDS * 1000000LL));
	auto_free char *purpose = xasprintf("state %s", plan->name);
	auto_buf struct buf text = {0};

	for (size_t i = 0; i < REQUESTS_MAX && plan->rounds[round][i]; i++) {
		const struct question *question = question_of(plan->rounds[round][i]);
		struct json_object *request = json_object_new_object(), *params = NULL;

		json_parse(question->params, strlen(question->params), &params, NULL);
		json_add_string(request, "method", question->method);
		json_add(request, "params", params);
		if (mcp_offers(call, question->capability))
			json_add(requests, question->key, request);
		else
			json_object_put(request);
	}
	call->result = json_object_new_object();
	json_add_string(call->result, "resultType", "input_required");
	json_add(call->result, "inputRequests", requests);
	if (!plan->state)
		return 0;
	buf_init(&text, STATE_MAX);
	signed_make(call->exchange->server->store, purpose, call->exchange->token.owner, state, &text);
	json_add_string(call->result, "requestState", text.data);
	return 0;
}

/* Can the client be asked anything of the round at all? */
static bool can_ask(struct mcp_call *call, const struct plan *plan, int round)
{
	for (size_t i = 0; i < REQUESTS_MAX && plan->rounds[round][i]; i++) {
		if (mcp_offers(call, question_of(plan->rounds[round][i])->capability))
			return true;
	}
	return false;
}

int conformance_rounds(struct mcp_call *call)
{
	const struct plan *plan = plan_of(call);

	if (!plan || !call->revision->modern)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: clients of the modern era only");
	int round = round_of(call, plan);

	if (round < 0)
		return round;
	if (!can_ask(call, plan, round))
		return mcp_require(call, question_of(plan->rounds[round][0])->capability);
	if (!answered(call, plan, round))
		return ask_for(call, plan, round);
	if (round == 0 && plan->rounds[1][0])
		return ask_for(call, plan, 1);
	return 1;
}

int conformance_input(struct mcp_call *call, struct json_object *arguments)
{
	auto_buf struct buf text = {0};
	int result = conformance_rounds(call);

	(void)arguments;
	if (result <= 0)
		return result;
	buf_init(&text, HTTP_REPLY_MAX);
	buf_puts(&text, "The client answered: ");
	json_print(&text, json_get(call->message->params, "inputResponses", json_type_object));
	return conformance_text(call, text.data);
}

int conformance_prompt_input(struct mcp_call *call, struct json_object *arguments, struct json_object *messages)
{
	int result = conformance_rounds(call);

	(void)arguments;
	if (result <= 0)
		return result;
	prompt_add_text(messages, "Here is the prompt, with what the client answered.");
	return 0;
}
