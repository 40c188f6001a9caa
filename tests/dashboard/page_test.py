#!/usr/bin/env -S python3 -B
"""The page of spokectl dashboard in Debian's Chromium: SPOKE_BIN=DIRECTORY page_test.py [--pictures DIRECTORY]

Against a made-up server of 7,500 nodes with hostile names: every panel shows, names stay text, keys suffice, the page
says when the server is away. Against a real server with 7,500 simulated agents (--agents N): the first paint and the
picture with all that was asked for come within a second, the page's bytes stay within 300 KiB, and ten viewers cost
spokectl and the server a hundredth of a core. Times are only judged of programs without sanitizers. --pictures writes a
light and a dark picture of the first, with harmless names, and tests nothing. The made-up server is of LAB_TOOLS, if that is set.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/bench"))

# pylint: disable=wrong-import-position
from browser import Browser  # noqa: E402
from fleet import AGENTS, Server, Swarm  # noqa: E402
from harness import Bench, leave_on_signals, say  # noqa: E402

BIN = os.environ["SPOKE_BIN"]
TOOLS = os.environ.get("LAB_TOOLS", BIN)
HOSTILE = "<img src=x onerror=alert(1)>"
MOST_PAINT_MS = 1000
MOST_BYTES = 300 << 10
MOST_OF_A_CORE = 0.01  # For ten viewers.
PANELS = ("fleet", "pools", "waiting", "nodes", "traffic", "gates", "rollout", "budgets", "events")


class Wrong(Exception):
    """The page is not as it should be."""


def expect(what, holds, got=""):
    if not holds:
        raise Wrong(f"{what}: {got}")
    say(f"  ok: {what}")


def is_released():
    """Whether the programs are without sanitizers, so that their times mean something."""
    with open(os.path.join(BIN, "spokectl"), "rb") as program:
        return b"__asan_init" not in program.read()


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Dashboard:
    """A running spokectl dashboard. Use as a context."""

    def __init__(self, socket, interval="1s"):
        self.process = subprocess.Popen(
            [os.path.join(BIN, "spokectl"), "--server", f"unix:{socket}", "--timeout", "60", "dashboard",
             "--interval", interval],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def first_paint_ms(browser):
    return browser.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")


def picture_ms(browser):
    """When the page had the answers to all that it asks for first."""
    return browser.run("performance.getEntriesByName('ready')[0].startTime")


def bytes_of_page(browser):
    """The bytes of the page's own files, and of all that was read for the first picture."""
    files = browser.run("""performance.getEntries().filter((e) => e.entryType === 'resource' || e.entryType === 'navigation')
        .map((e) => [e.name.includes('/api/'), e.decodedBodySize])""")
    return sum(size for api, size in files if not api), sum(size for _, size in files)


def check_panels(browser):
    browser.wait("document.documentElement.dataset.ready === 'yes'")
    for panel in PANELS:
        text = browser.run(f"document.querySelector('#{panel} .body').textContent")
        expect(f"panel {panel} shows something", text.strip(), text)
        error = browser.run(f"document.querySelector('#{panel} .error')?.textContent ?? ''")
        expect(f"panel {panel} has no error", error == "", error)
    wide = browser.run("document.documentElement.scrollWidth")
    expect("nothing is wider than 1280 pixels", wide <= 1280, wide)


def check_names(browser):
    """Names that are HTML are shown as they are, and made nothing of."""
    text = browser.run("document.querySelector('#events').textContent")
    expect("a hostile name is shown", HOSTILE in text)
    expect("no name became an element", browser.run("document.querySelectorAll('img, script:not([src])').length") == 0)
    browser.wait("document.querySelector('#traffic svg') !== null")
    expect("a namespace's hostile name is shown", HOSTILE in browser.run("document.querySelector('#traffic').textContent"))


def check_keys(browser):
    """The search and the map by keys alone."""
    browser.press("/", "/")
    expect("/ goes to the search", browser.run("document.activeElement.id") == "subject")
    browser.call("Input.insertText", text="web/frontend-1")
    browser.press("Enter")
    browser.wait("document.querySelector('#story .summary') !== null")
    expect("the story opens", browser.run("document.getElementById('story').open"))
    summary = browser.run("document.querySelector('#story .summary').textContent")
    expect("the story has the hostile name as text", HOSTILE in summary, summary)
    browser.press("Escape")
    browser.wait("!document.getElementById('story').open")
    browser.run("document.getElementById('map').focus()")
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    browser.press("ArrowDown")
    said = browser.run("document.getElementById('readout').textContent")
    expect("the map is read by keys", "free of" in said, said)
    browser.press("Enter")
    browser.wait("document.getElementById('story').open")
    browser.press("Escape")
    browser.wait("!document.getElementById('story').open")
    for measure in ("fitness", "internet", "free"):
        browser.run(f"document.querySelector('input[value={measure}]').click()")
        drawn = browser.run("""new Set(new Uint32Array(document.getElementById('map').getContext('2d')
            .getImageData(0, 0, 1000, 60).data.buffer)).size""")
        expect(f"the map by {measure} has several colours", drawn > 2, drawn)


