/* test_authority.c - with a CA: whose certificates are good, in the greeting and in the handshake,
 * and which files of a CA are none. */
#include <sys/stat.h>

#include "ca_pairs.h"
#include "handshakes.h"
#include "secure/greeting.h"
#include "temporary.h"

static const sl_passage passage = {.run_id = 5, .from = 3, .to = 1, .incarnation = 77};

/* ---- who meets ---- */

static bool prove(const sl_credentials *maker, const sl_credentials *checker, const uint8_t *pinned,
                  char why[SL_GREETING_WHY_MAX]) {
    uint8_t greeting[SL_GREETING_BYTES], challenge[SL_CHALLENGE_BYTES] = {1};
    uint8_t proof[SL_PROOF_BYTES_MAX];
    const sl_exchange exchange = {greeting, challenge, passage.run_id};
    const sl_demand demand = {
        .pinned = pinned, .authority = checker->authority->store, .rank = passage.from};
    ck_assert(sl_greeting_write(&passage, maker, greeting));
    const size_t bytes = sl_proof_make(&exchange, maker, true, proof);
    ck_assert_uint_gt(bytes, 0);
    return sl_proof_check(&exchange, checker, true, &demand, proof, bytes, why);
}

/* The one who dials is rank 3, or the one who listens is. */
static bool meet(const sl_credentials *maker, const sl_credentials *checker, bool dials,
                 const uint8_t *pinned, char why[SL_HANDSHAKE_WHY_MAX]) {
    const sl_demand demand = {.pinned = pinned, .authority = checker->authority->store, .rank = 3};
    const sl_demand other = {.pinned = checker->fingerprint};
    char whys[2][SL_HANDSHAKE_WHY_MAX];
    sl_handshake *a, *b;
    ck_assert_int_eq(sl_handshake_open(&a, maker, &passage, dials, &other, NULL), 0);
    ck_assert_int_eq(sl_handshake_open(&b, checker, &passage, !dials, &demand, NULL), 0);
    const bool met = handshakes_meet(dials ? a : b, dials ? b : a, whys);
    strcpy(why, whys[dials]);
    sl_handshake_close(&a);
    sl_handshake_close(&b);
    return met;
}

/* Greeting and handshake, of whoever dials and whoever listens, say the same. words NULL: well. */
static void judge(const sl_credentials *maker, const sl_credentials *checker, const uint8_t *pinned,
                  const char *words) {
    char why[SL_HANDSHAKE_WHY_MAX] = "";
    ck_assert_msg(prove(maker, checker, pinned, why) == (words == NULL), "%s", why);
    ck_assert_msg(words == NULL || strstr(why, words) != NULL, "%s, not %s", words, why);
    for (int dials = 0; dials < 2; dials++) {
        why[0] = '\0';
        ck_assert_msg(meet(maker, checker, dials, pinned, why) == (words == NULL), "%s", why);
        ck_assert_msg(words == NULL || strstr(why, words) != NULL, "%s, not %s", words, why);
    }
}

START_TEST(who_has_a_certificate_of_the_ca_is_let_in) {
    static const char *const kinds[] = {"ED25519", "RSA", "EC"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ca root = make_ca(kinds[i], "root", NULL, DAY_S);
        ca second = make_ca(kinds[i], "second", &root, DAY_S);
        sl_credentials *of_root = keep(make_member(&root, "starling rank 3", 7));
        sl_credentials *of_second = keep(make_member(&second, "starling rank 3", 7));
        sl_credentials *checker = keep(make_member(&root, "starling rank 1", 8));
        trust(checker, root.certificate, NULL, NULL);
        judge(of_root, checker, NULL, NULL);
        judge(of_second, checker, NULL,
              "is not of a CA of security.ca: unable to get local issuer");
        trust(checker, second.certificate, NULL, NULL); /* its root is not needed */
        judge(of_second, checker, NULL, NULL);
        judge(of_root, checker, NULL, "is not of a CA of security.ca");
        trust(checker, root.certificate, second.certificate, NULL);
        judge(of_root, checker, NULL, NULL);
        judge(of_second, checker, NULL, NULL);
        judge(of_second, checker, of_second->fingerprint, NULL);
        judge(of_second, checker, of_root->fingerprint, "is not the one that the roster names");
        close_ca(&root);
        close_ca(&second);
    }
}

