# shellcheck shell=bash
# Pods on the lab's nodes, by name, and what goes over the wire between them. Part of lab.sh.

readonly LAB_POD_NAMESPACE=demo
# What a test may set before lab_pod_run.
LAB_POD_IMAGE=$LAB_TEST_IMAGE
LAB_POD_COMMAND=(sleep 1000000)

_lab_pod_file() { printf '%s/pods/%s/%s' "$LAB_DIR" "$1" "$2"; }

# lab_pod_run NODE POD: a sandbox through CRI and a container in it, which sleeps unless a test wants something else.
lab_pod_run() {
  local node=$1 pod=$2 sandbox container address file
  file=$(_lab_pod_file "$node" "$pod")
  mkdir -p "$(dirname "$file")"
  sandbox=$(lab_cri "$node" run "$pod" --namespace "$LAB_POD_NAMESPACE") || return 1
  printf '%s\n' "$sandbox" >"$file.sandbox"
  container=$(lab_cri "$node" start "$sandbox" "$LAB_POD_IMAGE" -- "${LAB_POD_COMMAND[@]}") || return 1
  printf '%s\n' "$container" >"$file.container"
  address=$(lab_cri "$node" ip "$sandbox") || return 1
  printf '%s\n' "$address" >"$file.address"
}

# lab_pod_delete NODE POD: stops and removes it, as kubelet does.
lab_pod_delete() {
  local file sandbox
  file=$(_lab_pod_file "$1" "$2")
  sandbox=$(cat "$file.sandbox") || return 1
  lab_cri "$1" stop "$sandbox" || return 1
  lab_cri "$1" remove "$sandbox" || return 1
  rm -f "$file".*
}

# lab_pods_collect NODE: removes the sandboxes that do not work, as kubelet does after a while: one
# whose network could be neither made nor unmade keeps its pod's name until then.
lab_pods_collect() {
  local sandboxes sandbox pod state
  sandboxes=$(lab_cri "$1" list) || return 1
  while read -r sandbox pod state; do
    if [[ $state != notready || -e $(_lab_pod_file "$1" "${pod#*/}").sandbox ]]; then continue; fi
    lab_cri "$1" stop "$sandbox" || return 1
    lab_cri "$1" remove "$sandbox" || return 1
  done <<<"$sandboxes"
}

# lab_pod_address NODE POD: its address.
lab_pod_address() { cat "$(_lab_pod_file "$1" "$2").address"; }

# lab_pod_names NODE: the pods that lab_pod_run made there and that were not deleted, one a line.
lab_pod_names() {
  find "$LAB_DIR/pods/$1" -name '*.sandbox' -printf '%f\n' 2>/dev/null | sed 's/\.sandbox$//' | sort
}

# lab_pod_exec NODE POD COMMAND...: runs it in the pod's container.
lab_pod_exec() {
  local node=$1 container
  container=$(cat "$(_lab_pod_file "$1" "$2").container") || return 1
  shift 2
  lab_cri "$node" exec "$container" -- "$@"
}

# lab_pod_ping NODE POD ADDRESS: three pings, of which none may be lost, not even the first.
lab_pod_ping() {
  local said
  said=$(lab_pod_exec "$1" "$2" ping -c 3 -i 0.1 -W 2 "$3" 2>&1) || true
  if ! grep -q ' 0% packet loss' <<<"$said"; then
    lab_error "pod $2 on $1 ($(lab_pod_address "$1" "$2")) does not reach $3:"
    printf '%s\n' "$said" | sed 's/^/    /' >&2
    return 1
  fi
}

# lab_in_parallel COMMAND LINE...: runs COMMAND with the words of each LINE as its arguments, all at
# once; fails if one fails.
lab_in_parallel() {
  local command=$1 line arguments process processes=() failed=0
  shift
  for line in "$@"; do
    read -r -a arguments <<<"$line"
    "$command" "${arguments[@]}" &
    processes+=($!)
  done
  for process in "${processes[@]}"; do wait "$process" || failed=1; done
  return "$failed"
}

# lab_capture_start NODE: begins to record the pings on the fabric's side of NODE's link.
lab_capture_start() {
  local program=capture-$1 log
  log=$(lab_node_log "$LAB_FABRIC" "$program")
  rm -f "$log"
  lab_node_spawn "$LAB_FABRIC" "$program" tcpdump -i "$(lab_fabric_port "$1")" -n -t -l \
    --immediate-mode -Z root icmp || return 1
  lab_wait 40 "tcpdump to listen on $1's link" "$log" grep -q '^listening on' "$log"
}

# lab_capture_stop NODE: ends it. lab_capture_requests reads what was recorded.
lab_capture_stop() { lab_node_kill "$LAB_FABRIC" "capture-$1" INT; }

# lab_capture_requests NODE: "source destination" of each echo request of ping that was seen, once each. Nodes
# probe each other too, with other lengths.
lab_capture_requests() {
  sed -n 's/.* \([0-9.]*\) > \([0-9.]*\): ICMP echo request.*, length 64$/\1 \2/p' \
    "$(lab_node_log "$LAB_FABRIC" "capture-$1")" | sort -u
}

# lab_expect_on_wire NODE SOURCE DESTINATION: whether such a request went over NODE's link.
lab_expect_on_wire() {
  if ! grep -qxF "$2 $3" < <(lab_capture_requests "$1"); then
    lab_error "no ping from $2 to $3 was seen on the link of $1, but these:"
    lab_capture_requests "$1" | sed 's/^/    /' >&2
    return 1
  fi
}

# lab_pod_traces NODE: a line for each trace that pods left on NODE: a link, a route, a network
# namespace, a process. None when all is as before the first pod.
lab_pod_traces() {
  lab_node_exec "$1" ip -brief link | awk '$1 ~ /^spk/ {print "link " $1}'
  lab_node_exec "$1" ip -4 route show table all | awk '/ dev spk/ {print "route " $0}'
  lab_node_exec "$1" ip -6 route show table all | awk '/ dev spk/ {print "route " $0}'
  lab_node_exec "$1" ip neighbour | awk '/ dev spk/ {print "neighbour " $0}'
  lab_node_exec "$1" find /run/netns -mindepth 1 -printf 'network namespace %f\n'
  lab_node_exec "$1" ps -e -o args= |
    awk '/^\/pause|\/bin\/sh \/pause|^sleep 1000000|containerd-shim/ {print "process " $0}'
}

_lab_no_pod_traces() {
  local traces
  traces=$(lab_pod_traces "$1") || return 1
  printf '%s\n' "$traces"
  [[ -z $traces ]]
}

# lab_wait_no_pod_traces NODE: waits until nothing is left on NODE of the pods it had.
lab_wait_no_pod_traces() {
  lab_wait 15 "all traces of pods on $1 to go" "$(lab_node_log "$1" containerd)" \
    _lab_no_pod_traces "$1"
}
