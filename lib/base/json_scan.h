/*
 * json_scan.h - between the scanner (json_scan.c) and the parser (json.c); everybody else uses json.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "err.h"

/* As json_scan; *ret_pairs (always written): is there an escaped surrogate pair? */
int json_scan_text(const char *text, size_t length, bool *ret_pairs, struct err *err);
/* Fills `out` (which it initialises) with the text, that passed the scan, its surrogate pairs as UTF-8: json-c 0.16
 * turns some of them
 * (\ud836\ude00, all of U+1D800 to U+1DFFF and their like) into U+FFFD. */
void json_write_out_pairs(struct buf *out, const char *text, size_t length);
