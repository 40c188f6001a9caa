# shellcheck shell=bash
# Spoke itself in the lab: certificates, the server on its machine, an agent on each node, the CNI
# plugin under each runtime. Part of lab.sh.

readonly LAB_CONTROL=control
LAB_NODES=(node1 node2)
readonly LAB_INTERNET=internet  # A host outside of the virtual network: see lab_use_internet.
declare -A LAB_ADDRESSES=([node1]=10.20.0.4 [node2]=10.20.0.5 [control]=10.20.0.10
  [internet]=198.51.100.10)
LAB_NETWORK=fabric    # The other one is routers: see lab_use_routers.
LAB_SUBNET_LENGTH=16  # The length for the machines' addresses.
readonly LAB_SERVER_NAME=spoke-ipam-server
readonly LAB_SERVER_PORT=7443
readonly LAB_ADMIN_SOCKET=/run/spoke/ipam-admin.sock
readonly LAB_CNI_SOCKET=/run/spoke/cni.sock

# What a test may set before lab_server_start and lab_agent_start.
LAB_CLOUD=static  # The other one is azure: see lab_use_azure.
LAB_POOL='{name: default, cidr: 10.20.64.0/24}'
LAB_NODE_ADDRESSES='{min: 8, batch: 8, spare: 0.5, max: 250}'
LAB_COOLDOWN=2s
LAB_SERVER_COOLDOWN=30s
LAB_SERVER_EXTRA=    # More lines of the server's configuration.
LAB_STORE=/var/lib/spoke/ipam.db  # On the server's machine.
LAB_STORE_CONFIG=                # Where it is, as the configuration says it; empty: in LAB_STORE.
LAB_AGENT_EXTRA=     # More lines of the agent's configuration.
LAB_AGENT_UNDER=()   # The program that executes the agent, with its arguments; see contained.sh.
LAB_MACHINES=("$LAB_CONTROL" "${LAB_NODES[@]}")
LAB_AGENT_IDENTITY=  # Lines of the agent's configuration; empty: a VM id made from the node's name.

# lab_cluster_network: the machines, plugged into the fabric or into routers, which then forward.
lab_cluster_network() {
  local machine
  if [[ $LAB_NETWORK == routers ]]; then
    lab_routers_network
    return
  fi
  lab_fabric_up || return 1
  for machine in "${LAB_MACHINES[@]}"; do
    lab_node_up "$machine" || return 1
    lab_nic_add "$machine" "$(lab_mac "$machine")" "${LAB_ADDRESSES[$machine]}/$LAB_SUBNET_LENGTH" ||
      return 1
  done
  mkdir -p "$LAB_DIR/cloud"
  lab_fabric_start "$(lab_attachments)"
}

# lab_use_third_node: there is a node3 too. Before the first step.
lab_use_third_node() {
  LAB_NODES+=(node3)
  LAB_ADDRESSES[node3]=10.20.0.6
  LAB_MACHINES+=(node3)
}

# lab_use_internet: there is a host of the Internet too. Before the first step.
lab_use_internet() { LAB_MACHINES+=("$LAB_INTERNET"); }

# lab_use_routers: Linux routers are in place of the fabric, and each machine is in a subnet of its
# own: see routers.sh. Before the first step.
lab_use_routers() {
  LAB_NETWORK=routers
  LAB_SUBNET_LENGTH=24
  LAB_ADDRESSES=([node1]=10.20.1.4 [node2]=10.20.2.4 [control]=10.20.3.4)
}

# lab_attachments: the file in which the server tells the fabric what is attached where.
lab_attachments() { printf '%s/cloud/attachments' "$LAB_DIR"; }

# lab_mac MACHINE: the MAC of its NIC, made from its address.
lab_mac() {
  local octets
  IFS=. read -r -a octets <<<"${LAB_ADDRESSES[$1]}"
  printf '00:0d:3a:%02x:%02x:%02x' "${octets[@]:1}"
}

