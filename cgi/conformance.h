/*
 * conformance.h - the fixtures of the official conformance suite: tools, resources and prompts that mean nothing and are never there in a
 * normal start.
 *
 * They are switched on by gateway.profile "conformance", which the configuration accepts only with a public_base_url on loopback; then no
 * token is asked for either, and requests from elsewhere than loopback are refused. Names, schemas and texts are the suite's.
 */
#pragma once

#include "prompts.h"
#include "resources.h"
#include "tools.h"

bool conformance_on(const struct config *config);

extern const char conformance_png[]; /* base64 */
extern const struct resource_provider conformance_resources;
extern const struct prompt conformance_prompts[]; /* ended by {0} */
