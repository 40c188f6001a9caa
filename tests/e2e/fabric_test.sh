#!/usr/bin/env bash
# The lab itself, without Spoke: nodes reach each other through the fabric, which carries only what
# is attached, routes between subnets as strictly as a router and hides no tag; a real runtime runs pods with a stock plugin; nothing is left behind.
# usage: fabric_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly node1=10.20.0.4 node2=10.20.0.5 extra1=10.20.64.1 extra2=10.20.64.2
readonly node3=10.21.0.4 node1_v6=fd00:20::4 node3_v6=fd00:21::4
readonly router=10.20.0.1 router_v6=fd00:20::1
LAB_FABRIC_OPTIONS+=(--mtu 1400)  # Less than the nodes' own.

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
  lab_step "Two nodes on a fabric, and one in another subnet"
  lab_node_up node1
  lab_node_up node2
  lab_fabric_up
  lab_node_up node3
  lab_nic_add node1 02:00:00:00:00:01 "$node1/16" "$node1_v6/64"
  lab_nic_add node2 02:00:00:00:00:02 "$node2/16"
  lab_nic_add node3 02:00:00:00:00:03 "$node3/16" "$node3_v6/64"
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

# hears PATTERN PING_ARGUMENT...: a ping by node1 is not answered, but by an ICMP error.
hears() {
  local pattern=$1 said
  shift
  said=$(lab_node_exec node1 ping -c 1 -W 2 "$@" 2>&1) || true
  if ! grep -q "$pattern" <<<"$said"; then
    lab_error "no \"$pattern\" for ping $*: $said"
    return 1
  fi
}

step_router() {
  lab_step "It routes as strictly as a router, for both families"
  reaches "$node3"
  reaches "$node3_v6"
  lab_ok "node1 reaches node3 in another subnet"
  hears "From $router .*Time to live exceeded" -t 1 "$node3"
  hears "From $router_v6 .*Hop limit" -t 1 "$node3_v6"
  reaches -t 2 "$node3"
  reaches -t 2 "$node3_v6"
  reaches -t 1 "$node2"
  lab_ok "that takes a hop; within a subnet it takes none"
  hears "From $router .*Destination Net Unreachable" 192.0.2.1
  hears "From $router .*Destination Host Unreachable" 10.21.0.77
  hears "From $router_v6 .*No route" 2001:db8::1
  hears "From $router_v6 .*Address unreachable" fd00:21::77
  lab_ok "a sender hears that there is no route, or no host"
  hears "From $router .*Frag needed and DF set (mtu = 1400)" -M 'do' -s 1400 "$node2"
  hears "From $router_v6 .*Packet too big: mtu=1400" -M 'do' -s 1400 "$node3_v6"
  lab_ok "a sender hears that a packet is too big"
  # The kernel forgets what it learned, so that the bulk below learns it again.
  lab_node_exec node1 ip route flush cache
}

step_not_back() {
  lab_step "Nothing comes back to its sender"
  local before after log
  log=$(lab_node_log node1 hairpin)
  before=$(counter dropped_back_to_sender)
  attach "$line2" "$(printf '10.20.64.9/32\t02:00:00:00:00:01\tnode1')"
  lab_node_spawn node1 hairpin tcpdump -i eth0 -Q in -n -l --immediate-mode -Z root \
    host 10.20.64.9
  lab_wait 10 "tcpdump to listen" "$log" grep -q '^listening on' "$log"
  lab_wait 5 "the fabric to read the attachments" "" _back_to_sender_counts_beyond "$before"
  lab_node_kill node1 hairpin INT
  after=$(counter dropped_back_to_sender)
  if grep -q ICMP "$log"; then
    lab_error "a packet came back: $(grep ICMP "$log" | head -n 1)"
    return 1
  fi
  lab_ok "$((after - before)) pings of node1 to an address that is on its own NIC were dropped"
  attach "$line2"
}

_back_to_sender_counts_beyond() {
  does_not_reach 10.20.64.9
  (($(counter dropped_back_to_sender) > $1))
}

step_tags() {
  lab_step "Tags are not hidden"
  local log
  log=$(lab_node_log node2 tags)
  lab_node_spawn node2 tags tcpdump -i eth0 -e -n -l --immediate-mode -Z root vlan
  lab_wait 10 "tcpdump to listen" "$log" grep -q '^listening on' "$log"
  lab_node_exec node1 python3 -c '
import socket, struct, sys
source, destination = (socket.inet_aton(text) for text in sys.argv[1:])
packet = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 9, 17, 0, source, destination) + bytes(8)
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
    out.bind(("eth0", 0))
    for tags in ("81000064", "8100e000", "88a80003810000c8"):
        out.send(bytes.fromhex("123456789abc020000000001" + tags + "0800") + packet)
' "$node1" "$node2"
  local pattern
  for pattern in 'vlan 100, p 0' 'vlan 0, p 7' 'vlan 3, p 0.* vlan 200, p 0'; do
    lab_wait 5 "$pattern to arrive" "$log" grep -q "ethertype.*$pattern" "$log"
  done
  lab_node_kill node2 tags INT
  [[ $(counter tagged) -eq 3 ]]
  lab_ok "a VLAN, a priority tag and two tags at once arrive as they were sent, and are counted"
}

step_bulk() {
  lab_step "20 MiB of TCP, in segments that only offloading allows, arrive unharmed through a small MTU"
  lab_node_spawn node2 receiver python3 -c '
import hashlib, socket
listener = socket.create_server(("", 5000))
print("listening", flush=True)
peer, digest = listener.accept()[0], hashlib.sha256()
while data := peer.recv(1 << 20): digest.update(data)
print("received", digest.hexdigest(), flush=True)'
  local log sent before
  before=$(counter dropped_too_big)
  log=$(lab_node_log node2 receiver)
  lab_wait 10 "the receiver to listen" "$log" grep -q listening "$log"
  sent=$(lab_node_exec node1 python3 -c '
import hashlib, os, socket, sys
data = os.urandom(20 << 20)
with socket.create_connection((sys.argv[1], 5000)) as peer: peer.sendall(data)
print(hashlib.sha256(data).hexdigest())' "$node2")
  lab_wait 10 "the same 20 MiB to arrive" "$log" grep -q "received $sent" "$log"
  lab_ok "sent and received are the same"
  (($(counter dropped_too_big) > before))
  lab_ok "segments that would not have fitted the wire were refused before"
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
step_router
step_not_back
step_tags
step_bulk
step_runtime
