/* environment.c - see environment.h. */
#include "launch/environment.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *sl_environment_text(sl_environment environment, const char *name) {
    const size_t length = strlen(name);
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return (*environment)[length + 1] != '\0' ? *environment + length + 1 : NULL;
    return NULL;
}

bool sl_whole(const char *text, uint64_t max, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 && *value <= max;
}

bool sl_environment_whole(sl_environment environment, const char *name, uint64_t max,
                          uint64_t *value, int *result, sl_error *error) {
    const char *text = sl_environment_text(environment, name);
    if (text == NULL || *result != 0)
        return false;
    if (sl_whole(text, max, value))
        return true;
    *result = sl_fail(error, SL_EINVAL, "%s=%s: a whole number from 0 to %llu is needed", name,
                      text, (unsigned long long)max);
    return false;
}
