/*
 * How many datagrams per second a plain program can move with segmentation offload in both directions: the reference
 * that netaware's bulk UDP is held against. No sequence numbers, no statistics, no pacing: nothing but the calls.
 *
 *   udp_gso_ceiling receive ADDRESS PORT            counts until the first datagram of length 1
 *   udp_gso_ceiling send ADDRESS PORT PAYLOAD SECONDS
 *
 * The receiver answers the datagram of length 1 with its two counters; the sender prints one line:
 *   sent=N received=N seconds=S
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { LARGEST = 65507, MOST_SEGMENTS = 128, BUFFER = 32 << 20 };

static char buffer[1 << 16];

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

/* A socket bound or connected to the address; buffers as large as root may make them. */
static int open_socket(const char *address, const char *port, int passive)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *found;
	if (getaddrinfo(address, port, &hints, &found) != 0) {
		fprintf(stderr, "not an address: %s %s\n", address, port);
		exit(1);
	}
	int fd = socket(found->ai_family, SOCK_DGRAM, 0), size = BUFFER;
	if (fd < 0)
		fail("socket");
	setsockopt(fd, SOL_SOCKET, passive ? SO_RCVBUFFORCE : SO_SNDBUFFORCE, &size, sizeof size);
	if ((passive ? bind : connect)(fd, found->ai_addr, found->ai_addrlen) < 0)
		fail(passive ? "bind" : "connect");
	freeaddrinfo(found);
	return fd;
}

/* The size of the segments that the kernel glued together, or the whole length if it glued none. */
static size_t segment_size(struct msghdr *message, size_t length)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			return *(int *)CMSG_DATA(c);
	return length;
}

static void receive(int fd)
{
	int on = 1;
	uint64_t counters[2] = { 0, 0 }; /* datagrams, bytes */
	struct sockaddr_storage from;
	char control[256];
	if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) < 0)
		fail("UDP_GRO");
	for (;;) {
		struct iovec data = { buffer, sizeof buffer };
		struct msghdr message = { &from, sizeof from, &data, 1, control, sizeof control, 0 };
		ssize_t length = recvmsg(fd, &message, MSG_TRUNC);
		if (length < 0)
			fail("recvmsg");
		if (length == 1)
			break;
		size_t segment = segment_size(&message, length);
		if (segment > 0)
			counters[0] += (length + segment - 1) / segment;
		counters[1] += length;
	}
	sendto(fd, counters, sizeof counters, 0, (struct sockaddr *)&from, sizeof from);
}

static void send_for(int fd, int payload, double seconds)
{
	int segments = LARGEST / payload < MOST_SEGMENTS ? LARGEST / payload : MOST_SEGMENTS;
	uint64_t sent = 0, counters[2];
	if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &payload, sizeof payload) < 0)
		fail("UDP_SEGMENT");
	double begun = now(), end = begun + seconds;
	while (now() < end) {
		if (send(fd, buffer, (size_t)payload * segments, 0) < 0)
			fail("send");
		sent += segments;
	}
	double took = now() - begun;
	struct timeval patience = { 2, 0 };
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (send(fd, buffer, 1, 0) < 0 || recv(fd, counters, sizeof counters, 0) != sizeof counters)
		fail("no answer from the receiver");
	printf("sent=%llu received=%llu seconds=%.6f\n", (unsigned long long)sent, (unsigned long long)counters[0], took);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "receive") == 0) {
		receive(open_socket(argv[2], argv[3], 1));
	} else if (argc == 6 && strcmp(argv[1], "send") == 0) {
		int payload = atoi(argv[4]);
		if (payload < 2 || payload > LARGEST) {
			fprintf(stderr, "payload must be 2..%d bytes\n", LARGEST);
			return 2;
		}
		send_for(open_socket(argv[2], argv[3], 0), payload, atof(argv[5]));
	} else {
		fprintf(stderr, "usage: %s receive ADDRESS PORT | send ADDRESS PORT PAYLOAD SECONDS\n", argv[0]);
		return 2;
	}
	return 0;
}
