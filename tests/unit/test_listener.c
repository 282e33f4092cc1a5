/* test_listener.c - strangers at a port: places, their time, and descriptors that are left free. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include "base/address.h"
#include "base/listener.h"
#include "base/places.h"
#include "harness.h"

enum { PLACES = 8, OF_HOST = 3, GUESTS = 4, RESERVE = 6 };
static const double patience_s = 5;

static sl_places places;
static bool evicted;

static struct sockaddr_storage at(const char *ip, uint16_t port) {
    struct sockaddr_storage address;
    ck_assert(sl_address_parse(&address, ip));
    sl_address_set_port(&address, port);
    return address;
}

static unsigned come(const char *ip, double now_s, bool is_short) {
    static uint16_t port = 1024;
    const struct sockaddr_storage other = at(ip, port++);
    return sl_places_take(&places, &other, now_s, is_short, &evicted);
}

/* Somebody else goes for who comes, or nobody. */
static unsigned come_for(bool another, const char *ip, double now_s, bool is_short) {
    const unsigned place = come(ip, now_s, is_short);
    ck_assert_int_eq(evicted, another);
    return place;
}

static void open_places(void) {
    sl_places_open(&places, PLACES, OF_HOST, patience_s);
}

/* ---- places ---- */

FIXTURES(open_places, NULL);

START_TEST(the_oldest_goes_where_all_places_are_taken) {
    unsigned first[PLACES];
    for (unsigned i = 0; i < PLACES; i++) {
        first[i] = come_for(false, "127.0.0.1", 0, false);
        for (unsigned j = 0; j < i; j++)
            ck_assert_uint_ne(first[i], first[j]);
    }
    for (unsigned i = 0; i < 5 * PLACES; i++) { /* in the order in which they came, at one time */
        ck_assert_uint_eq(come_for(true, "127.0.0.1", 0, false), first[i % PLACES]);
        ck_assert_uint_eq(places.taken, PLACES);
    }
}

START_TEST(who_has_left_is_nobody) {
    come("127.0.0.1", 0, false);
    const unsigned second = come("127.0.0.1", 1, false);
    ck_assert_int_eq(sl_places_oldest(&places), 0);
    sl_places_leave(&places, 0);
    ck_assert_int_eq(sl_places_oldest(&places), (int)second);
    ck_assert_uint_eq(places.taken, 1);
    for (unsigned i = 1; i < PLACES; i++)
        come_for(false, "127.0.0.1", 2, false);
    ck_assert_uint_eq(come_for(true, "127.0.0.1", 2, false), second);
}

START_TEST(one_host_has_few_places) {
    const char *const hosts[] = {"10.0.0.1", "fd00::1"};
    unsigned first[2][OF_HOST];
    for (unsigned h = 0; h < 2; h++)
        for (unsigned i = 0; i < OF_HOST; i++)
            first[h][i] = come_for(false, hosts[h], i, false);
    come_for(false, "10.0.0.2", 9, false);
    for (unsigned i = 0; i < 20; i++)
        for (unsigned h = 0; h < 2; h++)
            ck_assert_uint_eq(come_for(true, hosts[h], 9, false), first[h][i % OF_HOST]);
    ck_assert_uint_eq(places.taken, 2 * OF_HOST + 1);
}

START_TEST(this_host_has_all_places) {
    const char *const own[] = {"127.0.0.1", "127.7.7.7", "::1", "::ffff:127.0.0.1"};
    struct sockaddr_storage by_name = {.ss_family = AF_UNIX};
    for (unsigned h = 0; h < 4; h++) {
        open_places();
        for (unsigned i = 0; i < PLACES; i++)
            come_for(false, own[h], 0, false);
    }
    open_places();
    for (unsigned i = 0; i < PLACES; i++) {
        sl_places_take(&places, &by_name, 0, false, &evicted);
        ck_assert(!evicted);
    }
}

START_TEST(any_number_of_one_host_where_no_number_is_said) {
    sl_places_open(&places, PLACES, 0, patience_s);
    for (unsigned i = 0; i < PLACES; i++)
        come_for(false, "10.0.0.1", 0, false);
}

START_TEST(time_counts_from_coming) {
    ck_assert_double_eq(sl_places_left_s(&places, 0), INFINITY);
    ck_assert_int_eq(sl_places_expired(&places, 1e9), -1);
    const unsigned first = come("127.0.0.1", 1, false), second = come("127.0.0.1", 2, false);
    ck_assert_double_eq(sl_places_left_s(&places, 4), 2);
    ck_assert_int_eq(sl_places_expired(&places, 5.9), -1);
    ck_assert_int_eq(sl_places_expired(&places, 6), (int)first);
    ck_assert_double_eq(sl_places_left_s(&places, 100), 0);
    sl_places_leave(&places, first);
    ck_assert_int_eq(sl_places_expired(&places, 6), -1);
    ck_assert_int_eq(sl_places_expired(&places, 7), (int)second);
}

START_TEST(somebody_goes_where_descriptors_are_short) {
    come_for(false, "127.0.0.1", 0, true); /* nobody is there */
    for (unsigned i = 0; i < 3; i++) {
        come_for(true, "127.0.0.1", 0, true);
        ck_assert_uint_eq(places.taken, 1);
    }
}