START_TEST(who_has_another_certificate_is_told_why) {
    ca root = make_ca("ED25519", "root", NULL, DAY_S),
       other = make_ca("ED25519", "root", NULL, DAY_S);
    ca over = make_ca("ED25519", "over", NULL, -1);
    sl_credentials *checker = keep(make_member(&root, "starling rank 1", 8)),
                   *c = keep(make_node());
    trust(checker, root.certificate, over.certificate, NULL);
    judge(c, checker, NULL, "is not of a CA of security.ca: self-signed certificate");
    judge(c, checker, c->fingerprint, "is not of a CA of security.ca"); /* a pin is not enough */
    static const char *const names[] = {"starling rank 1",  "starling rank 03", "starling rank 3 ",
                                        "starling rank 33", "starling node",    "starling rank",
                                        "starling rank -3", "STARLING RANK 3",  "starling rank 3.",
                                        "xstarling rank 3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        wear(c, certify(&root, c->key, names[i], 7, -DAY_S, DAY_S, false));
        judge(c, checker, NULL, "is for another rank: its CN is not \"starling rank 3\"");
    }
    wear(c, certify(&other, c->key, "starling rank 3", 7, -DAY_S, DAY_S, false));
    judge(c, checker, NULL, "is not of a CA of security.ca: certificate signature failure");
    wear(c, certify(&root, c->key, "starling rank 3", 7, -2 * DAY_S, -DAY_S, false));
    judge(c, checker, NULL, "its certificate sha256:");
    judge(c, checker, NULL, " has expired: valid from 20");
    judge(c, checker, NULL, ", and this host's clock says 20");
    wear(c, certify(&root, c->key, "starling rank 3", 7, DAY_S, 2 * DAY_S, false));
    judge(c, checker, NULL, "is not valid yet: valid from 20");
    wear(c, certify(&over, c->key, "starling rank 3", 7, -DAY_S, DAY_S, false));
    judge(c, checker, NULL, "its CA's certificate has expired");
    close_ca(&root);
    close_ca(&other);
    close_ca(&over);
}

/* Two names are none. */
START_TEST(a_certificate_names_one_rank) {
    ca root = make_ca("ED25519", "root", NULL, DAY_S);
    sl_credentials *checker = keep(make_member(&root, "starling rank 1", 8)),
                   *c = keep(make_node());
    trust(checker, root.certificate, NULL, NULL);
    X509 *both = certify(&root, c->key, "starling rank 3", 7, -DAY_S, DAY_S, false);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(both), "CN", MBSTRING_ASC,
                               (const uint8_t *)"starling rank 4", -1, -1, 0);
    ck_assert_int_gt(X509_sign(both, root.key, NULL), 0);
    wear(c, both);
    judge(c, checker, NULL, "is for another rank");
    close_ca(&root);
}

START_TEST(who_is_revoked_is_out) {
    ca root = make_ca("ED25519", "root", NULL, DAY_S), other = make_ca("EC", "o", NULL, DAY_S);
    sl_credentials *checker = keep(make_member(&root, "starling rank 1", 8));
    sl_credentials *c = keep(make_member(&root, "starling rank 3", 7));
    sl_credentials *foreign = keep(make_member(&other, "starling rank 3", 7));
    X509_CRL *none = make_list(&root, 0, DAY_S), *list = make_list(&root, 7, DAY_S);
    trust(checker, root.certificate, other.certificate, none);
    judge(c, checker, NULL, NULL);
    judge(foreign, checker, NULL, "is of a CA without a list in security.revoked");
    trust(checker, root.certificate, NULL, list);
    judge(c, checker, NULL, "is revoked (security.revoked)");
    judge(c, checker, c->fingerprint, "is revoked (security.revoked)"); /* pinned or not */
    wear(c, certify(&root, c->key, "starling rank 3", 9, -DAY_S, DAY_S, false));
    judge(c, checker, NULL, NULL);
    X509_CRL_free(none);
    X509_CRL_free(list);
    close_ca(&root);
    close_ca(&other);
}

START_TEST(a_list_may_end_while_a_run_goes_on) {
    ca root = make_ca("ED25519", "root", NULL, 9 * DAY_S);
    sl_credentials *checker = keep(make_member(&root, "starling rank 1", 8));
    sl_credentials *c = keep(make_member(&root, "starling rank 3", 9));
    X509_CRL *list = make_list(&root, 7, DAY_S);
    trust(checker, root.certificate, NULL, list);
    wear(c, certify(&root, c->key, "starling rank 3", 9, -DAY_S, 9 * DAY_S, false));
    X509_VERIFY_PARAM_set_time(X509_STORE_get0_param(checker->authority->store),
                               time(NULL) + 2 * DAY_S);
    judge(c, checker, NULL, NULL);
    X509_CRL_free(list);
    close_ca(&root);
}

/* Nothing of a certificate that a CA has signed can be altered, nor anything be left out or added.
 */
