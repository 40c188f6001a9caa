"""Sees from outside of an agent when the server's messages reach it, and when the kernel says that
something has changed."""

import os
import select
import socket
import struct
import threading
import time

from path_node import Inside

# The length of a policy's message with all blocks; everything else the server says meanwhile is
# shorter.
LEAST_BUNDLE_BYTES = 400

NETLINK_ROUTE = 0
NETLINK_NETFILTER = 12
SOL_NETLINK = 270
NETLINK_ADD_MEMBERSHIP = 1
ETH_P_ALL = 3


class KernelWatch(threading.Thread):
    """Times at which bundles arrived on lo from the server's `port`, and at which the kernel told
    the netlink `group` of `family` of a message of type `kind`."""

    def __init__(self, namespace, port, family, group, kind, least=LEAST_BUNDLE_BYTES):
        super().__init__(daemon=True)
        self.port = port
        self.kind = kind
        self.least = least
        self.arrived = []
        self.changed = []
        self.stopping = False
        with Inside(namespace):
            self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
            self.wire.bind(("lo", ETH_P_ALL))
            self.kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
            self.kernel.bind((0, 0))
            self.kernel.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)
            # Elements of sets are told of as well, a message each.
            self.kernel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        self.start()

    def run(self):
        # It must not wait for its turn, or the agent would be taken for slow.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        while not self.stopping:
            ready, _, _ = select.select([self.wire, self.kernel], [], [], 0.2)
            now = time.monotonic()
            if self.wire in ready:
                self.look_at_packet(self.wire.recvfrom(1 << 17), now)
            if self.kernel in ready:
                self.look_at_messages(self.kernel.recv(1 << 20), now)

    def look_at_packet(self, received, now):
        packet, (_, _, kind, *_) = received
        if kind == socket.PACKET_OUTGOING or len(packet) < 40 or packet[9] != socket.IPPROTO_TCP:
            return
        header = (packet[0] & 15) * 4
        source = struct.unpack_from("!H", packet, header)[0]
        payload = len(packet) - header - (packet[header + 12] >> 4) * 4
        if source == self.port and payload >= self.least:
            self.arrived.append(now)

    def look_at_messages(self, messages, now):
        at = 0
        while at + 16 <= len(messages):
            length, kind = struct.unpack_from("=IH", messages, at)
            if kind == self.kind:
                self.changed.append(now)
            at += max(16, (length + 3) & ~3)

    def forget(self):
        self.arrived.clear()
        self.changed.clear()

    def stop(self):
        self.stopping = True
        self.join()
