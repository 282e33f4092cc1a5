/* error.h - how calls fail.
 *
 * A function that can fail returns 0 or a negative SL_E* code, and takes a `sl_error *` (may be
 * NULL) into which it writes one sentence: what failed, where (file, field, peer, round), the
 * offending value, what is allowed, and what to do. Out-parameters stay untouched on failure.
 */
#ifndef STARLING_ERROR_H
#define STARLING_ERROR_H

#include <stdarg.h>
#include <stdint.h>

#include "starling/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/*   name         code  meaning                                                     */
#define SL_ERRORS(X)                                                                               \
    X(SL_EINVAL, -1, "a value is not allowed")                                                     \
    X(SL_EFILE, -2, "a file is missing, malformed or cannot be read or written")                   \
    X(SL_ENOMEM, -3, "out of memory")                                                              \
    X(SL_ENET, -4, "the network or its provider failed")                                           \
    X(SL_EPEER, -5, "a neighbour died, fell silent or was refused")                                \
    X(SL_EPROTO, -6, "a peer sent something malformed")                                            \
    X(SL_EDIVERGED, -7, "training diverged: a non-finite number appeared")                         \
    X(SL_ESTOPPED, -8, "stopped on request")                                                       \
    X(SL_EDEVICE, -9, "a GPU is missing or failed")                                                \
    X(SL_ESAVED, -10, "ended on request, after a checkpoint")                                      \
    X(SL_ELEFT, -11, "left on request; the others go on")                                          \
    X(SL_EVOID, -12, "an average was cut by the loss of a peer; the session goes on")              \
    X(SL_ETRAINS, -13, "the others train already; this agent may join them")

enum {
#define SL_ERROR_ENUM(name, code, text) name = code,
    SL_ERRORS(SL_ERROR_ENUM)
#undef SL_ERROR_ENUM
};

#define SL_ERROR_TEXT_MAX 1024

/* No rank, peer or round applies. */
#define SL_ERROR_NOWHERE (-1)

typedef struct sl_error {
    int code;                  /* 0 or SL_E* */
    int64_t rank, peer, round; /* where it happened, if `code` is not 0; else SL_ERROR_NOWHERE */
    char text[SL_ERROR_TEXT_MAX];
} sl_error;

/* What a code means in general; never NULL. */
SL_API const char *sl_error_meaning(int code);

/* Fills *error (if not NULL) and returns code, so that a function can end with `return
 * sl_fail(...)`. Overwrites an earlier error. */
SL_API int sl_fail(sl_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failure of a node in a round: the text begins with "node RANK, round ROUND: ". */
SL_API int sl_fail_node(sl_error *error, int code, uint32_t rank, uint64_t round,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same on the edge from `peer` to `rank`: "edge PEER->RANK, round ROUND: ". */
SL_API int sl_fail_edge(sl_error *error, int code, uint32_t peer, uint32_t rank, uint64_t round,
                        const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Puts "format: " before the text in *error, such as a file's name before a parser's complaint.
 * Keeps rank, peer and round. Returns error's code, or `code` if error is NULL. */
SL_API int sl_fail_prefix(sl_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
#endif
