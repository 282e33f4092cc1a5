/* types.h - small types and limits that several settings share. */
#ifndef STARLING_TYPES_H
#define STARLING_TYPES_H

#define SL_NAME_MAX 64
#define SL_PATH_MAX 1024
#define SL_NODES_MAX 1000000u /* of a run */

/* A choice that Starling makes unless the experiment does. */
typedef enum sl_switch { SL_SWITCH_AUTO, SL_SWITCH_ON, SL_SWITCH_OFF } sl_switch;

#endif
