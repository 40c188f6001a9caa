#!/usr/bin/env bash
# Pods behind real Linux routers, on nodes that kube-proxy and portmap have their rules on: they reach
# each other by their addresses, by Services and by host ports, also through a link that takes less
# than the nodes' NICs; frames that they make by themselves get nowhere.
# usage: router_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly RULES="$LAB_HOME/../testdata/kube_proxy.rules" TRANSFER="$LAB_HOME/transfer.py"
readonly FRAMES="$LAB_HOME/../../hostile_pod/hostile_pod.py"
readonly CLUSTER=10.20.0.0/16 NEAR_SERVICE=10.96.0.11 FAR_SERVICE=10.96.0.12 BOTH_SERVICE=10.96.0.13
readonly HOST_PORT='{"portMappings": [{"hostPort": 8080, "containerPort": 5000, "protocol": "tcp"}]}'
readonly MEBIBYTES=8

apply_policy() {
  lab_node_write "$LAB_CONTROL" /run/spoke/policy.yaml <<POLICY
apiVersion: spoke/v1
kind: ClusterNetwork
metadata: {name: main}
spec: {cluster: [$CLUSTER], peerSpoke: [10.99.0.0/16]}
POLICY
  lab_spokectl apply -f /run/spoke/policy.yaml >"$LAB_DIR/said"
}

