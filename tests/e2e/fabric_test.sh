#!/usr/bin/env bash
# The lab itself, without Spoke: nodes reach each other through the fabric, which carries only what
# is attached; a real runtime runs pods with a stock plugin; nothing is left behind.
# usage: fabric_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly node1=10.20.0.4 node2=10.20.0.5 extra1=10.20.64.1 extra2=10.20.64.2

# attach LINE...: what a server would publish.
attach() {
  printf '%s\n' '# for the test' "$@" >"$LAB_DIR/attachments.tmp"
  mv "$LAB_DIR/attachments.tmp" "$LAB_DIR/attachments"
}

line1=$(printf '%s/32\t02:00:00:00:00:01\tnode1' "$extra1")
line2=$(printf '%s/32\t02:00:00:00:00:02\tnode2' "$extra2")
readonly line1 line2

reaches() { lab_node_exec node1 ping -q -c 2 -i 0.2 -W 1 "$@" >/dev/null; }
does_not_reach() { ! reaches "$@"; }
counter() { lab_fabric_stats | sed -n "s/^$1=//p"; }

step_nodes() {
  lab_step "Two nodes on a fabric"
  lab_node_up node1
  lab_node_up node2
  lab_fabric_up
  lab_nic_add node1 02:00:00:00:00:01 "$node1/16"
  lab_nic_add node2 02:00:00:00:00:02 "$node2/16"
  lab_node_exec node1 ip address add "$extra1/32" dev lo
  lab_node_exec node2 ip address add "$extra2/32" dev lo
  lab_fabric_start "$LAB_DIR/attachments"
  reaches "$node2"
  lab_ok "node1 reaches node2, where nothing is attached yet"
  [[ $(lab_node_exec node1 ip neighbour show "$node2") == *12:34:56:78:9a:bc* ]]
  lab_ok "node2 seems to be at the fabric's own MAC"
}

step_attachments() {
  lab_step "Only what is attached is carried"
  local before
  does_not_reach "$extra2"
  lab_ok "an address that no NIC holds is not reached"
  attach "$line1" "$line2"
  lab_wait 5 "the fabric to read the attachments" "$(lab_node_log fabric spoke-fabric)" \
    reaches -I "$extra1" "$extra2"
  lab_ok "attached addresses reach each other"
  before=$(counter dropped_source_address)
  attach "$line2"
  lab_wait 5 "the fabric to forget $extra1" "$(lab_node_log fabric spoke-fabric)" \
    does_not_reach -I "$extra1" "$extra2"
  (($(counter dropped_source_address) > before))
  lab_ok "what a NIC sends from an address that it no longer holds is dropped, and counted"
  attach rubbish
  reaches "$extra2"
  lab_wait 5 "the fabric to complain" "$(lab_node_log fabric spoke-fabric)" \
    grep -q 'line 2: .*"rubbish"' "$(lab_node_log fabric spoke-fabric)"
  lab_ok "a bad file is named by its line, and the previous one stays"
}

step_bulk() {
  lab_step "20 MiB of TCP, in segments that only offloading allows, arrive unharmed"
  lab_node_spawn node2 receiver python3 -c '
import hashlib, socket
listener = socket.create_server(("", 5000))
print("listening", flush=True)
peer, digest = listener.accept()[0], hashlib.sha256()
while data := peer.recv(1 << 20): digest.update(data)
print("received", digest.hexdigest(), flush=True)'
  local log sent
  log=$(lab_node_log node2 receiver)
  lab_wait 10 "the receiver to listen" "$log" grep -q listening "$log"
  sent=$(lab_node_exec node1 python3 -c '
import hashlib, os, socket, sys
data = os.urandom(20 << 20)
with socket.create_connection((sys.argv[1], 5000)) as peer: peer.sendall(data)
print(hashlib.sha256(data).hexdigest())' "$node2")
  lab_wait 10 "the same 20 MiB to arrive" "$log" grep -q "received $sent" "$log"
  lab_ok "sent and received are the same"
}

step_runtime() {
  lab_step "Pods on a real runtime, with the stock ptp plugin"
  lab_node_write node1 /etc/cni/net.d/10-ptp.conflist <<'CONFLIST'
{"cniVersion": "1.0.0", "name": "ptp", "plugins": [{"type": "ptp", "ipam": {"type": "host-local",
  "subnet": "10.30.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}]}
CONFLIST
  lab_containerd_up node1
  lab_network_ready node1 15
  lab_pod_run node1 one
  lab_pod_run node1 two
  lab_pod_ping node1 one "$(lab_pod_address node1 two)"
  lab_ok "one reaches two"
  local code=0
  lab_pod_exec node1 one sh -c 'exit 7' || code=$?
  ((code == 7))
  lab_ok "a command's exit code comes through"
  lab_node_kill node1 containerd KILL
  lab_containerd_up node1
  lab_pod_delete node1 one
  lab_pod_delete node1 two
  lab_wait_no_pod_traces node1
  lab_ok "the pods outlived their runtime, and left nothing when deleted"
}

lab_for_test "${1:-}"
step_nodes
step_attachments
step_bulk
step_runtime
