# shellcheck shell=bash
# A cloud on one machine: nodes made of namespaces, a fabric between them, real runtimes on them.
# The lab is for scripts/demo.sh and the e2e tests; to be sourced by bash, as root.
#
#   lab_init; lab_node_up node1; lab_fabric_up; lab_nic_add node1 02:00:00:00:00:01 10.20.0.4/16 ...
#
# What it promises:
# - Nothing of the host is changed: not its devices, routes, sysctls, firewall or files, only cgroup
#   directories of our own and one directory that holds everything else.
# - All of it goes when the shell that called lab_init ends, however it ends; lab_leftovers proves it.
#   Only processes started here are killed, by way of the pid namespaces they live in.
# - Nothing sleeps for luck: lab_wait polls with a deadline, and says what it waited for.
#
# Functions return non-zero on failure, after one line on stderr; the EXIT trap shows the logs.
# Names that start with _lab are private.

if [[ -n ${LAB_HOME:-} ]]; then return 0; fi
LAB_HOME=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LAB_DIR=
LAB_ID=
_lab_dir_is_ours=no

source "$LAB_HOME/node.sh"
source "$LAB_HOME/fabric.sh"
source "$LAB_HOME/routers.sh"
source "$LAB_HOME/containerd.sh"
source "$LAB_HOME/cluster.sh"
source "$LAB_HOME/azure.sh"
source "$LAB_HOME/pods.sh"
source "$LAB_HOME/bare_pods.sh"
source "$LAB_HOME/job.sh"
source "$LAB_HOME/scenario.sh"
source "$LAB_HOME/budget.sh"
source "$LAB_HOME/reachability.sh"
source "$LAB_HOME/peer_spokes.sh"
source "$LAB_HOME/kubernetes.sh"

# lab_for_test DIRECTORY: begins the lab of a test, with the programs of SPOKE_BIN or, without it,
# those in DIRECTORY. With LAB_IN=DIR, the logs stay in DIR.
lab_for_test() {
  SPOKE_BIN=${SPOKE_BIN:-$1}
  lab_init "${LAB_IN:-}"
}

# lab_bin PROGRAM: its path, from SPOKE_BIN, the directory of the build's programs.
lab_bin() {
  _lab_program "${SPOKE_BIN:-}" "$1"
}

# lab_tool PROGRAM: likewise of a program that belongs to the lab and not to Spoke. A test that has
# SPOKE_BIN name another version's says in LAB_TOOLS where this version's are.
lab_tool() {
  _lab_program "${LAB_TOOLS:-${SPOKE_BIN:-}}" "$1"
}

_lab_program() {
  if [[ ! -x $1/$2 ]]; then
    lab_error "no program ${1:-(SPOKE_BIN is not set)}/$2: build it first"
    return 1
  fi
  printf '%s/%s' "$1" "$2"
}

# lab_error WORDS: on stderr; the last one is said again after the logs.
lab_error() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  if [[ -d $LAB_DIR ]]; then printf '%s\n' "$*" >"$LAB_DIR/error"; fi
}

# lab_init [DIR]: begins a lab. Without DIR, a directory is made and removed at the end; a DIR is
# left, with the logs in it. Installs traps for EXIT, INT, TERM and HUP.
lab_init() {
  if [[ $EUID -ne 0 ]]; then
    lab_error "needs root: it makes namespaces and network devices"
    return 1
  fi
  local tool
  for tool in unshare nsenter setpriv ip jq python3; do
    if ! command -v "$tool" >/dev/null; then
      lab_error "needs $tool: run scripts/setup.sh"
      return 1
    fi
  done
  if [[ -n ${1:-} ]]; then
    mkdir -p "$1"
    LAB_DIR=$(cd "$1" && pwd)
    if [[ -n $(ls -A "$LAB_DIR") ]]; then
      lab_error "$LAB_DIR is not empty"
      return 1
    fi
  else
    LAB_DIR=$(mktemp -d "${TMPDIR:-/tmp}/spoke-lab.XXXXXX")
    _lab_dir_is_ours=yes
  fi
  chmod 0755 "$LAB_DIR"  # mktemp's 0700 would keep a container's users out of shared files.
  if [[ -d ${SPOKE_BIN:-} ]]; then SPOKE_BIN=$(cd "$SPOKE_BIN" && pwd); fi
  if [[ -d ${LAB_TOOLS:-} ]]; then LAB_TOOLS=$(cd "$LAB_TOOLS" && pwd); fi
  LAB_ID=spoke-lab-$$-$RANDOM
  set -o errtrace
  trap '_lab_on_error "${BASH_SOURCE[0]}:$LINENO" "$BASH_COMMAND"' ERR
  trap '_lab_on_exit $?' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  mkdir "$LAB_DIR/log" "$LAB_DIR/machine"
}

