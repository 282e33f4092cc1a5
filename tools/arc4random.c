/* arc4random.c - two functions of glibc 2.36 for a pack on an older one (tools/older_glibc.py). */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#define EXPORTED __attribute__((visibility("default")))
enum { AT_ONCE = 256 }; /* which getrandom gives whole */

EXPORTED void arc4random_buf(void *out, size_t bytes) {
    for (size_t i = 0; i < bytes; i += AT_ONCE)
        if (getrandom((char *)out + i, bytes - i < AT_ONCE ? bytes - i : AT_ONCE, 0) < 0)
            abort();
}

EXPORTED uint32_t arc4random(void) {
    uint32_t number;
    arc4random_buf(&number, sizeof number);
    return number;
}
