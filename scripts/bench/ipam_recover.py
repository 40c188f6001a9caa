"""The server is killed while 7,500 agents hold 200,000 addresses and assign 100,000, and comes back.

Lost is counted twice over: by the agents, who are told after the restart what they hold, and by a
second server on a copy of the store as the crash left it, which has heard of no agent yet and must
know every assignment that was acknowledged.
"""

from fleet import ADDRESSES_A_NODE, AGENTS, Server, Swarm, count_lost, has_verb
from harness import Failure, main, median, say

ROUNDS = 3


def audit(server):
    """Returns how many differences an audit finds."""
    if not has_verb("audit"):
        raise Failure("spokectl has no verb audit: nothing can say that there are no differences")
    answer = server.ask("audit", codes=(0, 1))
    if answer["agents_silent"]:
        raise Failure(f"{answer['agents_silent']} agents did not answer the audit in time")
    return len(answer["differences"])


def crash(bench, server, swarm, number):
    """One crash and recovery."""
    server.kill()
    swarm.tell("killed")
    copy = server.copy_store(f"copy{number}")
    holdings = bench.path(f"holdings{number}")
    swarm.tell(f"holdings {holdings}")
    swarm.event("written")
    serving = server.start()
    swarm.tell("wait")
    synced = swarm.event("synced")
    outcome = {"serving_s": serving,
               "resync_s": synced["synced_unix"] - server.executed,
               "resync_from_serving_s": synced["synced_unix"] - server.executed - serving,
               "first_welcome_s": synced["first_welcome_unix"] - server.executed}
    # Its own time comes only now, so that it takes none from what is measured.
    copy.start()
    outcome["lost"] = count_lost(holdings, copy.ask("ip", "list")) + synced["violations"]
    copy.stop()
    say("  " + ", ".join(f"{key} {value:.2f}" for key, value in outcome.items()))
    outcome["audit_differences"] = audit(server)
    return outcome


def run(bench):
    agents = 300 if bench.quick else AGENTS
    in_use = 4_000 if bench.quick else 100_000
    server = Server(bench)
    server.start()
    swarm = Swarm(bench, server, "recover", agents=agents, addresses=ADDRESSES_A_NODE, assign=in_use,
                  coalesce=True)
    swarm.event("ready")
    before = server.ask("status")
    if before["addresses_in_use"] != in_use:
        raise Failure(f"{before['addresses_in_use']} addresses are assigned, not {in_use}")
    rounds = [crash(bench, server, swarm, i) for i in range(1 if bench.quick else ROUNDS)]
    after = server.ask("status")
    for key in ("addresses_attached", "addresses_in_use"):
        if after[key] != before[key]:
            raise Failure(f"{key} was {before[key]} and is {after[key]}")
    swarm.result()
    server.stop()

    def middle(key):
        return median([r[key] for r in rounds])

    def note(key):
        return f"{min(r[key] for r in rounds):.2f} to {max(r[key] for r in rounds):.2f}"

    bench.figures = {key: middle(key) for key in ("serving_s", "resync_s", "resync_from_serving_s",
                                                  "first_welcome_s")}
    bench.figures["audit_differences"] = sum(r["audit_differences"] for r in rounds)
    bench.figures["lost"] = sum(r["lost"] for r in rounds)
    bench.context.update(n=len(rounds), agents=agents, attached=after["addresses_attached"],
                         in_use=in_use, tls=False)
    bench.row("exec to serving, s", f"{middle('serving_s'):.2f}", "<= 1.5", note("serving_s"))
    bench.row(f"exec to all {agents} agents synced, s", f"{middle('resync_s'):.2f}", "<= 15",
              note("resync_s"))
    bench.row("differences an audit finds", bench.figures["audit_differences"], "0",
              f"{after['addresses_attached']} attached, {in_use} in_use")
    bench.row("acknowledged, and lost", bench.figures["lost"], "0", f"{len(rounds)} crashes")


if __name__ == "__main__":
    main("ipam_recover", run)
