#!/usr/bin/env bash
# Measures Spoke against its targets and its peers.
set -euo pipefail

usage() {
  cat <<'EOT'
usage: scripts/bench.sh NAME|all [--quick]

  cni_add       ADD and DEL of a pod, against the reference plugins
  cni_churn     10,000 pods come and go, and nothing may stay behind
  ipam_storm    7,500 agents connect and obtain 27 addresses each
  ipam_steady   7,500 agents keep still
  ipam_commit   durable assignments and releases a second, against Kea
  ipam_recover  the server is killed with 200,000 addresses, and comes back
  azure_coldstart  7,500 instances get 27 addresses each from a simulated Azure
  azure_calls   calls to Azure for each pod that comes and goes
  ipam_scale    the cost of an operation with 20,000, 200,000 and 2,000,000 addresses
  ipam_giant    1,000,000 addresses on up to 18,000 nodes: agents connect, and the server is killed
  ipam_stalls   the longest turn of the server's loop with 202,500 addresses, whatever is wanted of it
  nodes         7,500 nodes join at once: until the last is lifted, and what is written to the Kubernetes API
  conntrack_pass  deleting the connections of released addresses from a table of 100,000
  gateway_failover  new connections through an egress gateway that is cut off, and those by another
  path_cost     what a packet costs from pod to pod, over plain routing, iptables rules and VXLAN
  acct_scrape   reading the counters of 250 pods, over iptables-save
  policy_apply  a policy of 1,000 blocks comes into force while packets flow
  shaping       how exact limits are, and whether anything else notices
  budget        shares of a budget of the whole cluster, in simulation and over gRPC
  search        all states of three nodes with three addresses, in every order of what can happen
  ha            three servers on three members of etcd, 7,500 agents over mutual TLS: servers and members
                are killed and stopped, 100 times each, which takes hours (SPOKE_HA_REPEATS=N: N times; 0:
                these are left out)
  sim           simulated fleets: node-hours a CPU minute, seeds without a violation, defects found; not
                in `all`, since its thousands of seeds take hours
  footprint     the agent at rest with 250 pods, and the size of an image
  build         CPU time to build demo, tests and release from nothing, and wall time of .ci/run; not in
                `all`, since it takes two hours
  flame_add, flame_path  where an ADD, and a packet from pod to pod, spend their time: flame graphs in
                docs/images, made with perf (linux-perf); not in `all`, since they measure nothing
  kubernetes    100 pods at once on a real cluster, against the stock chain; not in `all`, since it
                makes Kubernetes first, once, in some 10 minutes

Builds the release preset, measures, prints a table and, as the last line, one JSON object.
--quick takes a small size, to see that a benchmark works: its figures mean nothing. Works in
build/bench, which must be on a disk; leaves nothing behind. Exit status: 0 measured, 1 something
could not be measured, 2 wrong usage.

Environment:
  SPOKE_BIN=DIR  measure the programs in DIR instead of building them
EOT
}

readonly names=(cni_add cni_churn ipam_storm ipam_steady ipam_commit ipam_recover ipam_scale ipam_giant ipam_stalls nodes azure_coldstart azure_calls
                conntrack_pass gateway_failover path_cost acct_scrape policy_apply shaping budget footprint search ha)
child=

# The benchmark cleans up after itself; it only has to be told, and waited for.
pass_on() {
  local code=$1 signal=$2
  trap '' INT TERM HUP
  if [[ -n $child ]]; then
    kill -s "$signal" "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  exit "$code"
}

build() {
  if [[ -n ${SPOKE_BIN:-} ]]; then return; fi
  scripts/build.sh release spoke spoke-cni-bench spoke-ipam-server spoke-netagent spokectl spoke-swarm spoke-scale spoke-stalls spoke-nodes-bench spoke-search spoke-sim spoke-azure-bench spoke-bench-budget spoke-path-bench spoke-conntrack-bench spoke-gateway-bench spoke-fabric spoke-cri >&2
}

# The packages that a peer is measured with: installed for those benchmarks only, and never started as a
# service.
prepare() {
  case $1 in
    flame_*) scripts/setup.sh --also linux-perf >&2 ;;
    ipam_commit) scripts/setup.sh --also kea-dhcp4-server kea-admin >&2 ;;
    *) scripts/setup.sh >&2 ;;
  esac
}

run() {
  prepare "$1"
  python3 -B "scripts/bench/$1.py" "${@:2}" &
  child=$!
  local code=0
  wait "$child" || code=$?
  child=
  return "$code"
}

main() {
  local name=${1:-} options=("${@:2}") option
  case $name in
    -h | --help) usage && exit 0 ;;
    all) ;;
    '' | *[!a-z0-9_]*) usage >&2 && exit 2 ;;
  esac
  for option in "${options[@]}"; do
    if [[ $option != --quick ]]; then usage >&2 && exit 2; fi
  done
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  local wanted=("$name")
  if [[ $name == all ]]; then wanted=("${names[@]}"); fi
  if [[ ! -f scripts/bench/${wanted[0]}.py || " ${names[*]} build flame_add flame_path kubernetes sim " != *" ${wanted[0]} "* ]]; then
    usage >&2
    exit 2
  fi

  # What is measured there is the build itself.
  if [[ $name != build ]]; then build; fi
  trap 'pass_on 130 INT' INT
  trap 'pass_on 143 TERM' TERM
  trap 'pass_on 129 HUP' HUP
  local failed=()
  for name in "${wanted[@]}"; do
    run "$name" "${options[@]}" || failed+=("$name")
  done
  if ((${#failed[@]} > 0)); then
    printf 'bench.sh: FAILED: %s\n' "${failed[*]}" >&2
    exit 1
  fi
}

main "$@"
