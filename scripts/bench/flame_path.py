"""Where small packets from pod to pod spend their time: docs/images/flame-path.svg."""

from flame_graph import recorded
from harness import main
from path_cost import PACKETS, Ours
from path_rig import enter_private, measure


def run(bench):
    enter_private()
    ours = Ours(bench, "o1", 1)
    with recorded(bench, "a packet of 64 bytes from pod to pod, on both nodes", ("spoke-path-benc",),
                  "flame-path.svg"):
        # In a few large runs, so that the program's own start does not show.
        for _ in range(1 if bench.quick else 5):
            measure("udp", [ours.pair.path()], packets=PACKETS * (1 if bench.quick else 40))


if __name__ == "__main__":
    main("flame_path", run)
