#!/usr/bin/env python3
"""Kills the agent at each step of its work, one after the other: before every request to the kernel
and every write of the journal, while it starts, adds a pod and deletes one. Whatever the moment, a
new agent and a DEL leave the kernel and the journal as they were.

usage: agent_kill_test.py DIRECTORY_OF_PROGRAMS
"""

import os
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "conformance"), os.path.join(TESTS, "support")]

from lab import Failed, Node, eventually, expect_equal  # noqa: E402
from private_node import enter_node  # noqa: E402

# More than either verb has; a walk that does not end by itself is a failure.
MOST_STEPS = 80


def step_reached(node):
    """The name of the step at which the agent died; None when it got through."""
    with open(node.log, encoding="utf-8", errors="replace") as log:
        steps = [line.split("=", 1)[1].strip() for line in log if line.startswith("fault step=")]
    os.unlink(node.log)
    return steps[-1] if steps else None


def start_to_be_killed(node, nth):
    """An agent that dies at its nth step, maybe at once. Whether it has come to listen."""
    node.start_agent(wait=False, SPOKE_FAULT=f"kill * {nth}")

    def settled():
        return node.agent.poll() is not None or node.listens_now()
    eventually("the agent listens or is dead", settled, 20)
    return node.agent.poll() is None


def reap(node):
    """Ends the agent if it still runs; the step it died at."""
    node.stop_agent()
    return step_reached(node)


def check_recovered(node, pod, before, what):
    """A new agent agrees with the kernel, and a DEL leaves nothing."""
    node.start_agent()
    in_use = node.in_use()
    expect_equal(node.assignments()["unfinished"], 0, f"{what}: begun and not undone")
    expect_equal(len(node.links()), len(in_use), f"{what}: links and assignments")
    if in_use:
        node.ping(pod)
    node.delete(pod)
    expect_equal(node.in_use(), {}, f"{what}: assignments")
    node.settles_to(before, f"{what}: the kernel")
    node.stop_agent()


def walk_add(node, before):
    steps = []
    for nth in range(1, MOST_STEPS):
        pod = node.pod()
        if start_to_be_killed(node, nth):
            node.cni("ADD", pod, node.conf(timeoutSeconds=1))
        step = reap(node)
        if step is None:
            check_recovered(node, pod, before, "ADD, not killed")
            return steps
        steps.append(step)
        check_recovered(node, pod, before, f"ADD, killed at {step} ({nth})")
        pod.destroy()
    raise Failed("ADD has no end of steps")


def walk_delete(node, before):
    steps = []
    for nth in range(1, MOST_STEPS):
        pod = node.pod()
        node.start_agent()
        node.add(pod)
        node.stop_agent()
        if start_to_be_killed(node, nth):
            node.cni("DEL", pod)
        step = reap(node)
        check_recovered(node, pod, before, f"DEL, killed at {step} ({nth})")
        pod.destroy()
        if step is None:
            return steps
        steps.append(step)
    raise Failed("DEL has no end of steps")


def main():
    programs = os.path.abspath(sys.argv[1])
    enter_node()
    with tempfile.TemporaryDirectory(dir="/run") as scratch, Node(programs, scratch, agent=False,
                                                                  cooldown="100ms") as node:
        try:
            node.start_agent()  # Once, for what is made only once and stays: routes of addresses.
            node.stop_agent()
            before = node.objects()
            for verb, walk in (("ADD", walk_add), ("DEL", walk_delete)):
                steps = walk(node, before)
                print(f"{verb}: killed at {len(steps)} steps: {' '.join(steps)}")
                if not any(step.startswith("journal") for step in steps):
                    raise Failed(f"{verb} has no step that writes the journal: {steps}")
                if len(steps) < 5:
                    raise Failed(f"{verb} has only {len(steps)} steps")
        except BaseException:
            node.show_logs()
            raise


if __name__ == "__main__":
    main()
