/* libnetaware: streams over IPv4 and IPv6 at once. See libnetaware(3).
 *
 * A stream is a number, as a socket is. Calls return -1 where they fail; errno says why, and na_strerror() in words.
 * All calls may come from any thread; a stream may be read by one thread and written by another at once.
 * Made by cbindgen from crates/apps/ffi; do not edit. */

#ifndef NETAWARE_H
#define NETAWARE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
 na_send, na_recv: do not wait; EAGAIN where it would have to.
 */
#define NA_DONTWAIT 1

/*
 na_send: leave this call out of switching: while it runs wishes of the peer are refused.
 */
#define NA_MSG_HOLD 2

/*
 na_shutdown: no more is sent.
 */
#define NA_SHUT_WR 1

/*
 na_shutdown: the stream is given up.
 */
#define NA_SHUT_RDWR 2

/*
 na_setsockopt: bytes kept until they are acknowledged, and taken until they are read. Before connecting or listening.
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
 How a stream stands.
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
   Whether there is a connection over IPv4.
   */
  int ipv4_up;
  /*
   Whether there is a connection over IPv6.
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
   Bytes that the peer has.
   */
  uint64_t acknowledged;
  /*
   Bytes that it may not have.
   */
  uint64_t unacknowledged;
  /*
   Bytes that came.
   */
  uint64_t received;
} NaStatus;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 A new stream, not connected yet: NA_DUAL, NA_FIRST, NA_IPV4 or NA_IPV6. Its number, or -1.
 */
int na_socket(int kind);

/*
 Says where na_listen listens: an address, or NULL for all addresses of the IP versions of na_socket; port 0 for any. 0, or -1.

 # Safety
 `address` is NULL or a text.
 */
int na_bind(int stream,
            const char *address,
            uint16_t port);

/*
 Begins to take streams. `backlog` is there as in listen(2); the library's own limit is 128. The port, or -1.
 */
int na_listen(int stream,
              int backlog);

/*
 Waits for the next stream of a listening one. Its number, or -1.
 */
int na_accept(int stream);

/*
 Connects to a host which listens with na_listen: a name or address, or several of one host with commas between. 0, or -1.

 # Safety
 `host` is a text.
 */
int na_connect(int stream,
               const char *host,
               uint16_t port);

/*
 Sends bytes. Without NA_DONTWAIT all of them, as far as no error or time-out comes in between. How many, or -1.

 # Safety
 `bytes` has `length` bytes to read.
 */
ptrdiff_t na_send(int stream,
                  const void *bytes,
                  size_t length,
                  int flags);

/*
 Reads what has come, at most `length` bytes. How many, 0 at the end of the peer's direction, or -1.

 # Safety
 `out` has `length` bytes to write.
 */
ptrdiff_t na_recv(int stream, void *out, size_t length, int flags);

/*
 Ends this direction (NA_SHUT_WR) or gives up the stream (NA_SHUT_RDWR). 0, or -1.
 */
int na_shutdown(int stream, int how);

/*
 Lets go of a stream: what was sent still goes on its way. 0, or -1.
 */
int na_close(int stream);

/*
 Asks for both directions to go over this IP version, NA_IPV4 or NA_IPV6. 0, or -1 where it cannot be had now.
 */
int na_switch(int stream,
              int version);

/*
 Other than 0: wishes of the peer are refused and there are none of this end. 0: they are granted again. 0, or -1.
 */
int na_hold(int stream,
            int on);

/*
 Switches by rules from now on: the text of a policy file, or NULL for no longer. Also before connecting. 0, or -1.

 # Safety
 `rules` is NULL or a text.
 */
int na_policy(int stream,
              const char *rules);

/*
 Writes how a stream stands. 0, or -1.

 # Safety
 `status` has room for one.
 */
int na_status(int stream, struct NaStatus *status);

/*
 A descriptor for poll(2) and its kin: readable where na_recv or na_accept would not wait, writable where na_send would not.
 It is the library's until na_close, and not to be read, written or closed. -1 where there is none.
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
 Why the last call of this thread that failed did so, in words; valid until the next one that does.
 */
const char *na_strerror(void);

/*
 With `on` other than 0: from now on SIGUSR1 moves all streams to IPv4 and SIGUSR2 to IPv6. With 0 they do nothing any
 more. A stream without a connection of that version stays. Returns 0.
 */
int na_signals(int on);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NETAWARE_H */
