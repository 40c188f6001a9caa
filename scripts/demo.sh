#!/usr/bin/env bash
# Spoke in five minutes: a cloud network, an IPAM server, three nodes with a real container runtime,
# and six pods with addresses of the network itself, all on this machine and gone afterwards.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/demo.sh [--cloud azure|static]

Builds Spoke, then shows it at work: the server has a simulated Azure put addresses of the network on
the NICs of two scale-set instances, pods get them through CNI, and reach each other untranslated.
With --cloud static there is no cloud API: the network delivers addresses to the node we say. Then a
budget bounds what all nodes together download from a host outside, and the server finds the node whose
NIC loses packets, and has Kubernetes (an API server that is made up) give it no new pods.
Everything runs in namespaces of its own: the network, files and settings of this machine stay as
they are. Needs root. Takes about two minutes, once Spoke is built.

Environment:
  SPOKE_BIN=DIR  use the programs in DIR instead of building them with sanitizers, as the tests want
                 them: after scripts/build.sh release programs, build/release/bin has what users run
  LAB_IN=DIR     work in DIR, an empty directory, and leave the logs there
EOF
}

prepare() {
  if [[ -n ${SPOKE_BIN:-} ]]; then return; fi
  scripts/setup.sh
  # The programs are those that are tested, since these are built in half the time, and scripts/test.sh
  # needs them anyway.
  scripts/build.sh dev programs
  SPOKE_BIN=$PWD/build/dev/bin
}

main() {
  local cloud=azure
  case $* in
    '' | '--cloud azure' | --cloud=azure) ;;
    '--cloud static' | --cloud=static) cloud=static ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  if ((EUID != 0)); then
    printf 'demo.sh: needs root, for namespaces and network devices\n' >&2
    exit 1
  fi
  prepare

  # shellcheck source=tests/e2e/lab/lab.sh
  source tests/e2e/lab/lab.sh
  lab_init "${LAB_IN:-}"
  # shellcheck disable=SC2034  # For lab_step.
  LAB_STEPS=18
  if [[ $cloud == azure ]]; then
    # shellcheck disable=SC2034
    LAB_STEPS=20
    lab_use_azure
  fi
  lab_use_internet
  lab_use_third_node
  lab_use_quick_reachability 30s
  # The shortest time for which a node is unfit before its taint; the default is five minutes.
  lab_use_kubernetes 'unfit_after: 30s, fit_after: 5s'
  step_network
  step_certificates
  if [[ $cloud == azure ]]; then step_cloud; fi
  step_api_server
  step_server
  step_agents
  step_runtimes
  step_pods
  step_pings
  step_show
  step_lossy_nic node3
  step_dataset_host
  step_budget
  if [[ $cloud == azure ]]; then step_azure_calls; fi
  step_tainted node3
  step_mended_nic node3
  step_untainted
  step_delete
  step_no_traces

  lab_step "Take everything down again"
  lab_down
  local left
  left=$(lab_leftovers)
  if [[ -n $left ]]; then
    lab_error "left behind: $left"
    exit 1
  fi
  lab_ok "no process, namespace, cgroup, mount or file is left"
  cat <<EOF

Done in $(lab_elapsed) seconds. What you saw:
  - one server that knows every address of the subnet, and had some attached to each node's NIC;
  - an agent on each node that gives them to pods, with no call to anyone while a pod starts;
  - pods that talk over the plain network: their own addresses on the wire, no overlay, no NAT;
  - a budget for a dataset host that held for both nodes together, while training traffic did not
    notice;
  - a NIC that loses every tenth packet: its node found, given no new pods, and taken back once it is mended;
  - every address back, and nothing left, once the pods are gone.
EOF
}

main "$@"
