"""What must be so once nothing is broken any more: what kernels, journals, servers and the store say
of addresses is the same, and it is what the runtimes were told."""

import json

from ha_lab import eventually, expect, sh

PATIENCE = 120


def ask(lab, *words):
    """What the leader answers, as JSON; None: nobody leads, or it does not answer."""
    for server in lab.servers:
        if not server.runs():
            continue
        # An audit that finds something exits with 1, and answers all the same.
        said = server.spokectl(*words, "-o", "json", timeout="10s")[1]
        try:
            return json.loads(said)
        except ValueError:
            continue
    return None


def await_connected(lab):
    """Until the leader has a session with each node."""
    def connected():
        nodes = ask(lab, "node", "list") or []
        return sorted(row["name"] for row in nodes if row.get("connected")) == sorted(
            agent.name for agent in lab.agents)
    eventually("all nodes are connected", connected, PATIENCE)


def await_clean_audit(lab):
    """Until servers, nodes and the cloud agree."""
    last = []

    def clean():
        answer = ask(lab, "audit")
        last[:] = [answer]
        return answer is not None and not answer["differences"] and not answer["agents_silent"]
    try:
        eventually("the audit is clean", clean, PATIENCE)
    except Exception as error:
        raise type(error)(f"{error}: {json.dumps(last)[:2000]}") from None


def in_use(lab):
    """The node of each address in use, as the leader has it."""
    rows = ask(lab, "ip", "list")
    return None if rows is None else {
        row["address"]: row["node"] for row in rows if row["state"] == "in_use"}


def check_kernels(runtimes):
    """Each pod has the address that its ADD has named, a route leads to it, and nothing is left of
    other pods."""
    for runtime in runtimes:
        for pod, address in runtime.pods.items():
            links = json.loads(sh("ip", "-n", pod, "-j", "-4", "address", "show", "dev", "eth0"))
            found = [info["local"] for link in links for info in link.get("addr_info", [])]
            expect(found == [address], f"{pod} was given {address} and has {found}")
        routes = json.loads(sh("ip", "-n", runtime.name, "-j", "-4", "route", "show", "table", "all"))
        led_to = sorted(route["dst"] for route in routes if route.get("dev", "").startswith("spk"))
        expect(led_to == sorted(runtime.pods.values()),
               f"{runtime.name} has routes to {led_to}, its pods have {sorted(runtime.pods.values())}")
        links = json.loads(sh("ip", "-n", runtime.name, "-j", "link"))
        left = [link["ifname"] for link in links if link["ifname"].startswith("spk")]
        expect(len(left) == len(runtime.pods),
               f"{runtime.name} has {len(runtime.pods)} pods and the links {left}")


def await_agreement(lab, runtimes, when):
    """Until the leader has in use what the pods have, no more and no less."""
    pods = {address: runtime.name for runtime in runtimes for address in runtime.pods.values()}
    expect(len(pods) == sum(len(runtime.pods) for runtime in runtimes), "two pods have one address")
    last = []

    def agree():
        last[:] = [in_use(lab)]
        return last[0] == pods
    try:
        eventually(f"the server knows the pods {when}", agree, PATIENCE)
    except Exception as error:
        raise type(error)(f"{error}: it has {last[0]}, the pods are {pods}") from None


def check(lab, runtimes, leader):
    """All of it; then once more by what the store and the journals have: another server leads, and
    other agents run. Somebody else starts again what is killed."""
    await_connected(lab)
    await_agreement(lab, runtimes, "after the faults")
    await_clean_audit(lab)
    check_kernels(runtimes)
    leader().kill()
    await_connected(lab)
    await_agreement(lab, runtimes, "by the store")
    for agent in lab.agents:
        starts = len(agent.events("agent_started"))
        agent.kill()
        eventually(f"{agent.name} has started again",
                   lambda a=agent, n=starts: len(a.events("agent_started")) > n, PATIENCE)
    await_connected(lab)
    await_agreement(lab, runtimes, "by the journals")
    await_clean_audit(lab)
    check_kernels(runtimes)
    lab.check_written()
