/* exposition.c - see exposition.h. */
#include "base/exposition.h"

#include <math.h>

void sl_exposition_head(FILE *out, const char *name, const char *type, const char *help) {
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void sl_exposition_number(FILE *out, const char *name, const char *type, const char *help,
                          double value) {
    if (isnan(value))
        return;
    sl_exposition_head(out, name, type, help);
    fprintf(out, "%s %.17g\n", name, value);
}
