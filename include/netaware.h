/* libnetaware: streams and datagrams over IPv4 and IPv6 at once. See libnetaware(3).
 *
 * A stream is a number, as a socket is, and so is a socket of datagrams. Calls return -1 where they fail; errno says why, and na_strerror() in words.
 * All calls may come from any thread; a stream may be read by one thread and written by another at once.
 * Made by cbindgen from crates/apps/ffi; do not edit. */

#ifndef NETAWARE_H
#define NETAWARE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 na_socket: a connection of each IP version.
 */
#define NA_DUAL 0

/*
 na_socket: one connection, of whichever version comes up first.
 */
#define NA_FIRST 1

/*
 na_socket, na_switch: IPv4 alone.
 */
#define NA_IPV4 4

/*
 na_socket, na_switch: IPv6 alone.
 */
#define NA_IPV6 6

/*
 na_socket, beside one of those: datagrams instead of a stream.
 */
#define NA_DGRAM 16

/*
 na_send, na_recv and their kin: do not wait; EAGAIN where it would have to.
 */
#define NA_DONTWAIT 1

/*
 na_send, na_recv: leave this call out of switching: while it runs the stream is held, see
 na_hold. Of streams alone.
 */
#define NA_MSG_HOLD 2

/*
 na_shutdown: no more is sent. Of streams alone.
 */
#define NA_SHUT_WR 1

/*
 na_shutdown: the stream is given up; a socket of datagrams ends its sessions.
 */
#define NA_SHUT_RDWR 2

/*
 na_setsockopt: bytes kept until they are acknowledged, and taken until they are read; of
 datagrams the latter alone. Before connecting or listening.
 */
#define NA_WINDOW 1

/*
 na_setsockopt: milliseconds that na_send may wait; 0 for no end.
 */
#define NA_SNDTIMEO 2

/*
 na_setsockopt: milliseconds that na_recv and na_accept may wait; 0 for no end.
 */
#define NA_RCVTIMEO 3

/*
 na_setsockopt: other than 0 for calls that do not wait.
 */
#define NA_NONBLOCK 4

/*
 na_getsockopt: how many holds there are, those of calls with NA_MSG_HOLD included. na_hold makes
 them.
 */
#define NA_HOLD 5

/*
 errno of every call in a child of fork whose parent has opened a stream: the streams are the
 parent's, and nothing of them has been touched. No error of the system has this number.
 */
#define NA_EFORK 5000

/*
 NaDecision: the rules decided.
 */
#define NA_BY_RULES 1

/*
 NaDecision: the program's callback decided.
 */
#define NA_BY_CALLBACK 2

/*
 NaDecision: figures are bit/s.
 */
#define NA_GOODPUT 1

/*
 NaDecision: figures are microseconds.
 */
#define NA_ROUND_TRIP 2

/*
 NaDecision: figures are shares of the packets, 0 to 1.
 */
#define NA_LOSS 3

/*
 na_peer: room for any address as a text.
 */
#define NA_ADDRESS_LENGTH 64

/*
 What a callback of a policy returns to stay where it is; NA_IPV4 and NA_IPV6 for going there.
 */
#define NA_KEEP 0

/*
 What a policy has decided, on which evidence, and what became of it.
 */
typedef struct NaDecision {
  /*
   When, microseconds of CLOCK_MONOTONIC.
   */
  int64_t at_us;
  /*
   Of datagrams, the peer whose session it is, as na_recvfrom names it; of streams 0.
   */
  uint64_t peer;
  /*
   Away from 4 or 6.
   */
  int from;
  /*
   To 4 or 6.
   */
  int to;
  /*
   NA_BY_RULES or NA_BY_CALLBACK, which may have had other reasons than these figures.
   */
  int by;
  /*
   NA_GOODPUT, NA_ROUND_TRIP or NA_LOSS: by what the rules compare.
   */
  int metric;
  /*
   0 where the switch was begun; else why not: EBUSY the stream is held, ENETUNREACH no
   connection of that version, EALREADY another switch was under way, ENOTCONN it has ended.
   */
  int not_done;
  /*
   Observations behind `present`.
   */
  int present_looks;
  /*
   Observations behind `other`.
   */
  int other_looks;
  /*
   Median of the version in use; -1 where nothing was seen.
   */
  double present;
  /*
   Median of the other version; -1 where nothing was seen.
   */
  double other;
  /*
   How much better the other one had to be: a share of the present figure, of loss a share of
   the packets; 0 where a callback decided.
   */
  double margin;
} NaDecision;

/*
 What is known of one version since the last switch: medians of the last observations.
 */
typedef struct NaVersionEvidence {
  /*
   Whether it can be used now.
   */
  int up;
  /*
   Observations behind the figures.
   */
  int observations;
  /*
   Round trip, microseconds; -1 where it is not known.
   */
  int64_t rtt_us;
  /*
   What it delivers or would, bit/s; -1 where it is not known, and of datagrams.
   */
  int64_t goodput_bps;
  /*
   Share of packets lost, 0 to 1; -1 where it is not known.
   */
  double loss;
} NaVersionEvidence;

