"""A server and a client of datagrams in one program: `LIBNETAWARE=target/release/libnetaware.so python3 datagrams.py`."""

import threading

from netaware import BY_CALLBACK, IPV4, IPV6, KEEP, RCVTIMEO, Datagrams

COUNT = 200


def serve(bound):
    while True:
        data, peer = bound.recvfrom()
        if data == b"end":
            return
        bound.sendto(data, peer)


def ask(socket, data):
    """Sends until it comes back: a datagram may be lost."""
    while True:
        socket.send(data)
        try:
            while True:
                got, _ = socket.recvfrom()
                if got == data:
                    return
        except BlockingIOError:
            pass


def main():
    half_way = threading.Event()

    def decide(evidence):
        both = evidence.ipv4.rtt_us >= 0 and evidence.ipv6.rtt_us >= 0
        return IPV4 if both and half_way.is_set() and evidence.present == IPV6 else KEEP

    with Datagrams() as bound, Datagrams() as socket:
        bound.bind()
        port = bound.listen()
        server = threading.Thread(target=serve, args=(bound,))
        server.start()
        socket.policy('[policy]\nuse = "interactive"\nevery = "100ms"\n')
        socket.policy_callback(decide)
        socket.connect("::1,127.0.0.1", port)
        socket.setsockopt(RCVTIMEO, 1000)
        seen, number = set(), 0
        while number < COUNT:
            ask(socket, number.to_bytes(4, "big"))
            seen.add(socket.status().current)
            if number >= COUNT // 2:
                half_way.set()
            # The second half waits for the policy, which waits until it has seen both versions.
            number += number < COUNT // 2 or seen == {IPV4, IPV6}
        for decision in socket.decisions():
            by = "the program" if decision.by == BY_CALLBACK else "rules"
            print(f"decided by {by}: IPv{decision.from_} to IPv{decision.to}")
        while server.is_alive():
            socket.send(b"end")
            server.join(0.2)
        print(f"{COUNT} datagrams came back, over IPv{' and IPv'.join(str(ip) for ip in sorted(seen))}")


if __name__ == "__main__":
    main()
