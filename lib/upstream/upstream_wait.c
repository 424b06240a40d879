/* upstream_wait.c - the functions of upstream.h that block, on top of those that call back. */
#include "upstream.h"

#include <pthread.h>

#include "lib/base/util.h"

static const char *const kind_names[] = {
#define KIND(name, text) [UPSTREAM_##name] = (text),
	UPSTREAM_KINDS(KIND)
#undef KIND
};

const char *upstream_kind_name(enum upstream_kind kind)
{
	return kind_names[kind];
}

/* Who blocks until a callback came. */
struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t came;
	bool done;
	struct upstream_list *list;
	struct upstream_answer *answer;
	struct err err;
};
#define WAITER                                                                                                         \
	{                                                                                                              \
		.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER                                    \
	}

static void wake(struct waiter *waiter)
{
	waiter->done = true;
	pthread_cond_signal(&waiter->came);
	pthread_mutex_unlock(&waiter->lock);
}

static void wait_for(struct waiter *waiter)
{
	pthread_mutex_lock(&waiter->lock);
	while (!waiter->done)
		pthread_cond_wait(&waiter->came, &waiter->lock);
	pthread_mutex_unlock(&waiter->lock);
}

static void list_came(void *arg, struct upstream_list *list, const struct err *err)
{
	struct waiter *waiter = arg;

	pthread_mutex_lock(&waiter->lock);
	waiter->list = list;
	if (err != NULL)
		waiter->err = *err;
	wake(waiter);
}

int upstream_list(struct upstream *upstream, const struct upstream_key *key, int64_t deadline_us,
		  struct upstream_list **ret, struct err *err)
{
	struct waiter waiter = WAITER;

	upstream_list_begin(upstream, key, deadline_us, list_came, &waiter);
	wait_for(&waiter);
	if (waiter.list == NULL)
		return err_set(err, waiter.err.code, "%s", waiter.err.text);
	*ret = waiter.list;
	return 0;
}

static void answer_came(void *arg, const struct upstream_answer *answer)
{
	struct waiter *waiter = arg;

	pthread_mutex_lock(&waiter->lock);
	*waiter->answer = *answer;
	waiter->answer->result = answer->result != NULL ? xmemdup(answer->result, answer->length) : NULL;
	waiter->answer->text = answer->text != NULL ? xstrdup(answer->text) : NULL;
	waiter->answer->protocol = xstrdup(answer->protocol);
	wake(waiter);
}

void upstream_call_wait(struct upstream *upstream, const struct upstream_call *call, struct upstream_answer *ret)
{
	struct waiter waiter = WAITER;

	waiter.answer = ret;
	upstream_call(upstream, call, answer_came, &waiter);
	wait_for(&waiter);
}

void upstream_answer_clear(struct upstream_answer *answer)
{
	free(unconst(answer->result));
	free(unconst(answer->text));
	free(unconst(answer->protocol));
	*answer = (struct upstream_answer){0};
}
