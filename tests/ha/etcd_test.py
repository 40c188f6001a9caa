#!/usr/bin/env python3
"""What happens to servers when something happens to etcd: members lost, quorum lost, no space,
history compacted, restored from an old snapshot, or not the right one at all.

usage: etcd_test.py DIRECTORY_OF_PROGRAMS CASE
"""

import os
import sys
import time

from ha_lab import Lab, eventually, expect, run, running

MIB = 1 << 20


def member_lost(programs, directory):
    """Any member may go, the one that leads the others among them: the same server goes on."""
    with running(programs, directory) as lab:
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
            victim.await_health()
            expect(time.monotonic() - begun < 60, "it took long")
        expect(not lab.servers[1].events("leading"), "the standby has led meanwhile")
        lab.check_written()


def quorum_lost(programs, directory):
    """Without a quorum nothing is stored and nobody else can lead; with it, all goes on."""
    with running(programs, directory) as lab:
        first, second = lab.servers
        lab.write_some(first)
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
        lab.write_some(first)
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
    with running(programs, directory) as lab:
        first, second = lab.servers
        second.cut()
        lab.write_some(first, 5)
        # A connection that waits for the network would bring the history after all.
        for member in lab.members:
            member.restart()
        # Every ten seconds the leader compacts up to what was there a period before, where
        # something was written since.
        for _ in range(3):
            lab.write_some(first)
            time.sleep(11)
        second.cut(off=False)
        eventually("the standby has read everything again",
                   lambda: float(second.metrics().get("spoke_ipam_mirror_reads_total", 0)) >= 2, 60)
        eventually("the standby has all records", lambda: lab.mirrored(second), 30)
        first.kill()
        lab.await_write(20, [second])
        lab.check_written()


def old_snapshot(programs, directory):
    """etcd is restored from a snapshot older than what was decided: nothing is decided from it."""
    with running(programs, directory, servers=1, members=1) as lab:
        server, member = lab.servers[0], lab.members[0]
        lab.write_some(server)
        member.save()
        lab.write_some(server, 3)
        expect(server.stop() == 0, "the server ends with an error")
        member.kill()
        member.restore()
        lab.start_etcd()
        server.start()
        eventually("the server says that the store is old",
                   lambda: server.events("recovery_began"), 60)
        done, said = server.spokectl("recovery", "show")
        expect("older than what this server last wrote" in said, f"recovery show: {done} {said}")


def old_snapshot_standby(programs, directory):
    """etcd is restored from a snapshot, under the same id, while a standby holds a newer mirror and
    the leader is gone: the standby leads with what is in etcd, knows that it is old, and decides
    nothing from it."""
    with running(programs, directory, members=1) as lab:
        first, second = lab.servers
        member = lab.members[0]
        lab.write_some(first)
        member.save()
        saved = list(lab.written)
        lab.write_some(first, 3)
        eventually("the standby has it all", lambda: lab.mirrored(second), 10)
        time.sleep(2)  # It notes it within a second.
        first.kill()
        member.kill()
        member.restore()
        lab.start_etcd()
        eventually("the standby leads", lambda: second.events("leading"), 60)
        eventually("it says that the store is old", lambda: second.events("recovery_began"), 30)
        done, said = second.spokectl("recovery", "show")
        expect("older than what this server last wrote" in said, f"recovery show: {done} {said}")
        done, said = second.spokectl("get", "team", "-o", "name")
        expect(done, f"get team: {said}")
        found = [name for name in lab.written if name in said]
        expect(found == saved, f"it shows {found}, and in etcd there is {saved}")


def old_snapshot_old_mark(programs, directory):
    """A server has led, and others have since; etcd is restored from a snapshot of that time. What
    the server knows from its own time as a leader does not make it trust the store."""
    with running(programs, directory, members=1) as lab:
        first, second = lab.servers
        member = lab.members[0]
        lab.write_some(first)
        first.kill()
        eventually("the standby leads", lambda: second.events("leading"), 60)
        lab.write_some(second, 3)
        member.save()
        lab.write_some(second, 3)
        second.kill()
        member.kill()
        member.restore()
        lab.start_etcd()
        first.start()
        eventually("the server leads again", first.leads, 60)
        done, said = first.spokectl("recovery", "show")
        expect(done and "nodes have a minute to say" in said, f"recovery show: {done} {said}")


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


def refused_later(programs, directory):
    """etcd refuses servers that it has served: both say what it says, and which member, and stay."""
    with running(programs, directory, members=1) as lab:
        first, second = lab.servers
        member = lab.members[0]

        def both_say(words, event):
            for server, log in ((first, "leadership_not_renewed"), (second, "standby_behind")):
                reasons = eventually(f"{server.name} says: {words}", lambda s=server: next(
                    (said for said in [s.probe("readiness")[1]] if words in said), None), 30)
                expect(member.url in reasons, f"{server.name} does not name the member: {reasons}")
                expect(words in server.events(log)[-1], f"{log}: {server.events(log)}")
                expect(server.runs() and server.probe("liveness")[0], f"{server.name}: {event}")
            done, said = second.spokectl("status")
            expect(not done and words in said, f"spokectl at the standby: {said}")

        lab.ctl("user", "add", "root:secret")
        lab.ctl("user", "grant-role", "root", "root")
        lab.ctl("auth", "enable")
        both_say("etcd demands authentication", "authentication was enabled")
        lab.ctl("--user=root:secret", "auth", "disable")
        eventually("a server leads again", lambda: any(
            server.runs() and server.probe("readiness")[0] for server in lab.servers), 30)
        eventually("the other one follows again", lambda: any(
            server.events("standby_follows") or server.events("leading")
            for server in [second]), 30)
        lab.await_write(30)
        lab.check_written()


def replaced(programs, directory):
    """Another cluster answers at the endpoints: nobody writes there, and both say so."""
    with running(programs, directory, members=1) as lab:
        member = lab.members[0]
        member.kill()
        member.forget()
        lab.start_etcd("--initial-cluster-token", "another")
        for server in lab.servers:
            eventually(f"{server.name} says that this is another cluster", lambda s=server:
                       "another cluster of etcd" in s.probe("readiness")[1], 30)
            expect(server.runs(), f"{server.name} has ended")
        expect(not lab.ctl("get", "", "--prefix"), "something was written there")


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
                                          old_snapshot, old_snapshot_standby, old_snapshot_old_mark,
                                          wrong_etcd, refused_later, replaced, no_quorum)}

if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], CASES)
