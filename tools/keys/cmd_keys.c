/* cmd_keys.c - `starling keys`: makes the files with which agents prove who they are, and puts
 * rosters with fingerprints together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"

static int ended(int result, const sl_error *error) {
    if (result == 0)
        return TOOL_OK;
    complain("%s", error->text);
    return TOOL_USAGE;
}

/* ---- make ---- */

typedef struct make_request {
    bool node;
    const char *out;
} make_request;

static int make(void *request, char *const *operands, size_t count) {
    const make_request *r = request;
    char fingerprint[SL_FINGERPRINT_TEXT_MAX];
    sl_error error;
    (void)operands, (void)count;
    if (r->out == NULL) {
        complain("keys make: -o says where to write the key");
        return TOOL_USAGE;
    }
    int result =
        r->node ? sl_node_keys_make(r->out, fingerprint, &error) : sl_run_key_make(r->out, &error);
    if (result == 0 && r->node)
        printf("%s\n", fingerprint);
    return ended(result, &error);
}

static const command_option option_node = {
    .name = "node",
    .help = "a pair for one node: NAME.key, which stays on its machine, and NAME.crt, whose "
            "fingerprint the roster holds",
    .take = take_switch,
    .offset = offsetof(make_request, node)};
static const command_option option_key_out = {
    .name = "out",
    .letter = 'o',
    .argument = "FILE",
    .needed = true,
    .help = "the key's file, or NAME of a pair; never written over",
    .take = take_text,
    .offset = offsetof(make_request, out),
    .offer = OFFER_FILE};
static const command_option *const make_rows[] = {&option_key_out, &option_node, NULL};

static const command make_command = {
    .name = "keys make",
    .summary = "make a run's key, or a node's pair",
    .text = "Writes a secret that all agents of a run share; or with --node a node's own Ed25519 "
            "key and certificate, and prints the certificate's fingerprint. Only the owner may "
            "read a secret file.",
    .options = make_rows,
    .request_bytes = sizeof(make_request),
    .run = make,
};

/* ---- roster ---- */

/* "0 HOST:PORT sha256:..." of "HOST:PORT=CERTIFICATE". */
static int add_line(FILE *lines, size_t rank, const char *operand, sl_error *error) {
    char fingerprint[SL_FINGERPRINT_TEXT_MAX];
    const char *equals = strchr(operand, '=');
    if (equals == NULL)
        return sl_fail(error, SL_EINVAL, "keys roster: '%s' is not HOST:PORT=CERTIFICATE", operand);
    int result = sl_certificate_fingerprint(equals + 1, fingerprint, error);
    if (result == 0)
        fprintf(lines, "%zu %.*s %s\n", rank, (int)(equals - operand), operand, fingerprint);
    return result;
}

static int roster(void *request, char *const *operands, size_t count) {
    char *text = NULL;
    size_t bytes;
    sl_error error;
    sl_roster *parsed = NULL;
    FILE *lines = open_memstream(&text, &bytes);
    int result = lines == NULL ? sl_fail(&error, SL_ENOMEM, "out of memory") : 0;
    (void)request;
    for (size_t i = 0; i < count && result == 0; i++)
        result = add_line(lines, i, operands[i], &error);
    if (lines != NULL)
        fclose(lines);
    if (result == 0)
        result = sl_roster_parse(&parsed, text, "keys roster", &error);
    if (result == 0)
        fputs(text, stdout);
    sl_roster_close(&parsed);
    free(text);
    return ended(result, &error);
}

static const command roster_command = {
    .name = "keys roster",
    .summary = "print a roster with the fingerprints of certificates",
    .operands = "HOST:PORT=CERTIFICATE",
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .offer = OFFER_FILE,
    .text =
        "Prints a line for each place, in the order of ranks: rank, place, and the SHA-256 of "
        "the certificate of the node there. A pair that was lost is shut out by the fingerprint "
        "of another one in its line.",
    .request_bytes = sizeof(int),
    .run = roster,
};

static const command *const commands[] = {&make_command, &roster_command, NULL};

const command keys_command = {
    .name = "keys",
    .summary = "make keys, and rosters with fingerprints",
    .text = "Agents prove with keys who they are.",
    .commands = commands,
};