/*
 What a callback of a policy decides by.
 */
typedef struct NaEvidence {
  /*
   Where this direction goes: 4 or 6.
   */
  int present;
  /*
   Where the rules would go now, 4 or 6; 0 where they would stay.
   */
  int rules_say;
  /*
   Of IPv4.
   */
  struct NaVersionEvidence ipv4;
  /*
   Of IPv6.
   */
  struct NaVersionEvidence ipv6;
} NaEvidence;

/*
 A program's own policy: NA_KEEP, NA_IPV4 or NA_IPV6; anything else is NA_KEEP. The evidence is
 the library's and good until it returns. It is called on a thread of the library, see
 na_policy_callback.
 */
typedef int (*NaDecide)(const struct NaEvidence *evidence, void *user);

/*
 What datagrams saw of one version; -1 where it is not known, and everywhere of streams.
 */
typedef struct NaVersionStatus {
  /*
   Datagrams sent over it, those of the library included.
   */
  int64_t sent;
  /*
   Of those, known to have come.
   */
  int64_t confirmed;
  /*
   Of those, missing when the peer last told.
   */
  int64_t lost;
  /*
   Datagrams that came over it.
   */
  int64_t received;
  /*
   Missing among those.
   */
  int64_t missing;
  /*
   How much longer they take to the peer than the quickest one lately, microseconds.
   */
  int64_t forward_delay_us;
  /*
   The same of those that come.
   */
  int64_t reverse_delay_us;
} NaVersionStatus;

/*
 How a stream stands, or a session of datagrams.
 */
typedef struct NaStatus {
  /*
   0 bytes can travel, 1 both directions have ended, -1 given up.
   */
  int standing;
  /*
   Where this direction goes: 4, 6, or 0 where there is no connection.
   */
  int current;
  /*
   Whether there is a connection over IPv4, or datagrams come through.
   */
  int ipv4_up;
  /*
   Whether there is a connection over IPv6, or datagrams come through.
   */
  int ipv6_up;
  /*
   Smoothed round trip over IPv4, microseconds; -1 where it is not known.
   */
  int64_t ipv4_rtt_us;
  /*
   Smoothed round trip over IPv6, microseconds; -1 where it is not known.
   */
  int64_t ipv6_rtt_us;
  /*
   Bytes that the peer has; of datagrams 0.
   */
  uint64_t acknowledged;
  /*
   Bytes that it may not have; of datagrams 0.
   */
  uint64_t unacknowledged;
  /*
   Bytes that came; of datagrams how many.
   */
  uint64_t received;
  /*
   What datagrams saw of IPv4.
   */
  struct NaVersionStatus ipv4;
  /*
   What datagrams saw of IPv6.
   */
  struct NaVersionStatus ipv6;
} NaStatus;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 A new stream, not connected yet: NA_DUAL, NA_FIRST, NA_IPV4 or NA_IPV6; with NA_DGRAM a socket
 of datagrams. Its number, or -1.
 */
int na_socket(int kind);

/*
 Says where na_listen listens: an address, a link-local one with its interface (fe80::1%eth0), or
 NULL for all addresses of the IP versions of na_socket; port 0 for any. 0, or -1.

 # Safety
 `address` is NULL or a text.
 */
int na_bind(int stream, const char *address, uint16_t port);

/*
 Begins to take streams, or datagrams of all who connect. `backlog` is there as in listen(2); the
 library's own limit is 128, of datagrams 1024 sessions. The port, or -1.
 */
int na_listen(int stream, int backlog);

/*
 Waits for the next stream of a listening one. Its number, or -1.
 */
int na_accept(int stream);

/*
 Connects to a host which listens with na_listen: a name or address, or several of one host with
 commas between. 0, or -1.

 # Safety
 `host` is a text.
 */
int na_connect(int stream, const char *host, uint16_t port);

/*
 Sends bytes. Without NA_DONTWAIT all of them, as far as no error or time-out comes in between;
 of datagrams they are one. How many, or -1.

 # Safety
 `bytes` has `length` bytes to read.
 */
ptrdiff_t na_send(int stream, const void *bytes, size_t length, int flags);

/*
 As na_send, of bytes that lie in `count` places, at most 1024, behind each other: a head and
 what follows need no buffer to be put together in. Of datagrams they are one. How many, or -1.

 # Safety
 `parts` has `count` of them, and each has as many bytes to read as it says.
 */
ptrdiff_t na_writev(int stream, const struct iovec *parts, int count, int flags);

/*
 Reads what has come, at most `length` bytes; of datagrams one, whose rest is dropped. How many,
 0 at the end of the peer's direction, or -1.

 # Safety
 `out` has `length` bytes to write.
 */
ptrdiff_t na_recv(int stream, void *out, size_t length, int flags);

/*
 Ends this direction (NA_SHUT_WR) or gives up the stream (NA_SHUT_RDWR). 0, or -1.
 */
