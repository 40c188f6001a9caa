# shellcheck shell=bash
# Nodes: machines made of namespaces. Part of lab.sh.
#
# A node has network, mount, pid, host name, IPC and cgroup namespaces of its own; private /run, /etc
# and /opt; private /var/lib and /var/log; an own root in each cgroup hierarchy. Its pid 1 reaps, and killing that
# one process ends everything inside: daemons, containers, mounts, network namespaces.
# `ip netns exec` would not do: it mounts a new /sys and so hides the cgroups from container runtimes.

_lab_node_pid() { cat "$LAB_DIR/machine/$1/pid"; }

# lab_node_log NODE PROGRAM: the path of the log that lab_node_spawn writes.
lab_node_log() { printf '%s/log/%s/%s.log' "$LAB_DIR" "$1" "$2"; }

# _lab_cgroups_make NODE: a directory for NODE in each hierarchy. Writes two lists: `cgroups`, "path
# TAB mount options" of each version 1 hierarchy, or "path TAB cgroup2" where there is nothing else;
# `cgroup-members`, where the node's processes go. A hierarchy that does not let us is left out.
_lab_cgroups_make() {
  local machine=$LAB_DIR/machine/$1 mount options group found=no
  : >"$machine/cgroups"
  : >"$machine/cgroup-members"
  while read -r mount options; do
    group=$mount/$LAB_ID-$1
    if ! mkdir "$group" 2>/dev/null; then continue; fi
    # A new cpuset has no processors, and takes no process until it is given some.
    local file
    for file in cpuset.cpus cpuset.mems; do
      if [[ -e $group/$file ]]; then cat "$mount/$file" >"$group/$file"; fi
    done
    printf '%s\t%s\n' "$group" "$options" >>"$machine/cgroups"
    printf '%s\n' "$group" >>"$machine/cgroup-members"
    found=yes
  done < <(_lab_cgroup_mounts)
  if [[ $found == no && -w /sys/fs/cgroup/cgroup.procs ]]; then
    group=/sys/fs/cgroup/$LAB_ID-$1
    mkdir "$group"
    printf '%s\tcgroup2\n' "$group" >>"$machine/cgroups"
    printf '%s\n' "$group" >>"$machine/cgroup-members"
  fi
}

# "mount-point options" of each cgroup version 1 hierarchy; the options that select it alone.
_lab_cgroup_mounts() {
  awk '$3 == "cgroup" {
    selected = ""
    count = split($4, options, ",")
    for (i = 1; i <= count; i++) {
      o = options[i]
      if (o ~ /^(rw|ro|nosuid|nodev|noexec|relatime|noatime|xattr|clone_children|release_agent=.*)$/) continue
      if (o ~ /^name=/) o = "none," o
      selected = selected == "" ? o : selected "," o
    }
    print $2, selected
  }' /proc/self/mounts
}

_lab_cgroups_join() {
  local group
  while IFS= read -r group; do
    # A hierarchy that refuses us limits nothing that a test is about.
    { printf '%s' "$2" >"$group/cgroup.procs"; } 2>/dev/null || true
  done <"$LAB_DIR/machine/$1/cgroup-members"
}

_lab_cgroups_remove() {
  local machine=$LAB_DIR/machine/$1 group options deadline=$((SECONDS + 10))
  if [[ ! -e $machine/cgroups ]]; then return 0; fi
  while IFS=$'\t' read -r group options; do
    # The kernel lets go of a cgroup a moment after its last process is gone.
    until find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || [[ ! -d $group ]]; do
      if ((SECONDS >= deadline)); then
        lab_error "cgroup $group ($options) does not go away"
        break
      fi
      sleep 0.05
    done
  done <"$machine/cgroups"
}

