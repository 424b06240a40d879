/*
 * jail.h - the client's side of the jailer: spec in, result out. Knows nothing of HTTP, JSON-RPC or SQL.
 *
 * A jailer (program sallyport-jailer) is a service behind a SOCK_SEQPACKET unix socket, or a private child over a
 * socketpair. A client holds one connection and any number of jails on it. The protocol's verbs are open, fill, run,
 * collect, close; each function below queues one message and returns at once, so that an ordinary call sends all five
 * without waiting (the jailer works them off in order) and is answered by callbacks from jail_client_dispatch. A
 * jail whose step failed answers every later step with the same failure: callers look at one place only.
 *
 *     jail_open(client, &spec, &events, arg, &jail, err)
 *     jail_fill(jail, files, n, err)              any number of times; files of /data (jail_remove takes away)
 *     jail_run(jail, &program, err)               -> events.output …, then events.done
 *     jail_collect(jail, err)                     -> events.file …, then events.collected
 *     jail_close(jail)                            no callback comes after it
 *
 * Lifetimes: a client's runs die with its connection, and every guest dies with the jailer. When the connection is
 * lost, dispatch calls `done` (if a run was under way) or `failed` for every open jail with verdict XX and returns
 * ERR_UNAVAILABLE; the caller frees the client and may connect anew.
 *
 * Threads: a client and its jails belong to one thread.
 *
 * Units: times in microseconds, sizes in bytes, limits 0 = "the server's default" unless said otherwise.
 * Wire: jail/client/wire.h. Facts: namespaces(7), cgroups(7), seccomp(2), unix(7).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/bind.h"
#include "lib/base/err.h"
#include "lib/base/json.h"
#include "limits.h"
#include "result.h"

#define JAIL_BATCH_FILES 64        /* files and descriptors in one message; SCM_RIGHTS takes 253 */
#define JAIL_WIRE_MAX (64 * 1024)  /* one message; bulk travels as descriptors */
/* Places of other sandboxes that models know: links to /data. */
#define JAIL_DATA_NAMES(X)                                                                                             \
	X("mnt/data") X("mnt/user-data/outputs") X("mnt/user-data/uploads") X("home/user") X("home/sandbox")           \
	X("home/jovyan") X("home/oai/share") X("content") X("workspace") X("kaggle/working")
/* A file of this name stands for the folder that it is in, which is empty: it is never there in a jail. */
#define JAIL_FOLDER ".sallyport-folder"
#define JAIL_NAME_MAX 1024         /* path of a file below /data, bytes */
#define JAIL_LEVELS_MAX 64         /* … and its segments; what is deeper is not kept */
#define JAIL_ARGUMENTS_MAX 32768   /* all arguments and environment of one program, bytes */

struct jail_spec {
	const char *runner; /* name or alias of a runner, see jail_client_runners */
	struct jail_limits limits;
	bool network;       /* as far as network.allow says (sallyport.conf(5)); refused where that is empty */
	struct bind_strings hosts; /* with network: only these entries of network.allow, exact ones; none: all */
	/* With service: only these folders of upstream.binds are shown; NULL: all. Another folder is refused. */
	const struct bind_strings *binds;
	bool service; /* a program that lasts as long as its client wants: no wall or CPU time limit. Its runner must
			 be one of services, and those are for them alone */
	const char *label;  /* for logs and `ps`: execution id, "-", request id; no content */
	/* A live sandbox: any number of runs, one after the other. Files, /tmp and processes that a run leaves stay,
	 * frozen between runs. Where the runner has a `live` step its interpreter keeps its state from run to run; else
	 * each run is a process of its own. Wall and CPU time and output are limits of each run, the others of the
	 * jail; jail_cancel ends the jail. A collection holds what changed since the last one; its descriptors must be
	 * read before the next run. Where state is kept, standard input is a file, no pipe. Switches are those of
	 * processes that ended. Refused where the host cannot freeze (ERR_UNAVAILABLE; info: "live"). */
	bool live;
	bool fingerprint; /* the result shall have the version: the first run waits for it where the jailer does not
			     know it yet (private jailers do not) */
};

