#!/usr/bin/env python3
"""What happens to servers when something happens to etcd: members lost, quorum lost, no space,
history compacted, restored from an old snapshot, or not the right one at all.

usage: etcd_test.py DIRECTORY_OF_PROGRAMS CASE
"""

import os
import shutil
import sys
import time

from ha_lab import Lab, eventually, expect, run

MIB = 1 << 20


def member_lost(programs, directory):
    """Any member may go, the one that leads the others among them: the same server goes on."""
    with Lab(programs, directory) as lab:
        lab.start_etcd()
        lab.start_servers()
        first = lab.servers[0]
        for what in ("a member", "etcd's leader", "etcd's leader"):
            leader = lab.etcd_leader()
            victim = leader if what != "a member" else next(
                member for member in lab.members if member is not leader)
            begun = time.monotonic()
            victim.kill()
            server, took = lab.await_write(20, [first])
            print(f"{what} killed: the next write is acknowledged after {took:.2f} s")
            expect(server is first, "the leader has changed")
            victim.start()
            eventually("the member is back", lambda v=victim: lab.ctl(
                "endpoint", "health", members=[v], fail=False) is not None, 30)
            expect(time.monotonic() - begun < 60, "it took long")
        expect(not lab.servers[1].events("leading"), "the standby has led meanwhile")
        lab.check_written()


def quorum_lost(programs, directory):
    """Without a quorum nothing is stored and nobody else can lead; with it, all goes on."""
    with Lab(programs, directory) as lab:
        lab.start_etcd()
        lab.start_servers()
        first, second = lab.servers
        expect(lab.write(first)[0], "a write")
        away = lab.members[:2]
        for member in away:
            member.kill()
        done, said = lab.write(first, timeout="15s")
        expect(not done and "nothing can be stored" in said, f"a write without quorum: {said}")
        eventually("the leader is not ready",
                   lambda: "cannot renew its leadership" in first.probe("readiness")[1], 10)
        expect(first.probe("liveness")[0] and second.probe("liveness")[0], "a server is not alive")
        # Until it has found that it cannot read the store anew, it shows nothing.
        eventually("the leader says how it stands",
                   lambda: "nothing can be stored" in first.spokectl("status", timeout="20s")[1], 60)
        for member in away:
            member.start()
        lab.await_write(60)
        lab.check_written()
        eventually("a server is ready",
                   lambda: any(server.runs() and server.probe("readiness")[0]
                               for server in lab.servers), 30)


def nospace(programs, directory):
    """The database is full: writes are refused by that name, and go on once there is space again."""
    with Lab(programs, directory, members=1) as lab:
        lab.start_etcd("--quota-backend-bytes", str(16 * MIB))
        lab.start_servers()
        first = lab.servers[0]
        expect(lab.write(first)[0], "a write")
        for number in range(400):
            if lab.ctl("put", f"/filler/{number}", "x" * 100_000, fail=False) is None:
                break
        said = eventually("a write is refused", lambda: refused(lab, first), 60)
        expect("NOSPACE" in said or "quota" in said, f"the refusal: {said}")
        expect(first.runs(), "the leader has ended")
        lab.ctl("del", "--prefix", "/filler/")
        lab.await_write(90, [first])
        lab.check_written()


def refused(lab, server):
    """What a refused write says; None when it is acknowledged."""
    done, said = lab.write(server, timeout="15s")
    return None if done else said


def compaction(programs, directory):
    """History that a standby has missed is compacted: it reads everything again, and takes over."""
    with Lab(programs, directory) as lab:
        lab.start_etcd()
        lab.start_servers()
        first, second = lab.servers
        second.cut()
        for _ in range(5):
            expect(lab.write(first)[0], "a write")
        # A connection that waits for the network would bring the history after all.
        for member in lab.members:
            member.kill()
            member.start()
            eventually("the member is back", lambda m=member: lab.ctl(
                "endpoint", "health", members=[m], fail=False) is not None, 30)
        # Every ten seconds the leader compacts up to what was there a period before, where
        # something was written since.
        for _ in range(3):
            expect(lab.write(first)[0], "a write")
            time.sleep(11)
        second.cut(off=False)
        eventually("the standby has read everything again",
                   lambda: float(second.metrics().get("spoke_ipam_mirror_reads_total", 0)) >= 2, 60)
        records = lab.ctl("get", "/spoke/data/", "--prefix", "--keys-only").split()
        eventually("the standby has all records", lambda: second.metrics().get(
            "spoke_ipam_mirror_records") == str(len(records)), 30)
        first.kill()
        lab.await_write(20, [second])
        lab.check_written()