# lab_node_up NODE: starts a node; NODE is also its host name, at most 12 characters. Call it from
# the shell that called lab_init: the node dies with the shell that starts it, even by kill -9.
lab_node_up() {
  local node=$1 machine=$LAB_DIR/machine/$1
  if [[ ! $node =~ ^[a-z][a-z0-9-]{0,11}$ ]]; then
    lab_error "\"$node\" cannot be the name of a node"
    return 1
  fi
  mkdir "$machine" "$machine/private" "$LAB_DIR/log/$node"
  _lab_cgroups_make "$node"
  local log
  log=$(lab_node_log "$node" init)
  (
    _lab_cgroups_join "$node" "$BASHPID"
    # setsid: a Ctrl-C on the terminal is for the script, which then ends its nodes in order.
    # shellcheck disable=SC2016  # Expanded by the inner shell.
    exec env "SPOKE_LAB=$LAB_ID" setsid setpriv --pdeathsig KILL \
      bash -c 'echo $$ >"$1/unshare-pid"; shift; exec "$@"' \
      bash "$machine" unshare --mount --pid --net --uts --ipc --cgroup --fork \
      --kill-child=KILL --propagation slave bash "$LAB_HOME/node_init.sh" "$node" "$machine"
  ) >"$log" 2>&1 </dev/null &
  disown
  lab_wait 40 "node $node to start" "$log" test -e "$machine/ready" || return 1
  # The child of unshare is the node's pid 1.
  pgrep -P "$(cat "$machine/unshare-pid")" >"$machine/pid"
}

# lab_node_exec NODE COMMAND...: runs it in NODE, with our standard streams, and returns its code.
lab_node_exec() (
  node=$1
  shift
  _lab_cgroups_join "$node" "$BASHPID"
  exec env "SPOKE_LAB=$LAB_ID" nsenter --target "$(_lab_node_pid "$node")" \
    --mount --pid --net --uts --ipc --cgroup -- "$@"
)

# lab_node_write NODE PATH: writes standard input to a file of NODE, with its directories.
lab_node_write() {
  # shellcheck disable=SC2016  # Expanded by the inner shell.
  lab_node_exec "$1" bash -c 'mkdir -p "$(dirname "$1")" && cat >"$1"' bash "$2"
}

# lab_node_spawn NODE PROGRAM COMMAND...: runs COMMAND in NODE in the background, as a child of its
# pid 1, with a log (see lab_node_log). PROGRAM is the name the next functions know it by.
lab_node_spawn() {
  local node=$1 program=$2
  shift 2
  # shellcheck disable=SC2016  # Expanded by the inner shell.
  lab_node_exec "$node" bash -c 'log=$1 pid_file=$2; shift 2
    setsid "$@" >>"$log" 2>&1 </dev/null &
    echo $! >"$pid_file"' \
    bash "$(lab_node_log "$node" "$program")" "$LAB_DIR/machine/$node/$program.pid" "$@"
}

# lab_node_running NODE PROGRAM: whether it runs.
lab_node_running() {
  lab_node_exec "$1" kill -0 "$(cat "$LAB_DIR/machine/$1/$2.pid")" 2>/dev/null
}

_lab_node_not_running() { ! lab_node_running "$@"; }

# lab_node_kill NODE PROGRAM [SIGNAL]: sends SIGNAL (default TERM) and waits for the end.
lab_node_kill() {
  local pid_file=$LAB_DIR/machine/$1/$2.pid
  lab_node_exec "$1" kill "-${3:-TERM}" "$(cat "$pid_file")" || return 1
  lab_wait 15 "$2 on $1 to end after ${3:-TERM}" "$(lab_node_log "$1" "$2")" \
    _lab_node_not_running "$1" "$2"
}

# lab_node_down NODE: ends it and all that runs in it. A second call does nothing.
lab_node_down() {
  local node=$1 machine=$LAB_DIR/machine/$1 pid_file pid deadline=$((SECONDS + 10))
  if [[ ! -d $machine ]]; then return 0; fi
  for pid_file in "$machine/pid" "$machine/unshare-pid"; do
    if [[ ! -s $pid_file ]]; then continue; fi
    pid=$(cat "$pid_file")
    kill -KILL "$pid" 2>/dev/null || true
    while [[ -e /proc/$pid ]]; do
      if ((SECONDS >= deadline)); then
        lab_error "process $pid of node $node does not go away"
        break
      fi
      sleep 0.02
    done
  done
  _lab_cgroups_remove "$node"
  rm -rf --one-file-system "$machine"
}
