/*
 * tools_bench.c - what a call of a tool costs more than it must: through bridge and pool beside the same request by
 * libcurl, and the first call of a server in a jail beside the same server bare.
 *
 *   tools_bench calls WHAT SERVER URL TOOL ARGUMENTS [ROUNDS]     TOKEN: the bearer token for URL
 *   tools_bench first [ROUNDS]
 *
 * upstream.file (SALLYPORT_UPSTREAM_FILE) names the servers: SERVER, which is at URL; `jailed` and `bare`, which are
 * one program with the tool `echo`. The guest is this process, on the run's socket as a program in a jail is. Each pair
 * is measured in rounds that alternate; printed are medians of the rounds and of their ratios.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/bridge/bridge_frame.h"
#include "lib/bridge/bridge_tools.h"

#define CALLS      400
#define AT_ONCE    8
#define ROUNDS_MAX 100

static const char *server, *url, *tool, *arguments;

static _Noreturn void die(const char *what, const char *why)
{
	fprintf(stderr, "tools_bench: %s: %s\n", what, why);
	exit(1);
}

static int by_number(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

static double median(double *numbers, size_t count)
{
	qsort(numbers, count, sizeof(*numbers), by_number);
	return numbers[count / 2];
}

/* Of this process, in microseconds: what a busy machine does not change. */
static double processor(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* -------- by libcurl directly ------------------------------------------------------------------------- */

struct direct {
	CURL *handles[AT_ONCE];
	CURLM *multi;
	struct curl_slist *headers;
	char session[256];
	size_t got;
	int64_t id;
};

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	struct direct *direct = arg;

	(void)data;
	direct->got += size * n;
	return size * n;
}

static size_t take_header(char *data, size_t size, size_t n, void *arg)
{
	struct direct *direct = arg;
	static const char name[] = "mcp-session-id: ";

	if (size * n > sizeof(name) && strncasecmp(data, name, sizeof(name) - 1) == 0)
		snprintf(direct->session, sizeof(direct->session), "Mcp-Session-Id: %.*s",
			 (int)strcspn(data + sizeof(name) - 1, "\r\n"), data + sizeof(name) - 1);
	return size * n;
}

static void send_one(struct direct *direct, const char *body)
{
	CURL *handle = direct->handles[0];

	curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, body);
	curl_easy_setopt(handle, CURLOPT_HTTPHEADER, direct->headers);
	direct->got = 0;
	CURLcode code = curl_easy_perform(handle);
	long status = 0;

	curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK || status >= 300)
		die("the server", code != CURLE_OK ? curl_easy_strerror(code) : "an HTTP error");
}

/* The next request of this handle, with an id of its own. */
static void prepare(struct direct *direct, CURL *handle)
{
	auto_free char *body =
		xasprintf("{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
			  "\"arguments\":%s}}",
			  (long long)++direct->id, tool, arguments);

	curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, body);
}

