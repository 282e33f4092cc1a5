/* cublas_v2.h - of NVIDIA's header of this name, what cublas.c uses; see cuda_runtime_api.h. */
#ifndef SL_EMULATED_CUBLAS_V2_H
#define SL_EMULATED_CUBLAS_V2_H

#include <cuda_runtime_api.h>

#define CUBLAS_VER_MAJOR 12

typedef struct cublasContext *cublasHandle_t;
typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_EXECUTION_FAILED = 13
} cublasStatus_t;
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T } cublasOperation_t;
typedef enum { CUBLAS_DEFAULT_MATH } cublasMath_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED } cublasAtomicsMode_t;

cublasStatus_t cublasCreate(cublasHandle_t *handle);
const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *space, size_t bytes);
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t a_turned,
                           cublasOperation_t b_turned, int m, int n, int k, const float *alpha,
                           const float *a, int a_line, const float *b, int b_line,
                           const float *beta, float *c, int c_line);
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_turned,
                                         cublasOperation_t b_turned, int m, int n, int k,
                                         const float *alpha, const float *a, int a_line,
                                         long long a_step, const float *b, int b_line,
                                         long long b_step, const float *beta, float *c, int c_line,
                                         long long c_step, int count);

#endif
