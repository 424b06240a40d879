/*
 * net.c - see net.h.
 *
 * The jailer goes into a jail's network namespace for a moment: it has all capabilities over it (it owns the
 * namespace's user namespace), so low ports can be bound, and the guest's init, which waits for its id maps meanwhile,
 * needs to know nothing. The listeners are handed to the relay at once. They are what ties the namespace to the
 * outside; nothing else does. The jailer keeps the namespace's counters open: what a program sends to an address that
 * nothing listens on has no route, and the kernel counts that.
 *
 * The jailer never waits for the relay: orders go into a liveness socket, which holds them until the relay reads, and a
 * full one is an error.
 */
#include "net.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "relay.h"

#define BACKLOG      1024
#define LOOPBACK     1    /* its interface index, in every network namespace */
#define COUNTERS_MAX 4096 /* read of a file of counters: what is wanted is at its beginning */

/* One line of names and one of values; a name and a value in each line. The second is not there where the kernel has no
 * IPv6. */
static const char *const counter_files[] = {"/proc/thread-self/net/snmp", "/proc/thread-self/net/snmp6"};
#define N_COUNTERS ARRAY_SIZE(counter_files)

struct net_jail {
	struct net *net;
	struct loop_watch liveness;
	int liveness_fd;
	struct relay_page *page; /* of the run that is under way */
	int counters[N_COUNTERS];
	int64_t unrouted_before; /* when the run began */
	void (*lost)(void *arg);
	void *arg;
};

int net_init(struct net *net, const struct config *config, struct err *err)
{
	return egress_init(config, &net->egress, err);
}

bool net_allowed(const struct net *net)
{
	return net->egress.n_rules > 0;
}

int net_start(struct net *net, const struct identity *identity, struct err *err)
{
	return net_allowed(net) ? relay_start(&net->egress, identity, &net->monitor, &net->relay, err) : 0;
}

static void monitor_ready(struct loop_watch *watch, uint32_t events)
{
	struct net *net = container_of(watch, struct net, monitor_watch);
	int relay = relay_receive(net->monitor);

	(void)events;
	if (relay < 0 && errno == EAGAIN)
		return;
	fd_close(&net->relay);
	net->relay = relay;
	if (relay >= 0)
		return;
	log_event(LOG_ERROR, "the relay's monitor is gone: no network until the jailer is started again", NULL);
	loop_remove(net->loop, watch);
}

int net_watch(struct net *net, int loop, struct err *err)
{
	net->loop = loop;
	if (net->monitor < 0)
		return 0;
	net->own_namespace = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (net->own_namespace < 0 || loop_add(loop, &net->monitor_watch, net->monitor, EPOLLIN, monitor_ready))
		return err_errno(err, "watching the relay");
	return 0;
}

void net_clear(struct net *net)
{
	loop_remove(net->loop, &net->monitor_watch);
	fd_close(&net->monitor);
	fd_close(&net->relay);
	fd_close(&net->own_namespace);
	egress_clear(&net->egress);
}

/* -------- in the jail's namespace --------------------------------------------------------------------- */
/* Addresses that entries name themselves are put on the loopback, alone: no route to their neighbours comes with them.
 */
static int add_v4(const struct egress_rule *rule, unsigned number)
{
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in mask = {.sin_family = AF_INET, .sin_addr.s_addr = INADDR_NONE};
	struct ifreq request = {.ifr_flags = 0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "lo:%u", number);
	memcpy(&request.ifr_addr, &rule->at, sizeof(request.ifr_addr));
	if (fd < 0)
		return -1;
	if (ioctl(fd, SIOCSIFADDR, &request))
		return errno == EEXIST ? 0 : -1; /* 127.0.0.1 */
	memcpy(&request.ifr_netmask, &mask, sizeof(mask));
	return ioctl(fd, SIOCSIFNETMASK, &request);
}

static int add_v6(const struct egress_rule *rule)
{
	auto_close int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 at;
	struct { /* struct in6_ifreq of <linux/ipv6.h>, which does not go with <netinet/in.h> */
		struct in6_addr address;
		uint32_t prefix;
		int index;
	} request = {.prefix = 128, .index = LOOPBACK};

	memcpy(&at, &rule->at, sizeof(at));
	request.address = at.sin6_addr;
	return fd < 0 || (ioctl(fd, SIOCSIFADDR, &request) && errno != EEXIST) ? -1 : 0;
}

static int listen_at(const struct sockaddr_storage *at, socklen_t length)
{
	auto_close int fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)at, length) || listen(fd, BACKLOG))
		return -1;
	return steal_fd(&fd);
}

/* Is the rule among those that the jail may use? */
static bool wanted(const struct egress_rule *rule, const struct bind_strings *hosts)
{
	struct config_host host;

	for (size_t i = 0; i < hosts->count; i++)
		if (config_host_parse(hosts->items[i], &host, NULL) == 0 && !host.below && !rule->host.below &&
		    host.port == rule->host.port && streq(host.host, rule->host.host))
			return true;
	return hosts->count == 0;
}

