"""Streams over IPv4 and IPv6 at once: libnetaware by ctypes. See libnetaware(3)."""

import ctypes
import os

DUAL, FIRST, IPV4, IPV6 = 0, 1, 4, 6
SHUT_WR, SHUT_RDWR = 1, 2
WINDOW, SNDTIMEO, RCVTIMEO, NONBLOCK = 1, 2, 3, 4


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
    ]


_lib = ctypes.CDLL(os.environ.get("LIBNETAWARE", "libnetaware.so"), use_errno=True)
_lib.na_strerror.restype = ctypes.c_char_p
_lib.na_send.restype = _lib.na_recv.restype = ctypes.c_ssize_t
_lib.na_send.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
_lib.na_recv.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_lib.na_bind.argtypes = _lib.na_connect.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint16]
_lib.na_policy.argtypes = [ctypes.c_int, ctypes.c_char_p]
_lib.na_setsockopt.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64]
_lib.na_status.argtypes = [ctypes.c_int, ctypes.POINTER(Status)]


def _checked(result):
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, _lib.na_strerror().decode())
    return result


class Stream:
    """As a socket, of both IP versions."""

    def __init__(self, kind=DUAL, number=None):
        self.number = _checked(_lib.na_socket(kind)) if number is None else number

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
