/* Datagrams over IPv4 and IPv6 at once.
 *
 *   datagrams serve PORT          sends back what comes, to whoever sent it; ends with its first peer
 *   datagrams send HOST PORT N    sends N datagrams and waits for each to come back; a policy of its own, which sees both versions,
 *                                 goes to the other one half way; what is lost is sent again after a second
 *
 * cc datagrams.c $(pkg-config --cflags --libs netaware) -o datagrams
 */
#include <errno.h>
#include <netaware.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, na_strerror());
    return 1;
}

static int serve(uint16_t port) {
    int s = na_socket(NA_DUAL | NA_DGRAM);
    if (na_bind(s, NULL, port) < 0) return fail("na_bind");
    int bound = na_listen(s, 0);
    if (bound < 0) return fail("na_listen");
    printf("%d\n", bound);
    fflush(stdout);
    if (na_setsockopt(s, NA_RCVTIMEO, 200) < 0) return fail("na_setsockopt");
    uint64_t peer, first = 0;
    char buffer[2000];
    struct NaStatus status;
    for (;;) {
        ssize_t got = na_recvfrom(s, buffer, sizeof buffer, 0, &peer);
        if (got < 0 && errno != EAGAIN) return fail("na_recvfrom");
        if (got < 0 && first != 0 && na_status_of(s, first, &status) < 0) break;
        if (got < 0) continue;
        if (first == 0) first = peer;
        if (na_sendto(s, buffer, (size_t)got, 0, peer) < 0) return fail("na_sendto");
    }
    na_close(s);
    return 0;
}

struct course {
    int half_way;
    int seen;
};

/* On a thread of the library: nothing here waits. */
static int decide(const struct NaEvidence *evidence, void *user) {
    struct course *course = user;
    int both = evidence->ipv4.up && evidence->ipv6.up && evidence->ipv4.rtt_us >= 0 && evidence->ipv6.rtt_us >= 0;
    if (both) __atomic_store_n(&course->seen, 1, __ATOMIC_SEQ_CST);
    if (!both || !__atomic_exchange_n(&course->half_way, 0, __ATOMIC_SEQ_CST)) return NA_KEEP;
    return evidence->present == NA_IPV6 ? NA_IPV4 : NA_IPV6;
}

static int run(const char *host, uint16_t port, int count) {
    struct course course = {0, 0};
    int s = na_socket(NA_DUAL | NA_DGRAM);
    if (na_policy(s, "[policy]\nuse = \"interactive\"\nevery = \"100ms\"\n") < 0) return fail("na_policy");
    if (na_policy_callback(s, decide, &course) < 0) return fail("na_policy_callback");
    if (na_connect(s, host, port) < 0) return fail("na_connect");
    if (na_setsockopt(s, NA_RCVTIMEO, 1000) < 0) return fail("na_setsockopt");
    int changes = 0, last = 0, asked = 0, n = 0;
    struct NaStatus status;
    /* Until there has been a change, which the policy makes when it has seen both versions. */
    while (n < count || changes == 0) {
        int out = n, in = -1;
        if (na_send(s, &out, sizeof out, 0) < 0) return fail("na_send");
        while (in != out) {
            ssize_t got = na_recv(s, &in, sizeof in, 0);
            if (got < 0 && errno == EAGAIN) break;
            if (got != sizeof in) return fail("na_recv");
        }
        n += in == out;
        if (na_status(s, &status) < 0) return fail("na_status");
        changes += last != 0 && status.current != last;
        last = status.current;
        if (n >= count / 2 && !asked && __atomic_load_n(&course.seen, __ATOMIC_SEQ_CST)) {
            asked = 1;
            __atomic_store_n(&course.half_way, 1, __ATOMIC_SEQ_CST);
        }
    }
    printf("all came back, %d changes of IP version\n", changes);
    fprintf(stderr, "IPv4: %lld sent, %lld lost, %lld us; IPv6: %lld sent, %lld lost, %lld us\n",
            (long long)status.ipv4.sent, (long long)status.ipv4.lost, (long long)status.ipv4_rtt_us,
            (long long)status.ipv6.sent, (long long)status.ipv6.lost, (long long)status.ipv6_rtt_us);
    /* From here on the policy is not called any more, so that course may go. */
    na_close(s);
    return 0;
}

int main(int count, char **words) {
    if (count == 3 && strcmp(words[1], "serve") == 0) return serve((uint16_t)atoi(words[2]));
    if (count == 5 && strcmp(words[1], "send") == 0)
        return run(words[2], (uint16_t)atoi(words[3]), atoi(words[4]));
    fprintf(stderr, "usage: %s serve PORT | send HOST PORT COUNT\n", words[0]);
    return 2;
}
