#!/usr/bin/env bash
# A newcomer's first pods, as docs/QUICKSTART.md has them: a real Kubernetes of one node, Spoke by the overlay
# `simulator`, which scripts/simulator_overlay.sh fills in for the node, and three pods.
# usage: quickstart_test.sh DIRECTORY_OF_PROGRAMS IMAGE.tar SIMULATOR.tar
#
# DIRECTORY_OF_PROGRAMS has spoke-fabric and spoke-cri; KUBERNETES_BIN names the directory of Kubernetes' programs. The
# last line is the sum: N passed, N failed.
set -euo pipefail
# shellcheck source=cases.sh
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"
# shellcheck source=run_cases.sh
source "$ROOT/tests/kubernetes/run_cases.sh"

readonly CASES=(quickstart_install quickstart_pods)

# Nobody has to say what the device is called.
case_quickstart_install() {
  _manifests_of_then || return 1
  # Beside the manifests of then: the script takes the folder `azure` of this source tree.
  lab_node_exec node1 "$ROOT/scripts/simulator_overlay.sh" --taken "$KUBE_API" \
    -o "$LAB_DIR/kubernetes/overlays/node1" || return 1
  sed -i "s|^  - .*conf/kubernetes/azure$|  - ../../azure|" "$LAB_DIR/kubernetes/overlays/node1/kustomization.yaml"
  "$ROOT/tests/kubernetes/kustomize_of_then.py" "$LAB_DIR/kubernetes/overlays/node1" || return 1
  kube apply -k "$LAB_DIR/kubernetes/overlays/node1" || return 1
  kube -n "$SYSTEM" rollout status daemonset/spoke-netagent --timeout=180s || { _system_told && return 1; }
  kube_wait_node node1 60
}

_web_runs() {
  kube get deployment web -o json | jq -e '.status.readyReplicas == 3'
}

# Three pods have addresses of the node's subnet, reach each other, and all is well.
case_quickstart_pods() {
  local addresses one
  kube create deployment web "--image=$LAB_TEST_IMAGE" --dry-run=client -o json |
    jq '.spec.replicas = 3 | .spec.template.spec.containers[0].imagePullPolicy = "Never"
      | .spec.template.spec.terminationGracePeriodSeconds = 1' | kube apply -f - || return 1
  lab_wait 90 "three pods to be ready" "$(lab_node_log node1 kubelet)" _web_runs || return 1
  lab_show kube get pods -o wide
  addresses=$(kube_pods app=web | awk '{print $3}')
  [[ $(sort -u <<<"$addresses" | grep -c '^10\.20\.') == 3 ]] || { lab_error "the pods have: $addresses" && return 1; }
  for one in $addresses; do
    [[ $one != "$KUBE_API" && $one != "${LAB_ADDRESSES[node1]}" ]] || { lab_error "a pod has $one, a machine's" && return 1; }
    kube exec "$(_pod web)" -- ping -c 1 -W 2 "$one" >/dev/null || { lab_error "$(_pod web) does not reach $one" && return 1; }
  done
  # As the document says it; the command's code is 0 when nothing is wrong.
  lab_show kube -n "$SYSTEM" exec spoke-ipam-server-0 -- spokectl status
}

main() {
  if (($# != 3)) || [[ ! -f $2 || ! -f $3 ]]; then
    printf 'usage: quickstart_test.sh DIRECTORY_OF_PROGRAMS IMAGE.tar SIMULATOR.tar\n' >&2
    exit 2
  fi
  local image simulator
  image=$(realpath "$2") simulator=$(realpath "$3")
  lab_for_test "$1"
  # shellcheck disable=SC2034  # For lab_cluster_network.
  LAB_NODES=(node1)
  lab_step "A cluster of one node without any pod network"
  lab_cluster_network
  kube_control_up
  kube_node_up node1
  kube_image node1 "$image"
  kube_image node1 "$simulator"
  cases_run quickstart_install '' "${CASES[@]}"
}

main "$@"