static void direct_begin(struct direct *direct)
{
	for (size_t i = 0; i < AT_ONCE; i++) {
		CURL *handle = direct->handles[i] = curl_easy_init();

		curl_easy_setopt(handle, CURLOPT_URL, url);
		curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take);
		curl_easy_setopt(handle, CURLOPT_WRITEDATA, direct);
		curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
	}
	direct->multi = curl_multi_init();
	direct->headers = curl_slist_append(NULL, "Content-Type: application/json");
	direct->headers = curl_slist_append(direct->headers, "Accept: application/json, text/event-stream");
	direct->headers = curl_slist_append(direct->headers, "Expect:");
	if (getenv("TOKEN")) {
		auto_free char *line = xasprintf("Authorization: Bearer %s", getenv("TOKEN"));

		direct->headers = curl_slist_append(direct->headers, line);
	}
	curl_easy_setopt(direct->handles[0], CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(direct->handles[0], CURLOPT_HEADERDATA, direct);
	send_one(direct, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
			 "\"2025-11-25\","
			 "\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}");
	if (*direct->session)
		direct->headers = curl_slist_append(direct->headers, direct->session);
	direct->headers = curl_slist_append(direct->headers, "MCP-Protocol-Version: 2025-11-25");
	send_one(direct, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
	for (size_t i = 0; i < AT_ONCE; i++) {
		curl_easy_setopt(direct->handles[i], CURLOPT_HTTPHEADER, direct->headers);
	}
}

/* Microseconds for CALLS calls, one after the other. */
static double direct_each(struct direct *direct)
{
	int64_t began = clock_monotonic_us();

	for (size_t i = 0; i < CALLS; i++) {
		direct->got = 0;
		prepare(direct, direct->handles[0]);
		if (curl_easy_perform(direct->handles[0]) != CURLE_OK || direct->got == 0)
			die("a call", "no answer");
	}
	return (double)(clock_monotonic_us() - began);
}

static double direct_at_once(struct direct *direct)
{
	int64_t began = clock_monotonic_us();
	size_t begun = 0, ended = 0;

	for (; begun < AT_ONCE; begun++) {
		prepare(direct, direct->handles[begun]);
		curl_multi_add_handle(direct->multi, direct->handles[begun]);
	}
	while (ended < CALLS) {
		int running, left;
		CURLMsg *message;

		curl_multi_perform(direct->multi, &running);
		while ((message = curl_multi_info_read(direct->multi, &left)) != NULL) {
			CURL *handle = message->easy_handle;

			if (message->data.result != CURLE_OK)
				die("a call", curl_easy_strerror(message->data.result));
			ended++;
			curl_multi_remove_handle(direct->multi, handle);
			prepare(direct, handle);
			if (begun++ < CALLS)
				curl_multi_add_handle(direct->multi, handle);
		}
		if (ended < CALLS)
			curl_multi_poll(direct->multi, NULL, 0, 1000, NULL);
	}
	return (double)(clock_monotonic_us() - began);
}

/* -------- through bridge and pool --------------------------------------------------------------------- */

struct through {
	struct upstream *upstream;
	struct bridge *bridge;
	struct job_tools *job;
	struct store_tools calls;
	int fd;
	int64_t id;
	char heard[65536];
	size_t at, end; /* of it: what was not taken yet */
};

static void through_begin(struct through *through, const struct config *config)
{
	const char *names[] = {server};
	const struct bridge_tools_spec spec = {.bridge = through->bridge,
					       .upstream = through->upstream,
					       .config = config,
					       .owner = "bench",
					       .grant = "*",
					       .servers = {.items = names, .count = 1},
					       .runner = "python",
					       .refusal = "nobody"};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct job_tools_given given;
	struct err err = ERR_INIT;

	/* In a jail the jail's init does this. */
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "tools_bench-%d", getpid());
	if (bridge_tools_new(&spec, &through->job, &err) < 0 ||
	    through->job->open(through->job, &(struct job_tools_run){.execution = "bench"}, &given, &err) < 0)
		die("the bridge", err.text);
	through->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(given.socket, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(given.socket, 16) < 0 ||
	    connect(through->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("the run's socket", "cannot be reached");
}

static void through_end(struct through *through)
{
	close(through->fd);
	through->at = through->end = 0;
	through->job->close(through->job, &through->calls);
	store_tools_clear(&through->calls);
	job_tools_release(&through->job);
}

static void say(struct through *through)
{
	char room[512];
	struct buf frame;

	buf_init_room(&frame, room, sizeof(room));
	bridge_frame_begin(&frame);
	buf_printf(&frame, "{\"id\":%lld,\"op\":\"call\",\"server\":\"%s\",\"tool\":\"%s\",\"arguments\":%s}",
		   (long long)++through->id, server, tool, arguments);
	bridge_frame_end(&frame);
	if (send(through->fd, frame.data, frame.length, 0) != (ssize_t)frame.length)
		die("the bridge", "the frame was not taken");
}

/* At least so many bytes that were not taken yet; reads as many as there are, as a client does. */
static void need(struct through *through, size_t length)
{
	if (through->end - through->at >= length)
		return;
	memmove(through->heard, through->heard + through->at, through->end - through->at);
	through->end -= through->at;
	through->at = 0;
	while (through->end < length) {
		ssize_t n = recv(through->fd, through->heard + through->end, sizeof(through->heard) - through->end, 0);

		if (n <= 0)
			die("a call through the bridge", "the connection ended");
		through->end += (size_t)n;
	}
}

static void hear(struct through *through)
{
	static const char ok[] = "\"ok\":true";
	size_t length;

	need(through, BRIDGE_HEAD);
	length = bridge_frame_length((unsigned char *)through->heard + through->at);
	if (BRIDGE_HEAD + length > sizeof(through->heard))
		die("a call through the bridge", "the answer is too long");
	need(through, BRIDGE_HEAD + length);
	if (!memmem(through->heard + through->at + BRIDGE_HEAD, length, ok, strlen(ok)))
		die("a call through the bridge", "it failed");
	through->at += BRIDGE_HEAD + length;
}

static double through_calls(struct through *through, size_t at_once)
{
	int64_t began = clock_monotonic_us();

	for (size_t i = 0; i < at_once; i++)
		say(through);
	for (size_t i = 0; i < CALLS; i++) {
		hear(through);
		if (i + at_once < CALLS)
			say(through);
	}
	return (double)(clock_monotonic_us() - began);
}

/* -------- the figures --------------------------------------------------------------------------------- */

static void bench_calls(struct through *through, const struct config *config, const char *what, size_t rounds)
{
	double direct_one[ROUNDS_MAX] = {0}, one[ROUNDS_MAX] = {0}, one_ratio[ROUNDS_MAX] = {0};
	double direct_many[ROUNDS_MAX] = {0}, many[ROUNDS_MAX] = {0}, many_ratio[ROUNDS_MAX] = {0};
	struct direct direct = {0};

	double used[4] = {0}, before;

	direct_begin(&direct);
	direct_each(&direct); /* both are warm */
	for (size_t i = 0; i < rounds; i++) {
		through_begin(through, config);
		before = processor();
		direct_one[i] = direct_each(&direct);
		used[0] += processor() - before;
		before = processor();
		one[i] = through_calls(through, 1);
		used[1] += processor() - before;
		before = processor();
		direct_many[i] = direct_at_once(&direct);
		used[2] += processor() - before;
		before = processor();
		many[i] = through_calls(through, AT_ONCE);
		used[3] += processor() - before;
		one_ratio[i] = one[i] / direct_one[i];
		many_ratio[i] = direct_many[i] / many[i];
		through_end(through);
	}
	for (size_t i = 0; i < ARRAY_SIZE(used); i++)
		used[i] /= CALLS * (double)rounds;
	printf("a call to %s through the bridge: %.2f ms against %.2f ms by libcurl: ratio %.2f (aim 1.5); "
	       "processor %.0f us against %.0f\n",
	       what, median(one, rounds) / CALLS / 1000, median(direct_one, rounds) / CALLS / 1000,
	       median(one_ratio, rounds), used[1], used[0]);
	printf("  %d at once: %.0f a second against %.0f by libcurl: ratio %.2f (aim 0.8); "
	       "processor %.0f us against %.0f\n",
	       AT_ONCE, 1e6 * CALLS / median(many, rounds), 1e6 * CALLS / median(direct_many, rounds),
	       median(many_ratio, rounds), used[3], used[2]);
}

static double first_call(struct upstream *upstream, const char *name, size_t round)
{
	auto_free char *run = xasprintf("%s %zu", name, round);
	static const char message[] = "{\"message\":\"first\"}";
	struct upstream_call call = {.tool = "echo", .arguments = message, .length = sizeof(message) - 1};
	struct upstream_answer answer;
	struct err err = ERR_INIT;

	call.key = (struct upstream_key){.owner = "bench", .run = run};
	if (upstream_find(upstream, name, &call.key.server, &err) < 0)
		die(name, err.text);
	int64_t began = clock_monotonic_us();
	upstream_call_wait(upstream, &call, &answer);
	double took = (double)(clock_monotonic_us() - began);
	if (answer.kind != UPSTREAM_RESULT)
		die(name, answer.text);
	upstream_answer_clear(&answer);
	upstream_end_run(upstream, run);
	return took;
}

static void bench_first(struct upstream *upstream, size_t rounds)
{
	double bare[ROUNDS_MAX] = {0}, jailed[ROUNDS_MAX] = {0}, ratio[ROUNDS_MAX] = {0};

	first_call(upstream, "bare", rounds); /* its files are read */
	for (size_t i = 0; i < rounds; i++) {
		bare[i] = first_call(upstream, "bare", i);
		jailed[i] = first_call(upstream, "jailed", i);
		ratio[i] = jailed[i] / bare[i];
	}
	printf("the first call of a server in a jail: %.0f ms against %.0f ms bare: ratio %.2f (aim 1.2)\n",
	       median(jailed, rounds) / 1000, median(bare, rounds) / 1000, median(ratio, rounds));
}

static size_t rounds_of(const char *text)
{
	return text ? MAX(MIN((size_t)strtoul(text, NULL, 10), (size_t)ROUNDS_MAX), (size_t)1) : 7;
}

int main(int argc, char **argv)
{
	const bool calls = argc >= 7 && streq(argv[1], "calls");
	struct through through = {.fd = -1};
	auto_config struct config config = {0};
	struct err err = ERR_INIT;

	if (!calls && (argc < 2 || !streq(argv[1], "first")))
		die("usage", "tools_bench calls WHAT SERVER URL TOOL ARGUMENTS [ROUNDS] | first [ROUNDS]");
	curl_global_init(CURL_GLOBAL_DEFAULT);
	if (config_load(NULL, &config, &err) < 0 || upstream_open(&config, &through.upstream, &err) < 0 ||
	    !through.upstream || bridge_start(through.upstream, &through.bridge, &err) < 0)
		die("starting", err.text);
	config.limits.tool_calls = 1000000;
	config.limits.tool_results_mb = 1 << 20;
	if (calls) {
		server = argv[3];
		url = argv[4];
		tool = argv[5];
		arguments = argv[6];
		bench_calls(&through, &config, argv[2], rounds_of(argv[7]));
	} else {
		bench_first(through.upstream, rounds_of(argv[2]));
	}
	bridge_stop(through.bridge);
	upstream_close(through.upstream);
	return 0;
}
