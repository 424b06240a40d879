/* warm_module.c - the module as Python sees it. See warm.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jail/client/wire_fd.h"
#include "lib/base/util.h"
#include "warm.h"

/* Of Python's stable ABI (PEP 384), with what it says of their layout. */
typedef struct object PyObject;
typedef PyObject *method(PyObject *self, PyObject *argument);
struct object_head {
	ssize_t references;
	void *type;
};
struct method_def {
	const char *name;
	method *call;
	int flags;
	const char *doc;
};
#define METH_NOARGS 4
#define METH_O      8
struct module_def {
	struct {
		struct object_head head;
		PyObject *(*init)(void);
		ssize_t index;
		PyObject *copy;
	} base;
	const char *name, *doc;
	ssize_t size;
	struct method_def *methods;
	void *slots, *traverse, *clear, *free;
};
#define ABI_VERSION 3
PyObject *PyModule_Create2(struct module_def *module, int version);
PyObject *PyLong_FromLong(long value);
long PyLong_AsLong(PyObject *value);
PyObject *PyBytes_FromStringAndSize(const char *bytes, ssize_t length);
void PyOS_BeforeFork(void);
void PyOS_AfterFork_Parent(void);
void PyOS_AfterFork_Child(void);
__attribute__((visibility("default"))) PyObject *PyInit_warm(void);

static int to_init = -1; /* in a process that has joined */

static void answer(int jailer, const struct join_answer *what)
{
	if (wire_fd_send(jailer, what, sizeof(*what), NULL, 0))
		_exit(1);
}

/* One jail: true in the process that has joined it. */
static bool join_one(int jailer)
{
	struct join_order order;
	struct join_answer said;
	int fds[JOIN_FDS_MAX];
	struct wire_fds taken = {.fds = fds, .room = ARRAY_SIZE(fds)};
	const ssize_t n = wire_fd_receive(jailer, &order, sizeof(order), 0, &taken);

	if (n == 0)
		_exit(0);
	if (n != (ssize_t)sizeof(order) || taken.count != JOIN_NAMESPACES + 1 + order.n_doors)
		_exit(1);
	PyOS_BeforeFork();
	if (warm_join(&order, fds, &said, &to_init) == 0) {
		PyOS_AfterFork_Parent();
		for (size_t i = 0; i < taken.count; i++)
			close(fds[i]);
		answer(jailer, &said);
		return false;
	}
	/* First the cgroup: what is written to from here on is the jail's. */
	const char *failed = warm_enter(&order, fds, &to_init);
	if (failed)
		warm_program_fail(to_init, failed, errno);
	PyOS_AfterFork_Child();
	return true;
}

static PyObject *serve(PyObject *self, PyObject *descriptor)
{
	const int jailer = (int)PyLong_AsLong(descriptor);
	struct join_answer ready = {.serves = true};
	const char *unfit = warm_unfit();

	(void)self;
	if (!unfit && warm_program_prepare())
		unfit = "its own command";
	if (unfit) {
		ready.error = errno ? errno : EINVAL;
		snprintf(ready.step, sizeof(ready.step), "%s", unfit);
	}
	answer(jailer, &ready);
	while (!join_one(jailer))
		;
	return PyLong_FromLong(to_init);
}

static PyObject *wait_for_program(PyObject *self, PyObject *none)
{
	size_t length = 0;
	const char *arguments = warm_program_wait(to_init, &length);

	(void)self;
	(void)none;
	return PyBytes_FromStringAndSize(arguments, (ssize_t)length);
}

static PyObject *become(PyObject *self, PyObject *exec)
{
	(void)self;
	warm_program_become(to_init, PyLong_AsLong(exec) != 0);
	return PyLong_FromLong(0);
}

PyObject *PyInit_warm(void)
{
	static struct method_def methods[] = {
		{"serve", serve, METH_O, NULL},
		{"wait", wait_for_program, METH_NOARGS, NULL},
		{"become", become, METH_O, NULL},
		{NULL, NULL, 0, NULL},
	};
	static struct module_def module = {
		.base = {.head = {.references = 1}}, .name = "warm", .size = -1, .methods = methods};

	return PyModule_Create2(&module, ABI_VERSION);
}