def old_snapshot(programs, directory):
    """etcd is restored from a snapshot older than what was decided: nothing is decided from it."""
    with Lab(programs, directory, servers=1, members=1) as lab:
        lab.start_etcd()
        lab.start_servers()
        server, member = lab.servers[0], lab.members[0]
        expect(lab.write(server)[0], "a write before the snapshot")
        snapshot = os.path.join(directory, "snapshot")
        lab.ctl("snapshot", "save", snapshot)
        for _ in range(3):
            expect(lab.write(server)[0], "a write after the snapshot")
        expect(server.stop() == 0, "the server ends with an error")
        member.kill()
        data = os.path.join(member.directory, "data")
        shutil.rmtree(data)
        lab.ctl("snapshot", "restore", snapshot, "--name", member.name, "--data-dir", data,
                "--initial-cluster", f"{member.name}={member.peer}", "--initial-cluster-token", "ha",
                "--initial-advertise-peer-urls", member.peer)
        lab.start_etcd()
        server.start()
        eventually("the server says that the store is old",
                   lambda: server.events("recovery_began"), 60)
        done, said = server.spokectl("recovery", "show")
        expect("older than what this server last wrote" in said, f"recovery show: {done} {said}")


def wrong_etcd(programs, directory):
    """What is not the etcd that was meant is refused by name, and nothing is written there."""
    with Lab(programs, directory, servers=1, members=1) as lab:
        lab.start_etcd()
        server = lab.servers[0]
        url = lab.members[0].url

        def refuses(words, **changes):
            server.configure(**changes)
            server.start()
            code = server.process.wait(timeout=60)
            said = server.events("start_failed")[-1]
            expect(code == 1 and words in said, f"with {changes}: code {code}, {said}")
            found = lab.ctl("get", "/spoke/", "--prefix")
            expect(not found, f"with {changes}, there is in etcd: {found}")

        refuses("no endpoint of etcd has an address", endpoints=["http://etcd.invalid:2379"])
        refuses("etcd http://10.99.0.20:2999", endpoints=["http://10.99.0.20:2999"])
        password = os.path.join(directory, "password")
        with open(password, "w", encoding="utf-8") as file:
            file.write("secret")
        refuses("has no authentication", user="spoke", password_file=password)
        remembered = os.path.join(server.directory, "etcd-cluster")
        with open(remembered, "w", encoding="utf-8") as file:
            file.write("abc\n")
        refuses("another cluster of etcd", endpoints=[url])
        os.unlink(remembered)
        lab.ctl("user", "add", "root:secret")
        lab.ctl("user", "grant-role", "root", "root")
        lab.ctl("auth", "enable")
        server.configure()
        server.start()
        expect(server.process.wait(timeout=60) == 1, "it starts without a user")
        expect("etcd demands authentication" in server.events("start_failed")[-1], "the message")
        server.configure(user="root", password_file=password)
        server.start()
        eventually("it leads with the user", server.leads, 60)


def no_quorum(programs, directory):
    """A server that finds no quorum at its start says so, and leads once there is one again."""
    with Lab(programs, directory, servers=1) as lab:
        lab.start_etcd()
        for member in lab.members[:2]:
            member.kill()
        server = lab.servers[0]
        server.configure()
        server.start()
        expect(server.process.wait(timeout=60) == 1, "it starts without a quorum")
        expect("etcd" in server.events("start_failed")[-1], "it does not say why")
        for member in lab.members[:2]:
            member.start()
        server.start()
        eventually("it leads", server.leads, 60)


CASES = {case.__name__: case for case in (member_lost, quorum_lost, nospace, compaction,
                                          old_snapshot, wrong_etcd, no_quorum)}

if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], CASES)
