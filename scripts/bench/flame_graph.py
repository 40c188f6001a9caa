"""Records where programs spend their time, and draws it as a flame graph.

Each box is a function, as wide as its share of the samples; above it are those that it called. A box shows
its name, samples and share when the pointer rests on it. Boxes are in the order of their names, not of time.
Released programs keep no frame pointers, so that of their own functions only the innermost is known; the
kernel's are whole. Addresses without a name are left out.
"""

import contextlib
import html
import os
import shutil
import signal
import subprocess
import zlib

from harness import ROOT, Failure

HERTZ = 1999
WIDTH = 1200
ROW = 17
MARGIN = 10
FONT = 11
LETTER = 6.2  # Width of a letter of the font, about.
LEAST = 0.6   # Narrower boxes are left out, in pixels.


class Box:
    """A function, and what it called, by name."""

    def __init__(self):
        self.samples = 0
        self.called = {}

    def add(self, stack):
        box = self
        box.samples += 1
        for name in stack:
            box = box.called.setdefault(name, Box())
            box.samples += 1


def read(lines, programs):
    """Returns the root of all stacks. Each is a program's name, a line for each function, the innermost first,
    with its address before its name, and an empty line."""
    root = Box()
    stack, program = [], None
    for line in lines:
        text = line.strip()
        if not text:
            if program is not None and (not programs or program in programs):
                root.add([program] + [name for name in stack[::-1] if name not in ("", "[unknown]")])
            stack, program = [], None
        elif program is None:
            program = text
        else:
            stack.append(text.partition(" ")[2])
    return root


def depth(box, narrowest):
    return 1 + max((depth(inner, narrowest) for inner in box.called.values()
                    if inner.samples >= narrowest), default=0)


def draw(name, box, place, scale, root, out):
    """Draws a box with all that stands on it; `place` is the left edge and the row's lower edge."""
    left, low = place
    width = box.samples * scale
    if width < LEAST:
        return
    shade = zlib.crc32(name.encode()) % 60
    share = 100 * box.samples / root.samples
    label = html.escape(name)
    out.append(f'<g><title>{label}: {box.samples} samples, {share:.1f} %</title>'
               f'<rect x="{left:.1f}" y="{low - ROW + 1}" width="{width:.1f}" height="{ROW - 1}" rx="1" '
               f'fill="hsl({20 + shade // 2},{75 + shade // 4}%,{62 + shade // 5}%)"/>')
    letters = int(width / LETTER)
    if letters >= 3:
        shown = name if len(name) <= letters else name[:letters - 1] + "\u2026"
        out.append(f'<text x="{left + 2:.1f}" y="{low - 5}">{html.escape(shown)}</text>')
    out.append("</g>")
    for called in sorted(box.called):
        draw(called, box.called[called], (left, low - ROW), scale, root, out)
        left += box.called[called].samples * scale


def flame_graph(title, root):
    """Returns the SVG."""
    scale = (WIDTH - 2 * MARGIN) / root.samples
    height = depth(root, LEAST / scale) * ROW + 4 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           f'font-family="monospace" font-size="{FONT}">',
           f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
           f'<text x="{MARGIN}" y="18" font-size="14">{html.escape(title)} '
           f'({root.samples} samples)</text>']
    draw("all", root, (MARGIN, height - MARGIN), scale, root, out)
    return "\n".join(out + ["</svg>", ""])


@contextlib.contextmanager
def recorded(bench, title, programs, name):
    """Records these programs as long as the context lasts, and draws docs/images/NAME; with --quick it is
    only read."""
    perf = shutil.which("perf")
    if perf is None:
        raise Failure("perf is missing: scripts/setup.sh --also linux-perf")
    data = bench.path("perf.data")
    recorder = bench.start([perf, "record", "-q", "-a", "-g", "-e", "cpu-clock", "-F", str(HERTZ), "-o", data],
                           log="perf.log")
    yield
    bench.stop(recorder, signal.SIGINT)
    script = subprocess.run([perf, "script", "-i", data, "-F", "comm,ip,sym"], check=True,
                            capture_output=True, text=True, errors="replace").stdout
    root = read(script.splitlines(), set(programs))
    if root.samples == 0:
        raise Failure(f"perf has no samples of {', '.join(programs)}")
    for program, box in sorted(root.called.items()):
        bench.row(program, f"{box.samples / HERTZ:.2f} s", "", f"{100 * box.samples / root.samples:.0f} %")
    bench.figures = {"samples": root.samples}
    svg = flame_graph(title, root)
    if bench.quick:
        return
    with open(os.path.join(ROOT, "docs/images", name), "w", encoding="utf-8") as out:
        out.write(svg)
