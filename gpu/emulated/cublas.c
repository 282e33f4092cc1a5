/* cublas.c - see fake.h: products by OpenBLAS. */
#include <cblas.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "gpu/emulated/fake.h"

/* The only handle. */
static struct {
    bool open, has_space;
    cudaStream_t stream;
} products;

typedef struct product {
    CBLAS_TRANSPOSE a_turned, b_turned;
    int m, n, k, count;
    float alpha, beta;
    const float *a, *b;
    float *c;
    int a_line, b_line, c_line;
    long long a_step, b_step, c_step;
} product;

static cublasStatus_t status(cudaError_t result) {
    return result == cudaSuccess                 ? CUBLAS_STATUS_SUCCESS
           : result == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
                                                 : CUBLAS_STATUS_EXECUTION_FAILED;
}

const char *cublasGetStatusString(cublasStatus_t code) {
    return code == CUBLAS_STATUS_ALLOC_FAILED ? "the resource allocation failed"
                                              : "the function failed to launch on the GPU";
}

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    const cudaError_t result = fake_begin("cublasCreate", FAKE_CREATE_PRODUCTS);
    if (result != cudaSuccess)
        return status(result);
    products.open = true;
    *handle = (cublasHandle_t)&products;
    return CUBLAS_STATUS_SUCCESS;
}

/* For the plug-in's cublas.c, unless the caller names another. */
__attribute__((constructor)) static void name_own_file(void) {
    Dl_info own;
    if (dladdr((const void *)cublasCreate, &own) != 0)
        setenv("STARLING_CUBLAS", own.dli_fname, 0);
}

static void enter(cublasHandle_t handle, const char *function) {
    fake_enter_device(function);
    if (handle != (cublasHandle_t)&products || !products.open)
        fake_stop(function, "a handle that is not open");
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    enter(handle, "cublasSetMathMode");
    if (mode != CUBLAS_DEFAULT_MATH)
        fake_stop("cublasSetMathMode", "mode %d may round inputs", (int)mode);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
    enter(handle, "cublasSetAtomicsMode");
    if (mode != CUBLAS_ATOMICS_NOT_ALLOWED)
        fake_stop("cublasSetAtomicsMode", "sums would depend on time");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
    enter(handle, "cublasSetStream");
    products.stream = stream;
    products.has_space = false;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *space, size_t bytes) {
    enter(handle, "cublasSetWorkspace");
    fake_expect_on_device(space, bytes, "cublasSetWorkspace");
    products.has_space = true;
    return CUBLAS_STATUS_SUCCESS;
}

static void do_multiply(void *product_) {
    const product *p = product_;
    if (!fake_kernel_begins())
        return;
    for (int i = 0; i < p->count; i++)
        cblas_sgemm(CblasColMajor, p->a_turned, p->b_turned, p->m, p->n, p->k, p->alpha,
                    p->a + i * p->a_step, p->a_line, p->b + i * p->b_step, p->b_line, p->beta,
                    p->c + i * p->c_step, p->c_line);
}

/* Bytes from the first element of a column-major matrix to its last. */
static size_t bytes_of(int rows, int columns, int line) {
    return sizeof(float) * ((size_t)(columns - 1) * (size_t)line + (size_t)rows);
}

static void expect(const product *p, int i) {
    const bool a = p->a_turned == CblasTrans, b = p->b_turned == CblasTrans;
    fake_expect_on_device(p->a + i * p->a_step,
                          bytes_of(a ? p->k : p->m, a ? p->m : p->k, p->a_line), "a product's a");
    fake_expect_on_device(p->b + i * p->b_step,
                          bytes_of(b ? p->n : p->k, b ? p->k : p->n, p->b_line), "a product's b");
    fake_expect_on_device(p->c + i * p->c_step, bytes_of(p->m, p->n, p->c_line), "a product's c");
}

static cublasStatus_t multiply(cublasHandle_t handle, const product *p) {
    enter(handle, "a product");
    if (!products.has_space)
        fake_stop("a product", "no work space after the stream was set");
    const cudaError_t result = fake_result(FAKE_PRODUCT);
    if (result != cudaSuccess)
        fake_spoil_capture();
    if (result != cudaSuccess)
        return status(result);
    for (int i = 0; i < p->count; i++)
        expect(p, i);
    fake_give(products.stream, do_multiply, p, sizeof *p);
    return CUBLAS_STATUS_SUCCESS;
}

static CBLAS_TRANSPOSE turned(cublasOperation_t operation) {
    return operation == CUBLAS_OP_T ? CblasTrans : CblasNoTrans;
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t a_turned,
                           cublasOperation_t b_turned, int m, int n, int k, const float *alpha,
                           const float *a, int a_line, const float *b, int b_line,
                           const float *beta, float *c, int c_line) {
    return multiply(handle, &(product){turned(a_turned), turned(b_turned), m, n, k, 1, *alpha,
                                       *beta, a, b, c, a_line, b_line, c_line, 0, 0, 0});
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_turned,
                                         cublasOperation_t b_turned, int m, int n, int k,
                                         const float *alpha, const float *a, int a_line,
                                         long long a_step, const float *b, int b_line,
                                         long long b_step, const float *beta, float *c, int c_line,
                                         long long c_step, int count) {
    return multiply(handle,
                    &(product){turned(a_turned), turned(b_turned), m, n, k, count, *alpha, *beta, a,
                               b, c, a_line, b_line, c_line, a_step, b_step, c_step});
}
