/*
 * sallyport-gateway - serves MCP over HTTP behind a web server.
 *
 * Four ways to be started, the first three told apart without options:
 *   - by a supervisor: listens on the unix socket gateway.socket and speaks FastCGI (nginx's fastcgi_pass);
 *   - with a listening socket as descriptor 0 (spawn-fcgi, socket activation): the same on that socket;
 *   - by a web server as a CGI program (REQUEST_METHOD or GATEWAY_INTERFACE in the environment): serves one request and
 * ends.
 *
 *   - with --stdio, by a desktop client: serves it over standard input and output (stdio_serve.c).
 *
 * A request goes fcgi.c or cgi.c -> routes.c (path, Host, Origin, token, method) -> mcp_endpoint.c (era) ->
 * mcp_legacy.c or mcp_modern.c -> tools.c -> one file per tool -> lib/job. Files go routes.c -> files.c. The process
 * needs no privileges: its data folder, and the jailer's socket.
 *
 * Exit codes: 0 stopped by a signal (or the CGI request was answered), else that of the error (lib/base/err.c), 2 for a
 * wrong command line.
 */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "cgi.h"
#include "cgi/stdio/stdio_serve.h"
#include "lib/base/config.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/base/version.h"
#include "serve.h"
#include "server_start.h"

#define EXIT_USAGE  2
#define LARGE_BYTES (256 * 1024)

static const char usage[] =
	"usage: sallyport-gateway [--config PATH] [--stdio [--workspace DIR [--workspace-allow PATTERN]...]]\n"
	"\n"
	"Serves MCP over HTTP: FastCGI on the socket gateway.socket of the configuration, or on descriptor 0 if that "
	"is a listening\n"
	"socket; one request as a CGI program if the environment says so.\n"
	"\n"
	"  --config PATH  the configuration file (else SALLYPORT_CONFIG, else /etc/sallyport/sallyport.conf)\n"
	"  --stdio        serve the parent process over standard input and output: one JSON-RPC message a line\n"
	"  --workspace DIR  with --stdio: programs work on the files of this folder\n"
	"  --workspace-allow PATTERN  they may write names that are held otherwise (sallyport-stdio(1))\n"
	"  --help         this text\n"
	"  --version      the version\n"
	"\n"
	"Stops in an orderly way on SIGTERM and SIGINT. See sallyport-gateway(8) and sallyport.conf(5).\n";

struct options {
	const char *config, *workspace;
	struct bind_strings allow; /* --workspace-allow */
	bool stdio;
};

/* -1: go on; else the exit code. */
static int parse_options(int argc, char **argv, struct options *ret)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"stdio", no_argument, NULL, 's'},
		{"workspace", required_argument, NULL, 'w'},
		{"workspace-allow", required_argument, NULL, 'a'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			ret->config = optarg;
			break;
		case 's':
			ret->stdio = true;
			break;
		case 'w':
			ret->workspace = optarg;
			break;
		case 'a':
			ret->allow.items = xrealloc(ret->allow.items, ret->allow.count + 1, sizeof(*ret->allow.items));
			ret->allow.items[ret->allow.count++] = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		case 'v':
			puts("sallyport-gateway " SALLYPORT_VERSION);
			return 0;
		default:
			fputs(usage, stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "sallyport-gateway: %s: no such argument\n%s", argv[optind], usage);
		return EXIT_USAGE;
	}
	if ((ret->workspace && !ret->stdio) || (ret->allow.count > 0 && !ret->workspace)) {
		fprintf(stderr, "sallyport-gateway: --workspace%s needs %s\n%s", ret->workspace ? "" : "-allow",
			ret->workspace ? "--stdio" : "--workspace", usage);
		return EXIT_USAGE;
	}
	return -1;
}

static int serve_cgi(const struct config *config, struct err *err)
{
	struct server server;

	signal(SIGPIPE, SIG_IGN);
	int result = server_check_url(config, err);

	if (result < 0) {
		cgi_unavailable();
		return result;
	}
	result = server_open(&server, config, STORE_WRITE, err);
	if (result == 0)
		result = cgi_serve(&server, err);
	else
		cgi_unavailable();
	server_close(&server);
	return result;
}

int main(int argc, char **argv)
{
	struct options options = {0};
	auto_config struct config config = {0};
	struct err err = ERR_INIT;
	/* A CGI program's arguments come from the query of the URL (RFC 3875, 4.4): they are not options. */
	bool cgi = cgi_started();
	int code = cgi ? -1 : parse_options(argc, argv, &options);

	/* Freed memory still holds parts of requests (docs/security.md): no core file, and no other process of this
	 * account may read it. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* Larger blocks are mappings of their own, which free() returns to the kernel. Unless it is set, glibc raises
	 * the threshold with each block that is freed. */
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	if (fill_standard_fds())
		return err_info(ERR_SYSTEM)->exit; /* nobody to tell */
	signal(SIGXFSZ,
	       SIG_IGN); /* ulimit -f: EFBIG can be reported, a signal ends us without a message */
	if (code >= 0)
		return code;
	log_open("gateway", LOG_INFO);
	int result = config_load(options.config, &config, &err);

	if (result == 0)
		log_configure(streq(config.log.format, "json"), config.log.level);
	if (result == 0 && options.stdio)
		result = stdio_prepare(&config, options.workspace, &options.allow, &err);
	if (result < 0 && cgi)
		cgi_unavailable();
	if (result == 0 && options.stdio)
		result = stdio_serve(&config, &err);
	else if (result == 0)
		result = cgi ? serve_cgi(&config, &err) : serve_fcgi(&config, &err);
	if (result == 0)
		return 0;
	log_event(LOG_ERROR, "ended", "error", err.text, NULL);
	return err_info(err.code)->exit;
}