# _lab_certificate NAME COMMON_NAME EXTENSION...: a P-256 key and a certificate of the lab's CA.
_lab_certificate() {
  local name=$1 common_name=$2
  shift 2
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config openssl.cnf \
    -subj "/CN=$common_name" -keyout "$name.key" -out "$name.csr" &&
    printf '%s\n' "$@" >"$name.ext" &&
    openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 \
      -extfile "$name.ext" -out "$name.crt"
}

# lab_certificates: a CA, a certificate for the server, one for each node in the node's name.
lab_certificates() (
  mkdir -p "$LAB_DIR/tls" && cd "$LAB_DIR/tls" || exit 1
  # The system's openssl.cnf may add anything, so nothing of it is used.
  printf '%s\n' '[req]' 'distinguished_name = name' '[name]' \
    '[ca]' 'basicConstraints = critical, CA:TRUE' 'keyUsage = critical, keyCertSign' >openssl.cnf
  make_all() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config openssl.cnf \
      -extensions ca -subj '/CN=Spoke lab CA' -days 2 -keyout ca.key -out ca.crt || return 1
    _lab_certificate server "$LAB_SERVER_NAME" "extendedKeyUsage = serverAuth" \
      "subjectAltName = DNS:$LAB_SERVER_NAME, IP:${LAB_ADDRESSES[$LAB_CONTROL]}" || return 1
    local node
    for node in "${LAB_NODES[@]}"; do
      _lab_certificate "$node" "$node" "extendedKeyUsage = clientAuth" \
        "subjectAltName = DNS:$node" || return 1
    done
  }
  if ! make_all >openssl.log 2>&1; then
    lab_error "openssl makes no certificates"
    _lab_show_log "$LAB_DIR/tls/openssl.log" 30
    exit 1
  fi
)

# _lab_install_tls MACHINE NAME: puts certificate NAME on MACHINE, with the CA's.
_lab_install_tls() {
  local file
  for file in ca.crt "$2.crt" "$2.key"; do
    lab_node_exec "$1" install -D -m 0600 "$LAB_DIR/tls/$file" "/etc/spoke/tls/$file" || return 1
  done
}

_lab_cloud_config() {
  if [[ $LAB_CLOUD == azure ]]; then
    _lab_azure_config
  else
    printf 'cloud: {static: {attachments_file: %s}}\n' "$(lab_attachments)"
  fi
}

# lab_use_azure: everything that follows is on the simulated Azure, where a pool is a whole subnet
# and agents learn from the cloud who they are. Before the first step.
lab_use_azure() {
  LAB_CLOUD=azure
  LAB_POOL="{name: default, cidr: 10.20.0.0/$LAB_SUBNET_LENGTH}"
  LAB_AGENT_IDENTITY="azure: {reflector: ${LAB_ADDRESSES[$LAB_CONTROL]}}"
}

# lab_server_start: starts the server, or starts it again after it was killed.
lab_server_start() {
  local program store=${LAB_STORE_CONFIG:-"{sqlite: $LAB_STORE}"}
  program=$(lab_bin spoke-ipam-server) || return 1
  _lab_install_tls "$LAB_CONTROL" server || return 1
  lab_node_write "$LAB_CONTROL" /etc/spoke/ipam-server.yaml <<CONFIG || return 1
listen: {agents: "${LAB_ADDRESSES[$LAB_CONTROL]}:$LAB_SERVER_PORT", admin: "unix:$LAB_ADMIN_SOCKET"}
tls: {ca: /etc/spoke/tls/ca.crt, certificate: /etc/spoke/tls/server.crt, key: /etc/spoke/tls/server.key}
store: $store
$(_lab_cloud_config)
pools:
  - $LAB_POOL
node_addresses: $LAB_NODE_ADDRESSES
cooldown: $LAB_SERVER_COOLDOWN
$LAB_SERVER_EXTRA
CONFIG
  lab_node_spawn "$LAB_CONTROL" spoke-ipam-server "$program" \
    --config /etc/spoke/ipam-server.yaml || return 1
  lab_wait 30 "the server to answer" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" \
    lab_spokectl pool list
}

