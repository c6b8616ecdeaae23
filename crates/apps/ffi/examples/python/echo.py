"""A server and a client in one program: `LIBNETAWARE=target/release/libnetaware.so python3 echo.py`."""

import threading
import time

from netaware import HOLD, IPV4, IPV6, Stream

BLOCK = 20_000


def serve(listening):
    with listening.accept() as stream:
        while data := stream.recv(65_536):
            stream.sendall(data)
        stream.shutdown()


def receive(stream, length):
    data = b""
    while len(data) < length:
        data += stream.recv(length - len(data))
    return data


def main():
    with Stream() as listening, Stream() as stream:
        listening.bind()
        port = listening.listen()
        server = threading.Thread(target=serve, args=(listening,))
        server.start()
        stream.connect("::1,127.0.0.1", port)
        while not (stream.status().ipv4_up and stream.status().ipv6_up):
            time.sleep(0.01)
        assert stream.peer(IPV4) == ("127.0.0.1", port) and stream.peer(IPV6) == ("::1", port)
        with stream.held():
            assert stream.getsockopt(HOLD) == 1
        seen = set()
        for number in range(500):
            block = bytes([number % 256]) * BLOCK
            stream.sendall(block)
            assert receive(stream, BLOCK) == block
            seen.add(stream.status().current)
            if number % 100 == 50:
                stream.switch(IPV4 if stream.status().current == IPV6 else IPV6)
        stream.shutdown()
        assert stream.recv(1) == b""
        server.join()
        print(f"500 blocks came back, over IPv{' and IPv'.join(str(ip) for ip in sorted(seen))}")


if __name__ == "__main__":
    main()