install_chain() {
  lab_plugin_install "$1"
  lab_node_write "$1" /etc/cni/net.d/20-chain.conflist <<CONFLIST
{
  "cniVersion": "1.0.0",
  "name": "chain",
  "plugins": [
    {"type": "spoke", "socket": "$LAB_CNI_SOCKET"},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
CONFLIST
}

# serve NODE POD: the pod answers at port 5000.
serve() {
  local log
  log=$(lab_node_log "$1" "serve-$2")
  lab_node_spawn "$1" "serve-$2" nsenter --net="/run/netns/$2" python3 "$TRANSFER" serve 5000 "$2"
  lab_wait 10 "pod $2 to listen" "$log" grep -q '^listening$' "$log"
}

# ask POD ADDRESS PORT [MEBIBYTES_SENT MEBIBYTES_TAKEN]: what answers a pod of node1, and the address
# it sees. Nothing but that is sent by default.
ask() { lab_bare_pod_exec node1 "$1" python3 "$TRANSFER" ask "$2" "$3" "${4:-0}" "${5:-0}"; }

# expect_answer WANT POD ADDRESS PORT [MEBIBYTES_SENT MEBIBYTES_TAKEN]
expect_answer() {
  local want=$1 said
  shift
  said=$(ask "$@" 2>&1) || true
  if [[ $said != "$want" ]]; then
    lab_error "pod $1 asks $2:$3 and gets: ${said##*$'\n'}; wanted: $want"
    return 1
  fi
}

# fast_path_is_on NODE
fast_path_is_on() {
  lab_node_exec "$1" python3 -c '
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:9465/metrics", timeout=5).read().decode())' |
    grep '^spoke_fast_path_on' >"$LAB_DIR/said" && grep -q ' 1$' "$LAB_DIR/said"
}

step_pods() {
  lab_step "Two pods on node1, one on node2 with a host port, all on the fast path"
  apply_policy
  local node
  for node in "${LAB_NODES[@]}"; do install_chain "$node"; done
  client=$(lab_bare_pod_up node1 client)
  near=$(lab_bare_pod_up node1 near)
  far=$(lab_bare_pod_up node2 far chain "$HOST_PORT")
  serve node1 near
  serve node2 far
  lab_say "client is $client, near $near, far $far"
  wait_fast_path
  lab_ok "portmap's rules are in place, and the fast path is on"
}

wait_fast_path() {
  local node
  for node in "${LAB_NODES[@]}"; do
    lab_wait 15 "the fast path on $node" "$(lab_node_log "$node" spoke-netagent)" \
      fast_path_is_on "$node"
  done
}

step_kube_proxy() {
  lab_step "kube-proxy puts its rules on both nodes"
  local node
  for node in "${LAB_NODES[@]}"; do
    sed "s|@NEAR@|$near|g; s|@FAR@|$far|g; s|@CLUSTER@|$CLUSTER|g" "$RULES" |
      lab_node_exec "$node" iptables-restore --noflush
  done
  expect_answer "near $client" client "$near" 5000
  expect_answer "far $client" client "$far" 5000
  lab_ok "the pods reach each other as before"
}

step_direct() {
  lab_step "Pods reach each other by their addresses"
  lab_bare_pod_exec node1 client ping -q -c 3 -i 0.1 -W 2 "$near" >/dev/null
  lab_bare_pod_exec node1 client ping -q -c 3 -i 0.1 -W 2 "$far" >/dev/null
  lab_bare_pod_exec node2 far ping -q -c 3 -i 0.1 -W 2 "$client" >/dev/null
  lab_ok "by ping"
  expect_answer "near $client" client "$near" 5000
  expect_answer "far $client" client "$far" 5000
  lab_ok "by TCP, untranslated"
  hears_errors
}

# hears_errors: what a router says about packets between pods reaches the pod.
hears_errors() {
  local said
  said=$(lab_bare_pod_exec node1 client ping -c 1 -W 2 10.20.64.250 2>&1) || true
  if ! grep -q 'From 10.20.1.1 .*Destination Net Unreachable' <<<"$said"; then
    lab_error "a pod does not hear that there is no route: $said"
    return 1
  fi
  lab_ok "the router has no route to an address that is on no node, and says so"
  transfer_through "by the pod's address" "$far" 5000 "$MEBIBYTES" "$MEBIBYTES"
}

# Connections that nothing on a node translates are on its fast path, and connection tracking there does
# not know them: what a router says about them has to take that path too, or it counts as invalid, and
# kube-proxy's rule drops it. A pair of addresses that was translated once is tracked for an hour, so this
# comes before host ports are used.
step_direct_errors() {
  lab_step "With kube-proxy's rules, where nothing on the sender's node translates"
  transfer_through "answers by a Service" "$FAR_SERVICE" 80 0 "$MEBIBYTES"
  transfer_through "to a host port" "${LAB_ADDRESSES[node2]}" 8080 "$MEBIBYTES" 0
  hears_errors
}

step_services() {
  lab_step "Through Services"
  expect_answer "near $client" client "$NEAR_SERVICE" 80
  lab_ok "with an endpoint on the same node"
  expect_answer "far $client" client "$FAR_SERVICE" 80
  lab_ok "with an endpoint on the other node"
  local i said found=
  for ((i = 0; i < 40; ++i)); do
    said=$(ask client "$BOTH_SERVICE" 80)
    found+="${said%% *} "
  done
  [[ $found == *near* && $found == *far* ]]
  lab_ok "with both: of 40 connections, $(grep -o near <<<"$found" | wc -l) went to near"
  said=$(ask near "$NEAR_SERVICE" 80)
  [[ $said == "near "* && $said != "near $near" ]]
  lab_ok "a pod reaches itself through its own Service, masqueraded"
  said=$(lab_node_exec node1 python3 "$TRANSFER" ask "$FAR_SERVICE" 80 0 0)
  [[ $said == "far ${LAB_ADDRESSES[node1]}" ]]
  lab_ok "so does a node"
  said=$(lab_bare_pod_exec node1 client python3 "$TRANSFER" ask "${LAB_ADDRESSES[node2]}" 30080 0 0)
  [[ $said == "far "* || $said == "near "* ]]
  lab_ok "a node port of the other node answers"
}

step_host_port() {
  lab_step "Through a host port of the other node"
  expect_answer "far $client" client "${LAB_ADDRESSES[node2]}" 8080
  lab_ok "from a pod"
  local said
  said=$(lab_node_exec node1 python3 "$TRANSFER" ask "${LAB_ADDRESSES[node2]}" 8080 0 0)
  [[ $said == "far ${LAB_ADDRESSES[node1]}" ]]
  lab_ok "from a node"
}

# transfer_through WORDS ADDRESS PORT MEBIBYTES_SENT MEBIBYTES_TAKEN: client moves them to and from far.
# The router before the small link has to refuse what is too big, and nothing stalls.
transfer_through() {
  local words=$1 refused1 refused2 started=$SECONDS
  shift
  # What was learned by the transfers before is forgotten.
  lab_bare_pod_exec node1 client ip route flush cache
  lab_bare_pod_exec node2 far ip route flush cache
  refused1=$(lab_router_refused router1)
  refused2=$(lab_router_refused router2)
  expect_answer "far $client" client "$@"
  (($3 == 0 || $(lab_router_refused router1) > refused1))
  (($4 == 0 || $(lab_router_refused router2) > refused2))
  ((SECONDS - started <= 5))
  lab_ok "$words: $3 MiB there, $4 MiB back, in $((SECONDS - started)) s"
}

step_small_mtu() {
  lab_step "Through a link of $LAB_MIDDLE_MTU bytes, of which only the routers know"
  [[ $(lab_node_exec node1 cat /sys/class/net/eth0/mtu) -eq 1500 ]]
  [[ $(lab_bare_pod_exec node1 client cat /sys/class/net/eth0/mtu) -eq 1500 ]]
  transfer_through "by a Service" "$FAR_SERVICE" 80 "$MEBIBYTES" 0
  transfer_through "by a host port" "${LAB_ADDRESSES[node2]}" 8080 0 "$MEBIBYTES"
}

# heard MACHINE: what the listener that lab_node_spawn started there has heard.
heard() {
  lab_node_kill "$1" ear
  cat "$LAB_DIR/heard-$1"
}

listen() {
  local machine=$1 log
  shift
  rm -f "$LAB_DIR/heard-$machine"
  lab_node_spawn "$machine" ear "$@" "$LAB_DIR/heard-$machine"
  log=$(lab_node_log "$machine" ear)
  lab_wait 10 "the listener on $machine" "$log" grep -q listening "$log"
}

listen_everywhere() {
  listen router1 python3 "$FRAMES" listen "$(lab_fabric_port node1)"
  listen node2 nsenter --net=/run/netns/far python3 "$FRAMES" listen eth0
}

step_frames() {
  lab_step "Frames of a pod's own making, with tags and without"
  local gateway said machine
  gateway=$(lab_bare_pod_exec node1 client ip -j neighbour show 169.254.1.1 | jq -r '.[0].lladdr')
  listen_everywhere
  lab_bare_pod_exec node1 client python3 "$FRAMES" plain eth0 "$client" "$gateway" "$far" 20
  for machine in router1 node2; do
    said=$(heard "$machine")
    [[ $(jq '.plain' <<<"$said") -eq 20 ]]
  done
  lab_ok "20 plain ones were heard at the router and by the other pod"
  listen_everywhere
  said=$(lab_bare_pod_exec node1 client python3 "$FRAMES" attack eth0 "$client" "$gateway" "$far" 2)
  for machine in router1 node2; do
    if [[ $(heard "$machine") != '{}' ]]; then
      lab_error "heard on $machine: $(cat "$LAB_DIR/heard-$machine")"
      return 1
    fi
  done
  lab_ok "of $(jq .sent <<<"$said") of $(jq .kinds <<<"$said") other kinds, VLAN tags among them, none was"
}

step_still_fast() {
  lab_step "The fast path is still on, with kube-proxy's rules"
  local node
  for node in "${LAB_NODES[@]}"; do fast_path_is_on "$node"; done
  lab_ok "on both nodes"
}

step_down() {
  lab_step "The pods go, and their routes with them"
  lab_node_kill node1 serve-near
  lab_node_kill node2 serve-far
  lab_bare_pod_down node1 client
  lab_bare_pod_down node1 near
  lab_bare_pod_down node2 far chain "$HOST_PORT"
  lab_wait_none_in_use
  if lab_node_exec node2 iptables-save -t nat | grep 'CNI-DN-.*10.20.64'; then
    lab_error "portmap left its rules"
    return 1
  fi
  lab_ok "no address is assigned, and portmap left nothing"
}

lab_for_test "${1:-}"
lab_use_routers
step_network && step_certificates && step_server && step_agents
step_pods
step_direct
step_kube_proxy
step_direct_errors
step_services
step_host_port
step_small_mtu
step_frames
step_still_fast
step_down
step_no_traces
