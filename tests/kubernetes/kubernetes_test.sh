#!/usr/bin/env bash
# Spoke on a real Kubernetes: installed by image and manifests alone, used, upgraded, hurt, removed.
# usage: kubernetes_test.sh DIRECTORY_OF_PROGRAMS IMAGE.tar [CASE...]
#
# DIRECTORY_OF_PROGRAMS has spoke-fabric and spoke-cri; KUBERNETES_BIN names the directory of
# Kubernetes' programs (scripts/kubernetes.sh). Each case needs those before it; with CASEs, only
# those are run beside `install`. The last line is the sum: N passed, N failed.
set -euo pipefail
# shellcheck source=cases.sh
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"
# shellcheck source=job_cases.sh
source "$ROOT/tests/kubernetes/job_cases.sh"
# shellcheck source=second_spoke_cases.sh
source "$ROOT/tests/kubernetes/second_spoke_cases.sh"
# shellcheck source=run_cases.sh
source "$ROOT/tests/kubernetes/run_cases.sh"

readonly CASES=(manifests install rights dry_run hundred_pods pod_to_pod service host_port bandwidth egress
  counters mpi cluster_dns second_spoke rolling_update foreign_network wrong_server agent_killed server_killed node_killed uninstall)

main() {
  if (($# < 2)) || [[ ! -f $2 ]]; then
    printf 'usage: kubernetes_test.sh DIRECTORY_OF_PROGRAMS IMAGE.tar [CASE...]\n' >&2
    exit 2
  fi
  local image=$2 node
  image=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
  cases_known "${*:3}" "${CASES[@]}" || exit 2
  lab_for_test "$1"
  lab_step "A cluster of two nodes without any pod network"
  lab_use_internet
  lab_cluster_network
  kube_control_up
  for node in "${LAB_NODES[@]}"; do
    kube_node_up "$node"
    kube_image "$node" "$image"
  done
  cases_run install "${*:3}" "${CASES[@]}"
}

main "$@"
