/* test_doors_line.c - requests that wait for a place: their order, their end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cgi/doors/doors_line.h"
#include "lib/base/metrics.h"
#include "lib/base/util.h"

/* What came of requests, in the order in which it came: their names' letters, in lower case where they were late or
 * stopped. */
static char story[2 * DOORS_WAITING_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t gate, entered, told;

struct asked {
	struct doors_waiter waiter;
	char letter;
	bool holds; /* its place, until the gate opens */
};

static void write_down(char letter)
{
	pthread_mutex_lock(&lock);
	story[strlen(story)] = letter;
	pthread_mutex_unlock(&lock);
	sem_post(&told);
}

static void take(struct doors_waiter *waiter, enum doors_turn turn)
{
	struct asked *asked = container_of(waiter, struct asked, waiter);

	if (asked->holds && turn == DOORS_BEGIN) {
		sem_post(&entered);
		sem_wait(&gate);
	}
	write_down(turn == DOORS_BEGIN ? asked->letter : turn == DOORS_LATE ? (char)(asked->letter | 0x20) : '.');
	free(asked);
}

static void drop(struct doors_waiter *waiter)
{
	write_down('-');
	free(container_of(waiter, struct asked, waiter));
}

static void put_more(struct doors_line *line, const char *owner, char letter, struct asked like)
{
	struct asked *asked = xmalloc(sizeof(*asked));

	*asked = like;
	asked->letter = letter;
	asked->waiter.owner = owner;
	asked->waiter.take = take;
	asked->waiter.drop = drop;
	if (asked->waiter.until_us == 0)
		asked->waiter.until_us = INT64_MAX;
	if (asked->waiter.gone_fd == 0)
		asked->waiter.gone_fd = -1;
	doors_line_put(line, &asked->waiter);
}

static void put(struct doors_line *line, const char *owner, char letter)
{
	put_more(line, owner, letter, (struct asked){0});
}

/* How many wait, as /metrics shows it. */
static int waiting(void)
{
	static const char name[] = "\nsallyport_door_queue_length ";
	auto_buf struct buf text = {0};

	buf_init(&text, SIZE_MAX / 2);
	metrics_print(&text, false);
	const char *line = strstr(text.data, name);

	return line ? (int)strtol(line + strlen(name), NULL, 10) : -1;
}

/* A line of one place, which is taken until the gate opens. */
static struct doors_line *held_line(void)
{
	struct doors_line *line = doors_line_new(1);

	memset(story, 0, sizeof(story));
	put_more(line, "holder", 'H', (struct asked){.holds = true});
	sem_wait(&entered);
	return line;
}

static void wait_for(int count)
{
	while (count-- > 0)
		sem_wait(&told);
}

static void owners_take_turns(void **state)
{
	struct doors_line *line = held_line();

	(void)state;
	for (int i = 0; i < 4; i++)
		put(line, "ann", (char)('A' + i));
	put(line, "bob", 'X');
	put(line, "bob", 'Y');
	put(line, "cyn", 'Z');
	assert_int_equal(waiting(), 7);
	sem_post(&gate);
	wait_for(8);
	doors_line_free(line);
	assert_string_equal(story, "HAXZBYCD");
}

static void late_requests_never_begin(void **state)
{
	struct doors_line *line = held_line();

	(void)state;
	put(line, "ann", 'A');
	put_more(line, "ann", 'B', (struct asked){.waiter.until_us = 1});
	put_more(line, "bob", 'C', (struct asked){.waiter.until_us = clock_monotonic_us() + 20000});
	wait_for(2); /* while the place is taken */
	assert_string_equal(story, "bc");
	assert_int_equal(waiting(), 1);
	sem_post(&gate);
	wait_for(2);
	doors_line_free(line);
	assert_string_equal(story, "bcHA");
}

static void who_left_never_begins(void **state)
{
	struct doors_line *line = held_line();
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	put_more(line, "ann", 'A', (struct asked){.waiter.gone_fd = pair[0]});
	put(line, "ann", 'B');
	close(pair[1]);
	sem_post(&gate);
	wait_for(3);
	doors_line_free(line);
	close(pair[0]);
	assert_string_equal(story, "H-B");
}

static void a_stop_tells_all_that_wait(void **state)
{
	struct doors_line *line = held_line();

	(void)state;
	put(line, "ann", 'A');
	put(line, "bob", 'B');
	doors_line_stop(line);
	assert_string_equal(story, "..");
	put(line, "cyn", 'C');
	assert_string_equal(story, "...");
	sem_post(&gate); /* what has begun goes on */
	doors_line_free(line);
	wait_for(4);
	assert_string_equal(story, "...H");
}

static void what_has_no_room_is_late_at_once(void **state)
{
	struct doors_line *line = held_line();

	(void)state;
	put_more(line, "ann", 'A', (struct asked){.waiter.bytes = DOORS_OWNER_BYTES});
	put_more(line, "ann", 'B', (struct asked){.waiter.bytes = 1}); /* more than an owner may have */
	put_more(line, "bob", 'C', (struct asked){.waiter.bytes = DOORS_BYTES_MAX - DOORS_OWNER_BYTES});
	put_more(line, "cyn", 'D', (struct asked){.waiter.bytes = 1}); /* more than all may have */
	assert_string_equal(story, "bd");
	doors_line_stop(line);
	memset(story, 0, sizeof(story));
	sem_post(&gate);
	doors_line_free(line);
	line = held_line();
	for (int i = 0; i < DOORS_WAITING_MAX; i++)
		put(line, "ann", 'A');
	put(line, "bob", 'B');
	assert_string_equal(story, "b");
	sem_post(&gate);
	doors_line_stop(line);
	doors_line_free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_take_turns),
		cmocka_unit_test(late_requests_never_begin),
		cmocka_unit_test(who_left_never_begins),
		cmocka_unit_test(a_stop_tells_all_that_wait),
		cmocka_unit_test(what_has_no_room_is_late_at_once),
	};

	sem_init(&gate, 0, 0);
	sem_init(&entered, 0, 0);
	sem_init(&told, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
