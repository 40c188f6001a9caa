"""What an API server of Kubernetes has of nodes, over TLS: lists, watches, patches of taints and of conditions,
and events that are created. It can refuse everything, and nodes can come and go."""

import http.server
import json
import os
import ssl
import sys
import threading
import time

from ha_lab import sh

ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"  # /var/run is /run.
PORT = 6443
BOOKMARKS = 2  # Seconds from one to the next, while nothing happens.


def make_account(directory, address):
    """What a pod has of its service account: a token, and whom to trust. Returns certificate and key of
    the API server at that address."""
    os.makedirs(ACCOUNT)
    certificate, key = (os.path.join(directory, name) for name in ("api.crt", "api.key"))
    sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
       "-days", "2", "-subj", "/CN=kubernetes", "-addext", f"subjectAltName=IP:{address}",
       "-keyout", key, "-out", certificate)
    with open(certificate, encoding="utf-8") as file:
        trusted = file.read()
    for name, text in (("ca.crt", trusted), ("token", "a-token"), ("namespace", "spoke-system")):
        with open(os.path.join(ACCOUNT, name), "w", encoding="utf-8") as file:
            file.write(text)
    return certificate, key


class Listener(http.server.ThreadingHTTPServer):
    """A client may go away in the middle of a watch, as one that is killed does."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class KubernetesApi:
    """Thread-safe. It serves from its construction on, at that address."""

    def __init__(self, directory, address):
        self.changed = threading.Condition()
        self.version = 1
        self.nodes = {}
        self.events = []  # Each with the version that it has made.
        self.told = []  # The objects Event that clients have created.
        self.refusing = False
        self.address = address
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*make_account(directory, address))
        self.server = Listener((address, PORT), self.handler())
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def store(self, kind, node):
        """Under the lock."""
        self.version += 1
        node["metadata"]["resourceVersion"] = str(self.version)
        if kind == "DELETED":
            del self.nodes[node["metadata"]["name"]]
        else:
            self.nodes[node["metadata"]["name"]] = node
        self.events.append((self.version, {"type": kind, "object": json.loads(json.dumps(node))}))
        self.changed.notify_all()

    def add_node(self, name):
        with self.changed:
            self.store("ADDED", {
                "kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "uid": f"uid-{name}"},
                "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})

    def remove_node(self, name):
        with self.changed:
            self.store("DELETED", self.nodes[name])

    def refuse(self, refusing):
        """While it refuses, every answer is 503, and watches end."""
        with self.changed:
            self.refusing = refusing
            self.changed.notify_all()

    def patch_taints(self, name, patch):
        """Carries out a JSON patch of a node's taints; returns the node."""
        with self.changed:
            node = json.loads(json.dumps(self.nodes[name]))
            taints = node["spec"].setdefault("taints", [])
            for step in patch:
                place = step["path"].removeprefix("/spec/taints").strip("/")
                if step["op"] == "add":
                    taints.extend(step["value"] if place == "" else [step["value"]])
                elif step["op"] == "remove":
                    del taints[int(place)]
            self.store("MODIFIED", node)
            return node

    def patch_conditions(self, name, patch):
        """Carries out a strategic merge patch of a node's conditions; returns the node."""
        with self.changed:
            node = json.loads(json.dumps(self.nodes[name]))
            conditions = {one["type"]: one for one in node["status"]["conditions"]}
            for one in patch.get("status", {}).get("conditions", []):
                conditions[one["type"]] = conditions.get(one["type"], {}) | one
            node["status"]["conditions"] = list(conditions.values())
            self.store("MODIFIED", node)
            return node

    def handler(self):
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Answers one connection."""

            protocol_version = "HTTP/1.1"

            def log_message(self, format, *arguments):  # pylint: disable=redefined-builtin
                pass

            def answer(self, code, body):
                text = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def refused(self):
                if api.refusing:
                    self.answer(503, {"kind": "Status", "message": "away", "code": 503})
                return api.refusing

            def do_GET(self):  # pylint: disable=invalid-name
                if self.refused():
                    return
                if "watch=true" in self.path:
                    self.watch(int(self.path.split("resourceVersion=")[1].split("&")[0]))
                    return
                with api.changed:
                    kind, items = "NodeList", list(api.nodes.values())
                    if "/events" in self.path:
                        kind, items = "EventList", api.told
                    self.answer(200, {"kind": kind, "apiVersion": "v1",
                                      "metadata": {"resourceVersion": str(api.version)}, "items": items})

            def watch(self, version):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                ends = time.monotonic() + 240
                while time.monotonic() < ends and not api.refusing:
                    with api.changed:
                        news = [event for at, event in api.events if at > version]
                        version = api.version
                        if not news and not api.changed.wait(BOOKMARKS):
                            news = [{"type": "BOOKMARK", "object": {
                                "kind": "Node", "apiVersion": "v1",
                                "metadata": {"resourceVersion": str(version)}}}]
                    for event in news:
                        line = json.dumps(event).encode() + b"\n"
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.write(b"0\r\n\r\n")

            def body(self):
                return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

            def do_PATCH(self):  # pylint: disable=invalid-name
                body = self.body()
                if self.refused():
                    return
                name = self.path.split("/")[4]
                if self.path.endswith("/status"):
                    self.answer(200, api.patch_conditions(name, body))
                else:
                    self.answer(200, api.patch_taints(name, body))

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.body()
                if not self.refused():
                    with api.changed:
                        api.told.append(body)
                    self.answer(201, body)

        return Handler
