#!/usr/bin/env bash
# podman with its CNI backend: VERSION probes, requested addresses and MACs, published ports, a second
# network, and DEL from its cache.
# usage: runtime_podman_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

# What root here may not do (raise limits, lower scores) podman must not try.
configure_podman() {
  lab_node_write node1 /etc/containers/containers.conf <<CONFIG
[containers]
default_ulimits = []
oom_score_adj = 0
pids_limit = 0
[network]
network_backend = "cni"
cni_plugin_dirs = ["/opt/cni/bin"]
network_config_dir = "/etc/cni/net.d"
default_network = "spoke"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
CONFIG
  lab_node_write node1 /etc/cni/net.d/10-spoke.conflist <<CONFLIST
{
  "cniVersion": "1.0.0",
  "cniVersions": ["0.3.1", "0.4.0", "1.0.0", "1.1.0"],
  "name": "spoke",
  "plugins": [
    {"type": "spoke", "socket": "$LAB_CNI_SOCKET",
     "capabilities": {"mac": true, "ips": true, "bandwidth": true}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
CONFLIST
  # The image's files are all that is needed, so no image store is.
  lab_node_exec node1 mkdir -p /var/lib/spoke/rootfs/bin
  lab_node_exec node1 cp /bin/busybox /var/lib/spoke/rootfs/bin/busybox
  local name
  for name in sh ip ping sleep nc; do
    lab_node_exec node1 ln -sf busybox "/var/lib/spoke/rootfs/bin/$name"
  done
}

podman_in() {
  lab_node_exec node1 podman --root /var/lib/spoke/podman --runroot /run/podman \
    --storage-driver vfs "$@"
}

podman_run() { podman_in run --rm --cap-add NET_RAW "${@:1:$#-1}" --rootfs /var/lib/spoke/rootfs sh -c "${*: -1}"; }

step_run() {
  lab_step "podman run, with whatever address comes, and with a requested address and MAC"
  local said
  said=$(podman_run --network spoke "ip addr show eth0; ping -c 1 -W 2 ${LAB_ADDRESSES[node2]}")
  if ! grep -q ' 0% packet loss' <<<"$said"; then
    lab_error "no network: $said"
    return 1
  fi
  lab_ok "$(sed -n 's/.* inet \([0-9.]*\).*/\1/p' <<<"$said" | head -n 1) reaches node2"
  local request
  request=$(lab_addresses available | awk '$2 == "node1" {address = $1} END {print address}')
  said=$(podman_run --network "spoke:ip=$request,mac=02:00:00:00:00:50" "ip addr show eth0")
  if ! grep -q "inet $request/32" <<<"$said" || ! grep -q '02:00:00:00:00:50' <<<"$said"; then
    lab_error "requested for $request and 02:00:00:00:00:50, got: $said"
    return 1
  fi
  lab_ok "the requested $request and MAC"
}

step_ports() {
  lab_step "A published port reaches the container"
  podman_in run --detach --name web --network spoke -p 8080:80 --rootfs /var/lib/spoke/rootfs \
    sh -c 'while true; do echo hello | nc -l -p 80; done' >/dev/null
  lab_wait 10 "the port to answer" "" says_hello
  lab_ok "port 8080 of node1 answers"
  podman_in rm --force --time 0 web >/dev/null
  lab_wait_none_in_use
  lab_ok "the address is back"
}

says_hello() {
  lab_node_exec node2 bash -c \
    "exec 3<>/dev/tcp/${LAB_ADDRESSES[node1]}/8080 && [[ \$(head -c 5 <&3) == hello ]]"
}

lab_for_test "${1:-}"
step_network && step_certificates && step_server && step_agents
lab_plugin_install node1
configure_podman
step_run
step_ports
