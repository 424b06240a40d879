/*
 * doctor_oauth.c - signing in (oauth.mode): what clients find at our own address, as they see it; the issuer and its
 * keys; introspection; and the clock, which decides whether a token is good yet, or still. Nothing where it is off.
 */
#include <string.h>
#include <sys/timex.h>

#include "doctor.h"
#include "lib/base/host.h"
#include "lib/base/util.h"
#include "lib/oauth/oauth_fetch.h"
#include "lib/oauth/oauth_remote.h"

#define METADATA_MAX (128 << 10)
#define RESOURCE     "/.well-known/oauth-protected-resource/mcp"
#define SERVER       "/.well-known/oauth-authorization-server"

/* A document at our own address says in `member` that it is `wanted`. */
static void check_document(struct doctor *doctor, const char *name, const char *path, const char *member,
			   const char *wanted)
{
	auto_free char *url = xasprintf("%s%s", doctor->config->public_base_url, path);
	const struct oauth_fetch what = {.url = url, .ca_file = doctor->config->oauth.ca_file, .max = METADATA_MAX};
	auto_fetched struct oauth_fetched fetched = {0};
	auto_json struct json_object *document = NULL;
	struct err err = ERR_INIT;
	static const char remedy[] = "start gateway and nginx with this configuration, take nginx/locations.conf of "
				     "this version, and let this address reach them from the internet";

	if (oauth_fetch(&what, &fetched, &err) < 0) {
		doctor_add(doctor, name, DOCTOR_WEAKER, remedy, "%s: %s", url, err.text);
		return;
	}
	json_parse(fetched.body.data, fetched.body.length, &document, NULL);
	const char *found = json_object_is_type(document, json_type_object) ? json_get_string(document, member) : NULL;

	if (fetched.status != 200 || found == NULL)
		doctor_add(doctor, name, DOCTOR_WEAKER, remedy, "%s: status %d, and no document", url, fetched.status);
	else if (!streq(found, wanted))
		doctor_add(doctor, name, DOCTOR_WEAKER,
			   "let public_base_url be the address of this server: another one answers there",
			   "%s says %.200s, not %s", url, found, wanted);
	else
		doctor_add(doctor, name, DOCTOR_OK, NULL, "%s", url);
}

/* Clients of claude.ai and ChatGPT connect from the internet, and send tokens over https alone. */
static void check_address(struct doctor *doctor)
{
	const char *base = doctor->config->public_base_url;
	const bool https = str_starts(base, "https://");

	doctor_add(doctor, "oauth address", https ? DOCTOR_OK : DOCTOR_WEAKER,
		   "set public_base_url to the https address that people type: clients on other machines take no other",
		   "%s%s", base, https ? "" : " (this computer alone)");
}

static void check_keys(struct doctor *doctor, struct oauth_remote *remote)
{
	struct oauth_keys *keys = NULL;
	int64_t age = -1;
	struct err err = ERR_INIT;

	if (oauth_remote_keys(remote, &keys, &age, &err) < 0) {
		doctor_add(doctor, "oauth issuer", DOCTOR_WEAKER,
			   "make oauth.issuer reachable from here, spelled as its own metadata spells it: without its "
			   "keys nobody who signs in gets in",
			   "%s", err.text);
		return;
	}
	const size_t count = oauth_keys_count(keys);

	oauth_keys_free(keys);
	if (age >= 0)
		doctor_add(doctor, "oauth issuer", DOCTOR_OK, NULL, "%s: %zu key%s, to be kept for %lld s",
			   doctor->config->oauth.issuer, count, count == 1 ? "" : "s", (long long)age);
	else
		doctor_add(doctor, "oauth issuer", DOCTOR_OK, NULL, "%s: %zu key%s", doctor->config->oauth.issuer,
			   count, count == 1 ? "" : "s");
}

/* A token that nobody gave out: the right answer is that it is not active. */
static void check_introspection(struct doctor *doctor, struct oauth_remote *remote)
{
	auto_json struct json_object *claims = NULL;
	struct err err = ERR_INIT;
	const int result = oauth_remote_introspect(remote, "sallyport-doctor", &claims, &err);

	if (result == -ERR_DENIED)
		doctor_add(doctor, "introspection", DOCTOR_OK, NULL, "%s",
			   doctor->config->oauth.introspection_endpoint);
	else
		doctor_add(doctor, "introspection", DOCTOR_WEAKER,
			   "check oauth.introspection_endpoint, oauth.introspection_client and its secret: opaque "
			   "tokens get 503 until it answers",
			   "%s", result == 0 ? "it calls a made-up token active" : err.text);
}

static void check_clock(struct doctor *doctor)
{
	struct timex timex = {0};
	const bool synchronised = adjtimex(&timex) != TIME_ERROR;

	doctor_add(doctor, "clock", synchronised ? DOCTOR_OK : DOCTOR_WEAKER,
		   "run systemd-timesyncd or chrony: tokens of an issuer whose clock differs by more than a minute are "
		   "refused",
		   "%s", synchronised ? "synchronised" : "the kernel knows of nobody who sets it");
}

void doctor_oauth(struct doctor *doctor)
{
	const struct config *config = doctor->config;
	const enum config_oauth mode = config_oauth(config);
	struct oauth_remote remote;
	struct err err = ERR_INIT;

	if (mode == CONFIG_OAUTH_OFF)
		return;
	auto_free char *resource = xasprintf("%s/mcp", config->public_base_url);

	oauth_fetch_begin();
	check_address(doctor);
	check_document(doctor, "oauth resource", RESOURCE, "resource", resource);
	if (mode != CONFIG_OAUTH_EXTERNAL) {
		check_document(doctor, "oauth server", SERVER, "issuer", config->public_base_url);
	} else if (oauth_remote_open(&remote, config, &err) < 0) {
		doctor_add(doctor, "oauth issuer", DOCTOR_WEAKER, "let this account read the file", "%s", err.text);
	} else {
		check_keys(doctor, &remote);
		if (config->oauth.introspection_endpoint[0] != '\0')
			check_introspection(doctor, &remote);
		oauth_remote_close(&remote);
	}
	check_clock(doctor);
}
