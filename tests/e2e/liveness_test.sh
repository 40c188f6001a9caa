#!/usr/bin/env bash
# A program whose loop stands still is not live (/livez), so that a kubelet restarts it, and is again once
# the loop goes on; it is live all the time while its loop turns.
# usage: liveness_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

HEALTH_HTTP=127.0.0.1:9470
# shellcheck disable=SC2034  # Both are read by the lab.
LAB_SERVER_EXTRA="health_http: $HEALTH_HTTP"
# shellcheck disable=SC2034
LAB_AGENT_EXTRA="health_http: $HEALTH_HTTP"
PATIENCE=90 # Seconds; a loop may be silent for 60.

# livez MACHINE: the status of /livez there.
livez() {
  lab_node_exec "$1" curl --silent --max-time 5 --output /dev/null --write-out '%{http_code}' \
    "http://$HEALTH_HTTP/livez"
}

livez_is() { [[ $(livez "$1") == "$2" ]]; }

# thread_of MACHINE PROGRAM NAME: the thread of that name, as it is numbered there.
thread_of() {
  # shellcheck disable=SC2016  # Expanded by the inner shell.
  lab_node_exec "$1" bash -c 'grep -lx "$2" "/proc/$1/task/"*/comm | cut -d/ -f5 | sort -n | sed -n 1p' \
    bash "$(<"$LAB_DIR/machine/$1/$2.pid")" "$3"
}

# stands_still MACHINE PROGRAM THREAD_NAME: is live, then not while that thread is stopped, then live.
stands_still() {
  local machine=$1 program=$2 thread begun
  livez_is "$machine" 200
  thread=$(thread_of "$machine" "$program" "$3")
  coproc STOPPED { lab_node_exec "$machine" python3 "$LAB_HOME/stopped_thread.py" "$thread"; }
  local -r stopped=$STOPPED_PID
  read -r -t 10 -u "${STOPPED[0]}"
  begun=$SECONDS
  sleep 30
  livez_is "$machine" 200
  lab_wait "$PATIENCE" "$program, whose loop stands still, not to be live" "" livez_is "$machine" 503
  local -r took=$((SECONDS - begun))
  ((took >= 55))
  eval "exec ${STOPPED[1]}>&-"
  wait "$stopped"
  lab_wait 20 "$program to be live again" "" livez_is "$machine" 200
  lab_ok "$program: 503 after $took s without its loop, 200 again with it"
}

step_loops_stand_still() {
  lab_step "Stop the loops of server and agent, and let them go on"
  local server agent
  (stands_still "$LAB_CONTROL" spoke-ipam-server fleet-loop) &
  server=$!
  (stands_still node1 spoke-netagent spoke-netagent) &
  agent=$!
  wait "$server"
  wait "$agent"
}

step_pods_after_it() {
  lab_step "A pod gets an address after that"
  lab_pod_run node1 web-1
  lab_pod_delete node1 web-1
  lab_wait_none_in_use
  step_no_traces
}

lab_for_test "${1:-}"
lab_cluster_up
step_loops_stand_still
step_pods_after_it
