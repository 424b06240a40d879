/* test_host.c - hosts as text: one spelling each, nothing that two programs read differently; what is public; entries
 * of network.allow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "lib/base/config.h"
#include "lib/base/host.h"
#include "lib/base/util.h"

static void normalises(void **state)
{
	static const struct {
		const char *text, *host;
		int kind;
	} cases[] = {
		{"example.com", "example.com", HOST_NAME},
		{"WWW.Example.COM.", "www.example.com", HOST_NAME},
		{"db", "db", HOST_NAME},
		{"_srv.a-b.example", "_srv.a-b.example", HOST_NAME},
		{"192.0.2.1", "192.0.2.1", HOST_ADDRESS},
		{"2001:DB8:0:0::1", "2001:db8::1", HOST_ADDRESS},
		{"::ffff:127.0.0.1", "127.0.0.1", HOST_ADDRESS},
		{"::FFFF:7f00:1", "127.0.0.1", HOST_ADDRESS},
		{"", NULL, 0},
		{".", NULL, 0},
		{"a..b", NULL, 0},
		{".a", NULL, 0},
		{"example.com..", NULL, 0},
		{"-a.example", NULL, 0},
		{"a-.example", NULL, 0},
		{"user@example.com", NULL, 0},
		{"exam ple.com", NULL, 0},
		{"ex%61mple.com", NULL, 0},
		{"b\xc3\xbc.example", NULL, 0},
		{"127.1", NULL, 0},
		{"2130706433", NULL, 0},
		{"0x7f.0.0.1", NULL, 0},
		{"0x7f000001", NULL, 0},
		{"127.0.0.0x1", NULL, 0},
		{"0177.0.0.1", NULL, 0},
		{"127.0.0.1.", "127.0.0.1", HOST_ADDRESS},
		{"fe80::1%eth0", NULL, 0},
		{"[::1]", NULL, 0},
	};
	char host[HOST_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int kind = host_normalise(cases[i].text, strlen(cases[i].text), host);

		if (kind != (cases[i].host ? cases[i].kind : -1) || (kind >= 0 && !streq(host, cases[i].host)))
			fail_msg("%s: %d %s", cases[i].text, kind, kind < 0 ? "" : host);
	}
	assert_int_equal(host_normalise("a\0b.example", 11, host), -1);
}

static void bounds_of_a_name(void **state)
{
	char text[300], host[HOST_SIZE];

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(host_normalise(text, 63, host), HOST_NAME);
	assert_int_equal(host_normalise(text, 64, host), -1);
	for (size_t i = 49; i < sizeof(text); i += 50)
		text[i] = '.';
	assert_int_equal(host_normalise(text, HOST_SIZE - 1, host), HOST_NAME);
	assert_int_equal(host_normalise(text, HOST_SIZE, host), -1);
}

static void urls(void **state)
{
	static const struct {
		const char *url, *host; /* host NULL: none */
		uint16_t port;
		bool secure;
		size_t origin;
	} cases[] = {
		{"https://Box.example", "box.example", 443, true, 19},
		{"https://box.example:8443/x?y", "box.example", 8443, true, 24},
		{"https://[2001:db8::1]/", "2001:db8::1", 443, true, 21},
		{"http://box.example/", "box.example", 80, false, 18},
		{"http://127.0.0.1:1/x", "127.0.0.1", 1, true, 18},
		{"http://[::1]", "::1", 80, true, 12},
		{"http://localhost?x", "localhost", 80, true, 16},
		{"http://localhost.evil.example/", "localhost.evil.example", 80, false, 29},
		{"ftp://box.example/", NULL, 0, false, 0},
		{"https://", NULL, 0, false, 0},
		{"https://ann@box.example/", NULL, 0, false, 0},
		{"https://box.example/#x", NULL, 0, false, 0},
		{"https://box.example\\@evil", NULL, 0, false, 0},
		{"https://box.example/ x", NULL, 0, false, 0},
		{"https://box.example/\n", NULL, 0, false, 0},
		{"https://2130706433/", NULL, 0, false, 0},
		{"https://0x7f.1/", NULL, 0, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct host_url url;
		const int result = host_url_parse(cases[i].url, &url);

		if ((result == 0) != (cases[i].host != NULL))
			fail_msg("%s", cases[i].url);
		if (result < 0)
			continue;
		assert_string_equal(url.host, cases[i].host);
		assert_int_equal(url.port, cases[i].port);
		assert_int_equal(url.secure, cases[i].secure);
		assert_int_equal(url.origin, cases[i].origin);
	}
}

