/* network.c - probes N01 to N09, N15, N16. Only documentation addresses, metadata addresses and loopback are named;
 * nothing leaves the jail. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

static int try_v4(const char *text, int type, int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, text, &address.sin_addr);
	int result = connect(fd, (struct sockaddr *)&address, sizeof(address));
	int error = errno;
	close(fd);
	errno = error;
	return result;
}

static int try_v6(const char *text, int type, int port)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((unsigned short)port)};
	int fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET6, text, &address.sin6_addr);
	int result = connect(fd, (struct sockaddr *)&address, sizeof(address));
	int error = errno;
	close(fd);
	errno = error;
	return result;
}

static void connect_out(void)
{
	refused_with(try_v4("192.0.2.1", SOCK_STREAM, 80), ENETUNREACH, "connect to 192.0.2.1");
	refused_with(try_v4("198.51.100.1", SOCK_DGRAM, 53), ENETUNREACH, "UDP to 198.51.100.1");
	refused_with(try_v6("2001:db8::1", SOCK_STREAM, 80), ENETUNREACH, "connect to 2001:db8::1");
	refused(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "raw socket");
	refused(socket(AF_INET, SOCK_RAW, IPPROTO_RAW), "raw socket");
	refused(socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6), "raw socket v6");
}

static void metadata(void)
{
	refused_with(try_v4("169.254.169.254", SOCK_STREAM, 80), ENETUNREACH, "connect to the metadata address");
	refused_with(try_v6("fd00:ec2::254", SOCK_STREAM, 80), ENETUNREACH, "connect to the metadata address v6");
}

static void host_loopback(void)
{
	/* Loopback is there, and it is our own: nobody listens. */
	static const int ports[] = {22, 25, 53, 80, 443, 2375, 5432, 6379, 8080, 8443, 9000};

	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		refused_with(try_v4("127.0.0.1", SOCK_STREAM, ports[i]), ECONNREFUSED, "connect to 127.0.0.1:%d",
			     ports[i]);
		refused_with(try_v6("::1", SOCK_STREAM, ports[i]), ECONNREFUSED, "connect to [::1]:%d", ports[i]);
	}
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(own);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	holds(bind(server, (struct sockaddr *)&own, sizeof(own)) == 0 && listen(server, 1) == 0,
	      "no server on the own loopback");
	getsockname(server, (struct sockaddr *)&own, &size);
	holds(try_v4("127.0.0.1", SOCK_STREAM, ntohs(own.sin_port)) == 0, "no connection to the own loopback");
}

static int try_unix(const char *path, size_t length)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path, length);
	return connect(fd, (struct sockaddr *)&address, (socklen_t)(sizeof(sa_family_t) + length));
}

static void abstract_sockets(void)
{
	refused_with(try_unix("\0/tmp/.X11-unix/X0", 18), ECONNREFUSED, "abstract socket of X11");
	/* The test listens on this one on the host. */
	refused_with(try_unix("\0sallyport-probe", 16), ECONNREFUSED, "abstract socket of the host");
}

static void path_sockets(void)
{
	static const char *const paths[] = {
		"/run/docker.sock",    "/var/run/docker.sock",       "/run/dbus/system_bus_socket",
		"/run/systemd/notify", "/run/sallyport/jailer.sock", "/run/postgresql/.s.PGSQL.5432"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		refused_with(try_unix(paths[i], strlen(paths[i]) + 1), ENOENT, "connect to %s", paths[i]);
}

/* Only a run that names servers has it (JAIL_SOCKET). */
static void tools_socket(void)
{
	static const char path[] = "/code/.mcp";

	refused_with(try_unix(path, sizeof(path)), ENOENT, "connect to %s", path);
	refused_with(access("/code/tools", F_OK), ENOENT, "modules that call tools");
	holds(!getenv("MCP_SOCKET"), "MCP_SOCKET names a socket");
}

static void families(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};

	for (int family = 0; family < 64; family++)
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			/* NETLINK_ROUTE lists the loopback; the other types are no netlink sockets */
			if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK) {
				refused_with(socket(family, types[i], 0), EPERM, "socket of family %d type %d", family,
					     types[i]);
				/* The kernel looks at 32 bits: so must the filter. */
				refused(syscall(41, (1L << 32) | family, types[i], 0),
					"socket of family %d with high bits", family);
			}
	/* Of other types the kernel asks the host for a module, and SOCK_PACKET is another family in there. */
	for (int type = SOCK_STREAM; type < 16; type++)
		for (int protocol = 0; protocol < 2 && type != SOCK_STREAM && type != SOCK_DGRAM; protocol++) {
			int tcp = protocol ? IPPROTO_TCP : 0;

			refused_with(socket(AF_INET, type | SOCK_CLOEXEC, tcp), ESOCKTNOSUPPORT, "type %d", type);
			refused_with(socket(AF_INET6, type, tcp), ESOCKTNOSUPPORT, "type %d, IPv6", type);
			refused_with(syscall(SYS_socket, 1L << 32 | AF_INET, 1L << 32 | type, tcp), ESOCKTNOSUPPORT,
				     "type %d, high bits", type);
		}
	for (int type = SOCK_STREAM; type <= SOCK_DCCP; type++)
		for (int protocol = 1; protocol < 300; protocol++) {
			if (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP)
				continue;
			refused_with(socket(AF_INET, type, protocol), EPROTONOSUPPORT, "type %d of protocol %d", type,
				     protocol);
			refused_with(socket(AF_INET6, type, protocol), EPROTONOSUPPORT, "type %d of protocol %d, IPv6",
				     type, protocol);
			refused_with(syscall(SYS_socket, 1L << 32 | AF_INET, type, 1L << 32 | protocol),
				     EPROTONOSUPPORT, "type %d of protocol %d, high bits", type, protocol);
		}
	for (int protocol = 1; protocol < 64; protocol++) {
		refused_with(socket(AF_NETLINK, SOCK_RAW, protocol), EPERM, "netlink protocol %d", protocol);
		refused_with(syscall(SYS_socket, AF_NETLINK, SOCK_DGRAM, (1L << 32) | protocol), EPERM,
			     "netlink protocol %d, high bits", protocol);
	}
	holds(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE) >= 0,
	      "no netlink socket to list the loopback with");
}

