"""Downloads of many pods at once: one process sends to all, one receives for all. Reads what is
wanted as JSON from standard input, and prints how many bytes each pod got."""

import json
import os
import select
import socket
import struct
import sys
import time

from path_node import Inside

CHUNK = bytes(1 << 16)


def connect(wanted):
    """A pair of sockets for each pod: the sender's end, and the pod's."""
    with Inside(wanted["namespace"]):
        listener = socket.create_server((wanted["address"], 0), backlog=256)
    port = listener.getsockname()[1]
    pairs = []
    for pod in wanted["pods"]:
        with Inside(pod["namespace"]):
            mine = socket.create_connection((wanted["address"], port), timeout=10)
        theirs, _ = listener.accept()
        # What is sent and not yet acknowledged must not hide who is being held back.
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        pairs.append((theirs, mine))
        mine.setblocking(False)
        theirs.setblocking(False)
    return pairs


def send_all(senders, paces, seconds):
    """Sends as fast as it goes, or at most so many bytes a second."""
    begin = time.monotonic()
    sent = [0] * len(senders)
    while (passed := time.monotonic() - begin) < seconds:
        _, ready, _ = select.select([], [s for i, s in enumerate(senders) if may(i, sent, paces,
                                                                              passed)], [], 0.005)
        for one in ready:
            number = senders.index(one)
            try:
                left = CHUNK
                if paces[number]:
                    left = CHUNK[:max(1, min(len(CHUNK), int(paces[number] * passed)
                                            - sent[number]))]
                sent[number] += one.send(left)
            except BlockingIOError:
                pass


def may(number, sent, paces, passed):
    return paces[number] is None or (paces[number] and sent[number] < paces[number] * passed)


def receive_all(receivers, settle, seconds):
    """Bytes of each between `settle` and `seconds` from now."""
    poll = select.epoll()
    numbers = {}
    for number, one in enumerate(receivers):
        numbers[one.fileno()] = number
        poll.register(one.fileno(), select.EPOLLIN)
    got = [0] * len(receivers)
    marked = None
    buffer = bytearray(1 << 20)
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < seconds:
        for descriptor, _ in poll.poll(0.01):
            number = numbers[descriptor]
            try:
                got[number] += receivers[number].recv_into(buffer)
            except BlockingIOError:
                pass
        if marked is None and passed >= settle:
            marked = (list(got), time.monotonic())
    took = time.monotonic() - marked[1]
    return [(now - then) / took for now, then in zip(got, marked[0])]


def main():
    wanted = json.load(sys.stdin)
    pairs = connect(wanted)
    seconds = wanted["seconds"]
    child = os.fork()
    if child == 0:
        try:
            send_all([theirs for theirs, _ in pairs], [pod["pace"] for pod in wanted["pods"]],
                     seconds)
        finally:
            os._exit(0)
    rates = receive_all([mine for _, mine in pairs], wanted["settle"], seconds)
    for theirs, mine in pairs:
        # There is no farewell: what still waits in queues is of no use to anybody.
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        mine.close()
    os.waitpid(child, 0)
    print(json.dumps({"bytes_per_second": rates}))


if __name__ == "__main__":
    main()
