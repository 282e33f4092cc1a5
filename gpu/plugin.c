/* plugin.c - the entry point of the plug-in; see device/backend.h. */
#include <stdio.h>

#include "device/backend.h"
#include "gpu/device.h"
#include "gpu/vec.h"

static void describe(int index, sl_device_info *out) {
    device_properties properties = {0};
    char text[DEVICE_TEXT_MAX] = "";
    out->usable = device_describe(index, &properties, text);
    snprintf(out->name, sizeof out->name, "%s", properties.name);
    snprintf(out->reason, sizeof out->reason, "%s", text);
    out->major = properties.major;
    out->minor = properties.minor;
    out->bytes = properties.bytes;
    out->emulated = properties.emulated;
}

const sl_backend *sl_backend_entry(void) {
    static const sl_backend backend = {.abi = SL_BACKEND_ABI,
                                       .version = SL_VERSION,
                                       .sizes = SL_BACKEND_SIZES,
                                       .count = device_count,
                                       .describe = describe,
                                       .open = vec_open};
    return &backend;
}
