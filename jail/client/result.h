/*
 * result.h - what came of a run: the verdict, what was used, what was refused.
 *
 * A field of a result is written down twice: as a member of one of the structs below, and as a row of its table
 * (result.c), with its name, its bounds, its sentence and its views. From the row come the message on the wire, the
 * JSON in the record and its way back, structuredContent and the tools' output schema, and the reports of the command
 * line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/bind.h"
#include "lib/base/err.h"
#include "lib/base/json.h"

#define JAIL_MESSAGE_TEXT 256
#define JAIL_DENIED_MAX   64 /* calls in jail_result.denied, hosts in its network's */

/* What became of a run. The two letters are what is stored and shown (jail_verdict_text). */
enum jail_verdict {
	JAIL_OK, /* exit 0 */
	JAIL_RE, /* exit status not 0 */
	JAIL_SG, /* ended by a signal */
	JAIL_TO, /* wall or CPU time; `limit` says which */
	JAIL_ML, /* the kernel's OOM counter of the jail went up */
	JAIL_OL, /* more output than the limit */
	JAIL_CE, /* the compile step did not end with 0; its output is the run's output */
	JAIL_CX, /* cancelled by jail_cancel, or the client disconnected */
	JAIL_XX, /* the sandbox failed, nothing can be said of the program */
	JAIL_VERDICTS
};
const char *jail_verdict_text(enum jail_verdict verdict);
int jail_verdict_parse(const char *text, enum jail_verdict *ret);

/* Where a field is shown: views of the two tables (lib/base/bind.h). */
enum jail_view {
	JAIL_WIRE = BIND_PLAIN,
	JAIL_RECORD = 1 << 1,  /* execution.result: what has no column of its own */
	JAIL_COLUMNS = 1 << 2, /* columns of execution */
	JAIL_ANSWER = 1 << 3,  /* structuredContent and its schema */
	JAIL_REPORT = 1 << 4,  /* sallyport run --json */
};

/* Accounting of one step (compile or run), by difference: a jail may run many programs. */
struct jail_usage {
	int64_t wall_us;
	int64_t cpu_us; /* of the whole tree: user + system */
	int64_t cpu_user_us, cpu_system_us;
	int64_t memory_peak_bytes;  /* of the whole tree; where the kernel does not tell, of its largest process */
	int64_t rss_peak_bytes; /* resident, of its largest process; 0: it was ended from outside */
	int64_t pids_peak;      /* 0: the kernel does not tell */
	int64_t pids_hits;      /* how often a process was refused for the limit; 0 where no cgroup counts */
	int64_t switches_voluntary,
		switches_forced; /* context switches of the program's own tree as far as it was reaped */
};

struct jail_result {
	enum jail_verdict verdict;
	char message[JAIL_MESSAGE_TEXT]; /* one plain sentence for a person or a model */
	char limit[16];                  /* "wall" "cpu" "memory" "pids" "output" "data" or "" */
	char step[32];                   /* XX: the set-up step that failed ("mount /proc"); "" otherwise */
	int step_errno;
	bool compiled;                   /* a compile step ran; its usage is `compile` */
	int exit_code;                   /* -1 where there is none */
	int signal;                      /* 0 where there is none */
	bool oom_killed;
	bool pids_limit_hit;
	int64_t stdout_bytes, stderr_bytes; /* written to the descriptors */
	bool stdout_truncated, stderr_truncated;
	struct jail_usage compile, run;
	int64_t setup_us;                /* from open to the program's start, compile excluded */
	bool warm;                       /* its interpreter was running already: a later run of a live jail */
	bool parked;                     /* its first run, in a jail that was made ahead */
	char runner[32];                 /* canonical name */
	char fingerprint[256];           /* interpreter and version as it was found, e.g. "Python 3.11.2"; "" unknown */
	/* live: nothing can run in this jail any more, its state is gone (limit, signal, the interpreter's own end);
	 * collect still works */
	bool ended;
	struct json_object
		*denied; /* array of {"name","number"} of system calls that were refused, or NULL; the result's */
	/* With network: {"connections","bytes_in","bytes_out","unrouted","denied":[{"host","port","reason"}]}; else
	 * NULL. The result's. */
	struct json_object *network;
	/* With `display`: a string, the last value and what became of figures, "" where nothing was shown; else NULL.
	 * The result's. */
	struct json_object *value;
	/* What the compile step printed although it succeeded, its beginning: warnings. NULL: nothing. The result's. */
	struct json_object *warnings;
	/* Names of files that the run left in /tmp, which goes with the jail: some of them, by commas. NULL: none. The
	 * result's. */
	struct json_object *left_in_tmp;
};
#define JAIL_VALUE_MAX      (17 * 1024) /* bytes of it that are read … */
#define JAIL_VALUE_WIRE_MAX (32 * 1024) /* … and of its JSON */
#define JAIL_WARNINGS_MAX   2000
#define JAIL_UNROUTED_TEXT                                                                                             \
	"an address that is not in network.allow was tried (%lld): only what it names is reached, by name"
void jail_result_clear(struct jail_result *result);
/* For a copy of the struct that is to live on its own: takes references to what it points to. */
void jail_result_share(struct jail_result *result);
/* The whole as JSON objects; of usage the members may also be those of the result's own object. */
extern const struct bind jail_result_table[], jail_usage_table[];
