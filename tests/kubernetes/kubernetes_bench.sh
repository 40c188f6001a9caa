#!/usr/bin/env bash
# A hundred pods at once on a real Kubernetes, by Spoke and by the stock chain of reference plugins, in
# turn on the same cluster; then a rolling update, and an uninstallation.
# usage: kubernetes_bench.sh DIRECTORY_OF_PROGRAMS IMAGE.tar ROUNDS PODS
#
# Prints lines "figure NAME VALUE": for each round and network `pods_ms.NETWORK` (create to Running) and
# `cni_ms.NETWORK` (containerd's own mean for a sandbox's network), then lost_pings and left_behind.
set -euo pipefail
# shellcheck source=cases.sh
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"

readonly STOCK=/etc/cni/net.d/00-stock.conflist

# The chain that a distribution without a network of its own installs.
stock_up() {
  local node number=0
  for node in "${LAB_NODES[@]}"; do
    number=$((number + 1))
    lab_node_write "$node" "$STOCK" <<CONFLIST
{"cniVersion": "1.0.0", "name": "stock", "plugins": [
  {"type": "ptp", "ipam": {"type": "host-local", "dataDir": "/run/host-local",
    "ranges": [[{"subnet": "10.244.$number.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}},
  {"type": "bandwidth", "capabilities": {"bandwidth": true}},
  {"type": "firewall"}]}
CONFLIST
  done
  sleep 2  # containerd looks when the directory changes.
}

stock_down() {
  local node
  for node in "${LAB_NODES[@]}"; do lab_node_exec "$node" rm -f "$STOCK"; done
  sleep 2
}

# "seconds count" of the sandboxes' networks on all nodes: none before the first sandbox.
network_seconds() {
  local node metrics=
  for node in "${LAB_NODES[@]}"; do
    metrics+=$(lab_node_exec "$node" curl --noproxy '*' --silent --show-error --fail --max-time 5 \
      http://127.0.0.1:1338/v1/metrics)$'\n' || return 1
  done
  awk '/^containerd_cri_sandbox_create_network_seconds_sum/ {sum += $2}
    /^containerd_cri_sandbox_create_network_seconds_count/ {count += $2}
    END {printf "%f %d\n", sum, count}' <<<"$metrics"
}

# round NETWORK PODS
round() {
  local before after began took
  before=$(network_seconds)
  began=$EPOCHREALTIME
  _deployment crowd "$2" >/dev/null
  lab_wait 240 "$2 pods to run" "" _all_running crowd "$2"
  took=$(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000))
  after=$(network_seconds)
  printf 'figure pods_ms.%s %d\n' "$1" "$took"
  awk -v network="$1" '$4 <= $2 {print "containerd counted no sandbox" >"/dev/stderr"; exit 1}
    {printf "figure cni_ms.%s %.3f\n", network, ($3 - $1) * 1000 / ($4 - $2)}' <<<"$before $after"
  kube delete deployment crowd --wait=true >/dev/null
  lab_wait 120 "all pods to go" "" _no_pods_anywhere
}

_no_pods_anywhere() {
  local node
  for node in "${LAB_NODES[@]}"; do
    if lab_node_exec "$node" ls /run/netns | grep .; then return 1; fi
  done
  [[ -z $(kube get pods -o name) ]]
}

main() {
  local rounds=$3 pods=$4 node i left
  lab_for_test "$1"
  lab_use_internet
  lab_cluster_network
  kube_control_up
  for node in "${LAB_NODES[@]}"; do
    kube_node_up "$node"
    kube_image "$node" "$2"
  done
  # The stock chain leaves chains in iptables, which are not ours: first once without us.
  stock_up
  for node in "${LAB_NODES[@]}"; do kube_wait_node "$node" 60; done
  round warm 4
  stock_down
  case_install
  for ((i = 0; i < rounds; i++)); do
    round spoke "$pods"
    stock_up
    round stock "$pods"
    stock_down
  done
  _deployed web1 1 node1
  _deployed web2 1 node2
  case_rolling_update || true  # Lost pings are a figure.
  kube exec "$(_pod web1)" -- tail -n 2 /tmp/pings |
    awk '/packets transmitted/ && $1 > 0 {print "figure lost_pings", $1 - $4; found = 1}
      END {if (!found) {print "no ping was counted" >"/dev/stderr"; exit 1}}'
  # The place where the stock chain counts its addresses.
  for node in "${LAB_NODES[@]}"; do
    lab_node_exec "$node" rm -rf /run/host-local
  done
  case_uninstall || true  # So is what is left behind.
  left=$(_as_before) || (($? == 1))
  printf 'figure left_behind %d\n' "$(grep -c '^[<>]' <<<"$left" || true)"
}

main "$@"
