/* joining.h - how long it takes until a process that joins has mixed. */
#ifndef JOINING_H
#define JOINING_H

#include <stdint.h>

/* A seed begins: nobody joins. */
void joining_open(void);
/* Something goes wrong now, or ends. */
void joining_trouble(void);
/* Since then. */
double joining_calm(void);
/* A process of this rank begins, to join. */
void joining_begin(uint32_t rank);
/* It has ended a round. Fails if more than most_s have gone by since the last trouble. */
void joining_end(uint32_t rank, double most_s);
/* The others have left a living process of this rank out, and let it in again. Fails likewise. */
void joining_return(uint32_t rank, double most_s);

#endif
