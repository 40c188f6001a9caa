"""Debian's Chromium without a window, driven through its pipe of the DevTools protocol."""

import base64
import json
import os
import select
import subprocess
import time


class BrowserError(Exception):
    """The browser did not do what it was asked."""


class Browser:
    """One page. Use as a context: the browser ends with it. `directory` keeps its profile."""

    def __init__(self, directory, width=1280, height=1600):
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()

        def take_pipes():
            # The browser reads descriptor 3 and writes 4, whatever the pipes were called until now.
            reads, writes = os.dup(to_browser), os.dup(from_browser)
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        self.log = open(os.path.join(directory, "browser.log"), "wb")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=subprocess-popen-preexec-fn
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             f"--user-data-dir={directory}/profile", f"--window-size={width},{height}", "--remote-debugging-pipe",
             "about:blank"],
            preexec_fn=take_pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env={**os.environ, "HOME": directory})
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self.messages = []  # What came that was no answer.
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._to)
        os.close(self._from)
        self.log.close()

    def _read(self, deadline):
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], max(0, deadline - time.monotonic()))[0]:
                raise BrowserError("the browser does not answer")
            piece = os.read(self._from, 1 << 20)
            if not piece:
                raise BrowserError(f"the browser has ended; see {self.log.name}")
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        """Calls a method of the protocol and returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self._read(deadline)
            if answer.get("id") != self._number:
                self.messages.append(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def run(self, script):
        """Returns the value of a script's expression; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, script, seconds=60):
        """Waits until a script's expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(f"Boolean({script})"):
            if time.monotonic() > deadline:
                raise BrowserError(f"it never became true: {script}")
            time.sleep(0.1)

    def open(self, url):
        self.messages.clear()
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def press(self, key, text=None):
        codes = {"Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "/": 191}
        parameters = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        if text or key == "Enter":
            parameters["text"] = text or "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **parameters)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes.get(key, 0))

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def screenshot(self, path):
        height = self.run("document.documentElement.scrollHeight")
        self.call("Emulation.setDeviceMetricsOverride", width=1280, height=height, deviceScaleFactor=1, mobile=False)
        picture = self.call("Page.captureScreenshot", format="png")["data"]
        self.call("Emulation.clearDeviceMetricsOverride")
        with open(path, "wb") as out:
            out.write(base64.b64decode(picture))

    def complaints(self):
        """What the browser has complained of: errors of scripts, violations of the policy, dialogs."""
        found = []
        for message in self.messages:
            method, parameters = message.get("method"), message.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"]))
            elif method == "Page.javascriptDialogOpening":
                found.append("dialog: " + parameters["message"])
            elif method == "Log.entryAdded" and parameters["entry"]["source"] in ("security", "javascript", "violation"):
                found.append(parameters["entry"]["text"])
        return found