int na_shutdown(int stream, int how);

/*
 Lets go of a stream: what was sent still goes on its way. A callback of its policy is not called
 any more when this returns, unless it is the caller. 0, or -1.
 */
int na_close(int stream);

/*
 Asks for both directions to go over this IP version, NA_IPV4 or NA_IPV6; of datagrams with all
 peers. 0, or -1 where it cannot be had now.
 */
int na_switch(int stream, int version);

/*
 Other than 0: from now on wishes of the peer are refused and there are none of this end; what
 was wished for before waits. A lost connection is left all the same. 0: takes back one such
 call; the last one ends the hold. 0, or -1.
 */
int na_hold(int stream, int on);

/*
 A descriptor for poll(2) and its kin: readable where na_recv or na_accept would not wait,
 writable where na_send would not, which of datagrams is always. It is the library's until
 na_close, and not to be read, written or closed. -1 where there is none.
 */
int na_poll_fd(int stream);

/*
 Sets an option: NA_WINDOW, NA_SNDTIMEO, NA_RCVTIMEO or NA_NONBLOCK. 0, or -1.
 */
int na_setsockopt(int stream, int option, int64_t value);

/*
 The value of an option, or -1.
 */
int64_t na_getsockopt(int stream, int option);

/*
 Why the last call of this thread that failed did so, in words; valid until the next one that
 does.
 */
const char *na_strerror(void);

/*
 Sends one datagram to a peer, as na_recvfrom names it. How many bytes, or -1. That it was sent
 does not mean that it came.

 # Safety
 `bytes` has `length` bytes to read.
 */
ptrdiff_t na_sendto(int socket, const void *bytes, size_t length, int flags, uint64_t peer);

/*
 Receives one datagram and cuts off what does not fit; `peer`, where it is not NULL, becomes the
 number of who sent it. How many bytes, which may be none, or -1.

 # Safety
 `out` has `length` bytes to write, `peer` is NULL or has room for one.
 */
ptrdiff_t na_recvfrom(int socket, void *out, size_t length, int flags, uint64_t *peer);

/*
 Writes the oldest decision of a policy that has not been read, also one that came to nothing. 1,
 0 where there is none, or -1. The latest 256 are kept, and what repeats itself is kept once in
 ten seconds.

 # Safety
 `decision` has room for one.
 */
int na_decision(int stream, struct NaDecision *decision);

/*
 Writes the address of the other end as a text that ends with a null byte, and its port unless
 `port` is NULL: over NA_IPV4 or NA_IPV6, the connection there is or was last; or with 0 over the
 version in use. Behind a translator the address may be of the other version. NA_IPV4 or NA_IPV6,
 whichever it told of; or -1.

 # Safety
 `address` has room for `length` bytes; NA_ADDRESS_LENGTH is enough. `port` is NULL or has room
 for one.
 */
int na_peer(int stream, int version, char *address, size_t length, uint16_t *port);

/*
 As na_peer, of a peer of a socket of datagrams as na_recvfrom names it.

 # Safety
 As na_peer.
 */
int na_peer_of(int socket,
               uint64_t peer,
               int version,
               char *address,
               size_t length,
               uint16_t *port);

/*
 Switches by rules from now on: the text of a policy file, or NULL for no longer. Also before
 connecting; of a listening stream it is for those that it accepts from then on. Datagrams have
 no metric goodput. 0, or -1.

 # Safety
 `rules` is NULL or a text.
 */
int na_policy(int stream, const char *rules);

/*
 Lets a function of the program decide from now on, or with NULL the rules again; what is looked
 at, how often and at what cost is as na_policy has it. Also before connecting or listening; of a
 listening stream it is for those that it accepts from then on.

 It is called on a thread of the library that blocks all signals, for one stream never twice at
 once, when there is something new and no switch is under way. It may call anything that does not
 wait, also na_close and this; it must not block, and not leave by longjmp or an exception. When
 this returns, or na_close, the function before is not called any more for that stream, unless it
 is the caller; so its `user` can be freed then. 0, or -1.

 # Safety
 `decide` can be called from any thread with `user` until it is replaced or the stream is closed.
 */
int na_policy_callback(int stream, NaDecide decide, void *user);

/*
 With `on` other than 0: from now on SIGUSR1 moves all streams and datagrams to IPv4 and SIGUSR2
 to IPv6. With 0 they do again what they did before. A stream without a connection of that
 version stays. 0, or -1.
 */
int na_signals(int on);

/*
 Writes how a stream stands, or the session of a connected socket of datagrams. 0, or -1.

 # Safety
 `status` has room for one.
 */
int na_status(int stream, struct NaStatus *status);

/*
 Writes how the session of a socket of datagrams with this peer stands, as na_recvfrom names it.
 0, or -1.

 # Safety
 `status` has room for one.
 */
int na_status_of(int socket, uint64_t peer, struct NaStatus *status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NETAWARE_H */