static void splits(void **state)
{
	static const struct {
		const char *text;
		uint16_t standard;
		const char *host;
		uint16_t port;
	} cases[] = {
		{"example.com:443", 0, "example.com", 443},
		{"example.com.:443", 0, "example.com", 443},
		{"example.com", 80, "example.com", 80},
		{"example.com", 0, NULL, 0},
		{"[2001:db8::1]:8080", 0, "2001:db8::1", 8080},
		{"[2001:db8::1]", 80, "2001:db8::1", 80},
		{"[::ffff:10.0.0.1]:80", 0, "10.0.0.1", 80},
		{"2001:db8::1:80", 0, NULL, 0},
		{"[192.0.2.1]:80", 0, NULL, 0},
		{"[]:80", 0, NULL, 0},
		{"[::1:80", 0, NULL, 0},
		{"example.com:0", 0, NULL, 0},
		{"example.com:65536", 0, NULL, 0},
		{"example.com:", 80, NULL, 0},
		{"example.com:+80", 0, NULL, 0},
		{"example.com:080a", 0, NULL, 0},
		{"good.example:443@evil.example:443", 0, NULL, 0},
		{"user:secret@example.com:443", 0, NULL, 0},
		{":443", 0, NULL, 0},
		{"", 80, NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char host[HOST_SIZE] = "";
		uint16_t port = 0;
		int kind = host_split(cases[i].text, strlen(cases[i].text), cases[i].standard, host, &port);

		if (kind >= 0 ? !cases[i].host || !streq(host, cases[i].host) || port != cases[i].port
			      : cases[i].host != NULL)
			fail_msg("%s: %d %s %u", cases[i].text, kind, host, port);
	}
}

static void below(void **state)
{
	(void)state;
	assert_true(host_below("a.example.com", "example.com"));
	assert_true(host_below("a.b.example.com", "example.com"));
	assert_false(host_below("example.com", "example.com"));
	assert_false(host_below("evilexample.com", "example.com"));
	assert_false(host_below(".example.com", "example.com"));
	assert_false(host_below("com", "example.com"));
}

static void public_addresses(void **state)
{
	static const char *const open[] = {"8.8.8.8",         "1.1.1.1",     "172.15.255.255",  "172.32.0.1",
					   "100.63.255.255",  "100.128.0.1", "198.17.0.1",      "223.255.255.255",
					   "2606:4700::1111", "2a00::1",     "64:ff9b::808:808"};
	static const char *const closed[] = {"0.0.0.0",
					     "0.1.2.3",
					     "10.0.0.1",
					     "100.64.0.1",
					     "100.127.255.255",
					     "127.0.0.1",
					     "127.255.255.255",
					     "169.254.169.254",
					     "172.16.0.1",
					     "172.31.255.255",
					     "192.0.0.8",
					     "192.0.2.1",
					     "192.88.99.1",
					     "192.168.0.1",
					     "198.18.0.1",
					     "198.19.255.255",
					     "198.51.100.1",
					     "203.0.113.1",
					     "224.0.0.1",
					     "239.255.255.255",
					     "240.0.0.1",
					     "255.255.255.255",
					     "::",
					     "::1",
					     "::ffff:0:127.0.0.1",
					     "::127.0.0.1",
					     "64:ff9b::7f00:1",
					     "64:ff9b::a00:1",
					     "64:ff9b:1::1",
					     "100::1",
					     "2001::1",
					     "2001:10::1",
					     "2001:db8::1",
					     "2002:7f00:1::1",
					     "2002:808:808::1",
					     "3fff::1",
					     "fc00::1",
					     "fd00:ec2::254",
					     "fe80::1",
					     "fec0::1",
					     "ff02::1"};
	struct sockaddr_storage address;
	unsigned length;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(open) + ARRAY_SIZE(closed); i++) {
		bool expected = i < ARRAY_SIZE(open);
		const char *text = expected ? open[i] : closed[i - ARRAY_SIZE(open)];

		assert_int_equal(host_address(text, 80, &address, &length), 0);
		if (host_public((struct sockaddr *)&address) != expected)
			fail_msg("%s is %s", text, expected ? "closed" : "open");
	}
	/* Mapped addresses are judged by what they carry, however they are written. */
	assert_int_equal(host_address("::ffff:10.0.0.1", 80, &address, &length), 0);
	assert_false(host_public((struct sockaddr *)&address));
	assert_int_equal(host_address("::ffff:8.8.8.8", 80, &address, &length), 0);
	assert_true(host_public((struct sockaddr *)&address));
}