/* Each of the hosts must be an entry: a jail gets no less than it asks for, either. */
static int check_hosts(const struct egress *egress, const struct bind_strings *hosts, struct err *err)
{
	for (size_t i = 0; i < hosts->count; i++) {
		const struct bind_strings one = {hosts->items + i, 1};
		bool found = false;

		for (size_t k = 0; k < egress->n_rules; k++)
			found = found || wanted(&egress->rules[k], &one);
		if (!found)
			return err_set(err, ERR_UNAVAILABLE, "network: %s is not an exact entry of network.allow",
				       hosts->items[i]);
	}
	return 0;
}

/* Listeners for the entries and, as the last unless only some are wanted, the proxy: fds has room for one more than
 * there are entries. Its count, or -1. */
static int make_listeners(const struct egress *egress, const struct bind_strings *hosts, int *fds, uint16_t *rules)
{
	auto_close int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq loopback = {.ifr_name = "lo"};
	struct sockaddr_storage proxy;
	socklen_t length;
	int n = 0;

	loopback.ifr_flags = IFF_UP | IFF_RUNNING;
	if (any < 0 || ioctl(any, SIOCSIFFLAGS, &loopback) ||
	    host_address(EGRESS_PROXY_HOST, EGRESS_PROXY_PORT, &proxy, &length))
		return -1;
	for (size_t i = 0; i < egress->n_rules; i++) {
		const struct egress_rule *rule = &egress->rules[i];

		if (!rule->listens || !wanted(rule, hosts))
			continue;
		bool v4 = rule->at.ss_family == AF_INET;
		if (rule->host.address && (v4 ? add_v4(rule, (unsigned)i) : add_v6(rule)))
			return -1;
		fds[n] = listen_at(&rule->at, rule->at_length);
		rules[n] = (uint16_t)i;
		if (fds[n] < 0)
			return -1;
		n++;
	}
	if (hosts->count > 0)
		return n;
	fds[n] = listen_at(&proxy, length);
	rules[n] = RELAY_IS_PROXY;
	return fds[n] < 0 ? -1 : n + 1;
}

/* `counters`: the caller's to close, also on failure. */
static int hand_over(struct net *net, int pidfd, const struct bind_strings *hosts, int liveness,
		     int counters[N_COUNTERS], struct err *err)
{
	int fds[CONFIG_HOSTS_MAX + 1];
	uint16_t rules[CONFIG_HOSTS_MAX + 1];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = -1;
	if (setns(pidfd, CLONE_NEWNET))
		return err_errno(err, "entering the jail's network namespace");
	int n = make_listeners(&net->egress, hosts, fds, rules);
	int error = errno;
	for (size_t i = 0; i < N_COUNTERS; i++)
		counters[i] = open(counter_files[i], O_RDONLY | O_CLOEXEC);
	/* Nothing else of the jailer may ever happen in a guest's namespace. */
	if (setns(net->own_namespace, CLONE_NEWNET))
		abort();
	int result = n < 0 ? -1 : 0;
	for (size_t sent = 0; result == 0 && sent < (size_t)n; sent += RELAY_LISTENS_MAX) {
		size_t count = MIN((size_t)n - sent, (size_t)RELAY_LISTENS_MAX);
		struct relay_order order = {.verb = RELAY_LISTEN, .n = (uint32_t)count};

		memcpy(order.rule, rules + sent, count * sizeof(*rules));
		result = wire_fd_send(liveness, &order, sizeof(order), fds + sent, count);
		error = errno;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(&fds[i]);
	errno = error;
	return result < 0 ? err_errno(err, "making the jail's listeners") : 0;
}

/* The relay never speaks over a liveness socket: whatever comes is its end. */
static void liveness_ready(struct loop_watch *watch, uint32_t events)
{
	struct net_jail *jail = container_of(watch, struct net_jail, liveness);

	(void)events;
	loop_remove(jail->net->loop, watch);
	if (jail->lost)
		jail->lost(jail->arg);
}

int net_attach(struct net *net, int pidfd, const struct bind_strings *hosts, struct net_jail **ret, struct err *err)
{
	static const struct bind_strings all;
	const struct relay_order order = {.verb = RELAY_JAIL};
	int pair[2];

	if (!net_allowed(net))
		return err_set(err, ERR_UNAVAILABLE, NET_REFUSED);
	if (net->relay < 0)
		return err_set(err, ERR_UNAVAILABLE, "network: the relay is being started again: try later");
	hosts = hosts ? hosts : &all;
	if (check_hosts(&net->egress, hosts, err) < 0)
		return -ERR_UNAVAILABLE;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_errno(err, "making a socket for the relay");
	auto_close int ours = pair[0];
	auto_close int theirs = pair[1];
	if (wire_fd_send(net->relay, &order, sizeof(order), &theirs, 1)) {
		if (errno == EPIPE || errno == ECONNRESET)
			return err_set(err, ERR_UNAVAILABLE, "network: the relay is being started again: try later");
		return err_set(err, ERR_BUSY, "network: the relay is busy: try later");
	}
	struct net_jail *jail = xcalloc(1, sizeof(*jail));
	*jail = (struct net_jail){
		.net = net, .liveness = LOOP_WATCH_INIT, .liveness_fd = steal_fd(&ours), .counters = {-1, -1}};
	int result = hand_over(net, pidfd, hosts, jail->liveness_fd, jail->counters, err);
	if (result < 0) {
		net_detach(jail);
		return result;
	}
	if (loop_add(net->loop, &jail->liveness, jail->liveness_fd, EPOLLIN, liveness_ready)) {
		result = err_errno(err, "watching the relay");
		net_detach(jail);
		return result;
	}
	*ret = jail;
	return 0;
}

void net_on_lost(struct net_jail *jail, void (*lost)(void *arg), void *arg)
{
	jail->lost = lost;
	jail->arg = arg;
}

static void drop_page(struct net_jail *jail)
{
	if (jail->page)
		munmap(jail->page, sizeof(*jail->page));
	jail->page = NULL;
}

static int64_t count_of(const char *text)
{
	auto_free char *digits = xstrndup(text, strspn(text, "0123456789"));
	uint64_t value = 0;

	return parse_u64(digits, 0, INT64_MAX, &value) ? 0 : (int64_t)value;
}

/* "Ip: Forwarding … OutNoRoutes …" and, in the next line, "Ip: 1 … 0 …" */
static int64_t count_v4(const char *text)
{
	const char *values = strchr(text, '\n'), *name = strstr(text, " OutNoRoutes");

	if (!values || !name || name > values)
		return 0;
	for (const char *p = text; p <= name && values; p++)
		if (*p == ' ')
			values = strchr(values + 1, ' ');
	return values ? count_of(values + 1) : 0;
}

static int64_t count_v6(const char *text)
{
	static const char name[] = "Ip6OutNoRoutes";
	const char *line = strstr(text, name);

	if (!line)
		return 0;
	line += strlen(name);
	return count_of(line + strspn(line, " \t"));
}

static int64_t read_count(int fd, int64_t (*count)(const char *text))
{
	char text[COUNTERS_MAX + 1];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, COUNTERS_MAX, 0);

	text[MAX(n, 0)] = '\0';
	return count(text);
}

