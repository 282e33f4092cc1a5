/* identity.c - see identity.h. */
#include "base/identity.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum { BITS = 53, SMALLEST = 2 };

int sl_identity_draw(uint64_t *out, sl_error *error) {
    do {
        if (getrandom(out, sizeof *out, 0) != sizeof *out)
            return sl_fail(error, SL_ENOMEM, "the system gives no random numbers: %s",
                           strerror(errno));
        *out >>= 64 - BITS;
    } while (*out < SMALLEST);
    return 0;
}