START_TEST(an_altered_certificate_proves_nothing) {
    ca root = make_ca("EC", "root", NULL, DAY_S);
    sl_credentials *checker = keep(make_member(&root, "starling rank 1", 8));
    sl_credentials *c = keep(make_member(&root, "starling rank 3", 7));
    trust(checker, root.certificate, NULL, NULL);
    uint8_t greeting[SL_GREETING_BYTES], challenge[SL_CHALLENGE_BYTES] = {1};
    uint8_t proof[SL_PROOF_BYTES_MAX + 1] = {0};
    char why[SL_GREETING_WHY_MAX];
    const sl_exchange exchange = {greeting, challenge, passage.run_id};
    const sl_demand demand = {.authority = checker->authority->store, .rank = passage.from};
    ck_assert(sl_greeting_write(&passage, c, greeting));
    const size_t bytes = sl_proof_make(&exchange, c, true, proof);
    ck_assert(sl_proof_check(&exchange, checker, true, &demand, proof, bytes, why));
    ck_assert(!sl_proof_check(&exchange, checker, true, &demand, proof, bytes + 1, why));
    ck_assert(!sl_proof_check(&exchange, checker, true, &demand, proof, sizeof proof, why));
    for (size_t less = 0; less < bytes; less++)
        ck_assert(!sl_proof_check(&exchange, checker, true, &demand, proof, less, why));
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        proof[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_msg(!sl_proof_check(&exchange, checker, true, &demand, proof, bytes, why),
                      "bit %zu", bit);
        proof[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    close_ca(&root);
}

/* ---- files ---- */

static void refuse(const char *ca_name, const char *list_name, const char *where,
                   const char *words) {
    const char *ca_path = at(ca_name), *list_path = list_name != NULL ? at(list_name) : "";
    sl_authority_ends ends;
    sl_error error = {.code = 0};
    const int result = sl_authority_look(ca_path, list_path, &ends, &error);
    ck_assert_msg((result == SL_EFILE) == (words != NULL), "%d: %s", result, error.text);
    if (words == NULL)
        return;
    const char *path = list_name != NULL ? list_path : ca_path;
    ck_assert_msg(strncmp(error.text, where, strlen(where)) == 0, "%s", error.text);
    ck_assert_msg(strstr(error.text, path) != NULL, "%s", error.text);
    ck_assert_msg(strstr(error.text, words) != NULL, "%s, not %s", words, error.text);
}

static void copy_part(const char *from, const char *to, size_t bytes) {
    char text[4096];
    FILE *f = fopen(at(from), "r");
    const size_t got = fread(text, 1, bytes, f);
    fclose(f);
    f = fopen(at(to), "w");
    fwrite(text, 1, got, f);
    fclose(f);
}

static void write_files(void) {
    ca root = make_ca("ED25519", "root", NULL, 100 * DAY_S),
       other = make_ca("EC", "o", NULL, DAY_S);
    sl_credentials *member = keep(make_member(&root, "starling rank 0", 2));
    X509_CRL *list = make_list(&root, 2, 50 * DAY_S), *foreign = make_list(&other, 2, DAY_S);
    X509_CRL *ended = make_list(&root, 2, -1);
    add_to_file(at("ca"), root.certificate, NULL);
    add_to_file(at("no-ca"), root.certificate, NULL);
    add_to_file(at("no-ca"), member->certificate, NULL);
    add_to_file(at("list"), NULL, list);
    add_to_file(at("foreign"), NULL, list);
    add_to_file(at("foreign"), NULL, foreign);
    add_to_file(at("ended"), NULL, ended);
    add_to_file(at("empty"), NULL, NULL);
    copy_part("ca", "cut", 200);
    copy_part("list", "cut-list", 200);
    ck_assert_int_eq(mkfifo(at("pipe"), 0600), 0);
    X509_CRL_free(list);
    X509_CRL_free(foreign);
    X509_CRL_free(ended);
    close_ca(&root);
    close_ca(&other);
}

FIXTURES(make_base, remove_base);

START_TEST(files_that_are_none_of_a_ca_are_refused) {
    write_files();
    refuse("ca", "list", "", NULL);
    refuse("none", NULL, "security.ca: ", "No such file");
    refuse("", NULL, "security.ca: ", "a folder");
    refuse("pipe", NULL, "security.ca: ", "a pipe");
    refuse("empty", NULL, "security.ca: ", "certificate 1 is not in PEM");
    refuse("cut", NULL, "security.ca: ", "certificate 1 is not in PEM, or is damaged");
    refuse("list", NULL, "security.ca: ", "certificate 1 is not in PEM");
    refuse("no-ca", NULL, "security.ca: ", "its certificate 2 is not a CA's");
    refuse("ca", "none", "security.revoked: ", "No such file");
    refuse("ca", "pipe", "security.revoked: ", "a pipe");
    refuse("ca", "ca", "security.revoked: ", "list (CRL) 1 is not in PEM");
    refuse("ca", "cut-list", "security.revoked: ", "list (CRL) 1 is not in PEM, or is damaged");
    refuse("ca", "foreign", "security.revoked: ", "its list 2 is not of a CA of security.ca");
    refuse("ca", "ended", "security.revoked: ", "its list 1 has ended, 20");
}

START_TEST(it_is_known_when_they_end) {
    sl_authority_ends ends;
    write_files();
    const char *ca_path = at("ca");
    const int64_t now = (int64_t)time(NULL);
    ck_assert_int_eq(sl_authority_look(ca_path, at("list"), &ends, NULL), 0);
    ck_assert_int_le(llabs(ends.ca_s - now - 100 * DAY_S), 60);
    ck_assert_int_le(llabs(ends.revoked_s - now - 50 * DAY_S), 60);
    ck_assert_int_eq(sl_authority_look(ca_path, "", &ends, NULL), 0);
    ck_assert_int_eq(ends.revoked_s, 0);
}
