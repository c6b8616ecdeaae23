"""Streams and datagrams over IPv4 and IPv6 at once: libnetaware by ctypes. See libnetaware(3)."""

import contextlib
import ctypes
import os

DUAL, FIRST, IPV4, IPV6 = 0, 1, 4, 6
DGRAM = 16
KEEP = 0
SHUT_WR, SHUT_RDWR = 1, 2
WINDOW, SNDTIMEO, RCVTIMEO, NONBLOCK, HOLD = 1, 2, 3, 4, 5
BY_RULES, BY_CALLBACK = 1, 2
GOODPUT, ROUND_TRIP, LOSS = 1, 2, 3
ADDRESS_LENGTH = 64


class VersionStatus(ctypes.Structure):
    """What datagrams saw of one version; -1 where it is not known, and everywhere of streams."""

    _fields_ = [
        ("sent", ctypes.c_int64),
        ("confirmed", ctypes.c_int64),
        ("lost", ctypes.c_int64),
        ("received", ctypes.c_int64),
        ("missing", ctypes.c_int64),
        ("forward_delay_us", ctypes.c_int64),
        ("reverse_delay_us", ctypes.c_int64),
    ]


class VersionEvidence(ctypes.Structure):
    _fields_ = [
        ("up", ctypes.c_int),
        ("observations", ctypes.c_int),
        ("rtt_us", ctypes.c_int64),
        ("goodput_bps", ctypes.c_int64),
        ("loss", ctypes.c_double),
    ]


class Evidence(ctypes.Structure):
    _fields_ = [
        ("present", ctypes.c_int),
        ("rules_say", ctypes.c_int),
        ("ipv4", VersionEvidence),
        ("ipv6", VersionEvidence),
    ]


class Decision(ctypes.Structure):
    """What a policy decided, on which evidence; `not_done` is 0 or why nothing came of it, as in errno."""

    _fields_ = [
        ("at_us", ctypes.c_int64),
        ("peer", ctypes.c_uint64),
        ("from_", ctypes.c_int),
        ("to", ctypes.c_int),
        ("by", ctypes.c_int),
        ("metric", ctypes.c_int),
        ("not_done", ctypes.c_int),
        ("present_looks", ctypes.c_int),
        ("other_looks", ctypes.c_int),
        ("present", ctypes.c_double),
        ("other", ctypes.c_double),
        ("margin", ctypes.c_double),
    ]


class Status(ctypes.Structure):
    _fields_ = [
        ("standing", ctypes.c_int),
        ("current", ctypes.c_int),
        ("ipv4_up", ctypes.c_int),
        ("ipv6_up", ctypes.c_int),
        ("ipv4_rtt_us", ctypes.c_int64),
        ("ipv6_rtt_us", ctypes.c_int64),
        ("acknowledged", ctypes.c_uint64),
        ("unacknowledged", ctypes.c_uint64),
        ("received", ctypes.c_uint64),
        ("ipv4", VersionStatus),
        ("ipv6", VersionStatus),
    ]


_Decide = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Evidence), ctypes.c_void_p)
_lib = ctypes.CDLL(os.environ.get("LIBNETAWARE", "libnetaware.so"), use_errno=True)
_lib.na_strerror.restype = ctypes.c_char_p
_lib.na_send.restype = _lib.na_recv.restype = ctypes.c_ssize_t
_lib.na_send.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
_lib.na_recv.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_lib.na_bind.argtypes = _lib.na_connect.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint16]
_lib.na_sendto.restype = _lib.na_recvfrom.restype = ctypes.c_ssize_t
_lib.na_sendto.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint64]
_lib.na_recvfrom.argtypes = [
    ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.POINTER(ctypes.c_uint64),
]
_lib.na_policy.argtypes = [ctypes.c_int, ctypes.c_char_p]
_lib.na_policy_callback.argtypes = [ctypes.c_int, _Decide, ctypes.c_void_p]
_lib.na_setsockopt.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64]
_lib.na_getsockopt.argtypes = [ctypes.c_int, ctypes.c_int]
_lib.na_getsockopt.restype = ctypes.c_int64
_lib.na_decision.argtypes = [ctypes.c_int, ctypes.POINTER(Decision)]
_lib.na_peer.argtypes = [
    ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint16),
]
_lib.na_peer_of.argtypes = [
    ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint16),
]
_lib.na_status.argtypes = [ctypes.c_int, ctypes.POINTER(Status)]
_lib.na_status_of.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.POINTER(Status)]


