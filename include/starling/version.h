/* version.h - the release, and the protocol that two agents must share. */
#ifndef STARLING_VERSION_H
#define STARLING_VERSION_H

#include "starling/api.h"

#define SL_PROTOCOL_VERSION 16u

#ifdef __cplusplus
extern "C" {
#endif

/* The release of the library in use, such as "0.2.0". */
SL_API const char *sl_version(void);

#ifdef __cplusplus
}
#endif

#endif
