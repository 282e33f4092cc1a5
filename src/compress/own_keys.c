/* own_keys.c - see own_keys.h. */
#include "compress/own_keys.h"

const char *const sl_norms[] = {"l2", "max", NULL};
const char *const sl_codings[] = {"none", "golomb", "elias", "huffman", NULL};
