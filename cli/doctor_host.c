/*
 * doctor_host.c - the surroundings of the jailer: sysctls that harden a host, nginx, the data folder, the database; and
 * whether the names in network.allow mean anything here.
 *
 * Each check adds one finding, and says what helps. None of them changes anything, and none stops a run: that is for
 * the jailer to say (doctor_jailer.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_search.h"
#include "lib/store/record/store_space.h"

#define FREE_MIN    (1024LL * 1024 * 1024)
#define SHOWN_MAX 400 /* bytes of names that do not work */
#define CPUINFO_MAX (4 << 20) /* a processor has 2 kB there */

static void check_sysctls(struct doctor *doctor)
{
	auto_free char *core = doctor_read_line("/proc/sys/kernel/core_pattern");
	auto_free char *tiocsti = doctor_read_line("/proc/sys/dev/tty/legacy_tiocsti");
	auto_free char *yama = doctor_read_line("/proc/sys/kernel/yama/ptrace_scope");

	/* The jail's limit of one byte keeps the kernel from starting it (jail/init/init.h); only root can raise a hard
	 * limit to that. */
	bool starts = core && *core == '|';
	struct rlimit limit = {0, 0};

	getrlimit(RLIMIT_CORE, &limit);
	doctor_add(doctor, "core_pattern", starts && geteuid() != 0 && limit.rlim_max == 0 ? DOCTOR_WEAKER : DOCTOR_OK,
		   "raise this user's hard limit of core files (ulimit -Hc, LimitCORE=) to 1: with 0 a guest that crashes starts this program on the host, as root",
		   "%s%s", core ? core : "not there", starts ? " (not for guests)" : "");
	doctor_add(doctor, "legacy_tiocsti", tiocsti && streq(tiocsti, "0") ? DOCTOR_OK : DOCTOR_WEAKER,
		   tiocsti ? "sysctl dev.tty.legacy_tiocsti=0"
			   : "Linux 6.2 or later, and sysctl dev.tty.legacy_tiocsti=0",
		   "%s", tiocsti ? tiocsti : "no switch: typing into a terminal by ioctl is allowed");
	doctor_add(doctor, "yama", yama && !streq(yama, "0") ? DOCTOR_OK : DOCTOR_WEAKER,
		   yama ? "sysctl kernel.yama.ptrace_scope=1: processes of one user can otherwise trace each other"
			: "a kernel with Yama: processes of one user can otherwise trace each other",
		   "%s", yama ? yama : "not there");
}

/* Before Linux 6.14 a guest that executes a file of an unknown format makes the kernel start kernel.modprobe, as the
 * host's root and outside of every limit: thousands of them in ten seconds. No filter sees the format. */
static void check_modprobe(struct doctor *doctor)
{
	auto_free char *program = doctor_read_line("/proc/sys/kernel/modprobe");
	auto_free char *disabled = doctor_read_line("/proc/sys/kernel/modules_disabled");
	struct utsname host;
	int major = 0, minor = 0;

	uname(&host);
	bool read = sscanf(host.release, "%d.%d", &major, &minor) == 2;
	bool asks = !read || major < 6 || (major == 6 && minor < 14);
	bool exposed = asks && program && *program && !(disabled && streq(disabled, "1"));

	doctor_add(doctor, "modprobe", exposed ? DOCTOR_WEAKER : DOCTOR_OK,
		   "empty kernel.modprobe after boot (debian/sallyport.sysctl, which the package installs): guests can otherwise make the kernel start it as root, by executing files of unknown formats",
		   "%s%s", program && *program ? program : "none",
		   exposed || !program || !*program ? "" : " (not for guests)");
}

static void check_nginx(struct doctor *doctor)
{
	static char name[] = "nginx", path[] = "/usr/sbin/nginx", option[] = "-v";
	auto_free char *on_path = doctor_ask((char *const[]){name, option, NULL}, true, NULL);
	auto_free char *in_sbin = on_path ? NULL : doctor_ask((char *const[]){path, option, NULL}, true, NULL);
	char *version = on_path ? on_path : in_sbin;

	if (version)
		version[strcspn(version, "\n")] = '\0';
	doctor_add(doctor, "nginx", version ? DOCTOR_OK : DOCTOR_WEAKER,
		   "apt-get install nginx-light (the gateway needs it, run does not)", "%s",
		   version ? version : "not there");
}

