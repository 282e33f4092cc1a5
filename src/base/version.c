/* version.c - the release; meson.build names it. */
#include "starling/version.h"

const char *sl_version(void) {
    return SL_VERSION;
}