static void buffer_sizes(int tcp)
{
	static const int options[] = {SO_SNDBUF, SO_RCVBUF};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		int before = 0, after = 0, size = 64 << 20;
		socklen_t length = sizeof(int);

		getsockopt(tcp, SOL_SOCKET, options[i], &before, &length);
		holds(setsockopt(tcp, SOL_SOCKET, options[i], &size, sizeof(size)) == 0, "a buffer's size is an error");
		holds(getsockopt(tcp, SOL_SOCKET, options[i], &after, &length) == 0 && after == before,
		      "a socket's buffer is %d bytes instead of %d", after, before);
	}
}

/* What may be set concerns the socket alone; keepalive seems to be set. */
static void socket_options(void)
{
	static const int levels[] = {SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_UDP,
				     255,        263,         273,        282};
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffff);
	struct sock_fprog filter = {.len = 1, .filter = &all};
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), udp = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int on = 1, esp = 2, got = -1, set = 0;
	socklen_t length = sizeof(got);

	holds(setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "TCP_NODELAY cannot be set");
	holds(setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0, "SO_REUSEADDR cannot be set");
	holds(setsockopt(udp, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0, "IPV6_V6ONLY cannot be set");
	refused_with(setsockopt(tcp, IPPROTO_TCP, TCP_ULP, "tls", 4), ENOPROTOOPT, "TLS within the kernel");
	refused_with(setsockopt(udp, IPPROTO_UDP, UDP_ENCAP, &esp, sizeof(esp)), ENOPROTOOPT, "ESP within the kernel");
	refused_with(syscall(SYS_setsockopt, (long)udp, 1L << 32 | IPPROTO_UDP, 1L << 32 | UDP_ENCAP, &esp,
			     (long)sizeof(esp)),
		     ENOPROTOOPT, "ESP within the kernel, high bits");
	refused_with(setsockopt(tcp, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)), ENOPROTOOPT,
		     "attach a filter");
	refused_with(syscall(SYS_setsockopt, (long)udp, 1L << 32 | SOL_SOCKET, 1L << 32 | SO_ATTACH_FILTER, &filter,
			     (long)sizeof(filter)),
		     ENOPROTOOPT, "attach a filter, high bits");
	holds(setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) == 0 &&
		      setsockopt(tcp, IPPROTO_TCP, TCP_KEEPINTVL, &on, sizeof(on)) == 0,
	      "keepalive is an error");
	holds(getsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &got, &length) == 0 && got == 0, "keepalive is on");
	buffer_sizes(tcp);
	/* Values that no option takes: what reaches the kernel says something else. */
	for (size_t level = 0; level < sizeof(levels) / sizeof(levels[0]); level++)
		for (int option = 0; option < 1024; option++) {
			errno = 0;
			set += setsockopt(udp, levels[level], option, NULL, 0) == 0 || errno != ENOPROTOOPT;
		}
	holds(set < 64, "%d options of sockets reach the kernel", set);
}

static void interfaces(void)
{
	struct ifreq request = {.ifr_ifindex = 2};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	refused(ioctl(fd, SIOCGIFNAME, &request), "there is an interface besides loopback, or it may be asked for");
	strcpy(request.ifr_name, "lo");
	request.ifr_flags = 0;
	refused(ioctl(fd, SIOCSIFFLAGS, &request), "take loopback down");
}

const struct probe probes_network[] = {
	PROBE("N01", "connect to the outside", connect_out),
	PROBE("N02", "metadata services", metadata),
	PROBE("N03", "the host's loopback", host_loopback),
	PROBE("N04", "abstract unix sockets", abstract_sockets),
	PROBE("N05", "unix sockets by path", path_sockets),
	PROBE("N06", "socket families", families),
	PROBE("N08", "interfaces", interfaces),
	PROBE("N15", "options of sockets: filters, keepalive, TLS", socket_options),
	PROBE("N16", "the socket of tools, without servers", tools_socket),
	{0},
};
