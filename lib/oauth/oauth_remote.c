/* oauth_remote.c - see oauth_remote.h. No claim of a token chooses an address: they are the configuration's, or stand
 * in the metadata of the configured issuer. */
#include "oauth_remote.h"

#include <fcntl.h>
#include <string.h>

#include "lib/base/host.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "oauth_fetch.h"

#define METADATA_BYTES (128 * 1024)
#define ANSWER_BYTES   (64 * 1024)
#define SECRET_BYTES   4096

int oauth_remote_open(struct oauth_remote *remote, const struct config *config, struct err *err)
{
	const char *file = config->oauth.introspection_secret_file;
	size_t length = 0;

	*remote = (struct oauth_remote){.config = config};
	if (file[0] == '\0')
		return 0;
	int result = read_file_at(AT_FDCWD, file, SECRET_BYTES, &remote->secret, &length, err);

	if (result < 0)
		return err_wrap(err, "oauth.introspection_secret_file");
	remote->secret[strcspn(remote->secret, "\r\n")] = '\0';
	return 0;
}

void oauth_remote_close(struct oauth_remote *remote)
{
	if (remote->secret != NULL)
		explicit_bzero(remote->secret, strlen(remote->secret));
	free(remote->secret);
	free(remote->keys_url);
	remote->secret = remote->keys_url = NULL;
}

/* A JSON object with status 200; the caller's. */
static int get_object(struct oauth_remote *remote, const char *url, struct json_object **ret, struct err *err)
{
	const struct oauth_fetch what = {
		.url = url, .ca_file = remote->config->oauth.ca_file, .max = METADATA_BYTES, .stop = &remote->stop};
	auto_fetched struct oauth_fetched fetched = {0};
	auto_json struct json_object *object = NULL;
	int result = oauth_fetch(&what, &fetched, err);

	if (result < 0)
		return err_wrap(err, "%s", url);
	if (fetched.status != 200)
		return err_set(err, ERR_UNAVAILABLE, "%s: status %d", url, fetched.status);
	if (json_parse(fetched.body.data, fetched.body.length, &object, err) < 0 ||
	    !json_object_is_type(object, json_type_object))
		return err_set(err, ERR_UNAVAILABLE, "%s: the answer is not a JSON object", url);
	*ret = steal(&object);
	return 0;
}

static int take_keys_url(struct oauth_remote *remote, struct json_object *metadata, struct err *err)
{
	const char *issuer = json_get_string(metadata, "issuer"), *keys = json_get_string(metadata, "jwks_uri");
	struct host_url url;

	if (issuer == NULL || !streq(issuer, remote->config->oauth.issuer))
		return err_set(
			err, ERR_UNAVAILABLE,
			"oauth.issuer is %s, and its own metadata says %.200s: they must be the same to the last "
			"character",
			remote->config->oauth.issuer, issuer != NULL ? issuer : "nothing");
	if (keys == NULL || host_url_parse(keys, &url) < 0 || !url.secure)
		return err_set(err, ERR_UNAVAILABLE, "the metadata of %s names no jwks_uri of https", issuer);
	remote->keys_url = xstrdup(keys);
	return 0;
}

/* RFC 8414 puts the well-known part before the issuer's path, OpenID Connect behind it. */
static int discover(struct oauth_remote *remote, struct err *err)
{
	const char *issuer = remote->config->oauth.issuer;
	struct host_url url;
	size_t length = strlen(issuer);

	if (host_url_parse(issuer, &url) < 0)
		return err_set(err, ERR_INVALID, "oauth.issuer is not an address");
	while (length > url.origin && issuer[length - 1] == '/')
		length--;
	auto_free char *first = xasprintf("%.*s/.well-known/oauth-authorization-server%.*s", (int)url.origin, issuer,
					  (int)(length - url.origin), issuer + url.origin);
	auto_free char *second = xasprintf("%.*s/.well-known/openid-configuration", (int)length, issuer);
	auto_json struct json_object *metadata = NULL;
	struct err unused = ERR_INIT;
	int result = get_object(remote, first, &metadata, &unused);

	if (result < 0)
		result = get_object(remote, second, &metadata, err);
	return result < 0 ? result : take_keys_url(remote, metadata, err);
}

