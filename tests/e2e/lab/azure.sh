# shellcheck shell=bash
# Azure, simulated: Resource Manager beside the server, a metadata service and a wireserver on each
# node, and a fabric that delivers an address exactly when Azure would. Part of lab.sh.

readonly _lab_group=/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/lab
readonly _lab_subnet_id=$_lab_group/providers/Microsoft.Network/virtualNetworks/lab/subnets/nodes

# What a test may set before lab_azure_start: where Resource Manager is, on the machine $LAB_CONTROL, and knobs of
# the simulator, see spoke-azure-sim --help.
LAB_ARM=127.0.0.1:8086
LAB_AZURE_KNOBS='{"latency_least_s": 1, "latency_most_s": 2}'

# lab_scale_set NAME: the id of a scale set. The nodes are in "pool"; the server's machine is in one
# of its own, since its address is of the same subnet.
lab_scale_set() {
  printf '%s/providers/Microsoft.Compute/virtualMachineScaleSets/%s' "$_lab_group" "$1"
}

# _lab_instances MACHINE...: a scale set's first instances, as JSON.
_lab_instances() {
  local machine
  for machine in "$@"; do
    jq -nc --arg node "$machine" --arg mac "$(lab_mac "$machine")" \
      --arg address "${LAB_ADDRESSES[$machine]}" '{node: $node, mac: $mac, address: $address}'
  done | jq -sc .
}

_lab_azure_spec() {
  jq -n --arg subnet "$_lab_subnet_id" --arg prefix "10.20.0.0/$LAB_SUBNET_LENGTH" \
    --argjson nodes "$(_lab_instances "${LAB_NODES[@]}")" \
    --argjson control "$(_lab_instances "$LAB_CONTROL")" '
    def set(name; machines): {
      subscription: "00000000-0000-0000-0000-000000000001", resource_group: "lab", name: name,
      location: "westeurope", subnet_id: $subnet, instances: (machines | length), first: machines};
    {subnets: [{id: $subnet, prefix: $prefix}],
     scale_sets: [set("pool"; $nodes), set("control"; $control)]}'
}

# lab_azure_start: starts the simulator; after lab_cluster_network.
lab_azure_start() {
  local program log i=0 node arguments=()
  program=$(lab_tool spoke-azure-sim) || return 1
  log=$(lab_node_log "$LAB_CONTROL" spoke-azure-sim)
  _lab_azure_spec >"$LAB_DIR/cloud/azure.json" || return 1
  for node in "${LAB_NODES[@]}"; do
    arguments+=("/proc/$(_lab_node_pid "$node")/ns/net" "$(lab_scale_set pool)/virtualMachines/$i")
    i=$((i + 1))
  done
  # The nodes' processes are not seen from the server's machine; their namespaces come as files.
  (
    command=("$program" --spec "$LAB_DIR/cloud/azure.json" --listen "$LAB_ARM"
      --knobs "$LAB_AZURE_KNOBS" --fabric-attachments "$(lab_attachments)")
    for ((i = 0; i < ${#arguments[@]}; i += 2)); do
      exec {namespace}<"${arguments[i]}"
      command+=(--node "/proc/self/fd/$namespace=${arguments[i + 1]}")
    done
    lab_node_spawn "$LAB_CONTROL" spoke-azure-sim "${command[@]}"
  ) || return 1
  lab_wait 40 "the simulated Azure to be ready" "$log" grep -q '^ready$' "$log"
}

# lab_azure METHOD PATH [JSON]: asks the simulator, such as: lab_azure GET /sim/counters
lab_azure() {
  lab_node_exec "$LAB_CONTROL" curl --silent --show-error --fail --max-time 10 --request "$1" \
    ${3:+--data "$3"} "http://$LAB_ARM$2"
}

# The server's configuration of its cloud.
_lab_azure_config() {
  cat <<CONFIG
cloud:
  azure:
    endpoints: {resource_manager: "http://$LAB_ARM", metadata: "http://$LAB_ARM"}
    scale_sets: [$(lab_scale_set pool)]
    listing: 10s
CONFIG
}
