#!/usr/bin/env bash
# `ctr run --cni`: go-cni without Kubernetes. The namespace is /proc/PID/ns/net, there are no
# arguments, and the DEL comes when the process and its namespace are gone.
# usage: runtime_ctr_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

step_run() {
  lab_step "Two containers, one after the other, by ctr run --cni"
  local i said address
  for i in 1 2; do
    said=$(lab_node_exec node1 ctr -n k8s.io run --rm --cni "$LAB_TEST_IMAGE" "by-ctr-$i" \
      sh -c "ip -4 addr show eth0; ping -c 1 -W 2 ${LAB_ADDRESSES[node2]}")
    address=$(sed -n 's/.* inet \([0-9.]*\).*/\1/p' <<<"$said" | head -n 1)
    if [[ -z $address ]] || ! grep -q ' 0% packet loss' <<<"$said"; then
      lab_error "the container has no network: $said"
      return 1
    fi
    lab_ok "container $i has $address and reaches node2"
  done
  lab_wait_none_in_use
  lab_ok "both addresses are back"
}

lab_for_test "${1:-}"
lab_cluster_up
step_run
step_no_traces
