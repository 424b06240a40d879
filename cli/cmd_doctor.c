/* cmd_doctor.c - `sallyport doctor`: what this host has, lacks, and what to do about it. */
#include <string.h>

#include "doctor.h"
#include "lib/base/util.h"

struct doctor_command {
	struct cli_common common;
};

static const char *const state_texts[] = {[DOCTOR_OK] = "ok", [DOCTOR_WEAKER] = "weaker", [DOCTOR_MISSING] = "missing"};

static enum doctor_state doctor_worst(const struct doctor *doctor)
{
	enum doctor_state worst = DOCTOR_OK;

	for (size_t i = 0; i < doctor->count; i++)
		worst = MAX(worst, doctor->findings[i].state);
	return worst;
}

static int doctor_run(void *options, struct err *err)
{
	const struct doctor_command *command = options;
	auto_config struct config config = {0};
	struct doctor doctor = {.config = &config};
	int result = config_load(command->common.config, &config, err);

	if (result < 0)
		return result;
	doctor_jailer(&doctor);
	doctor_host(&doctor);
	doctor_network(&doctor);
	doctor_oauth(&doctor);
	doctor_profile(&doctor);
	if (command->common.json) {
		auto_json struct json_object *object = json_object_new_object();
		struct json_object *list = json_object_new_array();

		for (size_t i = 0; i < doctor.count; i++) {
			const struct doctor_finding *finding = &doctor.findings[i];
			struct json_object *check = json_object_new_object();

			json_add_string(check, "name", finding->name);
			json_add_string(check, "state", state_texts[finding->state]);
			json_add_bytes(check, "found", finding->found, strlen(finding->found));
			json_add_string(check, "remedy", finding->remedy);
			json_object_array_add(list, check);
		}
		json_add_string(object, "result", state_texts[doctor_worst(&doctor)]);
		json_add(object, "checks", list);
		cli_print_json(stdout, object, true);
	} else {
		static const enum cli_colour colours[] = {
			[DOCTOR_OK] = CLI_GREEN, [DOCTOR_WEAKER] = CLI_YELLOW, [DOCTOR_MISSING] = CLI_RED};
		size_t counts[3] = {0};

		for (size_t i = 0; i < doctor.count; i++) {
			const struct doctor_finding *finding = &doctor.findings[i];

			counts[finding->state]++;
			printf("%s%-8s%s %-17s ", cli_colour_on(stdout, colours[finding->state]),
			       state_texts[finding->state], cli_colour_off(stdout), finding->name);
			cli_print_safe(stdout, finding->found, strlen(finding->found));
			putchar('\n');
			if (finding->remedy)
				printf("%27s-> %s\n", "", finding->remedy);
		}
		printf("\n%zu ok, %zu weaker, %zu missing\n", counts[DOCTOR_OK], counts[DOCTOR_WEAKER],
		       counts[DOCTOR_MISSING]);
	}
	result = doctor_worst(&doctor) == DOCTOR_MISSING ? CLI_DIFFERENT : CLI_OK;
	for (size_t i = 0; i < doctor.count; i++) {
		free(doctor.findings[i].name);
		free(doctor.findings[i].found);
		free(doctor.findings[i].remedy);
	}
	free(doctor.findings);
	return result;
}

const struct cli_command cmd_doctor = {
	.name = "doctor",
	.summary = "Check that kernel and host have all that jails need",
	.help = "A jailer starts, runs a program in each language and ends (sallyport-jailer --check), under the account that runs doctor. Of a jailer that serves on jailer.socket, account, ids and cgroup are its own. A language that is not installed is optional. "
		"Each line is `ok`, `weaker` (programs run with less isolation, or a part of Sallyport is not usable) or `missing` (no program can run), with a remedy.",
	.examples = "sallyport doctor --json | jq '.checks[] | select(.state != \"ok\")'\n",
	.exits = "0 nothing is missing\n"
		"1 something is missing\n",
	.size = sizeof(struct doctor_command),
	.run = doctor_run,
};