/* A file to put below /data. The descriptor stays the caller's (it is duplicated); it is read from offset 0 with pread,
 * so one blob may be filled into many jails at once. Directories on the way are made with mode 0755. */
struct jail_file {
	const char *name; /* relative, no empty, "." or ".." segments, no NUL, at most JAIL_NAME_MAX */
	uint32_t mode;    /* permission bits 0777; others are an error */
	int64_t mtime_us;
	int fd;
};
/* Where jail_fill_code puts files, and the socket of a program with tools. */
#define JAIL_CODE   "/code"
#define JAIL_SOCKET JAIL_CODE "/.mcp"
/* Where the program mcp is, which speaks to that socket: in every jail, and on PATH only where `env` adds it. */
#define JAIL_PROGRAMS "/var/bin"
/* Below /data: what pip and npm install there in programs with network. */
#define JAIL_PACKAGES        ".packages"
#define JAIL_PACKAGES_PYTHON "/data/" JAIL_PACKAGES "/python"
#define JAIL_PACKAGES_NPM    "/data/" JAIL_PACKAGES "/npm"

/* One program to run. Descriptors stay the caller's; -1 means /dev/null. Output is written to the two descriptors at
 * their current position as it arrives (a file or memfd), at most limits.output_bytes over both. A pipe goes to the
 * program itself, so that two programs can talk to each other: what is written there is neither counted nor limited.
 * Not in a live sandbox that keeps its interpreter. */
struct jail_program {
	int code_fd; /* the source text, read from offset 0 */
	/* NULL, or a file of /data (filled before) that is compiled or run in place: what it names relative to itself
	 * is found. */
	const char *entry;
	/* NULL: /data; else the absolute path, in the jail, of the directory in which the program starts. Not in a live
	 * sandbox that keeps its interpreter. */
	const char *cwd;
	const char *const *args; /* NULL-terminated or NULL; behind the runner's own argv */
	const char *const *env;  /* "NAME=value", NULL-terminated or NULL; added to what the runner declares */
	int stdin_fd, stdout_fd, stderr_fd;
	/* With `tools`: a unix stream socket, neither bound nor connected. It listens at JAIL_SOCKET in the jail when
	 * the program starts, in place of the last run's: the client accepts on its own descriptor of it. The runner's
	 * command is then the one for programs with tools. */
	bool tools;
	int tools_fd;
	/* Show the value of a last expression and open figures, where the runner can; not for programs with tools. */
	bool display;
	bool read_only; /* nothing of /data may be changed, made or removed; not in a live sandbox */
	/* Deterministic: the clock of the day begins then, and advances by what the program waits for; random bytes are
	 * a fixed sequence, addresses and the hash seed are fixed, there is one processor, directories are read in the
	 * order of their names, the time zone is UTC. For programs that use the host's libc dynamically
	 * (jail/guest/shim); of others, for addresses and processors. 0: not. Of a live sandbox's runs all or
	 * none; its clock is the first one's. */
	int64_t clock_us;
	/* Wall and CPU time of this run, within the server's cap; 0: those of the jail. For runs of a live sandbox. */
	int64_t wall_us;
};

enum jail_change_kind { JAIL_FILE_CREATED, JAIL_FILE_CHANGED, JAIL_FILE_DELETED, JAIL_FILE_NOT_KEPT };
const char *jail_change_text(enum jail_change_kind kind); /* for people: "created" "changed" "deleted" "not kept" */
/* One file of /data after the run. CREATED and CHANGED carry a read-only descriptor at offset 0. NOT_KEPT: a link,
 * socket, device, fifo, or beyond a cap: `reason` says which. Names are bytes: they need not be UTF-8. */
struct jail_change {
	enum jail_change_kind kind;
	const char *name;
	uint32_t mode;
	int64_t mtime_us;
	int64_t size;
	int fd; /* belongs to the callback, which closes or keeps it; -1 for the others */
	const char *reason;
};

