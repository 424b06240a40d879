/*
 * config.h - the one configuration file (JSON, comments allowed) as a struct; man page sallyport.conf(5).
 *
 * Found by --config, else SALLYPORT_CONFIG, else built-in defaults (enough for `sallyport run`, not for a gateway).
 * Every member can be overridden by an environment variable: SALLYPORT_ and its path in capitals with _ between the
 * parts (SALLYPORT_JAILER_SOCKET=/run/x). Unknown members and unknown SALLYPORT_* variables are errors that name them.
 * Relative paths are relative to the file's folder.
 */
#pragma once

#include "bind.h"
#include "err.h"
#include "host.h"

#define CONFIG_HOSTS_MAX 256 /* entries of network.allow */
#define CONFIG_BINDS_MAX 16  /* folders of upstream.binds */

/* Defaults for a caller that says nothing, and what it may ask for at most (design: "decisions in numbers"). */
struct config_limits {
#define LIMIT(member, ...) int64_t member;
#include "limits.def"
};
/* Units of lib/base/limits.def. */
#define LIMIT_SECONDS INT64_C(1000000)
#define LIMIT_MEBI    INT64_C(1048576)

struct config {
	const char *profile;         /* "", "grader": other defaults (config_profile.c) */
	const char *data_dir;        /* database sallyport.db, blobs/, running/, secret.key; owned by the gateway */
	const char *public_base_url; /* download URLs begin with it; no trailing slash */
	struct {
		const char *socket;
		int64_t threads;
		const char *accel_prefix; /* nginx's internal location for blobs, "/_blobs/"; "" = send the bytes
					     ourselves */
		struct bind_strings allowed_origins; /* additional to public_base_url's own and loopback's */
		struct bind_strings allowed_hosts;
		struct bind_strings trusted_proxies; /* addresses and networks whose X-Forwarded-For is believed */
		const char *client_addresses; /* in the record: "full", "network" or "none" */
		bool http_sse; /* the transport of 2024-11-05: /sse and /messages */
	} gateway;
	struct {
		const char *socket;  /* "" = a private jailer */
		const char *program; /* sallyport-jailer; "" = next to the running program */
		const char *runners_dir;
		const char *modules_dir;          /* npm packages of the runners; "" = none */
		struct bind_strings
			allowed_users; /* names or ids that may connect, additional to the jailer's own and root */
		int64_t id_base, id_count;         /* host ids for guests when started as root; 0 = built-in range */
		const char *cgroup;                /* name of the subtree: "sallyport" */
		bool weaker_limits;                /* run with rlimits where no cgroup can be had (docs/isolation.md) */
		int64_t jails;                     /* at once */
		const char *warm;                  /* "off", "on", "exec": jail/cell/cell_join.c */
		int64_t warm_mb;                   /* for jails made ahead: jail/cell/pool.h */
		int64_t disk_read_mb;              /* a second, by one jail; 0: no limit */
	} jailer;
	struct config_limits limits;
	struct {
		const char *text; /* of run_code's text block: "plain", or "json" as the system that it replaces */
		bool links;          /* resource_link blocks for the files of a result */
		bool strict;         /* arguments exactly as the schemas have them (lib/base/bind_meant.h) */
		struct bind_strings sets; /* "isolator", "interpreter", "bridge", "snippets" */
		const char *bridge_output; /* of run_python's text block: "compact", "toon" */
		const char *snippets_dir; /* programs that become snippets at the start; "" = none */
		const char *secrets_dir;  /* OWNER/NAME: secret environment variables of programs; "" = none */
		const char *upstream;     /* who calls other servers' tools: programs "code", models "direct", "both" */
	} tools;
	struct {
		struct bind_strings allow; /* config_host_parse; empty: nobody has network */
		const char *proxy;         /* config_proxy_parse; "": none */
		bool proxy_resolves;
		int64_t connections; /* of one program at once */
		int64_t mb;          /* of one program, both directions together; 0: no limit */
	} network;
	struct {
		const char *file;        /* MCP servers whose tools programs may call; "": none */
		const char *secrets_dir; /* files that hold the values of ${NAME} in it; "": the environment alone */
		struct bind_strings binds; /* folders that jailed servers may see, read-only */
		int64_t calls_per_minute; /* of one owner (0: no limit) */
		int64_t result_kb;        /* of one call */
	} upstream;
	struct {
		int64_t owner_mb;          /* everything that the record holds of an owner */
		int64_t conversation_days; /* idle conversations are removed */
		int64_t execution_days;    /* the content of older runs is erased; 0: never */
		int64_t output_days;       /* … their output alone; 0: never */
		const char *when_full;     /* "refuse" the call, or erase the "oldest" runs */
		int64_t free_mb, free_inodes; /* of data_dir's file system: nothing runs below */
	} retention;
	struct {
		bool enabled; /* /v1/, the plain HTTP API */
		const char *jwt_key; /* of a front end that signs who its users are (oauth_front.h); "": none */
		const char *jwt_issuer, *jwt_audience;
		const char *jwt_owner; /* in front of its users' owners */
	} api;
	struct {
		bool fusion, piston; /* /fusion/, /piston/: the APIs of other sandboxes (cgi/doors) */
		int64_t places;      /* of their programs at once; 0: as many as there are processors */
		struct bind_strings trusted; /* "NETWORK -> OWNER": clients without a token (access.h) */
	} doors;
	struct {
		int64_t url_seconds; /* addresses of files end after so long; 0: never */
	} files;
	struct {
		bool enabled;      /* /metrics, for this machine and for who has the token */
		const char *token; /* "": none */
	} metrics;
	struct {
		bool ready;      /* /readyz, for the same */
		int64_t disk_mb; /* of data_dir: with less the gateway is not ready; not below retention.free_mb */
	} health;
	struct {
		const char *format; /* of the lines on standard error: "text" or "json" */
		const char *level;  /* the least that is written (log.h) */
	} log;
	struct {
		bool enabled;         /* /admin */
		int64_t hours;        /* a session's life at most */
		int64_t idle_minutes; /* without a request it ends earlier */
		const char *signer_figures; /* "": nobody says how far the log is signed */
	} admin;
	struct {
		const char *mode;            /* config_oauth */
		const char *default_scopes;  /* that clients should ask for */
		/* builtin: our own authorization server (cgi/oauth) */
		bool client_metadata, dynamic_registration, known_clients; /* how clients introduce themselves */
		struct bind_strings redirect_hosts, private_schemes; /* where codes may go besides */
		int64_t access_seconds, refresh_days, grant_days;
		int64_t clients_max; /* that registered themselves */
		/* external: the operator's authorization server, and what of its tokens counts */
		const char *issuer, *jwks_uri;
		struct bind_strings audiences, algorithms, clients;
		const char *typ;             /* "at+jwt", "any" */
		const char *scope_claim, *scopes_max;
		struct bind_strings scope_map; /* "THEIRS -> OURS" */
		const char *owner, *owner_claim, *owner_prefix;
		struct bind_strings owners;  /* "CLAIM=VALUE -> OWNER" */
		const char *introspection_endpoint, *introspection_client, *introspection_secret_file;
		const char *ca_file;
	} oauth;

