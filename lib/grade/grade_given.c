/*
 * grade_given.c - the files that a submission finds in its folder: its own, and over them those of the case
 * (NAME.files, 2023-07 on). The giving half of grade_trial.h.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grade_source.h"
#include "grade_trial.h"
#include "lib/base/util.h"

#define DEPTH_MAX 8

/* In the place of the submission's file of this name, else behind all others. */
static int give(struct grade_trial *trial, const char *path, const char *name, struct err *err)
{
	auto_close int fd = -1;
	int result = grade_package_file(trial->bench->package, path, &fd, err);

	if (result < 0)
		return result;
	if (trial->n_own == GRADE_SOURCE_FILES)
		return err_set(err, ERR_LIMIT, "%s: more than %d files", trial->node->files, GRADE_SOURCE_FILES);
	for (size_t i = 0; i + trial->n_own < trial->n_files; i++)
		if (streq(trial->files[i].name, name)) {
			memmove(trial->files + i, trial->files + i + 1,
				(trial->n_files - i - 1) * sizeof(*trial->files));
			trial->n_files--;
			break;
		}
	trial->files = xrealloc(trial->files, trial->n_files + 1, sizeof(*trial->files));
	trial->files[trial->n_files++] = (struct jail_file){.name = xstrdup(name), .mode = 0644, .fd = steal_fd(&fd)};
	trial->n_own++;
	return 0;
}

static int give_folder(struct grade_trial *trial, const char *path, const char *below, int depth, struct err *err)
{
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, NULL, alphasort), result = n < 0 ? err_errno(err, "%s", path) : 0;

	for (int i = 0; i < n; i++) {
		auto_free char *place = xasprintf("%s/%s", path, entries[i]->d_name);
		auto_free char *name = xasprintf("%s%s", below, entries[i]->d_name);
		bool self = streq(entries[i]->d_name, ".") || streq(entries[i]->d_name, "..");
		struct stat st;

		if (!self && result == 0 && stat(place, &st) == 0) {
			auto_free char *deeper = xasprintf("%s/", name);

			if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
				result = give_folder(trial, place, deeper, depth + 1, err);
			else if (S_ISREG(st.st_mode))
				result = give(trial, place, name, err);
		}
		free(entries[i]);
	}
	free(entries);
	return result;
}

int grade_given_open(struct grade_trial *trial, struct err *err)
{
	const struct grade_program *program = trial->program;

	trial->files = xcalloc(program->count + 1, sizeof(*trial->files));
	memcpy(trial->files, program->files, program->count * sizeof(*trial->files));
	trial->n_files = program->count;
	return trial->node->files ? give_folder(trial, trial->node->files, "", 0, err) : 0;
}

void grade_given_clear(struct grade_trial *trial)
{
	for (size_t i = trial->n_files - trial->n_own; i < trial->n_files; i++) {
		free((void *)(uintptr_t)trial->files[i].name);
		close(trial->files[i].fd);
	}
	free(steal(&trial->files));
	trial->n_files = trial->n_own = 0;
}
