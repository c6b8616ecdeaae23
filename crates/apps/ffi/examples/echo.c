/* A server and a client over IPv4 and IPv6 at once.
 *
 *   echo serve PORT          takes streams and sends back what comes; ends after one stream
 *   echo send HOST PORT N    sends N blocks, checks what comes back, and switches half way; SIGUSR1 and SIGUSR2 switch, too
 *   echo send HOST PORT N P  the same, and P switches instead: the text of a policy, as in '[policy]\nmetric = "round-trip"'
 *
 * cc echo.c $(pkg-config --cflags --libs netaware) -o echo
 */
#include <netaware.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 20000 };

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, na_strerror());
    return 1;
}

static int serve(uint16_t port) {
    int listening = na_socket(NA_DUAL);
    if (na_bind(listening, NULL, port) < 0) return fail("na_bind");
    int bound = na_listen(listening, 16);
    if (bound < 0) return fail("na_listen");
    printf("%d\n", bound);
    fflush(stdout);
    int stream = na_accept(listening);
    if (stream < 0) return fail("na_accept");
    static char block[BLOCK];
    ssize_t got;
    while ((got = na_recv(stream, block, sizeof block, 0)) > 0)
        if (na_send(stream, block, (size_t)got, 0) != got) return fail("na_send");
    if (got < 0) return fail("na_recv");
    na_shutdown(stream, NA_SHUT_WR);
    na_close(stream);
    na_close(listening);
    return 0;
}

static int run(const char *host, uint16_t port, int blocks, const char *policy) {
    int stream = na_socket(NA_DUAL);
    if (na_signals(1) < 0) return fail("na_signals");
    if (na_connect(stream, host, port) < 0) return fail("na_connect");
    if (policy && na_policy(stream, policy) < 0) return fail("na_policy");
    static char out[BLOCK], in[BLOCK];
    int switched = policy != NULL, changes = 0, last = 0;
    struct NaStatus status;
    for (int n = 0; n < blocks; n++) {
        memset(out, 'a' + n % 26, sizeof out);
        if (na_send(stream, out, sizeof out, 0) != BLOCK) return fail("na_send");
        for (size_t have = 0; have < sizeof in;) {
            ssize_t got = na_recv(stream, in + have, sizeof in - have, 0);
            if (got <= 0) return fail("na_recv");
            have += (size_t)got;
        }
        if (memcmp(in, out, sizeof in) != 0) {
            fprintf(stderr, "block %d came back as another\n", n);
            return 1;
        }
        if (na_status(stream, &status) < 0) return fail("na_status");
        changes += last != 0 && status.current != 0 && status.current != last;
        last = status.current ? status.current : last;
        if (n >= blocks / 2 && !switched && status.ipv4_up && status.ipv6_up) {
            if (na_switch(stream, last == NA_IPV6 ? NA_IPV4 : NA_IPV6) < 0) return fail("na_switch");
            switched = 1;
        }
    }
    printf("%d blocks came back, %d changes of IP version\n", blocks, changes);
    na_shutdown(stream, NA_SHUT_WR);
    while (na_recv(stream, in, sizeof in, 0) > 0) {}
    na_close(stream);
    return 0;
}

int main(int count, char **words) {
    if (count == 3 && strcmp(words[1], "serve") == 0) return serve((uint16_t)atoi(words[2]));
    if ((count == 5 || count == 6) && strcmp(words[1], "send") == 0)
        return run(words[2], (uint16_t)atoi(words[3]), atoi(words[4]), words[5]);
    fprintf(stderr, "usage: %s serve PORT | send HOST PORT BLOCKS [POLICY]\n", words[0]);
    return 2;
}
