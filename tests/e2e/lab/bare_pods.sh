# shellcheck shell=bash
# Pods that are a network namespace and nothing else, attached by cnitool: for tests of the network
# that need no runtime. Part of lab.sh.

# lab_bare_pod_exec NODE POD COMMAND...: runs it in the pod's network namespace.
lab_bare_pod_exec() {
  local node=$1 pod=$2
  shift 2
  lab_node_exec "$node" nsenter --net="/run/netns/$pod" "$@"
}

# _lab_cnitool VERB NODE POD NETWORK CAPABILITY_ARGUMENTS: as a runtime does it.
_lab_cnitool() {
  local tool
  tool=$("$LAB_HOME/../../../scripts/cnitool.sh") || return 1
  lab_node_exec "$2" env CNI_PATH=/opt/cni/bin NETCONFPATH=/etc/cni/net.d CNI_IFNAME=eth0 \
    CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=$LAB_POD_NAMESPACE;K8S_POD_NAME=$3" CAP_ARGS="$5" \
    "$tool" "$1" "$4" "/run/netns/$3"
}

# lab_bare_pod_up NODE POD [NETWORK [CAPABILITY_ARGUMENTS]]: prints its address. NETWORK is spoke
# without it; the arguments are JSON, as runtimes give them to chained plugins.
lab_bare_pod_up() {
  lab_node_exec "$1" ip netns add "$2" || return 1
  lab_bare_pod_exec "$1" "$2" ip link set lo up || return 1
  _lab_cnitool add "$1" "$2" "${3:-spoke}" "${4:-}" | jq -r '.ips[0].address | split("/")[0]'
}

# lab_bare_pod_down NODE POD [NETWORK [CAPABILITY_ARGUMENTS]]: with what it was made with.
lab_bare_pod_down() {
  _lab_cnitool del "$1" "$2" "${3:-spoke}" "${4:-}" || return 1
  lab_node_exec "$1" ip netns del "$2"
}
