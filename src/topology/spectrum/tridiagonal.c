/* tridiagonal.c - one eigenpair of the small matrix that a Lanczos recurrence leaves; LAPACK's
 * dstevr. */
#include <stdlib.h>
#include <string.h>

#include "topology/spectrum/krylov.h"

void dstevr_(const char *jobz, const char *range, const int *n, double *d, double *e,
             const double *vl, const double *vu, const int *il, const int *iu, const double *abstol,
             int *m, double *w, double *z, const int *ldz, int *isuppz, double *work,
             const int *lwork, int *iwork, const int *liwork, int *info);

int sl_tridiagonal_eigenpair(const double *diagonal, const double *beside, uint32_t size,
                             uint32_t which, double *value, double *vector) {
    int n = (int)size, index = (int)which + 1, found = 0, support[2], lwork = 20 * n,
        liwork = 10 * n, info = -1;
    double none = 0, *values = malloc((size_t)n * sizeof *values);
    double *d = malloc((size_t)n * sizeof *d), *e = malloc((size_t)n * sizeof *e),
           *work = malloc((size_t)lwork * sizeof *work);
    int *iwork = malloc((size_t)liwork * sizeof *iwork);
    if (values && d && e && work && iwork) {
        memcpy(d, diagonal, size * sizeof *d);
        memcpy(e, beside, (size - 1) * sizeof *e);
        dstevr_(vector != NULL ? "V" : "N", "I", &n, d, e, &none, &none, &index, &index, &none,
                &found, values, vector, &n, support, work, &lwork, iwork, &liwork, &info);
        *value = values[0];
    }
    free(values);
    free(d);
    free(e);
    free(work);
    free(iwork);
    return info == 0 && found == 1 ? 0 : -1;
}
