#!/usr/bin/env -S python3 -B
"""azure_services PORT MAC ADDRESS SUBNET LISTED_FILE: Azure's two node-local services, on 127.0.0.1.

The instance document says who the machine is; the wire server lists ADDRESS and, one a line, what
LISTED_FILE holds: what the host has programmed.
"""

import http.server
import json
import pathlib
import sys
from xml.sax.saxutils import quoteattr

port, mac, address, subnet, listed = sys.argv[1:]
plain_mac = mac.replace(":", "").upper()
base, length = subnet.split("/")

INSTANCE = {
    "compute": {
        "name": "pool_7", "location": "westeurope", "subscriptionId": "S", "vmScaleSetName": "pool",
        "vmId": "55B8499D-9b42-4f85-843f-24ff69f4a643",
        "resourceId": "/subscriptions/S/resourceGroups/rg1/providers/Microsoft.Compute/"
                      "virtualMachineScaleSets/pool/virtualMachines/7"},
    "network": {"interface": [{
        "macAddress": plain_mac,
        "ipv4": {"ipAddress": [{"privateIpAddress": address, "publicIpAddress": ""}],
                 "subnet": [{"address": base, "prefix": length}]},
        "ipv6": {"ipAddress": []}}]}}


def interfaces():
    path = pathlib.Path(listed)
    others = path.read_text().split() if path.exists() else []
    rows = [f"<IPAddress Address={quoteattr(one)} IsPrimary=\"{str(one == address).lower()}\"/>"
            for one in [address, *others]]
    return (f"<Interfaces><Interface MacAddress=\"{plain_mac}\" IsPrimary=\"true\">"
            f"<IPSubnet Prefix=\"{subnet}\">{''.join(rows)}</IPSubnet></Interface></Interfaces>")


class Services(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        path = self.path.split("?")[0]
        if path == "/metadata/instance" and self.headers["Metadata"] == "true":
            self.answer(200, json.dumps(INSTANCE))
        elif path == "/machine/plugins":
            self.answer(200, interfaces())
        else:
            self.answer(400, "Required metadata header not specified")

    def answer(self, status, text):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())


http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Services).serve_forever()
