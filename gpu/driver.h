/* driver.h - of the driver's cuda.h, what shares memory between processes. The toolkit's header is
 * not needed for it: cuda_share.c asks the driver for the functions, and these layouts are parts of
 * its binary interface. What NVIDIA documents of them is not repeated. */
#ifndef SL_GPU_DRIVER_H
#define SL_GPU_DRIVER_H

#include <stddef.h>

typedef int driver_result; /* CUresult; 0: success */
typedef unsigned long long driver_address, driver_handle;
enum {
    DRIVER_BY_DESCRIPTOR = 1, /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
    DRIVER_PINNED = 1,        /* CU_MEM_ALLOCATION_TYPE_PINNED */
    DRIVER_ON_DEVICE = 1,     /* CU_MEM_LOCATION_TYPE_DEVICE */
    DRIVER_READ = 1,          /* CU_MEM_ACCESS_FLAGS_PROT_READ, _READWRITE */
    DRIVER_READ_WRITE = 3,
    DRIVER_OUT_OF_MEMORY = 2 /* CUDA_ERROR_OUT_OF_MEMORY */
};

typedef struct driver_place {
    int type, id;
} driver_place;

typedef struct driver_properties {
    int type, handles;
    driver_place place;
    void *of_windows;
    unsigned char flags[8];
} driver_properties;

typedef struct driver_access {
    driver_place place;
    int allowed;
} driver_access;

/* X(name, parameters) */
#define SL_DRIVER_CALLS(X)                                                                         \
    X(cuMemGetAllocationGranularity, (size_t * bytes, const driver_properties *of, int option))    \
    X(cuMemCreate,                                                                                 \
      (driver_handle * out, size_t bytes, const driver_properties *of, unsigned long long flags))  \
    X(cuMemRelease, (driver_handle handle))                                                        \
    X(cuMemExportToShareableHandle,                                                                \
      (void *out, driver_handle handle, int type, unsigned long long flags))                       \
    X(cuMemImportFromShareableHandle, (driver_handle * out, void *descriptor, int type))           \
    X(cuMemAddressReserve, (driver_address * out, size_t bytes, size_t alignment,                  \
                            driver_address wanted, unsigned long long flags))                      \
    X(cuMemAddressFree, (driver_address at, size_t bytes))                                         \
    X(cuMemMap, (driver_address at, size_t bytes, size_t offset, driver_handle handle,             \
                 unsigned long long flags))                                                        \
    X(cuMemSetAccess, (driver_address at, size_t bytes, const driver_access *of, size_t count))    \
    X(cuMemUnmap, (driver_address at, size_t bytes))                                               \
    X(cuGetErrorString, (driver_result result, const char **out))

#endif
