"""Alerts of a server that keeps the taints of a Kubernetes cluster, and has nodes that can be broken."""

from case import case

FIREWALL = """table inet strict {
  chain forward { type filter hook forward priority 0; policy drop; }
}"""


@case("SpokeKubernetesUnusable")
def kubernetes_unusable(lab):
    """The API server answers everything with 503; then it is well again."""
    lab.api.refuse(True)
    yield
    lab.api.refuse(False)


@case("SpokeNodeUnfit", "SpokeNodesNotTainted", patience=200)
def nodes_unfit(lab):
    """Firewalls on both nodes of a cluster, of which one may be tainted, let nothing be forwarded; they are
    removed."""
    nodes = (lab.checked_node, lab.legacy_node)
    for node in nodes:
        node.run("nft", "-f", "-", input=FIREWALL)
    yield
    for node in nodes:
        node.run("nft", "delete", "table", "inet", "strict")


@case("SpokeAuditOld", labels={"job": "cluster"}, patience=200)
def audit_old(lab):
    """A server is started whose audits are switched off; an operator has it audit."""
    server = lab.in_cluster
    audits = server.settings["audit"]
    server.settings["audit"] = {"period": "0s"}
    server.restart()
    server.settings["audit"] = audits
    yield
    server.ask("audit")
    server.restart()
