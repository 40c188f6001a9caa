#!/usr/bin/env bash
# Three servers and their etcd on a real Kubernetes, a node each: installed by the overlay `static-ha`, backed up
# and restored by the jobs of conf/kubernetes, and robbed of the node whose server leads.
# usage: ha_test.sh DIRECTORY_OF_PROGRAMS IMAGE.tar [CASE...]
#
# As kubernetes_test.sh, which is about one server. ETCD_BIN is the directory of the etcd that members run; without
# it, they run Debian's.
set -euo pipefail
# shellcheck source=cases.sh
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"
# shellcheck source=ha_cases.sh
source "$ROOT/tests/kubernetes/ha_cases.sh"
# shellcheck source=run_cases.sh
source "$ROOT/tests/kubernetes/run_cases.sh"

readonly CASES=(ha_install ha_rollout ha_restore ha_leader_dies ha_machine_replaced)

main() {
  if (($# < 2)) || [[ ! -f $2 ]]; then
    printf 'usage: ha_test.sh DIRECTORY_OF_PROGRAMS IMAGE.tar [CASE...]\n' >&2
    exit 2
  fi
  local node
  HA_IMAGE=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
  cases_known "${*:3}" "${CASES[@]}" || exit 2
  lab_for_test "$1"
  lab_step "A cluster of three nodes without any pod network"
  lab_use_third_node
  lab_cluster_network
  # What runs on a node that dies is to run elsewhere within the patience of a test, not after five minutes.
  # shellcheck disable=SC2034  # For _deployment.
  POD_TOLERATIONS='{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}'
  kube_control_up
  ha_images_make
  for node in "${LAB_NODES[@]}"; do
    ha_node_up "$node"
  done
  cases_run ha_install "${*:3}" "${CASES[@]}"
}

main "$@"
