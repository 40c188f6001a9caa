#!/usr/bin/env bash
# A parallel job on reserved addresses: what is reserved is on the nodes before the job starts, its pods start with it
# at once, and Open MPI sums over all of them, started over SSH from rank 0, by the addresses of the pods.
# usage: mpi_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

readonly RANKS=20
readonly EACH=$((RANKS / 2))

step_reserve() {
  lab_step "Reserve $EACH addresses on each of two nodes, in a pool that has no more for another job"
  local code=0
  lab_spokectl reserve create train --node node1 --node node2 --addresses-per-node "$EACH" --ttl 10m
  lab_wait 30 "both nodes to hold what is reserved" "$(lab_node_log "$LAB_CONTROL" spoke-ipam-server)" reserved train
  lab_addresses available >"$LAB_DIR/before"
  lab_spokectl reserve create other --node node1 --node node2 --addresses-per-node "$EACH" >"$LAB_DIR/said" 2>&1 || code=$?
  if [[ $code != 5 ]]; then
    lab_error "another reservation of $EACH addresses each ended with $code: $(cat "$LAB_DIR/said")"
    return 1
  fi
  lab_show lab_spokectl reserve list
  lab_ok "$(wc -l <"$LAB_DIR/before") addresses are on the nodes, and another job of the size is refused"
}
reserved() {
  lab_spokectl reserve list -o json | jq -ce --arg name "$1" '
    .[] | select(.name == $name) | ., (.nodes | length == 2) and .nodes_ready == 2' | tee "$LAB_DIR/reserved" | tail -n 1 |
    grep -qx true
}

step_start() {
  lab_step "Start the job's $RANKS pods at once"
  local node rank pods=() began=$EPOCHREALTIME strange
  for node in "${LAB_NODES[@]}"; do
    # The nodes by turns, so that the order of ranks is not that of nodes.
    for ((rank = ${#pods[@]} / EACH; rank < RANKS; rank += ${#LAB_NODES[@]})); do pods+=("$node rank-$rank"); done
  done
  lab_job_pods
  lab_in_parallel lab_pod_run "${pods[@]}"
  lab_say "they run after $(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000)) ms"
  lab_spokectl reserve hosts train --pods "$RANKS" --slots 1 >"$LAB_DIR/hosts" || return 1
  lab_spokectl reserve hosts train -o json | jq -r '.[] | "\(.address) slots=1 # \(.node) \(.pod_name)"' >"$LAB_DIR/ranks"
  if (($(wc -l <"$LAB_DIR/hosts") != RANKS)); then
    lab_error "the server knows of these pods: $(cat "$LAB_DIR/ranks")"
    return 1
  fi
  strange=$(comm -23 <(cut -d ' ' -f 1 "$LAB_DIR/hosts" | sort) <(cut -d ' ' -f 1 "$LAB_DIR/before" | sort))
  if [[ -n $strange ]]; then
    lab_error "these were not on the nodes before the job: $strange"
    return 1
  fi
  if [[ $(awk '{print $5}' "$LAB_DIR/ranks") != "$(printf 'rank-%d\n' $(seq 0 $((RANKS - 1))))" ]]; then
    lab_error "the hostfile is not in the order of ranks: $(cat "$LAB_DIR/ranks")"
    return 1
  fi
  lab_ok "each has an address that was there before it, and the hostfile names them in the order of ranks"
}

step_sum() {
  lab_step "Open MPI sums over $RANKS ranks, from the pod of rank 0"
  local node pod command said began=$EPOCHREALTIME
  read -r node pod < <(awk 'NR == 1 {print $4, $5}' "$LAB_DIR/ranks")
  # shellcheck disable=SC2016  # Expanded by the pod's shell.
  lab_pod_exec "$node" "$pod" sh -c 'printf "%s\n" "$@" >/tmp/hosts' sh "$(cat "$LAB_DIR/hosts")"
  mapfile -t command < <(lab_job_mpirun /tmp/hosts)
  said=$(lab_pod_exec "$node" "$pod" "${command[@]}" 2>&1) || { lab_error "mpirun fails: $said" && return 1; }
  lab_job_expect "$LAB_DIR/hosts" "$said"
  lab_ok "$(grep '^sum' <<<"$said"), after $(((${EPOCHREALTIME/[.,]/} - ${began/[.,]/}) / 1000)) ms"
}

step_end() {
  lab_step "The job ends, and its reservation with it"
  local node pod pods=()
  lab_spokectl reserve release train
  for node in "${LAB_NODES[@]}"; do
    while read -r pod; do pods+=("$node $pod"); done < <(lab_pod_names "$node")
  done
  lab_in_parallel lab_pod_delete "${pods[@]}"
  lab_wait_none_in_use
  for node in "${LAB_NODES[@]}"; do lab_wait_no_pod_traces "$node"; done
  lab_ok "nothing is left of it"
}

lab_for_test "${1:-}"
# shellcheck disable=SC2034  # For lab_server_start, and the next too.
LAB_POOL='{name: small, cidr: 10.20.64.0/27}'
# shellcheck disable=SC2034
LAB_NODE_ADDRESSES='{min: 3, batch: 1, spare: 0, max: 20}'
step_network
step_certificates
step_server
lab_step "Make an image of Open MPI, OpenSSH and the job"
lab_job_image_make
step_agents
step_runtimes
for node in "${LAB_NODES[@]}"; do lab_image_import "$node" "$LAB_DIR/images/job.tar"; done
step_reserve
step_start
step_sum
step_end
