#!/usr/bin/env bash
# Spoke in five minutes: a cloud network, an IPAM server, two nodes with a real container runtime,
# and six pods with addresses of the network itself, all on this machine and gone afterwards.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/demo.sh

Builds Spoke, then shows it at work: the server hands addresses of the network to two nodes, pods get
them through CNI, and reach each other untranslated. Everything runs in namespaces of its own: the
network, files and settings of this machine stay as they are. Needs root. Takes less than a minute,
once Spoke is built.

Environment:
  SPOKE_BIN=DIR  use the programs in DIR instead of building them
  LAB_IN=DIR     work in DIR, an empty directory, and leave the logs there
EOF
}

prepare() {
  if [[ -n ${SPOKE_BIN:-} ]]; then return; fi
  scripts/setup.sh
  scripts/build.sh release programs
  SPOKE_BIN=$PWD/build/release/bin
}

main() {
  case ${1:-} in
    '') ;;
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
  LAB_STEPS=11
  step_network
  step_certificates
  step_server
  step_agents
  step_runtimes
  step_pods
  step_pings
  step_show
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
  - one server that knows every address of the subnet, and attached some to each node's NIC;
  - an agent on each node that lent them to pods, with no call to anyone while a pod starts;
  - pods that talk over the plain network: their own addresses on the wire, no overlay, no NAT;
  - every address back, and nothing left, once the pods are gone.
EOF
}

main "$@"
