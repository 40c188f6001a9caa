"""Measures what it costs to build from nothing: the demo's programs, what scripts/test.sh builds, and
what users get.

Each is built in a copy of the tree, without a compiler cache, as many steps at a time as there are
processors. CPU time is that of all compilers and linkers; wall time counts only on an idle machine.
"""

import json
import os
import resource
import shutil
import subprocess
import time

from harness import ROOT, Failure, main, say, wait_until

# What is built: a preset and its targets. `everything` is ninja's default.
BUILDS = {
    "demo": [("dev", ["programs"])],
    "test": [("release", ["spoke"]), ("dev", [])],
    "release": [("release", ["programs"])],
}
TARGETS = {"demo_cpu_minutes": "≤ 10", "test_cpu_minutes": "≤ 40", "ci_minutes": "≤ 55"}
DEAREST = 10
IDLE_WAIT_S = 180


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command, folder, environment):
    """Runs one command to its end; its output counts only when it fails."""
    result = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    if result.returncode != 0:
        say(result.stdout.decode(errors="replace")[-3000:])
        raise Failure(f"{' '.join(command)} failed with {result.returncode}")


def read_steps(folder):
    """Seconds of each step that ninja took, by what it made; a step that makes two things counts once."""
    steps = {}
    with open(os.path.join(folder, ".ninja_log"), encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                start, end, _, path, command = line.rstrip("\n").split("\t")
                steps[command] = (path, (int(end) - int(start)) / 1000)
    return list(steps.values())


def copy_tree(bench):
    """The files that are or could be committed, so that nothing of another build is found."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others",
                            "--exclude-standard"], check=True, stdout=subprocess.PIPE).stdout
    tree = bench.path("tree")
    for name in sorted(set(names.decode().split("\0")) - {""}):
        if os.path.isfile(os.path.join(ROOT, name)):
            os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), os.path.join(tree, name))
    return tree


def build(tree, parts, jobs):
    """CPU minutes, wall minutes and steps of one build."""
    environment = dict(os.environ, CCACHE_DISABLE="1")
    shutil.rmtree(os.path.join(tree, "build"), ignore_errors=True)
    steps = []
    began, used = time.monotonic(), cpu_seconds()
    for preset, targets in parts:
        run(["cmake", "--preset", preset], tree, environment)
        run(["ninja", "-C", f"build/{preset}", f"-j{jobs}", *targets], tree, environment)
        steps += read_steps(os.path.join(tree, "build", preset))
    return (cpu_seconds() - used) / 60, (time.monotonic() - began) / 60, steps


def measure_ci(bench, tree, jobs):
    """The wall time of .ci/run in a tree where nothing was built; noise from outside would count as ours."""
    try:
        wait_until("an idle machine", IDLE_WAIT_S, lambda: os.getloadavg()[0] < jobs / 2, pause=5)
    except Failure:
        say("ci_minutes is left out: something else runs here")
        return
    began = time.monotonic()
    run(["git", "init", "-q"], tree, os.environ)
    run([".ci/run"], tree, dict(os.environ, CCACHE_DISABLE="1"))
    bench.figures["ci_minutes"] = round((time.monotonic() - began) / 60, 2)
    bench.row("ci_minutes", f"{bench.figures['ci_minutes']:.1f}", TARGETS["ci_minutes"])


def measure(bench):
    tree = copy_tree(bench)
    jobs = os.cpu_count()
    if not bench.quick:
        measure_ci(bench, tree, jobs)
    builds = {"quick": [("dev", ["spoke"])]} if bench.quick else BUILDS
    for name, parts in builds.items():
        cpu, wall, steps = build(tree, parts, jobs)
        key = f"{name}_cpu_minutes"
        bench.figures[key] = round(cpu, 2)
        bench.row(key, f"{cpu:.1f}", TARGETS.get(key, ""), f"{wall:.1f} minutes of wall time, {len(steps)} steps")
        bench.context[f"{name}_wall_minutes"] = round(wall, 2)
        bench.context[f"{name}_steps"] = len(steps)
        for path, seconds in sorted(steps, key=lambda step: -step[1])[:DEAREST]:
            say(f"  {name}: {seconds:5.1f} s  {os.path.basename(path)}")
    bench.context["jobs"] = jobs
    bench.context["compilers"] = json.dumps([version(name) for name in ("g++", "clang++-14")])


def version(compiler):
    return subprocess.run([compiler, "--version"], check=True, stdout=subprocess.PIPE).stdout.decode().split("\n")[0]


if __name__ == "__main__":
    main("build", measure)