# lab_spokectl ARGUMENTS...: asks the server, as its operator.
lab_spokectl() {
  local program
  program=$(lab_bin spokectl) || return 1
  lab_node_exec "$LAB_CONTROL" "$program" --server "unix:$LAB_ADMIN_SOCKET" "$@"
}

# lab_agent_start NODE: starts the agent, or starts it again after it was killed; returns once it
# takes requests.
lab_agent_start() {
  local node=$1 program
  program=$(lab_bin spoke-netagent) || return 1
  _lab_install_tls "$node" "$node" || return 1
  lab_node_exec "$node" mkdir -p /run/spoke/netagent || return 1
  lab_node_write "$node" /etc/spoke/netagent.yaml <<CONFIG || return 1
node_name: $node
${LAB_AGENT_IDENTITY:-vm_id: vm-$node}
nic: eth0
server: ${LAB_ADDRESSES[$LAB_CONTROL]}:$LAB_SERVER_PORT
server_name: $LAB_SERVER_NAME
tls: {ca: /etc/spoke/tls/ca.crt, certificate: /etc/spoke/tls/$node.crt, key: /etc/spoke/tls/$node.key}
cni_socket: $LAB_CNI_SOCKET
state_dir: /run/spoke/netagent
cooldown: $LAB_COOLDOWN
$LAB_AGENT_EXTRA
CONFIG
  lab_node_spawn "$node" spoke-netagent "${LAB_AGENT_UNDER[@]}" "$program" \
    --config /etc/spoke/netagent.yaml || return 1
  lab_wait 30 "the agent on $node to take requests" "$(lab_node_log "$node" spoke-netagent)" \
    _lab_listening "$node" "$LAB_CNI_SOCKET"
}

# A socket's file outlives a killed listener, so the kernel is asked: it knows a socket by the name
# it was bound to, and the agent renames its own into place.
_lab_listening() {
  grep -qF " $2.new " < <(lab_node_exec "$1" ss --no-header --listening --unix) &&
    ! lab_node_exec "$1" test -e "$2.new"
}

# lab_plugin_install NODE: the plugin and its network configuration, for NODE's runtime.
lab_plugin_install() {
  local program
  program=$(lab_bin spoke) || return 1
  lab_node_exec "$1" install -m 0755 "$program" /opt/cni/bin/spoke || return 1
  lab_node_write "$1" /etc/cni/net.d/10-spoke.conflist <<CONFLIST
{
  "cniVersion": "1.0.0",
  "cniVersions": ["0.3.1", "0.4.0", "1.0.0", "1.1.0"],
  "name": "spoke",
  "plugins": [{"type": "spoke", "socket": "$LAB_CNI_SOCKET"}]
}
CONFLIST
}

# _lab_node_holds NODE COUNT: whether the server has a session with NODE and has attached COUNT
# addresses to it at least.
_lab_node_holds() {
  local nodes
  nodes=$(lab_spokectl node list -o json) || return 1
  printf '%s\n' "$nodes"
  jq -e --arg node "$1" --argjson count "$2" \
    'any(.[]; .name == $node and .connected and (.attached | tonumber) >= $count)' \
    >/dev/null <<<"$nodes"
}

# lab_wait_attached NODE COUNT: waits until NODE is connected and COUNT addresses are on its NIC.
lab_wait_attached() {
  lab_wait 30 "the server to attach $2 addresses to $1" \
    "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" _lab_node_holds "$1" "$2"
}

# lab_addresses STATE: the addresses in that state, sorted, each with its node and its pod's name.
lab_addresses() {
  local addresses
  addresses=$(lab_spokectl ip list -o json) || return 1
  jq -r --arg state "$1" \
    '.[] | select(.state == $state) | "\(.address) \(.node) \(.pod_name)"' <<<"$addresses" | sort
}

_lab_none_in_use() {
  local in_use
  in_use=$(lab_addresses in_use) || return 1
  printf '%s\n' "$in_use"
  [[ -z $in_use ]]
}

# lab_wait_none_in_use: waits until the server knows that no address is assigned.
lab_wait_none_in_use() {
  lab_wait 30 "all addresses to come back" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" \
    _lab_none_in_use
}
