#!/usr/bin/env bash
# Spoke on a real Kubernetes on the simulated Azure: installed by the overlay for managed identities, used, and told of
# what Azure is about to do to a machine.
# usage: azure_test.sh DIRECTORY_OF_PROGRAMS IMAGE.tar [CASE...]
#
# As kubernetes_test.sh, whose network is a fabric without a cloud. DIRECTORY_OF_PROGRAMS has spoke-azure-sim too.
set -euo pipefail
# shellcheck source=cases.sh
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"
# shellcheck source=azure_cases.sh
source "$ROOT/tests/kubernetes/azure_cases.sh"
# shellcheck source=run_cases.sh
source "$ROOT/tests/kubernetes/run_cases.sh"

readonly CASES=(azure_install azure_pods azure_fit azure_maintenance)

main() {
  if (($# < 2)) || [[ ! -f $2 ]]; then
    printf 'usage: azure_test.sh DIRECTORY_OF_PROGRAMS IMAGE.tar [CASE...]\n' >&2
    exit 2
  fi
  local image node
  image=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
  cases_known "${*:3}" "${CASES[@]}" || exit 2
  lab_for_test "$1"
  # shellcheck disable=SC2034  # For kube_node_up.
  KUBE_TAINTS=spoke.internal/agent-not-ready=:NoSchedule
  lab_step "A cluster of two machines of the simulated Azure without any pod network"
  lab_cluster_network
  kube_control_up
  azure_up
  for node in "${LAB_NODES[@]}"; do
    kube_node_up "$node"
    kube_image "$node" "$image"
  done
  cases_run azure_install "${*:3}" "${CASES[@]}"
}

main "$@"
