/*
 * crypto_sign.h - Ed25519 (RFC 8032) by libcrypto: what signs checkpoints of the audit log.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SIGN_SEED_SIZE 32 /* the private key */
#define SIGN_KEY_SIZE  32 /* the public one */
#define SIGN_SIZE      64

void sign_public(const uint8_t seed[SIGN_SEED_SIZE], uint8_t ret[SIGN_KEY_SIZE]);
void sign_text(const uint8_t seed[SIGN_SEED_SIZE], const void *text, size_t length, uint8_t ret[SIGN_SIZE]);
/* 0, or -1: not by this key. */
int sign_check(const uint8_t key[SIGN_KEY_SIZE], const void *text, size_t length, const uint8_t signature[SIGN_SIZE]);
