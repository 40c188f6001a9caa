#!/usr/bin/env python3
"""Moves bytes over TCP both ways, and says who was at the other end.

usage: transfer.py serve PORT NAME
       transfer.py ask ADDRESS PORT MEBIBYTES_SENT MEBIBYTES_TAKEN

`serve` takes what is sent to it until the sender is done, then answers with its name, the address it
sees the other end at and as many bytes as the first line asked for. `ask` prints the name and the
address; it fails when no byte moves for STALLED_SECONDS or when some are missing."""

import socket
import sys

MEBIBYTE = 1 << 20
STALLED_SECONDS = 5


def take_all(peer):
    total, start = 0, b""
    while data := peer.recv(MEBIBYTE):
        total += len(data)
        if len(start) < 256:
            start += data[:256]
    return total, start


def serve(port, name):
    with socket.create_server(("", int(port))) as listener:
        print("listening", flush=True)
        while True:
            peer, address = listener.accept()
            try:
                with peer:
                    peer.settimeout(STALLED_SECONDS)
                    _, start = take_all(peer)
                    peer.sendall(f"{name} {address[0]}\n".encode())
                    peer.sendall(bytes(int(start.partition(b"\n")[0])))
            except (OSError, ValueError) as error:
                print(f"{address[0]}: {error}", flush=True)


def ask(address, port, sent, taken):
    count = int(taken) * MEBIBYTE
    with socket.create_connection((address, int(port)), STALLED_SECONDS) as peer:
        peer.sendall(f"{count}\n".encode())
        peer.sendall(bytes(int(sent) * MEBIBYTE))
        peer.shutdown(socket.SHUT_WR)
        total, start = take_all(peer)
    line, found, _ = start.partition(b"\n")
    if not found or total - len(line) - 1 != count:
        sys.exit(f"wanted {count} bytes, got {total} with the answer's first line")
    print(line.decode())


if __name__ == "__main__":
    {"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:])