struct jail;
struct jail_events {
	/* Bytes written so far; at most a few times a second. May be NULL. */
	void (*output)(void *arg, int64_t stdout_bytes, int64_t stderr_bytes);
	/* The run ended. The result is the library's and gone after the callback. */
	void (*done)(void *arg, const struct jail_result *result);
	/* One per file, in the order of the names; may be NULL (descriptors are then closed). */
	void (*file)(void *arg, const struct jail_change *change);
	void (*collected)(void *arg);
	/* A step other than a run failed or was refused (ERR_INVALID, ERR_UNAVAILABLE, ERR_LIMIT, ERR_SYSTEM …): comes
	 * instead of `done` or `collected`, once, and is the last callback of this jail. */
	void (*failed)(void *arg, const struct err *err);
};

/* Does the name stand for an empty folder? How long the folder's is; 0: it does not. */
size_t jail_folder(const char *name);

struct config;
struct jail_client;
#define JAIL_CONNECT_SECONDS 1 /* for room in the queue of those who connect */
int jail_client_connect(const char *socket_path, struct jail_client **ret, struct err *err);
/* A jailer of its own as a child of this process, rootless or (started by root) not; dies with the client.
 * `config_path` may be NULL: built-in defaults. */
int jail_client_spawn(const char *jailer_program, const char *config_path, struct jail_client **ret, struct err *err);
/* `count` clients of the jailer of a configuration: of the one on jailer.socket, else of a private one, which ends when
 * the last of them does. jail_client_free of that one waits for it: free them in their order, or each in its own
 * thread. */
#define JAIL_SHARED_MAX 8 /* clients of a private jailer */
int jail_client_dial(const struct config *config, struct jail_client **ret, size_t count, struct err *err);
/* The runners with versions and libraries, which a private jailer does not find by itself: out of one that is started
 * for it, tries them all in jails (seconds) and ends. */
int jail_client_learn(const struct config *config, struct json_object **ret, struct err *err);
/* Path of the program of a private one: jailer.program, else next to ours. The caller's. NULL, ERR_UNAVAILABLE: it is
 * not there. */
char *jail_client_program(const struct config *config, struct err *err);
void jail_client_free(struct jail_client *client); /* NULL is fine; kills its runs */
/* For the caller's poll loop: the descriptor and the events to wait for (POLLIN, also POLLOUT while messages are
 * queued). */
int jail_client_fd(const struct jail_client *client);
short jail_client_poll_events(const struct jail_client *client);
/* Sends what is queued, reads what is there, calls the callbacks; does not block. */
int jail_client_dispatch(struct jail_client *client, struct err *err);
/* From a callback: the dispatch that is under way reads no further message after this one. For callers that keep
 * descriptors of files and must not run out of them; what is not read waits in the socket, and the jailer with it. */
void jail_client_hold(struct jail_client *client);
/* What the jailer offers: the caller's. Blocks (start-up and CLI only), within bounds.
 *   info: {"mode":"root|rootless|single-id","cgroup":"v1|v2|none","landlock":ABI or 0,"kernel":…,"version":…,
 *          "live":bool,"states":{jails of each state},"limits":{…defaults and caps…}}
 *   runners: [{"name","aliases":[],"extensions":[],"available":bool,"install":"apt-get install …","version",
 *             "interpreter":its path on the host or null,
 *             "libraries":[{"name","version"}],"libraries_are":[patterns of files on the host that stand for them],
 *             "compiled":bool,"live":bool}]; live: in a live jail its interpreter
 *             keeps state */
int jail_client_info(struct jail_client *client, struct json_object **ret, struct err *err);
int jail_client_runners(struct jail_client *client, struct json_object **ret, struct err *err);
/* At once: a service may still be asking for versions and libraries, which are "" and [] then. */
int jail_client_runners_known(struct jail_client *client, struct json_object **ret, struct err *err);
/* Does not block: `known` is called once, by dispatch, when the service knows all, and takes the list over. Until
 * then the client asks for no other list. */
