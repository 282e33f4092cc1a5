/* process.h - what the kernel says of this process. */
#ifndef SL_MONITOR_PROCESS_H
#define SL_MONITOR_PROCESS_H

/* NaN: not known. */
typedef struct sl_process_numbers {
    double cpu_seconds, resident_bytes, virtual_bytes, open_descriptors, max_descriptors;
    double start_seconds; /* Unix time */
} sl_process_numbers;

sl_process_numbers sl_process_numbers_read(void);

#endif
