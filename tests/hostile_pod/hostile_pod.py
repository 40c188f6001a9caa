#!/usr/bin/env python3
"""Tries what a pod with NET_RAW may try with frames of its own making, and an ear for what became of them.

usage: hostile_pod.py attack DEVICE ADDRESS GATEWAY_MAC TARGET SECONDS
       hostile_pod.py plain DEVICE ADDRESS GATEWAY_MAC TARGET COUNT
       hostile_pod.py listen DEVICE FILE

`attack` sends frames of every kind in turn, from the pod with this ADDRESS, to TARGET. `plain` sends
COUNT that are as they may be. `listen` writes how many frames of each kind came by DEVICE, as JSON,
when it is told to end (SIGTERM)."""

import json
import random
import signal
import socket
import struct
import sys
import time

MARKER = b"spoke-hostile-pod:"
ETH_P_ALL = 3


def checksum(data):
    """RFC 1071."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


class Frames:
    def __init__(self, own_mac, address, gateway_mac, target):
        self.own, self.gateway = own_mac, gateway_mac
        self.address, self.target = socket.inet_aton(address), socket.inet_aton(target)

    def ethernet(self, kind, payload, source=None, to=None):
        return (to or self.gateway) + (source or self.own) + struct.pack("!H", kind) + payload

    def ipv4(self, name, source=None, to=None, protocol=17, spoil=0, longer=0, data=None):
        if data is None:
            data = struct.pack("!HHHH", 1000, 2000, 8 + len(MARKER) + len(name), 0)
        data += MARKER + name.encode()
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(data) + longer, 1, 0, 64, protocol, 0,
                             source or self.address, to or self.target)
        header = header[:10] + struct.pack("!H", checksum(header) ^ spoil) + header[12:]
        return header + data

    def ipv6(self, name, message, source="fe80::77", to="ff02::1"):
        data = message + MARKER + name.encode()
        return struct.pack("!IHBB", 6 << 28, len(data), 58, 255) + socket.inet_pton(
            socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, to) + data

    def arp(self, name, operation, sender):
        return struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + self.own + socket.inet_aton(
            sender) + self.own + self.target + MARKER + name.encode()

    def plain(self):
        return self.ethernet(0x0800, self.ipv4("plain"))

    def hostile(self):
        """Returns the frames by name; none of them may leave the node or reach another pod."""
        other = socket.inet_aton("10.20.64.250")
        frames = {
            "another address": self.ethernet(0x0800, self.ipv4("another address", source=other)),
            "the target's address": self.ethernet(
                0x0800, self.ipv4("the target's address", source=self.target)),
            "another MAC": self.ethernet(0x0800, self.ipv4("another MAC"), source=mac("020000001234")),
            "wrong checksum": self.ethernet(0x0800, self.ipv4("wrong checksum", spoil=1)),
            "too long": self.ethernet(0x0800, self.ipv4("too long", longer=100)),
            "to another MAC": self.ethernet(
                0x0800, self.ipv4("to another MAC"), to=mac("020000005678")),
            "ICMP redirect": self.ethernet(0x0800, self.ipv4(
                "ICMP redirect", protocol=1, data=b"\x05\x01" + bytes(6))),
            "IGMP query": self.ethernet(0x0800, self.ipv4(
                "IGMP query", protocol=2, data=b"\x11" + bytes(7), to=socket.inet_aton("224.0.0.1"))),
            "LLDP": self.ethernet(0x88CC, self.ipv4("LLDP")),
            "MPLS": self.ethernet(0x8847, self.ipv4("MPLS")),
            "metadata service": self.ethernet(0x0800, self.ipv4(
                "metadata service", to=socket.inet_aton("169.254.169.254"))),
            "wireserver": self.ethernet(0x0800, self.ipv4(
                "wireserver", to=socket.inet_aton("168.63.129.16"))),
        }
        for tag in (0xE000, 100, 4094):
            name = f"tag {tag:#x}"
            frames[name] = self.ethernet(0x8100, struct.pack("!HH", tag, 0x0800) + self.ipv4(name))
        for operation, sender in ((1, "169.254.1.1"), (2, "169.254.1.1"), (2, "10.20.0.4")):
            name = f"ARP {operation} of {sender}"
            frames[name] = self.ethernet(0x0806, self.arp(name, operation, sender), to=b"\xff" * 6)
        for kind in (130, 133, 134, 136, 137):
            name = f"ICMPv6 {kind}"
            message = struct.pack("!BBHI", kind, 0, 0, 0) + socket.inet_pton(
                socket.AF_INET6, "fd00::1")
            frames[name] = self.ethernet(0x86DD, self.ipv6(name, message), to=mac("333300000001"))
        return frames


def listen(device, path):
    counts = {}

    def end(*_):
        with open(path, "w", encoding="utf-8") as out:
            json.dump(counts, out)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as ear:
        ear.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        ear.bind((device, 0))
        print("listening", flush=True)
        while True:
            data, where = ear.recvfrom(65535)
            at = data.find(MARKER)
            if at < 0 or where[2] == socket.PACKET_OUTGOING:
                continue
            name = data[at + len(MARKER):].split(b"\0")[0].decode(errors="replace")
            counts[name] = counts.get(name, 0) + 1


def main():
    if sys.argv[1] == "listen":
        listen(*sys.argv[2:])
    mode, device, address, gateway_mac, target, amount = sys.argv[1:]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((device, 0))
        own_mac = out.getsockname()[4]
        frames = Frames(own_mac, address, mac(gateway_mac), target)
        if mode == "plain":
            for _ in range(int(amount)):
                out.send(frames.plain())
                time.sleep(0.001)
            return
        hostile = list(frames.hostile().values())
        sent, end = 0, time.monotonic() + float(amount)
        while time.monotonic() < end:
            random.shuffle(hostile)
            for frame in hostile:
                out.send(frame)
            sent += len(hostile)
            time.sleep(0.001)
        print(json.dumps({"sent": sent, "kinds": len(hostile)}))


if __name__ == "__main__":
    main()
