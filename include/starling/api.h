/* api.h - SL_API marks what libstarling exports; every other name stays inside it. */
#ifndef STARLING_API_H
#define STARLING_API_H

#define SL_API __attribute__((visibility("default")))

#endif
