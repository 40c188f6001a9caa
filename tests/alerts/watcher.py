"""Debian's Prometheus, which reads the programs of a lab and works out the rules, and what it says of
alerts."""

import json
import os
import re
import subprocess
import time
import urllib.request

from ha_lab import Failed, die_with_parent, eventually, expect

ADDRESS = "10.99.0.1:9090"
TOKEN = "0123456789abcdef0123456789abcdef"
ROUND = "2s"  # From one reading, and one look at the rules, to the next; and for how long one may take.


class Watcher:
    """A Prometheus. Its methods but for start() and kill() are thread-safe."""

    def __init__(self, directory, rules):
        self.directory = os.path.join(directory, "prometheus")
        os.makedirs(self.directory)
        self.log = os.path.join(self.directory, "log")
        self.token = self.write("token", TOKEN)
        self.rules = self.write("alerts.yaml", rules)
        self.process = None

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, jobs):
        """`jobs`: lists of pairs of a target's name and its address, by the name of the job."""
        scrapes = [{"job_name": job, "authorization": {"credentials_file": self.token},
                    "static_configs": [{"targets": [address], "labels": {"instance": name}}
                                       for name, address in targets]}
                   for job, targets in jobs.items()]
        config = self.write("prometheus.yaml", json.dumps({  # Which is YAML as well.
            "global": {"scrape_interval": ROUND, "scrape_timeout": ROUND,
                       "evaluation_interval": ROUND},
            "rule_files": [self.rules], "scrape_configs": scrapes}))
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["/usr/bin/prometheus", f"--config.file={config}", f"--web.listen-address={ADDRESS}",
                 f"--storage.tsdb.path={self.directory}/data"], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, preexec_fn=die_with_parent)
        eventually("Prometheus answers", self.answers, 30)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def ask(self, path):
        with urllib.request.urlopen(f"http://{ADDRESS}/api/v1/{path}", timeout=10) as answer:
            return json.load(answer)["data"]

    def answers(self):
        expect(self.process.poll() is None, f"Prometheus has ended, see {self.log}")
        try:
            return self.ask("status/runtimeinfo")
        except OSError:
            return None

    def targets_down(self):
        """What it cannot read, each with its error."""
        return [f"{target['labels']['instance']}: {target['lastError'] or 'not read yet'}"
                for target in self.ask("targets?state=active")["activeTargets"]
                if target["health"] != "up"]

    def broken_rules(self):
        return [f"{rule['name']}: {rule.get('lastError') or rule['health']}"
                for group in self.ask("rules")["groups"] for rule in group["rules"]
                if rule["health"] != "ok"]

    def alerts(self, name=None, states=("pending", "firing")):
        """The alerts in those states: their labels, of which `alertname` is one."""
        return [alert["labels"] for alert in self.ask("alerts")["alerts"]
                if alert["state"] in states and name in (None, alert["labels"]["alertname"])]

    def values(self, name):
        """What the metrics of an alert's rule are, for whoever wonders why it does not fire."""
        query = next(rule["query"] for group in self.ask("rules")["groups"]
                     for rule in group["rules"] if rule["name"] == name)
        said, zeros = [], 0
        for metric in sorted(set(re.findall(r"\b(?:spoke|process)_\w+", query))):
            for row in self.ask(f"query?query={metric}")["result"]:
                zeros += row["value"][1] == "0"
                if row["value"][1] == "0" and zeros > 8:
                    continue
                labels = {key: value for key, value in row["metric"].items()
                          if key not in ("__name__", "job")}
                said.append(f"{metric}{labels} {row['value'][1]}")
        return "\n  ".join([query, *said[:60]])

    def matching(self, name, labels, states=("pending", "firing")):
        """Those of this name that have these labels among theirs."""
        return [alert for alert in self.alerts(name, states) if labels.items() <= alert.items()]

    def await_firing(self, name, labels, seconds):
        """Until such an alert fires, with these labels among its own; after how many seconds it did."""
        begun = time.monotonic()
        try:
            eventually(f"{name} fires", lambda: self.matching(name, labels, ("firing",)), seconds)
        except Failed as failure:
            fires = sorted({alert["alertname"] for alert in self.alerts(states=("firing",))})
            raise Failed(f"{failure}; these fire: {fires}; {self.values(name)}") from None
        return time.monotonic() - begun

    def await_quiet(self, name, labels, seconds):
        """Until no such alert fires or is pending; after how many seconds that was so."""
        begun = time.monotonic()
        eventually(f"{name} is resolved", lambda: not self.matching(name, labels), seconds)
        return time.monotonic() - begun