static void entries(void **state)
{
	struct config_host host;
	struct err err = ERR_INIT;
	static const char *const bad[] = {"example.com",
					  "*.example.com",
					  "*:443",
					  "*.10.0.0.1:80",
					  "a.*.example:443",
					  "http://a:80",
					  "10.0.0.0/8:443",
					  "a:443  private",
					  "a:443 public",
					  "a:443 private ",
					  "",
					  "*.*.a:1"};

	(void)state;
	assert_int_equal(config_host_parse("DB.Example.com:5432", &host, &err), 0);
	assert_string_equal(host.host, "db.example.com");
	assert_true(host.port == 5432 && !host.below && !host.address && !host.is_private);
	assert_int_equal(config_host_parse("*.example.com:443", &host, &err), 0);
	assert_true(host.below && streq(host.host, "example.com"));
	assert_int_equal(config_host_parse("10.0.0.5:80 private", &host, &err), 0);
	assert_true(host.address && host.is_private && streq(host.host, "10.0.0.5"));
	assert_int_equal(config_host_parse("[fd00::5]:80 private", &host, &err), 0);
	assert_true(host.address && streq(host.host, "fd00::5"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (config_host_parse(bad[i], &host, &err) != -ERR_INVALID)
			fail_msg("taken: %s", bad[i]);
}

static void proxies(void **state)
{
	struct config_proxy proxy;
	struct err err = ERR_INIT;
	static const char *const bad[] = {"proxy:3128",          "https://proxy:3128", "http://proxy",
					  "http://proxy:3128/x", "http://:3128",       "socks5://p:1"};

	(void)state;
	assert_int_equal(config_proxy_parse("http://proxy.example:3128/", &proxy, &err), 0);
	assert_true(streq(proxy.host, "proxy.example") && proxy.port == 3128 && !proxy.credentials);
	assert_int_equal(config_proxy_parse("http://user:p@ss@127.0.0.1:8080", &proxy, &err), 0);
	assert_true(proxy.n_credentials == 9 && strncmp(proxy.credentials, "user:p@ss", 9) == 0 &&
		    streq(proxy.host, "127.0.0.1"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (config_proxy_parse(bad[i], &proxy, &err) != -ERR_INVALID)
			fail_msg("taken: %s", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(normalises), cmocka_unit_test(bounds_of_a_name), cmocka_unit_test(splits),
		cmocka_unit_test(urls),
		cmocka_unit_test(below),      cmocka_unit_test(public_addresses), cmocka_unit_test(entries),
		cmocka_unit_test(proxies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