int jail_client_runners_follow(struct jail_client *client, void (*known)(void *arg, struct json_object *runners),
			       void *arg, struct err *err);

#define JAIL_ANSWER_SECONDS  15  /* a jailer that works answers info within */
#define JAIL_RUNNERS_SECONDS 120 /* it asks every interpreter for its version first */

/* -------- signs of life ------------------------------------------------------------------------------- */
/* How many jails a jailer has for all of its clients, and what they do. Parked: made ahead, without an owner. Frozen: a
 * live one between two runs. */
#define JAIL_STATES_EACH(STATE)                                                                                        \
	STATE(PARKED, "parked")                                                                                        \
	STATE(BUILDING, "building")                                                                                    \
	STATE(READY, "ready")                                                                                          \
	STATE(FROZEN, "frozen")                                                                                        \
	STATE(RUNNING, "running")                                                                                      \
	STATE(COLLECTING, "collecting")                                                                                \
	STATE(ENDING, "ending")
#define JAIL_STATE_CONSTANT(constant, name) JAIL_STATE_##constant,
enum jail_state { JAIL_STATES_EACH(JAIL_STATE_CONSTANT) JAIL_STATES };
const char *jail_state_text(enum jail_state state);
struct jail_census {
	int64_t count[JAIL_STATES];
};

/* Asks for a sign of life, unless one is awaited already; does not block, dispatch takes the answer. */
int jail_client_ping(struct jail_client *client, struct err *err);
/* Since when (clock_monotonic_us) a sign of life is awaited; 0: none is. */
int64_t jail_client_pinged_us(const struct jail_client *client);
/* What the last sign of life said; zeros before it. */
const struct jail_census *jail_client_census(const struct jail_client *client);
/* Kills a private jailer that does not answer: jail_client_free waits for its end. */
void jail_client_kill(struct jail_client *client);

/* For whom its runs are: when the descriptor (the caller's, a connection) reports POLLRDHUP nobody waits for them any
 * more, the next dispatch gives the connection up, and they end. -1: they are for this process. Who polls by
 * themselves poll this descriptor, too. */
void jail_client_guard(struct jail_client *client, int fd);
int jail_client_guard_fd(const struct jail_client *client);
bool jail_client_left(const struct jail_client *client); /* does it report that? */
/* From now on the programs of its jails use only what other work leaves of the processors, where there is a cgroup: for
 * batch work. Their wall clock runs while they wait. */
void jail_client_background(struct jail_client *client);
int jail_open(struct jail_client *client, const struct jail_spec *spec, const struct jail_events *events, void *arg,
	      struct jail **ret, struct err *err);
int jail_fill(struct jail *jail, const struct jail_file *files, size_t count, struct err *err);
/* The same, below JAIL_CODE: files that belong to the program, are not in /data and are never collected. */
int jail_fill_code(struct jail *jail, const struct jail_file *files, size_t count, struct err *err);
int jail_remove(struct jail *jail, const struct jail_file *files, size_t count,
		struct err *err); /* by name; files that do not exist are fine */
int jail_run(struct jail *jail, const struct jail_program *program, struct err *err);
/* The program waits for something that its caller does for it (its wall clock stops meanwhile), or runs again.
 * `credit_us`: for so long it waited before. Harmless where no run is under way; CPU time is not touched. */
void jail_wait(struct jail *jail, bool waits, int64_t credit_us);
/* Ends the run that is under way: verdict CX. Harmless where none is. */
void jail_cancel(struct jail *jail);
int jail_collect(struct jail *jail, struct err *err);
void jail_close(struct jail *jail); /* NULL is fine */

/* Blocks until `jail`'s run and, if it was queued, its collection are over: for programs that have nothing else to do.
 * `deadline` none: the jailer has its own. */
int jail_client_wait(struct jail_client *client, struct jail *jail, struct err *err);