def _checked(result):
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, _lib.na_strerror().decode())
    return result


class Stream:
    """As a socket, of both IP versions."""

    def __init__(self, kind=DUAL, number=None):
        self.number = _checked(_lib.na_socket(kind)) if number is None else number
        self._decide = _Decide()

    def bind(self, address=None, port=0):
        _checked(_lib.na_bind(self.number, address.encode() if address else None, port))

    def listen(self, backlog=16):
        """The port that it listens on."""
        return _checked(_lib.na_listen(self.number, backlog))

    def accept(self):
        return Stream(number=_checked(_lib.na_accept(self.number)))

    def connect(self, host, port):
        _checked(_lib.na_connect(self.number, host.encode(), port))

    def sendall(self, data):
        while data:
            data = data[_checked(_lib.na_send(self.number, data, len(data), 0)):]

    def recv(self, length):
        buffer = ctypes.create_string_buffer(length)
        count = _checked(_lib.na_recv(self.number, buffer, length, 0))
        return buffer.raw[:count]

    def switch(self, version):
        _checked(_lib.na_switch(self.number, version))

    def policy(self, rules):
        _checked(_lib.na_policy(self.number, rules.encode() if rules else None))

    def policy_callback(self, decide):
        """`decide` is given an Evidence and returns KEEP, IPV4 or IPV6, on a thread of the library; None: the rules again."""
        made = _Decide(lambda evidence, _: int(decide(evidence.contents))) if decide else _Decide()
        _checked(_lib.na_policy_callback(self.number, made, None))
        # The one before is not called any more, and may go; this one must stay.
        self._decide = made

    def decisions(self):
        """What a policy has decided since the last time, oldest first."""
        decision = Decision()
        while _checked(_lib.na_decision(self.number, ctypes.byref(decision))):
            yield decision
            decision = Decision()

    def hold(self):
        """Stays where it is until as many `release`; `with stream.held():` does both."""
        _checked(_lib.na_hold(self.number, 1))

    def release(self):
        _checked(_lib.na_hold(self.number, 0))

    @contextlib.contextmanager
    def held(self):
        self.hold()
        try:
            yield self
        finally:
            self.release()

    def peer(self, version=0):
        """Address and port of the other end, over the version in use or the one named."""
        address, port = ctypes.create_string_buffer(ADDRESS_LENGTH), ctypes.c_uint16()
        _checked(_lib.na_peer(self.number, version, address, ADDRESS_LENGTH, ctypes.byref(port)))
        return address.value.decode(), port.value

    def getsockopt(self, option):
        return _checked(_lib.na_getsockopt(self.number, option))

    def setsockopt(self, option, value):
        _checked(_lib.na_setsockopt(self.number, option, value))

    def status(self):
        status = Status()
        _checked(_lib.na_status(self.number, ctypes.byref(status)))
        return status

    def fileno(self):
        """For select and its kin; not to be read or written."""
        return _checked(_lib.na_poll_fd(self.number))

    def shutdown(self, how=SHUT_WR):
        _checked(_lib.na_shutdown(self.number, how))

    def close(self):
        if self.number is not None:
            _lib.na_close(self.number)
            self.number = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Datagrams(Stream):
    """As a socket of datagrams, of both IP versions: connect, or bind and listen."""

    def __init__(self, kind=DUAL):
        super().__init__(kind | DGRAM)

    def send(self, data):
        _checked(_lib.na_send(self.number, data, len(data), 0))

    def sendto(self, data, peer):
        _checked(_lib.na_sendto(self.number, data, len(data), 0, peer))

    def recvfrom(self, length=65_507):
        """A datagram, and the number of who sent it."""
        buffer, peer = ctypes.create_string_buffer(length), ctypes.c_uint64()
        count = _checked(_lib.na_recvfrom(self.number, buffer, length, 0, ctypes.byref(peer)))
        return buffer.raw[:count], peer.value

    def peer_of(self, peer, version=0):
        """Address and port of a peer, as `recvfrom` names it."""
        address, port = ctypes.create_string_buffer(ADDRESS_LENGTH), ctypes.c_uint16()
        _checked(_lib.na_peer_of(self.number, peer, version, address, ADDRESS_LENGTH, ctypes.byref(port)))
        return address.value.decode(), port.value

    def status_of(self, peer):
        status = Status()
        _checked(_lib.na_status_of(self.number, peer, ctypes.byref(status)))
        return status
