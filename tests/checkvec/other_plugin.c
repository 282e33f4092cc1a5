/* other_plugin.c - a plug-in for another version, which the program must refuse. */
#include "device/backend.h"

const sl_backend *sl_backend_entry(void) {
    static const sl_backend backend = {.abi = SL_BACKEND_ABI + 1, .version = "9.9.9"};
    return &backend;
}
