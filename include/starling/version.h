/* version.h - the release, and what two agents must agree on to talk. */
#ifndef STARLING_VERSION_H
#define STARLING_VERSION_H

#define SL_VERSION "0.1.0"
#define SL_PROTOCOL_VERSION 3u

#endif
