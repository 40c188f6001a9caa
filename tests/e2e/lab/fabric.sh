# shellcheck shell=bash
# The fabric: a machine whose one program switches between the nodes as a cloud does. Part of lab.sh.

readonly LAB_FABRIC=fabric
declare -A _lab_nics=()      # The NIC by node, as spoke-fabric's --nic wants it.
declare -A _lab_gateways=()  # The subnets' gateways, as spoke-fabric's --gateway wants it.
# What a test may set before lab_fabric_start: more arguments of spoke-fabric. A tag that leaves a node
# is to be seen by others.
LAB_FABRIC_OPTIONS=(--deliver-tags)

# lab_fabric_up: starts the fabric's machine, without any NIC.
lab_fabric_up() {
  lab_node_up "$LAB_FABRIC" || return 1
  # The far ends of links belong to spoke-fabric alone: the kernel must not answer or route there.
  lab_fabric_exec sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
    net.ipv6.conf.default.disable_ipv6=1 net.ipv4.ip_forward=0
}

lab_fabric_exec() { lab_node_exec "$LAB_FABRIC" "$@"; }

# lab_fabric_port NODE: the device of the fabric that leads to NODE's NIC.
lab_fabric_port() { printf 'p-%s' "$1"; }

# _lab_first_address ADDRESS/LENGTH: the first host address of that subnet, of either family.
_lab_first_address() {
  python3 -c 'import ipaddress, sys
print(next(ipaddress.ip_interface(sys.argv[1]).network.hosts()))' "$1"
}

# lab_nic_add NODE MAC ADDRESS/LENGTH...: plugs NODE into the fabric, as its eth0, with a default route
# for each family through the first address of the subnet. Before lab_fabric_start.
lab_nic_add() {
  local node=$1 mac=$2 address gateway port pid
  shift 2
  port=$(lab_fabric_port "$node")
  pid=$(_lab_node_pid "$node")
  # Both ends are made where they belong: neither is ever seen outside.
  nsenter --target "$(_lab_node_pid "$LAB_FABRIC")" --net \
    ip link add "$port" type veth peer name eth0 address "$mac" netns "$pid" || return 1
  lab_fabric_exec ip link set "$port" up || return 1
  lab_node_exec "$node" ip link set eth0 up || return 1
  _lab_nics[$node]=$node=$port,$mac
  for address in "$@"; do
    gateway=$(_lab_first_address "$address") || return 1
    # nodad: the fabric answers no such question, so there is nothing to wait for.
    local words=()
    if [[ $address == *:* ]]; then words=(nodad); fi
    lab_node_exec "$node" ip address add "$address" dev eth0 "${words[@]}" || return 1
    lab_node_exec "$node" ip route add default via "$gateway" || return 1
    _lab_nics[$node]+=,${address%/*}
    _lab_gateways[$gateway/${address#*/}]=yes
  done
}

# lab_fabric_start ATTACHMENTS_FILE: starts to forward. The file may not exist yet.
lab_fabric_start() {
  local log program arguments=() nic gateway
  log=$(lab_node_log "$LAB_FABRIC" spoke-fabric)
  program=$(lab_tool spoke-fabric) || return 1
  for nic in "${_lab_nics[@]}"; do arguments+=(--nic "$nic"); done
  for gateway in "${!_lab_gateways[@]}"; do arguments+=(--gateway "$gateway"); done
  lab_node_spawn "$LAB_FABRIC" spoke-fabric "$program" "${arguments[@]}" --attachments "$1" \
    --stats "$LAB_DIR/fabric-stats" "${LAB_FABRIC_OPTIONS[@]}" || return 1
  lab_wait 40 "the fabric to forward" "$log" grep -q '^ready$' "$log"
}

# lab_fabric_stats: the fabric's counters now, as key=value lines.
lab_fabric_stats() {
  rm -f "$LAB_DIR/fabric-stats"
  lab_node_exec "$LAB_FABRIC" kill -USR1 "$(cat "$LAB_DIR/machine/$LAB_FABRIC/spoke-fabric.pid")" ||
    return 1
  lab_wait 5 "the fabric's counters" "$(lab_node_log "$LAB_FABRIC" spoke-fabric)" \
    test -e "$LAB_DIR/fabric-stats" || return 1
  cat "$LAB_DIR/fabric-stats"
}