int oauth_remote_keys(struct oauth_remote *remote, struct oauth_keys **ret, int64_t *ret_age_seconds, struct err *err)
{
	const char *url = remote->config->oauth.jwks_uri;
	auto_fetched struct oauth_fetched fetched = {0};
	int result = 0;

	if (url[0] == '\0' && remote->keys_url == NULL)
		result = discover(remote, err);
	if (result < 0)
		return result;
	if (url[0] == '\0')
		url = remote->keys_url;
	const struct oauth_fetch what = {
		.url = url, .ca_file = remote->config->oauth.ca_file, .max = OAUTH_KEYS_BYTES, .stop = &remote->stop};

	result = oauth_fetch(&what, &fetched, err);
	if (result == 0 && fetched.status != 200)
		result = err_set(err, ERR_UNAVAILABLE, "status %d", fetched.status);
	if (result == 0)
		result = oauth_keys_parse(fetched.body.data, fetched.body.length, ret, err);
	if (result == 0) {
		*ret_age_seconds = fetched.max_age_seconds;
		return 0;
	}
	err_wrap(err, "%s", url);
	free(remote->keys_url); /* it may have moved */
	remote->keys_url = NULL;
	return -ERR_UNAVAILABLE;
}

/* A text with dots, for instance, that is no JWT of the issuer (RFC 7009, section 2.2.1). */
static bool refuses_kind(struct json_object *answer)
{
	const char *error = json_object_is_type(answer, json_type_object) ? json_get_string(answer, "error") : NULL;

	return error != NULL && streq(error, "unsupported_token_type");
}

int oauth_remote_introspect(struct oauth_remote *remote, const char *token, struct json_object **ret_claims,
			    struct err *err)
{
	const struct config *config = remote->config;
	auto_fetched struct oauth_fetched fetched = {0};
	auto_json struct json_object *claims = NULL;
	struct json_object *active = NULL;
	auto_buf struct buf form = {0};

	buf_init(&form, SIZE_MAX / 2);
	buf_puts(&form, "token_type_hint=access_token&token=");
	oauth_fetch_encode(&form, token);
	const struct oauth_fetch what = {
		.url = config->oauth.introspection_endpoint,
		.form = form.data,
		.user = config->oauth.introspection_client[0] != '\0' ? config->oauth.introspection_client : NULL,
		.password = remote->secret,
		.ca_file = config->oauth.ca_file,
		.max = ANSWER_BYTES,
		.stop = &remote->stop,
	};
	int result = oauth_fetch(&what, &fetched, err);

	explicit_bzero(form.data, form.length);
	if (result < 0)
		return err_wrap(err, "%s", what.url), -ERR_UNAVAILABLE;
	if (fetched.status == 401 || fetched.status == 403)
		log_event(LOG_ERROR, "introspection refuses oauth.introspection_client and its secret", NULL);
	json_parse(fetched.body.data, fetched.body.length, &claims, NULL);
	if (fetched.status == 400 && refuses_kind(claims))
		return err_set(err, ERR_DENIED, "the issuer says that it is no token for introspection");
	if (fetched.status != 200)
		return err_set(err, ERR_UNAVAILABLE, "%s: status %d", what.url, fetched.status);
	if (!json_object_is_type(claims, json_type_object) || !json_object_object_get_ex(claims, "active", &active) ||
	    !json_object_is_type(active, json_type_boolean))
		return err_set(err, ERR_UNAVAILABLE, "%s: the answer has no \"active\" of true or false", what.url);
	if (!json_object_get_boolean(active))
		return err_set(err, ERR_DENIED, "the issuer says that the token is not active");
	*ret_claims = steal(&claims);
	return 0;
}