/* What it forbids is missing in the lines above; this one says who is to be asked. */
static void check_container(struct doctor *doctor)
{
	auto_free char *systemd =
		doctor_read_line("/run/systemd/container"); /* nspawn, lxc and others that follow systemd's custom */
	const char *name = systemd                               ? systemd
			   : !access("/run/.containerenv", F_OK) ? "podman"
			   : !access("/.dockerenv", F_OK)        ? "docker"
								 : NULL;

	doctor_add(doctor, "container", DOCTOR_OK, NULL, "%s%s", name ? name : "not in one that says so",
		   name ? ": jails are nested in it, and its seccomp, AppArmor and cgroup decide what is missing above"
			: "");
}

/* The processor says it: /proc/cpuinfo has the flag on x86, the device tree its node on arm64. Firmware only names the
 * maker, and Firecracker's and qemu's micro-VMs have none. */
static void check_machine(struct doctor *doctor)
{
	auto_free char *vendor = doctor_read_line("/sys/class/dmi/id/sys_vendor");
	auto_free char *processors = NULL;
	size_t length;
	bool flag = read_file_at(AT_FDCWD, "/proc/cpuinfo", CPUINFO_MAX, &processors, &length, NULL) == 0 &&
		    strstr(processors, " hypervisor");

	if (!flag && access("/proc/device-tree/hypervisor", F_OK) < 0)
		doctor_add(doctor, "machine", DOCTOR_OK, NULL, "no virtual one");
	else
		doctor_add(doctor, "machine", DOCTOR_OK, NULL, "a virtual machine: %s: jails need nothing else in it",
			   vendor && *vendor ? vendor : "a micro-VM, without firmware");
}

/* Weaker before the floor is met, below which the gateway runs nothing. */
static void check_space(struct doctor *doctor, const struct store_free *space)
{
	const int64_t floor = doctor->config->retention.free_mb << 20, inodes = doctor->config->retention.free_inodes;
	const bool scarce = space->bytes < MAX(FREE_MIN, 2 * floor) || space->inodes < 2 * inodes;
	const bool below = space->bytes < floor || space->inodes < inodes;
	char text[CLI_TEXT_SIZE], count[48] = "";

	cli_text_bytes(space->bytes, text);
	if (space->inodes != INT64_MAX)
		snprintf(count, sizeof(count), ", %lld inodes", (long long)space->inodes);
	doctor_add(doctor, "disk",
		   below    ? DOCTOR_MISSING
		   : scarce ? DOCTOR_WEAKER
			    : DOCTOR_OK,
		   below ? "make room outside of data_dir, or sallyport forget: below retention.free_mb nothing runs"
			 : "make room outside of data_dir, or sallyport forget: the record needs it",
		   "%s: %s%s free", doctor->config->data_dir, text, count);
}

/* A backlog is work, not a fault: a search takes longer until it is done. */
static void check_index(struct doctor *doctor, struct store *store)
{
	struct err err = ERR_INIT;
	int64_t backlog = 0;

	if (store_search_backlog(store, &backlog, &err) < 0)
		doctor_add(doctor, "index of texts", DOCTOR_WEAKER, "sallyport verify", "%s", err.text);
	else if (backlog == 0)
		doctor_add(doctor, "index of texts", DOCTOR_OK, NULL, "has every run");
	else
		doctor_add(doctor, "index of texts", DOCTOR_OK, NULL,
			   "lacks %lld runs: the gateway adds them when it starts and every hour",
			   (long long)backlog);
}

