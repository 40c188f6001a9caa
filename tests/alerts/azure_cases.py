"""Alerts of what the cloud answers, on the simulated Azure."""

import contextlib
import json
import threading
import urllib.request

from azure import SET, SUBNET
from case import case
from certificates import DAY, sign

LATENCY = 1.5  # Seconds; a change takes one at most.
SLOW = 62  # Seconds that a change of a machine takes: more than the minute of the rule.


@case("SpokeCloudDenies")
def cloud_denies(lab):
    """Azure answers every read with 403; the permission is there again, and the server is restarted, which
    would wait for up to half an hour."""
    lab.azure.post("faults", deny_reads=True)
    yield
    lab.azure.post("faults", deny_reads=False)
    lab.on_azure.restart()


@case("SpokeCloudThrottles", "SpokeCloudLimitNear")
def cloud_throttles(lab):
    """Azure's front door lets in one read in five seconds, without telling, while an operator audits again and
    again, which the server must read for; then it is as wide as before."""
    over = threading.Event()

    def audit():
        while not over.is_set():
            lab.on_azure.spokectl("audit")
            over.wait(LATENCY)
    auditor = threading.Thread(target=audit, daemon=True)
    lab.azure.post("faults", front_door_reads=1, front_door_reads_per_s=0.2,
                   expose_throttle_headers=False)
    auditor.start()
    yield
    over.set()
    auditor.join()
    lab.azure.post("faults", front_door_reads=250, front_door_reads_per_s=25,
                   expose_throttle_headers=True)


def put_by_hand(lab, name):
    """Puts an address on the NIC of the node, as another writer would."""
    machine = f"{lab.azure.url}{SET}/virtualMachines/0?api-version=2024-07-01"
    with urllib.request.urlopen(machine, timeout=10) as answer:
        instance = json.load(answer)
    nics = instance["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"]
    nics[0]["properties"]["ipConfigurations"].append(
        {"name": name, "properties": {"primary": False, "subnet": {"id": SUBNET},
                                      "privateIPAddressVersion": "IPv4"}})
    # What there is no right to read may not be sent either.
    instance["properties"].get("storageProfile", {}).pop("imageReference", None)
    body = {key: instance[key] for key in ("location", "properties")}
    request = urllib.request.Request(machine, data=json.dumps(body).encode(), method="PUT",
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        answer.read()


@case("SpokeAuditDifferences")
def audit_differences(lab):
    """Another writer puts addresses on a NIC under names of the server's, again and again, and an operator has
    the server audit; then they stop, and the server gives them back."""
    over = threading.Event()

    def write():
        number = 0
        while not over.is_set():
            number += 1
            # The server takes each for its own after a while: only what is new is a difference.
            with contextlib.suppress(OSError):  # A change of the server's is under way.
                put_by_hand(lab, f"spoke-by-hand-{number}")
            over.wait(LATENCY)
            lab.on_azure.spokectl("audit")
            over.wait(LATENCY)
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    yield
    over.set()
    writer.join()


@case("SpokeAttachSlow", patience=240)
def attach_slow(lab):
    """A node needs more addresses, and Azure takes more than a minute for each change; then it is fast."""
    lab.azure.post("faults", latency_least_s=SLOW, latency_most_s=SLOW)
    for _ in range(4):  # All that it has, so that it needs more before a pod waits.
        lab.azure_node.add()
    yield
    lab.azure.post("faults", latency_least_s=0.5, latency_most_s=1)
    for pod in list(lab.azure_node.pods):
        lab.azure_node.delete(pod)


@case("SpokeCertificateEnds", labels={"job": "azure"})
def certificate_ends(lab):
    """The server's certificate is replaced by an old one, of whose life a twentieth is left; a new one is put
    in its place."""
    sign(lab.certificates, "spoke-ipam-server", "serverAuth", age=95 * DAY, left=5 * DAY)
    yield
    sign(lab.certificates, "spoke-ipam-server", "serverAuth")