/* Of the namespace's life: connections and packets for which its kernel had no way. */
static int64_t unrouted(const struct net_jail *jail)
{
	return read_count(jail->counters[0], count_v4) + read_count(jail->counters[1], count_v6);
}

int net_begin(struct net_jail *jail, struct err *err)
{
	const struct relay_order order = {.verb = RELAY_RUN};
	auto_close int fd = memfd_create("network", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	drop_page(jail);
	/* Sealed, so that the relay cannot take the page away under us. */
	if (fd < 0 || ftruncate(fd, sizeof(*jail->page)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return err_errno(err, "making the run's network page");
	void *page = mmap(NULL, sizeof(*jail->page), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return err_errno(err, "making the run's network page");
	jail->page = page;
	jail->unrouted_before = unrouted(jail);
	return wire_fd_send(jail->liveness_fd, &order, sizeof(order), &fd, 1) ? err_errno(err, "telling the relay") : 0;
}

void net_end(struct net_jail *jail)
{
	const struct relay_order order = {.verb = RELAY_END};

	/* Not sent: the relay is gone, and with it everything that was open. */
	wire_fd_send(jail->liveness_fd, &order, sizeof(order), NULL, 0);
}

struct json_object *net_report(struct net_jail *jail)
{
	const struct relay_page *page = jail->page;

	if (!page)
		return NULL;
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();
	const uint32_t n_denied = MIN(atomic_load(&page->n_denied), (uint32_t)RELAY_DENIED_MAX);
	json_add_int(object, "connections", MAX(atomic_load(&page->connections), 0));
	json_add_int(object, "bytes_in", MAX(atomic_load(&page->bytes_in), 0));
	json_add_int(object, "bytes_out", MAX(atomic_load(&page->bytes_out), 0));
	json_add_int(object, "unrouted", MAX(unrouted(jail) - jail->unrouted_before, 0));
	for (uint32_t i = 0; i < n_denied; i++) {
		struct relay_denied denied = page->denied[i]; /* a copy: the relay may write there */
		struct json_object *one = json_object_new_object();
		auto_buf struct buf host = {0};

		denied.host[HOST_SIZE - 1] = '\0';
		buf_init(&host, 8 * HOST_SIZE);
		utf8_printable(&host, denied.host, strlen(denied.host));
		json_add_string(one, "host", host.data);
		json_add_int(one, "port", denied.port);
		json_add_string(one, "reason", relay_reason_text(denied.reason));
		json_object_array_add(list, one);
	}
	json_add(object, "denied", list);
	drop_page(jail);
	return object;
}

void net_detach(struct net_jail *jail)
{
	if (!jail)
		return;
	loop_remove(jail->net->loop, &jail->liveness);
	fd_close(&jail->liveness_fd);
	for (size_t i = 0; i < N_COUNTERS; i++)
		fd_close(&jail->counters[i]);
	drop_page(jail);
	free(jail);
}