def look(opener, page, seconds):
    """Ten who look at the page every ten seconds, for so long."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        for _ in range(10):
            for name in ("fleet", "pools", "nodes", "traffic", "rollout", "budgets", "events"):
                opener.open(f"{page}api/{name}").read()
        time.sleep(max(0, 10 - (time.monotonic() - began) % 10))


def ten_viewers(dashboard, server):
    """What ten viewers cost spokectl and the server: two minutes with them and two without, in turns. What
    the server does of its own it does once a minute, so it is in all of them alike."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(), urllib.request.ProxyHandler({}))
    opener.open(dashboard.url).read()
    page = dashboard.url.partition("?")[0]
    own, servers = [], []
    for _ in range(2):
        for viewers in (False, True):
            before = (cpu_seconds(dashboard.process.pid), cpu_seconds(server), time.monotonic())
            if viewers:
                look(opener, page, 60)
            else:
                time.sleep(60)
            took = time.monotonic() - before[2]
            servers.append((cpu_seconds(server) - before[1]) / took)
            if viewers:
                own.append((cpu_seconds(dashboard.process.pid) - before[0]) / took)
    of_spokectl = sum(own) / len(own)
    of_server = sum(servers[1::2]) / 2 - sum(servers[::2]) / 2
    say(f"  ten viewers: spokectl takes {100 * of_spokectl:.2f} % of a core, the server {100 * of_server:.2f} % more than "
        f"without ({', '.join(f'{100 * share:.2f}' for share in servers)} in turns)")
    if is_released():
        expect("ten viewers cost a hundredth of a core", of_spokectl + max(0, of_server) <= MOST_OF_A_CORE,
               (of_spokectl, of_server))


def check_away(browser, stage):
    stage.stdin.close()
    stage.wait(20)
    browser.wait("!document.getElementById('away').hidden", 30)
    said = browser.run("document.getElementById('away').textContent")
    expect("the page says that the server is away", "The server is away." in said and "What is shown is of" in said, said)
    expect("what was read before is still there", browser.run("document.querySelectorAll('#pools svg').length") == 3)


@contextlib.contextmanager
def made_up_fleet(directory, *names):
    """The socket of a server that plays a fleet, with a hostile name unless another is given."""
    socket = os.path.join(directory, "stage.sock")
    stage = subprocess.Popen([os.path.join(TOOLS, "dashboard_stage"), socket, *names], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    try:
        stage.stdout.readline()
        yield socket, stage
    finally:
        stage.kill()
        stage.wait()
        stage.stdout.close()


def take_pictures(directory, pictures):
    with made_up_fleet(directory, "forecast") as (socket, _), Dashboard(socket) as dashboard, Browser(directory) as browser:
        browser.open(dashboard.url)
        check_panels(browser)
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            time.sleep(2)  # The map is drawn anew, and what fades has faded.
            browser.screenshot(os.path.join(pictures, f"dashboard-{scheme}.png"))


def test_stage(directory):
    with made_up_fleet(directory) as (socket, stage):
        with Dashboard(socket) as dashboard, Browser(directory) as browser:
            browser.open(dashboard.url)
            expect("the token has left the URL", "token" not in browser.run("location.href"))
            check_panels(browser)
            check_names(browser)
            check_keys(browser)
            expect("the browser complains of nothing", not browser.complaints(), browser.complaints())
            check_away(browser, stage)


def test_swarm(bench, directory, agents):
    server = Server(bench, "dashboard")
    with open(server.config, "a", encoding="utf-8") as config:
        # What a server does in minutes of its own would be taken for the viewers'.
        config.write("reachability: {interval: 0s}\naudit: {period: 1h}\n")
    server.start()
    swarm = Swarm(bench, server, "steady", agents=agents, seconds=3600)
    swarm.event("ready")
    with Dashboard(server.admin, "10s") as dashboard, Browser(directory) as browser:
        browser.open(dashboard.url)
        check_panels(browser)
        paint = first_paint_ms(browser)
        files, everything = bytes_of_page(browser)
        picture = picture_ms(browser)
        say(f"  first paint {paint:.0f} ms, picture {picture:.0f} ms, {files} bytes of files, {everything} bytes with all answers")
        expect(f"{agents} nodes are on the map", f"of {agents:,}" in browser.run("document.querySelector('#fleet').textContent"))
        expect("the first paint comes in time", paint <= MOST_PAINT_MS, paint)
        if is_released():
            expect("the picture comes in time", picture <= MOST_PAINT_MS, picture)
        expect("the page's files are small", files <= MOST_BYTES, files)
        expect("the browser complains of nothing", not browser.complaints(), browser.complaints())
        ten_viewers(dashboard, server.pid)
    bench.stop(swarm.process)
    server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--pictures", help="only takes pictures, which go there")
    arguments = parser.parse_args()
    if os.environ.get("SPOKE_IN_NAMESPACE") != "yes":
        # A browser calls home when it can; here there is only a loopback.
        os.environ["SPOKE_IN_NAMESPACE"] = "yes"
        os.execvp("unshare", ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$0" "$@"', *sys.argv])
    leave_on_signals()
    with Bench("page", True, tempfile.gettempdir()) as bench:
        parts = (("stage", test_stage), ("swarm", lambda where: test_swarm(bench, where, arguments.agents)))
        if arguments.pictures:
            parts = (("pictures", lambda where: take_pictures(where, arguments.pictures)),)
        for name, run in parts:
            say(name)
            with tempfile.TemporaryDirectory(prefix="spoke-page-", ignore_cleanup_errors=True) as directory:
                run(directory)


if __name__ == "__main__":
    main()
