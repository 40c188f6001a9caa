# shellcheck shell=bash
# Two real Linux routers in place of the fabric: a subnet of its own for each machine, no overlay, and
# a link between the routers that takes less than the nodes' NICs. Part of lab.sh.
#
#   node1, control -- router1 == router2 -- node2
#
# Routes to pods' addresses are as a cloud's route table would have them: see route_table.py.

readonly LAB_MIDDLE_MTU=1400
readonly _lab_middle1=10.20.0.1 _lab_middle2=10.20.0.2
declare -A _lab_router_of=([node1]=router1 [control]=router1 [node2]=router2)
readonly _lab_router_of

# lab_router_of MACHINE: the router that it is plugged into, at the device that lab_fabric_port names.
lab_router_of() { printf '%s' "${_lab_router_of[$1]}"; }

# _lab_router_device MACHINE DEVICE ADDRESS/LENGTH: gives the device its address, and starts it.
_lab_router_device() {
  lab_node_exec "$1" ip address add "$3" dev "$2" && lab_node_exec "$1" ip link set "$2" up
}

# _lab_router_plug MACHINE: its eth0, with a default route through its router.
_lab_router_plug() {
  local machine=$1 router port address gateway
  router=$(lab_router_of "$machine")
  port=$(lab_fabric_port "$machine")
  address=${LAB_ADDRESSES[$machine]}/$LAB_SUBNET_LENGTH
  gateway=$(_lab_first_address "$address") || return 1
  nsenter --target "$(_lab_node_pid "$router")" --net \
    ip link add "$port" type veth peer name eth0 address "$(lab_mac "$machine")" \
    netns "$(_lab_node_pid "$machine")" || return 1
  _lab_router_device "$router" "$port" "$gateway/$LAB_SUBNET_LENGTH" || return 1
  _lab_router_device "$machine" eth0 "$address" || return 1
  lab_node_exec "$machine" ip route add default via "$gateway"
}

_lab_routers_join() {
  nsenter --target "$(_lab_node_pid router1)" --net ip link add middle mtu "$LAB_MIDDLE_MTU" \
    type veth peer name middle mtu "$LAB_MIDDLE_MTU" netns "$(_lab_node_pid router2)" || return 1
  _lab_router_device router1 middle "$_lab_middle1/30" || return 1
  _lab_router_device router2 middle "$_lab_middle2/30"
}

# _lab_subnet_of MACHINE
_lab_subnet_of() {
  python3 -c 'import ipaddress, sys; print(ipaddress.ip_interface(sys.argv[1]).network)' \
    "${LAB_ADDRESSES[$1]}/$LAB_SUBNET_LENGTH"
}

# _lab_router_follow ROUTER NEXT_HOP: routes to what is behind the other router, and to pods.
_lab_router_follow() {
  local router=$1 other=$2 machine log hops=()
  for machine in "${LAB_MACHINES[@]}"; do
    if [[ $(lab_router_of "$machine") == "$router" ]]; then
      hops+=("$machine=${LAB_ADDRESSES[$machine]}")
    else
      hops+=("$machine=$other")
      lab_node_exec "$router" ip route add "$(_lab_subnet_of "$machine")" via "$other" || return 1
    fi
  done
  log=$(lab_node_log "$router" route-table)
  lab_node_spawn "$router" route-table python3 "$LAB_HOME/route_table.py" "$(lab_attachments)" \
    "${hops[@]}" || return 1
  lab_wait 40 "$router to follow the attachments" "$log" grep -q '^ready$' "$log"
}

# lab_routers_network: the machines, plugged into their routers, which then forward.
lab_routers_network() {
  local machine
  lab_node_up router1 && lab_node_up router2 && _lab_routers_join || return 1
  for machine in "${LAB_MACHINES[@]}"; do
    lab_node_up "$machine" && _lab_router_plug "$machine" || return 1
  done
  mkdir -p "$LAB_DIR/cloud"
  _lab_router_follow router1 "$_lab_middle2" && _lab_router_follow router2 "$_lab_middle1"
}

# lab_router_refused ROUTER: how many packets it has refused because the next link takes less.
lab_router_refused() {
  lab_node_exec "$1" nstat --zeros --ignore --noupdate IpFragFails | awk '$1 == "IpFragFails" {print $2}'
}
