/*
 * replay_bless.c - `sallyport replay --bless`: what an execution does now becomes what is expected of it.
 *
 * The outcome that is written down is the one that was compared: it is kept while the repeats run, and put into the
 * record as a new generation only when they agree with it. Under CI nobody looks at what is blessed, so it is refused
 * there unless --force says otherwise.
 */
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/record/store_baseline.h"
#include "replay.h"

#define FIELD(member) offsetof(struct replay_bless, member)
const struct cli_option replay_bless_options[] = {
	{.name = "bless", .type = CLI_FLAG, .offset = FIELD(on),
	 .help = "make the new outcome the expected one, as a new generation; the old one is kept"},
	{.name = "record", .type = CLI_FLAG, .offset = FIELD(record),
	 .help = "as --live and --bless, and store the servers' answers: later replays use them"},
	{.name = "reason", .type = CLI_STRING, .offset = FIELD(reason), .value = "TEXT",
	 .help = "say why; --bless and --record need it"},
	{.name = "author", .type = CLI_STRING, .offset = FIELD(author), .value = "NAME",
	 .help = "say who blesses [the account]"},
	{.name = "force", .type = CLI_FLAG, .offset = FIELD(force), .help = "allow --bless under CI"},
	{0},
};

static bool under_ci(void)
{
	const char *ci = getenv("CI");

	return ci && *ci && !streq(ci, "false") && !streq(ci, "0");
}

int replay_bless_check(struct replay_bless *bless, struct err *err)
{
	struct passwd *account = getpwuid(getuid());
	const char *option = bless->record ? "--record" : "--bless";

	bless->on = bless->on || bless->record;
	if (!bless->on)
		return bless->reason || bless->author || bless->force
			       ? err_set(err, ERR_INVALID,
					 "--reason, --author and --force are for --bless and --record")
			       : 0;
	if (!bless->reason)
		return err_set(err, ERR_INVALID, "%s needs a --reason", option);
	if (under_ci() && !bless->force)
		return err_set(err, ERR_INVALID,
			       "%s is refused where CI is set: nobody would look at what is expected from now on "
			       "(--force)",
			       option);
	if (!bless->author)
		bless->author = account ? account->pw_name : "unknown";
	if (strlen(bless->reason) > STORE_REASON_MAX || strlen(bless->author) > STORE_AUTHOR_MAX)
		return err_set(err, ERR_INVALID, "--reason takes %d bytes, --author %d", STORE_REASON_MAX,
			       STORE_AUTHOR_MAX);
	return 0;
}

/* -------- what a run did -------------------------------------------------------------------------------- */

void replay_candidate_init(struct replay_candidate *candidate)
{
	*candidate = (struct replay_candidate){.stdout_fd = -1, .stderr_fd = -1};
}

void replay_candidate_clear(struct replay_candidate *candidate)
{
	fd_close(&candidate->stdout_fd);
	fd_close(&candidate->stderr_fd);
	for (size_t i = 0; i < candidate->n_files; i++)
		free(candidate->names[i]);
	free(candidate->names);
	free(candidate->files);
	store_execution_clear(&candidate->outcome);
	store_tools_clear(&candidate->tools);
	replay_candidate_init(candidate);
}

int replay_candidate_take(struct replay_candidate *candidate, const char *id, const struct job_replay *now,
			  struct err *err)
{
	struct store_execution *outcome = &candidate->outcome;
	const struct jail_result *jail = &now->jail;

	replay_candidate_clear(candidate);
	candidate->stdout_fd = fcntl(now->stdout_fd, F_DUPFD_CLOEXEC, 0);
	candidate->stderr_fd = fcntl(now->stderr_fd, F_DUPFD_CLOEXEC, 0);
	if (candidate->stdout_fd < 0 || candidate->stderr_fd < 0)
		return err_errno(err, "keeping the output");
	snprintf(outcome->id, sizeof(outcome->id), "%s", id);
	snprintf(outcome->verdict, sizeof(outcome->verdict), "%s", jail_verdict_text(jail->verdict));
	snprintf(outcome->message, sizeof(outcome->message), "%s", jail->message);
	snprintf(outcome->fingerprint, sizeof(outcome->fingerprint), "%s", jail->fingerprint);
	outcome->finished_us = clock_now_us();
	outcome->created_us = outcome->finished_us - (jail->run.wall_us + jail->compile.wall_us + jail->setup_us);
	outcome->exit_code = jail->exit_code;
	outcome->signal = jail->signal;
	outcome->run = (struct store_usage){jail->run.wall_us, jail->run.cpu_user_us, jail->run.cpu_system_us,
					    jail->run.memory_peak_bytes};
	candidate->files = xcalloc(now->n_changes + 1, sizeof(*candidate->files));
	candidate->names = xcalloc(now->n_changes + 1, sizeof(char *));
	for (size_t i = 0; i < now->n_changes; i++) {
		const struct job_change *change = &now->changes[i];
		struct store_execution_file *file = &candidate->files[i];

		file->file = change->file;
		file->file.name = candidate->names[i] = xstrdup(change->name);
		snprintf(file->change, sizeof(file->change), "%s", job_change_text(change->kind));
		snprintf(file->reason, sizeof(file->reason), "%s", change->reason);
	}
	candidate->n_files = now->n_changes;
	return 0;
}

int replay_bless(struct store *store, const struct replay_bless *bless, struct replay_candidate *candidate,
		 int64_t *ret_generation, struct err *err)
{
	const struct store_blessing blessing = {&candidate->outcome, candidate->files, candidate->n_files,
						bless->author,	     bless->reason,
						bless->record ? &candidate->tools : NULL};
	int result = store_baseline_text(store, candidate->stdout_fd, &candidate->outcome.stdout_text, err);

	if (result == 0)
		result = store_baseline_text(store, candidate->stderr_fd, &candidate->outcome.stderr_text, err);
	if (result == 0 && bless->record)
		result = store_tools_keep(store, &candidate->tools, err);
	return result < 0 ? result : store_baseline_add(store, &blessing, ret_generation, err);
}
