/* run_page.c - see run_page.h. */
#include "run/run_page.h"

#include <stdio.h>
#include <string.h>

#include "cli/browser.h"

sl_show_place run_page_place(const sl_experiment *e) {
    return (sl_show_place){.at = e->monitor.listen,
                           .key = "monitor.listen",
                           .allow = "\"monitor\": {\"public\": true}",
                           .is_public = e->monitor.is_public || e->security.trusted_network};
}

bool run_page_takes(const char *listen) {
    return strstr(listen, "{rank}") == NULL;
}

/* A free port, of the agents' host where that is one for all. */
static void choose_place(char out[SL_NAME_MAX + 16], const char *listen) {
    const char *port = strrchr(listen, ':'), *rank = strstr(listen, "{rank}");
    if (run_page_takes(listen))
        snprintf(out, SL_NAME_MAX + 16, "%s", listen);
    else if (port != NULL && rank > port)
        snprintf(out, SL_NAME_MAX + 16, "%.*s:0", (int)(port - listen), listen);
    else
        snprintf(out, SL_NAME_MAX + 16, "127.0.0.1:0");
}

int run_page_open(sl_show **out, const options *o, const sl_experiment *e, const char *folder,
                  sl_error *error) {
    char at[SL_NAME_MAX + 16];
    sl_show_place place = run_page_place(e);
    *out = NULL;
    if (e->monitor.listen[0] == '\0')
        return o->open_page ? sl_fail(error, SL_EINVAL,
                                      "--open: there is a page only with monitor.listen, such as "
                                      "--set monitor.listen=127.0.0.1:8000")
                            : 0;
    choose_place(at, e->monitor.listen);
    place.at = at;
    return sl_show_open(out, folder, &place, error);
}

void run_page_tell(const sl_show *page, const options *o) {
    if (page == NULL)
        return;
    tell_line("its page: %s", sl_show_address(page));
    fflush(stdout);
    if (o->open_page)
        browser_open(sl_show_address(page));
}
