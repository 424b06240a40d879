/*
 * test_history.c - `verify` tells the truth: after a random honest history every verdict holds, and what is altered
 * behind the program's back is found.
 *
 *     HISTORIES=1000 HISTORY_SEED=7 build/tests/test_history
 *
 * plays a thousand histories from the seeds 7, 8, 9 … on (default: 40 from 1 on; `make stress` takes a thousand
 * that begin with the time of day). Each has two hosts. Its steps are those of history_acts.h, kills between them;
 * after some, and at the end, the verdicts are asked for. At the end the record is copied, and each copy is altered in
 * one way of history_alter.h. What fails prints the seed and the steps, and the same seed plays them again.
 */
#include "history_acts.h"
#include "history_alter.h"

#define HISTORIES   40
#define STEPS_MOST  24
#define ALTERATIONS 4

struct act {
	const char *name;
	int weight;
	void (*play)(struct history *h, struct host *host);
};
/* A process that is killed plays the first ones only: the others start programs, or processes to be killed. */
static void act_kill(struct history *h, struct host *host);
static const struct act acts[] = {
	{"run", 30, act_run},       {"upload", 12, act_upload}, {"restore files", 12, act_restore_files},
	{"remove", 5, act_remove},  {"forget", 12, act_forget}, {"retain", 3, act_retain},
	{"gc", 4, act_gc},          {"token", 5, act_token},    {"revoke", 2, act_revoke},
	{"tag", 3, act_tag},        {"bless", 3, act_bless},    {"snippet", 2, act_snippet},
	{"restart", 3, act_restart}, {"sign", 4, act_sign},     {"kill", 8, act_kill},
	{"export", 4, act_export},  {"move", 4, act_move},      {"back", 3, act_back},
};
#define ACTS_SAFE 13 /* up to "restart" */

static void play_one(struct history *h, struct host *host, size_t n_acts)
{
	const struct act *act = acts;
	int total = 0;

	h->step++;
	h->state = h->seed * 1000003 + (uint64_t)h->step * 7919;
	for (size_t i = 0; i < n_acts; i++)
		total += acts[i].weight;
	for (int at = pick(h, total); at >= act->weight; act++)
		at -= act->weight;
	host_open(h, host);
	history_say(h, "%s%d: %d %s", h->child ? "  killed " : "", h->step, host->number, act->name);
	act->play(h, host);
	history_say(h, "\n");
}

static void play_some(struct history *h, struct host *host, int most)
{
	history_say(h, "\n");
	for (int left = pick(h, most + 1); left > 0; left--)
		play_one(h, host, ACTS_SAFE);
}

/* The process that serves is killed at some call, and another one takes its place. */
static void act_kill(struct history *h, struct host *host)
{
	const int at = 1 + pick(h, chance(h, 30) ? 400 : 80), step = h->step;
	const bool looks = chance(h, 50);
	int status;

	for (int i = 0; i < HOSTS; i++)
		host_close(&h->hosts[i]); /* SQLite must not be open across a fork */
	history_say(h, " at %d\n", at);
	pid_t pid = fork();

	if (pid == 0) {
		h->child = true;
		fault_left = at;
		host_open(h, host);
		for (int i = 0; i < 4; i++)
			play_one(h, host, ACTS_SAFE);
		_exit(0); /* without closing anything */
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		history_fail(h, "no child");
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		history_fail(h, "the process that was to be killed ended with %d", WEXITSTATUS(status));
	h->step = step + 4;
	if (looks)
		host_holds(h, host);
	host_open(h, host);
	host_holds(h, host);
}

static void history_begin_all(struct history *h, uint64_t seed)
{
	*h = (struct history){.seed = seed, .trace = h->trace, .play_some = play_some};
	h->trace[0] = '\0';
	snprintf(h->base, sizeof(h->base), "%s/sallyport-history-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(h->base));
	for (int i = 0; i < HOSTS; i++) {
		h->hosts[i].number = i;
		host_name(h, &h->hosts[i]);
	}
}

static void history_end_all(struct history *h)
{
	for (int i = 0; i < HOSTS; i++)
		host_clear(&h->hosts[i]);
	nftw(h->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void play(struct history *h, uint64_t seed)
{
	history_begin_all(h, seed);
	h->state = seed;
	for (int left = 4 + pick(h, STEPS_MOST); left > 0; left--) {
		h->state = seed * 31 + (uint64_t)h->step;
		struct host *host = &h->hosts[chance(h, 25)];
		const bool looks = chance(h, 40);

		play_one(h, host, ARRAY_SIZE(acts));
		if (looks)
			host_holds(h, host);
	}
	for (int i = 0; i < HOSTS; i++) {
		host_open(h, &h->hosts[i]);
		host_holds(h, &h->hosts[i]);
		host_close(&h->hosts[i]);
		host_sign(h, &h->hosts[i]);
		host_holds(h, &h->hosts[i]);
		assert_sound(&h->hosts[i].f);
	}
	h->state = seed * 17;
	for (int i = 0; i < ALTERATIONS; i++)
		alter(h, &h->hosts[0]);
	history_end_all(h);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *given = getenv(name);
	uint64_t value;

	return given && parse_u64(given, 1, INT64_MAX, &value) == 0 ? value : otherwise;
}

static void histories(void **state)
{
	const uint64_t first = number_of("HISTORY_SEED", 1), count = number_of("HISTORIES", HISTORIES);
	struct history h = {0};

	(void)state;
	log_open("test", LOG_ERROR + 1);
	h.trace = mmap(NULL, TRACE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(h.trace != MAP_FAILED);
	print_message("seeds %llu to %llu\n", (unsigned long long)first, (unsigned long long)(first + count - 1));
	for (uint64_t seed = first; seed < first + count; seed++)
		play(&h, seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(histories)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