# lab_wait SECONDS WHAT LOG COMMAND...: runs COMMAND until it succeeds. When the time is up, says
# what was waited for, what COMMAND said last, and how LOG ends (LOG may be empty).
lab_wait() {
  local seconds=$1 what=$2 log=$3 said
  shift 3
  local deadline=$((SECONDS + seconds))
  until said=$("$@" 2>&1); do
    if ((SECONDS >= deadline)); then
      lab_error "waited ${seconds}s in vain for $what"
      if [[ -n $said ]]; then printf '  %s\n' "last answer: $(tail -n 5 <<<"$said")" >&2; fi
      if [[ -n $log ]]; then _lab_show_log "$log" 30; fi
      return 1
    fi
    sleep 0.1
  done
}

# _lab_show_log FILE LINES: the end of a log, on stderr.
_lab_show_log() {
  if [[ ! -s $1 ]]; then return 0; fi
  printf '%s\n' "--- the end of ${1#"$LAB_DIR"/}" >&2
  tail -n "$2" "$1" | cut -c 1-400 | sed 's/^/    /' >&2
}

# lab_show_logs: the end of each log.
lab_show_logs() {
  local log
  while IFS= read -r log; do _lab_show_log "$log" 15; done \
    < <(find "$LAB_DIR/log" -type f -name '*.log' 2>/dev/null | sort)
}

# Remembers the first command that failed for good: a bare [[ ]] says nothing itself.
_lab_on_error() {
  if [[ -d $LAB_DIR && ! -e $LAB_DIR/failed-at ]]; then
    printf ' (%s: %s)' "${1#"$PWD"/}" "$2" >"$LAB_DIR/failed-at"
  fi
}

_lab_on_exit() {
  local code=$1
  trap - EXIT ERR
  trap '' HUP INT TERM  # A second Ctrl-C must not stop the cleaning.
  set +e
  if ((code != 0 && code < 129)); then
    lab_show_logs
    printf '%s: failed: %s%s\n' "${0##*/}" "$(cat "$LAB_DIR/error" 2>/dev/null)" \
      "$(cat "$LAB_DIR/failed-at" 2>/dev/null)" >&2
  fi
  lab_down
  local left
  left=$(lab_leftovers)
  if [[ -n $left ]]; then
    lab_error "left behind:"
    printf '%s\n' "$left" >&2
    if ((code == 0)); then code=1; fi
  fi
  exit "$code"
}

# lab_down: ends the lab. A second call does nothing.
lab_down() {
  if [[ -z $LAB_DIR || ! -d $LAB_DIR/machine ]]; then return 0; fi
  local machine
  for machine in "$LAB_DIR"/machine/*/; do
    if [[ -d $machine ]]; then lab_node_down "$(basename "$machine")"; fi
  done
  rmdir "$LAB_DIR/machine"
  if [[ $_lab_dir_is_ours == yes ]]; then
    rm -rf --one-file-system "$LAB_DIR"
  else
    find "$LAB_DIR" -mindepth 1 -maxdepth 1 ! -name log -exec rm -rf --one-file-system {} +
  fi
}

# lab_leftovers: a line for each thing that lab_down should have removed; none when all is well.
# A network namespace lives as long as a process or a mount holds it, so these two cover it.
lab_leftovers() {
  local pid
  find /sys/fs/cgroup -maxdepth 3 -type d -name "$LAB_ID-*" 2>/dev/null | sed 's/^/cgroup /'
  awk -v dir="$LAB_DIR" 'index($2, dir) == 1 {print "mount " $2}' /proc/self/mounts
  # Each process of a node is in its cgroups, which cannot be removed before it ends; this finds it
  # where there were no cgroups to join. Containers do not inherit the variable, their parents do.
  while read -r pid; do
    printf 'process %s: %s\n' "$pid" "$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" || true)"
  done < <(grep -las "SPOKE_LAB=$LAB_ID" /proc/[0-9]*/environ | cut -d / -f 3)
  if [[ $_lab_dir_is_ours == yes && -d $LAB_DIR ]]; then
    printf 'directory %s\n' "$LAB_DIR"
  fi
}
