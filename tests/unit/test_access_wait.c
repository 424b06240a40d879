/* test_access_wait.c - calls that wait for one of limits.in_flight: their order, who leaves, who is refused. */
#include "gateway.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "cgi/http/access.h"

#define CALLS 4

static char order[CALLS + 1];
static sem_t entered;

struct call {
	pthread_t thread;
	char letter;
	int hangup_fd;
	bool given;
	struct http_exchange exchange;
	struct request request;
};

static void prepare(struct call *call, char letter, int hangup_fd)
{
	static const char *const none[] = {NULL};

	*call = (struct call){.letter = letter, .request = {.params = none, .hangup_fd = hangup_fd}};
	call->exchange = (struct http_exchange){
		.server = &fixture.server, .request = &call->request, .token = fixture.alice};
}

static void *enter(void *arg)
{
	struct call *call = arg;
	struct access_refusal refusal;

	call->given = access_enter(&call->exchange, &refusal);
	if (call->given)
		order[strlen(order)] = call->letter; /* one place: one at a time */
	sem_post(&entered);
	if (call->given)
		access_leave(&call->exchange);
	return NULL;
}

/* Begins to wait behind those that wait already. */
static void begin(struct call *call, int waiting)
{
	assert_int_equal(pthread_create(&call->thread, NULL, enter, call), 0);
	while (access_waiting(fixture.server.limiter) <= waiting)
		sched_yield();
}

static int open_one_place(void **state)
{
	int result = open_fixture(state);

	fixture.config.limits.in_flight = 1;
	fixture.config.limits.wait_seconds = 3600;
	memset(order, 0, sizeof(order));
	sem_init(&entered, 0, 0);
	return result;
}

static void they_have_their_turns_in_order(void **state)
{
	struct access_refusal refusal;
	struct call first, calls[CALLS];

	(void)state;
	prepare(&first, '-', -1);
	assert_true(access_enter(&first.exchange, &refusal));
	for (int i = 0; i < CALLS; i++) {
		prepare(&calls[i], (char)('a' + i), -1);
		begin(&calls[i], i);
	}
	access_leave(&first.exchange);
	for (int i = 0; i < CALLS; i++)
		pthread_join(calls[i].thread, NULL);
	assert_string_equal(order, "abcd");
	assert_int_equal(access_waiting(fixture.server.limiter), 0);
	assert_true(access_enter(&first.exchange, &refusal)); /* the place is free again */
	access_leave(&first.exchange);
}

static void who_leaves_takes_no_place(void **state)
{
	struct access_refusal refusal;
	struct call first, calls[2];
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	prepare(&first, '-', -1);
	assert_true(access_enter(&first.exchange, &refusal));
	prepare(&calls[0], 'a', ends[0]);
	begin(&calls[0], 0);
	prepare(&calls[1], 'b', -1);
	begin(&calls[1], 1);
	close(ends[1]);
	sem_wait(&entered);
	assert_false(calls[0].given);
	access_leave(&first.exchange);
	for (int i = 0; i < 2; i++)
		pthread_join(calls[i].thread, NULL);
	close(ends[0]);
	assert_string_equal(order, "b");
}

static void who_waits_too_long_is_refused(void **state)
{
	struct access_refusal refusal;
	struct call first, late;

	(void)state;
	fixture.config.limits.wait_seconds = 0;
	prepare(&first, '-', -1);
	prepare(&late, 'a', -1);
	assert_true(access_enter(&first.exchange, &refusal));
	assert_false(access_enter(&late.exchange, &refusal));
	assert_int_equal(refusal.status, 429);
	access_leave(&first.exchange);
}

static void a_stop_ends_the_waiting(void **state)
{
	struct access_refusal refusal;
	struct call first, late;

	(void)state;
	prepare(&first, '-', -1);
	assert_true(access_enter(&first.exchange, &refusal));
	prepare(&late, 'a', -1);
	begin(&late, 0);
	fixture.server.closing = true;
	pthread_join(late.thread, NULL);
	assert_false(late.given);
	access_leave(&first.exchange);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(they_have_their_turns_in_order, open_one_place, close_fixture),
		cmocka_unit_test_setup_teardown(who_leaves_takes_no_place, open_one_place, close_fixture),
		cmocka_unit_test_setup_teardown(who_waits_too_long_is_refused, open_one_place, close_fixture),
		cmocka_unit_test_setup_teardown(a_stop_ends_the_waiting, open_one_place, close_fixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
