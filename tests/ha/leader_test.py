#!/usr/bin/env python3
"""What happens to the leader and its standbys: killed, stopped, paused, stuck, and cut off. Real
servers and real members of etcd, each in a network namespace of its own.

usage: leader_test.py DIRECTORY_OF_PROGRAMS CASE
"""

import signal
import sys
import time

from ha_lab import Lab, eventually, expect, run, running

# Leads by the connection that ended, not by the lease, which is that long.
LONG_LEASE = 20
HELD = 2.5  # Seconds after which a standby's connection counts as held.


def leads_since(server, begun, what, most):
    """Seconds from `begun` until the server has won; at most so many."""
    eventually(f"{what}: {server.name} leads", lambda: server.events("leading"), most)
    took = time.monotonic() - begun
    print(f"{what}: {server.name} has won after {took:.2f} s")
    return took


def killed(programs, directory):
    """The leader is killed: a standby overthrows it, well before the lease ends; and it comes back."""
    with running(programs, directory, servers=3, lease=LONG_LEASE) as lab:
        first, second, third = lab.servers
        for server in (second, third):
            expect(not server.listens(7443), f"{server.name} has a port for agents")
            expect(not server.listens(7446), f"{server.name} has a port for standbys")
            metrics = server.metrics()
            expect(metrics.get("spoke_ipam_leading") == "0", f"metrics of a standby: {metrics}")
            expect('spoke_ipam_leader_info{leader="server-a"}' in metrics, f"leader: {metrics}")
            done, said = server.spokectl("status")
            expect(not done and "server server-a leads" in said, f"spokectl at a standby: {said}")
            expect(server.probe("liveness")[0], f"{server.name} is not alive")
        expect(first.metrics().get("spoke_ipam_leading") == "1", "metrics of the leader")
        lab.write_some(first, 3)
        time.sleep(HELD)
        begun = time.monotonic()
        first.kill()
        server, took = lab.await_write(10, [second, third])
        print(f"killed: the next write is acknowledged by {server.name} after {took:.2f} s, "
              f"{time.monotonic() - begun:.2f} s in all")
        expect("overthrown=true" in server.events("leading")[0], "it was not overthrown")
        other = third if server is second else second
        eventually("the other one stands by the new leader", lambda: len(
            other.events("standing_by")) == 2 and f"leader={server.name}" in
                   other.events("standing_by")[1], 10)
        expect(not other.events("leading"), "two have overthrown")
        lab.check_written()
        first.start()
        eventually("the killed one stands by", lambda: len(first.events("standing_by")) == 1, 30)
        expect(lab.leader() is server, "the leader has changed")


def stopped(programs, directory):
    """SIGTERM gives the lease back; a standby that is stopped ends at once."""
    with running(programs, directory, servers=3, lease=LONG_LEASE) as lab:
        first, second, third = lab.servers
        begun = time.monotonic()
        expect(third.stop() == 0, "a standby ends with an error")
        expect(time.monotonic() - begun < 5, "a standby takes long to end")
        expect(first.stop() == 0, "the leader ends with an error")
        leads_since(second, time.monotonic(), "stopped", 5)
        lab.await_write(20, [second])
        lab.check_written()


def paused(programs, directory):
    """The leader is paused, and a standby leads when the lease has ended. What the old leader does
    when it is resumed is to end."""
    with running(programs, directory) as lab:
        first, second = lab.servers
        lab.write_some(first)
        begun = time.monotonic()
        first.signal(signal.SIGSTOP)
        took = leads_since(second, begun, "paused", 10)
        expect(took >= 1.5, "it was overthrown for silence")
        expect("overthrown=false" in second.events("leading")[0], "it was overthrown for silence")
        lab.await_write(20, [second])
        first.signal(signal.SIGCONT)
        done, said = lab.write(first)
        expect(not done, f"the former leader has acknowledged a write: {said}")
        first.await_deposed(10)
        lab.check_written()


def stuck(programs, directory):
    """The loop of the leader does not turn any more, though all its other threads do."""
    with running(programs, directory) as lab:
        first, second = lab.servers
        begun = time.monotonic()
        first.stop_loop()
        took = leads_since(second, begun, "stuck", 40)
        expect(took >= 15, "a loop that waits for a commit would have been deposed")
        first.await_deposed(10)
        lab.await_write(20, [second])


def cut_off(programs, directory):
    """The leader is cut off from etcd and from the standbys: it sends its agents away when its
    leadership may have ended, another one leads, and it ends when it hears of that."""
    with running(programs, directory) as lab:
        first, second = lab.servers
        lab.write_some(first)
        begun = time.monotonic()
        first.cut()
        leads_since(second, begun, "cut off", 10)
        eventually("the one that is cut off is not ready",
                   lambda: "cannot renew its leadership" in first.probe("readiness")[1], 5)
        lab.await_write(20, [second])
        done, said = lab.write(first, timeout="12s")
        expect(not done, f"the former leader has acknowledged a write: {said}")
        expect(first.runs(), "it has ended, though it may still lead for all it knows")
        first.cut(off=False)
        first.await_deposed(20)
        lab.check_written()


def standby_cut_off(programs, directory):
    """A standby that is cut off from everything changes nothing, and follows again afterwards."""
    with running(programs, directory) as lab:
        first, second = lab.servers
        second.cut()
        time.sleep(6)
        lab.write_some(first, 3)
        expect(lab.leader() is first, "the leader has changed")
        expect(second.runs() and not second.events("leading"), "the standby did something")
        expect(second.probe("liveness")[0], "the standby is not alive")
        second.cut(off=False)
        eventually("the standby has all records", lambda: lab.mirrored(second), 30)
        first.kill()
        lab.await_write(20, [second])
        lab.check_written()


def two_of_one_name(programs, directory):
    """Two servers with one name: one leads, and the other stands by and says so."""
    with Lab(programs, directory) as lab:
        lab.start_etcd()
        lab.servers[1].title = lab.servers[0].title
        lab.start_servers()
        first, second = lab.servers
        eventually("the standby says that its name is taken",
                   lambda: second.events("server_name_taken"), 20)
        expect(lab.write(first)[0] and not lab.write(second)[0], "one of them leads")


CASES = {case.__name__: case for case in
         (killed, stopped, paused, stuck, cut_off, standby_cut_off, two_of_one_name)}

if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], CASES)
