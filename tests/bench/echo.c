/*
 * echo.c - what nginx and libfcgi take by themselves: THREADS threads that answer every FastCGI request on SOCKET
 * with its own body and look at nothing. `make bench` divides by its rate. Ends with SIGTERM.
 *
 *     echo THREADS SOCKET
 */
#include <fcgiapp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/util.h"

#define THREADS_MAX 64
#define BACKLOG     512
#define BODY_MAX    65536
#define STACK_SIZE  (128 * 1024 + BODY_MAX)

static void *work(void *arg)
{
	const int *fd = arg;
	char body[BODY_MAX];
	FCGX_Request request;

	FCGX_InitRequest(&request, *fd, 0);
	while (FCGX_Accept_r(&request) == 0) {
		int length = FCGX_GetStr(body, sizeof(body), request.in);

		FCGX_FPrintF(request.out,
			     "Status: 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", length);
		FCGX_PutStr(body, length, request.out);
		FCGX_Finish_r(&request);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;
	uint64_t threads;

	if (argc != 3 || parse_u64(argv[1], 1, THREADS_MAX, &threads) < 0) {
		fprintf(stderr, "usage: echo THREADS SOCKET\n");
		return 2;
	}
	FCGX_Init();
	signal(SIGTERM, SIG_DFL); /* libfcgi takes it for "after this request" */
	int fd = FCGX_OpenSocket(argv[2], BACKLOG);

	if (fd < 0)
		return 1;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	for (uint64_t i = 0; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, &attributes, work, &fd) != 0)
			return 1;
	}
	for (;;)
		pause();
}
