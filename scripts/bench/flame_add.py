"""Where ADD and DEL of a pod spend their time, on addresses that have been used: docs/images/flame-add.svg."""

from cni_node import Node, enter_namespaces
from flame_graph import recorded
from harness import main


def run(bench):
    enter_namespaces()
    node = Node(bench, addresses=64, busy=True)
    node.wear()
    with recorded(bench, "ADD and DEL of a pod, exec to exit", ("spoke", "spoke-netagent"), "flame-add.svg"):
        node.measure("serial", networks="spoke", rounds=20 if bench.quick else 500)


if __name__ == "__main__":
    main("flame_add", run)
