/*
 * version.h - the release that every program reports: --version, serverInfo, server/discover.
 */
#pragma once

#define SALLYPORT_VERSION "0.1.0"