	struct {
		struct bind_strings hold, allow; /* patterns (workspace_guard.h) */
	} workspace;

	/* Not members of the file: */
	bool stays; /* this process serves for long: its private jailer finds all versions and libraries */
	char *path;                  /* where it came from; NULL: defaults */
	struct json_object *document; /* strings above point into it */
	struct {
		const char *path; /* the folder of `stdio --workspace`; NULL: none */
		const char *conversation, *owner; /* whose files are that folder's */
		struct bind_strings allow; /* patterns of --workspace-allow; the items are the caller's */
	} workspace_folder;
};

/* oauth.mode: who gives out tokens besides `sallyport token add`. */
enum config_oauth { CONFIG_OAUTH_OFF, CONFIG_OAUTH_BUILTIN, CONFIG_OAUTH_EXTERNAL };
enum config_oauth config_oauth(const struct config *config);
/* tools.upstream: do models call the tools of upstream servers themselves? */
bool config_tools_direct(const struct config *config);
/* A member that a profile sets, and to what. */
#define CONFIG_PRESET_JAILS (-1) /* by the number of processors */
struct config_preset {
	const char *group, *member; /* group NULL: the end of the list */
	int64_t value;              /* of truth values 0 and 1 */
};
const struct config_preset *config_profile(const char *name); /* NULL: there is none of this name */
int64_t config_preset_value(const struct config_preset *preset);
/* Is it a word for where the details of results go: content, structured, both or none? */
bool config_results_valid(const char *results);
/* Is this set of tools switched on? */
bool config_has_set(const struct config *config, const char *name);
extern const struct bind config_table[]; /* for the man page's check and `--help` */

/* `path` NULL: what SALLYPORT_CONFIG names (empty: no file, the defaults), else config_find's, else the defaults. */
int config_load(const char *path, struct config *ret, struct err *err);
/* ~/.config/sallyport/sallyport.conf ($XDG_CONFIG_HOME), else /etc/sallyport/sallyport.conf, whichever is there, can be
 * read, and belongs to this user or root; NULL: neither. The caller's. */
char *config_find(void);
/* Checks what the table cannot express: a default is not above its cap, a form is one of a list (config_check.c). */
int config_check(const struct config *config, struct err *err);
/* The members that file and environment set, as {"group.member": value}; in the place of a secret what `tag` makes of
 * it. The caller's. */
typedef void config_tag(void *arg, const char *secret, struct buf *out);
struct json_object *config_shown(const struct config *config, config_tag *tag, void *arg);
void config_clear(struct config *config);
#define auto_config __attribute__((cleanup(config_clear)))

/* An entry of network.allow. */
struct config_host { /* "db.example.com:5432", "*.example.com:443", "10.0.0.5:80 private" */
	char host[HOST_SIZE]; /* normalised; without "*." */
	uint16_t port;
	bool below;      /* any name below host */
	bool address;    /* host is an address */
	bool is_private; /* may be an address that is not public */
};
int config_host_parse(const char *entry, struct config_host *ret, struct err *err);
/* An entry of doors.trusted, "10.0.0.0/8 -> trainer". */
struct config_trusted {
	struct host_network network;
	const char *owner; /* in the entry */
};
int config_trusted_parse(const char *entry, struct config_trusted *ret, struct err *err);
/* network.proxy. */
struct config_proxy {
	char host[HOST_SIZE];
	uint16_t port;
	const char *credentials; /* "user:password", points into the url; NULL: none */
	size_t n_credentials;
};
int config_proxy_parse(const char *url, struct config_proxy *ret, struct err *err);

/* Directory of the running program (/proc/self/exe), for what is next to it; the caller's. */
char *config_program_dir(void);