void doctor_host(struct doctor *doctor)
{
	check_sysctls(doctor);
	check_modprobe(doctor);
	check_machine(doctor);
	check_container(doctor);
	check_nginx(doctor);
	const char *path = doctor->config->data_dir;
	struct store_free space;
	auto_store struct store *store = NULL;
	struct err err = ERR_INIT;
	int result, version;

	if (!*path) {
		doctor_add(doctor, "data folder", DOCTOR_OK, NULL,
			   "none is configured: run works, nothing is recorded");
		return;
	}
	if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) || store_free_space(path, &space, &err) < 0) {
		doctor_add(doctor, "data folder", DOCTOR_WEAKER,
			   "make it, owned by the gateway's user, or run doctor as that user", "%s: %s", path,
			   strerror(errno));
		return;
	}
	doctor_add(doctor, "data folder", DOCTOR_OK, NULL, "%s", path);
	check_space(doctor, &space);
	result = store_open(path, STORE_READ, &store, &err);
	if (result == -ERR_NOT_FOUND)
		doctor_add(doctor, "database", DOCTOR_OK, NULL, "none yet: the gateway's first start makes it");
	else if (result < 0)
		doctor_add(doctor, "database", DOCTOR_WEAKER, "see what it says; a backup or the newer release helps",
			   "%s", err.text);
	else if (store_schema_version(path, &version, &err) == 0)
		doctor_add(doctor, "database", DOCTOR_OK, NULL, "opens, version %d", version);
	if (store)
		check_index(doctor, store);
}

/* What is wrong with an entry; NULL: nothing. Names below "*." are the program's to choose. */
static const char *look_at(const struct config_host *entry)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	bool reachable = entry->is_private;

	if (entry->below)
		return NULL;
	if (getaddrinfo(entry->host, NULL, &hints, &list))
		return "does not resolve";
	for (const struct addrinfo *one = list; one; one = one->ai_next)
		reachable = reachable || host_public(one->ai_addr);
	freeaddrinfo(list);
	return reachable ? NULL : "has no public address";
}

void doctor_network(struct doctor *doctor)
{
	const struct bind_strings *allow = &doctor->config->network.allow;
	struct config_host entry;
	auto_buf struct buf wrong = {0};

	if (!allow->count) {
		doctor_add(doctor, "network", DOCTOR_OK, NULL, "programs have none: network.allow is empty");
		return;
	}
	buf_init(&wrong, SHOWN_MAX);
	setenv("RES_OPTIONS", "timeout:2 attempts:1", 0); /* many names may be wrong for the same reason */
	for (size_t i = 0; i < allow->count; i++) {
		const char *why = config_host_parse(allow->items[i], &entry, NULL) == 0 ? look_at(&entry) : NULL;

		if (why)
			buf_printf(&wrong, "%s%s:%u %s", wrong.length ? ", " : "", entry.host, entry.port, why);
	}
	if (wrong.length)
		doctor_add(doctor, "network", DOCTOR_WEAKER,
			   "correct network.allow; \" private\" behind an entry allows addresses that are not public",
			   "%s", wrong.data);
	else
		doctor_add(doctor, "network", DOCTOR_OK, NULL, "%zu entries in network.allow%s", allow->count,
			   doctor->config->network.proxy[0] ? ", through a proxy" : "");
}

/* A member's number as it counts now. */
static int64_t value_now(const struct config *config, const struct config_preset *preset)
{
	struct json_object *group = json_get(config->document, preset->group, json_type_object), *value = NULL;

	return json_object_object_get_ex(group, preset->member, &value) ? json_object_get_int64(value) : 0;
}

void doctor_profile(struct doctor *doctor)
{
	const struct config *config = doctor->config;
	const struct config_preset *preset = *config->profile ? config_profile(config->profile) : NULL;
	auto_buf struct buf text = {0};

	if (!preset)
		return;
	buf_init(&text, SHOWN_MAX);
	for (; preset->group; preset++) {
		const int64_t now = value_now(config, preset), wanted = config_preset_value(preset);

		buf_printf(&text, ", %s.%s %lld", preset->group, preset->member, (long long)now);
		if (now != wanted)
			buf_printf(&text, " (not %lld)", (long long)wanted);
	}
	if (config->network.allow.count)
		doctor_add(doctor, "profile", DOCTOR_WEAKER, "graded programs need no network: empty network.allow",
			   "%s%s, and programs may have network", config->profile, text.data);
	else
		doctor_add(doctor, "profile", DOCTOR_OK, NULL, "%s%s", config->profile, text.data);
}