/* ---- addresses ---- */

FIXTURES(NULL, NULL);

START_TEST(addresses_are_compared_by_host_and_port) {
    const struct sockaddr_storage a = at("10.0.0.1", 1), b = at("10.0.0.1", 2),
                                  c = at("10.0.0.2", 1), d = at("fd00::1", 1), e = at("fd00::1", 1);
    struct sockaddr_storage none;
    char text[SL_IP_TEXT_MAX];
    ck_assert(sl_address_same_host(&a, &b) && !sl_address_equal(&a, &b));
    ck_assert(!sl_address_same_host(&a, &c) && !sl_address_same_host(&a, &d));
    ck_assert(sl_address_equal(&d, &e));
    ck_assert_uint_eq(sl_address_port(&b), 2);
    sl_address_text(&d, text);
    ck_assert_str_eq(text, "fd00::1");
    ck_assert(!sl_address_is_loopback(&a) && !sl_address_is_loopback(&d));
    ck_assert(!sl_address_parse(&none, "localhost") && !sl_address_parse(&none, "10.0.0.1 "));
}

/* ---- the listening socket ---- */

static sl_listener listener;
static struct sockaddr_storage place;
static int guests[GUESTS];
static rlim_t limit_before;

static void limit_descriptors(rlim_t limit) {
    struct rlimit all;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
    limit_before = all.rlim_cur;
    all.rlim_cur = limit;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
}

static void open_listener(void) {
    socklen_t bytes = sizeof place;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    place = at("127.0.0.1", 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&place, sl_address_bytes(&place)), 0);
    ck_assert_int_eq(listen(fd, GUESTS), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&place, &bytes), 0);
    sl_listener_open(&listener, fd, RESERVE);
    open_places();
}

static void close_listener(void) {
    close(listener.fd);
    sl_listener_close(&listener);
    sl_listener_close(&listener);
}

static void send_guests(void) {
    for (int i = 0; i < GUESTS; i++) {
        guests[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(guests[i], (struct sockaddr *)&place, sl_address_bytes(&place)),
                         0);
    }
}

static int lowest_free(void) {
    const int fd = dup(0);
    close(fd);
    return fd;
}

FIXTURES(open_listener, close_listener);

START_TEST(who_waits_is_accepted) {
    struct sockaddr_storage other;
    send_guests();
    for (int i = 0; i < GUESTS; i++) {
        const int fd = sl_listener_accept(&listener, &other, 0);
        ck_assert_int_ge(fd, 0);
        ck_assert(sl_address_same_host(&other, &place) && sl_address_port(&other) != 0);
        ck_assert((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
        ck_assert((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
        ck_assert(!sl_listener_is_short(&listener, fd));
    }
    ck_assert_int_eq(sl_listener_accept(&listener, &other, 0), SL_LISTENER_NOBODY);
    ck_assert(sl_listener_listens(&listener, 0));
}

START_TEST(without_a_descriptor_who_waits_is_turned_away) {
    struct sockaddr_storage other;
    char byte;
    send_guests();
    const int fd = lowest_free();
    limit_descriptors((rlim_t)fd);
    ck_assert_int_eq(sl_listener_accept(&listener, &other, 7), SL_LISTENER_FULL);
    ck_assert(!sl_listener_listens(&listener, 7) && sl_listener_listens(&listener, 8));
    for (int i = 0; i < GUESTS; i++)
        ck_assert_int_le(recv(guests[i], &byte, 1, 0), 0);
    ck_assert_int_ge(listener.spare, 0);
    limit_descriptors(limit_before);
    ck_assert_int_eq(sl_listener_accept(&listener, &other, 8), SL_LISTENER_NOBODY);
    send_guests();
    ck_assert_int_ge(sl_listener_accept(&listener, &other, 9), fd);
}

/* So that the numbers of descriptors count them, whatever this process has inherited. */
static int fill_gaps(void) {
    int end = 0;
    for (int fd = 0; fd < 1024; fd++)
        end = fcntl(fd, F_GETFD) >= 0 ? fd + 1 : end;
    while (lowest_free() < end)
        ck_assert_int_ge(dup(0), 0);
    return end;
}

/* Though each who goes leaves a low number to the next one. */
START_TEST(the_last_descriptors_are_a_reserve) {
    struct sockaddr_storage other;
    int there[PLACES], most = 0;
    const int first = fill_gaps(); /* not counting this test's own */
    limit_descriptors((rlim_t)(first + 2 + RESERVE + GUESTS));
    for (int round = 0; round < 20; round++) {
        send_guests();
        for (int i = 0; i < GUESTS; i++) {
            const int fd = sl_listener_accept(&listener, &other, 0);
            ck_assert_int_ge(fd, 0);
            const unsigned at =
                sl_places_take(&places, &other, 0, sl_listener_is_short(&listener, fd), &evicted);
            if (evicted)
                close(there[at]);
            there[at] = fd;
            most = (int)places.taken > most ? (int)places.taken : most;
        }
        for (int i = 0; i < GUESTS; i++)
            close(guests[i]);
    }
    ck_assert_int_eq(most, 2);
    limit_descriptors(limit_before);
}
