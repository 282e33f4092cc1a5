/* backend.h - what a GPU plug-in offers: one function, SL_BACKEND_ENTRY, that returns this table.
 *
 * Plug-in and program share only headers. What they must agree on is SL_BACKEND_ABI, to be raised
 * with any change of sl_vec_ops, sl_coding, sl_coder, sl_layer_call or what they hold or mean, and
 * the sizes of these, which catch it if that was forgotten.
 */
#ifndef SL_BACKEND_H
#define SL_BACKEND_H

#include "compress/coding.h"
#include "learner/layers/layer.h"
#include "starling/device.h"

#define SL_BACKEND_ABI 12u
#define SL_BACKEND_ENTRY "sl_backend_entry"
#define SL_BACKEND_SIZES                                                                           \
    ((sizeof(sl_layer_call) + sizeof(sl_layer) + sizeof(sl_loss_call)) << 48 |                     \
     sizeof(sl_vec_ops) << 32 | sizeof(sl_coding) << 16 | sizeof(sl_coder) << 8 |                  \
     sizeof(sl_source))

typedef struct sl_backend {
    uint32_t abi;        /* first in every version */
    const char *version; /* the release that it was built with */
    uint64_t sizes;
    /* How many devices there are; 0: text (SL_DEVICE_TEXT_MAX) says why. */
    int (*count)(char *text);
    /* Fills what it can; usable false with the reason. Opens nothing. */
    void (*describe)(int index, sl_device_info *out);
    /* NULL: text says why. */
    const sl_vec_ops *(*open)(int index, size_t memory_limit, char *text);
} sl_backend;

typedef const sl_backend *sl_backend_entry_function(void);
/* In the plug-in. */
SL_API sl_backend_entry_function sl_backend_entry;

#endif
