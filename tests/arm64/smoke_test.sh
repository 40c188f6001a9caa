#!/usr/bin/env bash
# The released programs for arm64, in an emulator: they start, answer, refuse and keep what they are told.
# What qemu-user cannot do is not tried: it has no netlink of netfilter and no bpf(2), so the agent does
# none of its work here; and no emulator says how fast something is, or how ordered its memory.
# usage: smoke_test.sh FOLDER-OF-RELEASE-PROGRAMS
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=$(cd "$1" && pwd)
readonly emulator=qemu-aarch64
server=

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

run() {
  local program=$1
  shift
  "$emulator" "$bin/$program" "$@"
}

# expect CODE WORDS COMMAND...: it ends with CODE, and WORDS are in what it prints.
expect() {
  local wanted=$1 words=$2 output code=0
  shift 2
  output=$("$@" 2>&1 </dev/null) || code=$?
  [[ $code == "$wanted" && $output == *"$words"* ]] ||
    fail "$* ended with $code, not $wanted with \"$words\", and printed: $output"
}

test_architecture() {
  local program
  for program in spoke spoke-netagent spoke-ipam-server spokectl; do
    [[ $(readelf --file-header "$bin/$program") == *'Machine:'*AArch64* ]] || fail "$bin/$program is not for arm64"
  done
}

# plugin CODE FILTER COMMAND STDIN: it ends with CODE, and FILTER holds for the JSON that it prints.
plugin() {
  local code=0 output
  output=$(CNI_COMMAND=$3 CNI_CONTAINERID=pod CNI_NETNS=/proc/self/ns/net CNI_IFNAME=eth0 CNI_PATH=/opt/cni/bin \
    run spoke <<<"$4") || code=$?
  if [[ $code != "$1" ]] || ! jq -e "$2" <<<"$output" >/dev/null; then
    fail "the plugin: $3 of ${4:0:200} gave $code and $output"
  fi
}

# Whether a path is a network namespace, as an ADD wants it, the emulator cannot tell: what goes as far as the
# agent are STATUS and GC.
test_plugin() {
  local network="\"cniVersion\": \"1.1.0\", \"name\": \"pods\", \"type\": \"spoke\", \"socket\": \"$work/none.sock\""
  plugin 0 '.supportedVersions | index("1.1.0")' VERSION '{"cniVersion": "1.0.0"}'
  plugin 1 '.code == 6' ADD '{"cniVersion": "1.0.0", '
  plugin 1 '.code == 7 or .code == 6' ADD '{"cniVersion": "1.0.0", "type": "spoke"}'
  plugin 1 '.code == 4 or .code == 8' ADD "{$network}"
  plugin 1 '.code == 50 and (.msg | length) > 0' STATUS "{$network}"
  # More than the first chunk of memory holds (small_runtime.cc).
  plugin 1 '.code == 11' GC "{$network, \"cni.dev/valid-attachments\": [], \"long\": \"$(head -c 600000 /dev/zero | tr '\0' 'x')\"}"
  expect 0 CNI run spoke
}

write_configuration() {
  cat >"$work/server.yaml" <<YAML
listen: {agents: "127.0.0.1:7443", admin: "unix:$work/admin.sock", metrics: "127.0.0.1:9464"}
tls: {insecure: true}
store: {sqlite: $work/ipam.db}
cloud: {static: {attachments_file: $work/attachments}}
pools: [{name: default, cidr: 10.20.64.0/24}]
YAML
  cat >"$work/agent.yaml" <<YAML
node_name: node1
vm_id: 8f2c1c5e-7d0b-4c39-9b43-2f3a6f6f2a10
nic: eth0
server: 127.0.0.1:7443
tls: {insecure: true}
YAML
}

test_configurations() {
  local name
  expect 0 "$version" run spoke-ipam-server --version
  expect 0 "$version" run spoke-netagent --version
  expect 0 "$version" run spokectl --version
  expect 0 '' run spoke-ipam-server --config "$work/server.yaml" --check-config
  expect 0 '' run spoke-netagent --config "$work/agent.yaml" --check-config
  for name in server:spoke-ipam-server agent:spoke-netagent; do
    { cat "$work/${name%:*}.yaml" && printf 'no_such_key: 1\n'; } >"$work/bad.yaml"
    expect 2 no_such_key run "${name#*:}" --config "$work/bad.yaml" --check-config
  done
  expect 0 net.ipv4.ip_forward run spoke-netagent --claims
}

start_server() {
  local tries
  "$emulator" "$bin/spoke-ipam-server" --config "$work/server.yaml" >"$work/server.log" 2>&1 &
  server=$!
  for ((tries = 0; tries < 300; tries++)); do
    if run spokectl --server "unix:$work/admin.sock" status >/dev/null 2>&1; then return; fi
    kill -0 "$server" 2>/dev/null || break
    sleep 0.2
  done
  cat "$work/server.log" >&2
  fail 'the server does not answer'
}

stop_server() {
  local code=0
  kill -TERM "$server"
  wait "$server" || code=$?
  server=
  [[ $code == 0 ]] || { cat "$work/server.log" >&2 && fail "the server ended with $code"; }
}

metrics() {
  exec 8<>/dev/tcp/127.0.0.1/9464
  printf 'GET /metrics HTTP/1.0\r\n\r\n' >&8
  cat <&8
}

ctl() { run spokectl --server "unix:$work/admin.sock" "$@"; }

# What it is told is in SQLite, and there after another start; metrics are served; it stops in order.
test_server() {
  start_server
  expect 0 '' ctl status
  ctl pool list -o json | jq -e '.. | strings | select(. == "10.20.64.0/24")' >/dev/null || fail 'no pool is told'
  expect 0 '' ctl pool create arm --cidr 10.20.80.0/24
  stop_server
  [[ $(sqlite3 "$work/ipam.db" 'pragma integrity_check') == ok ]] || fail 'the store is damaged'
  start_server
  expect 0 10.20.80.0/24 ctl pool list
  expect 0 spoke_ipam_ metrics
  expect 4 'there is no node' ctl node show no-such-node
  stop_server
}

# In a network of its own, so that its ports are nobody else's.
if [[ ${2:-} != inside ]]; then
  exec unshare --net -- "${BASH_SOURCE[0]}" "$bin" inside
fi
ip link set lo up
work=$(mktemp -d)
trap 'if [[ -n $server ]]; then kill "$server"; fi; rm -rf "$work"' EXIT
version=$(sed -n 's/^project(spoke VERSION \([0-9.]*\) .*/\1/p' "$here/CMakeLists.txt")
for needed in "$emulator" jq sqlite3 readelf; do
  command -v "$needed" >/dev/null || fail "there is no $needed: scripts/setup.sh --arm64"
done
test_architecture
test_plugin
write_configuration
test_configurations
test_server
printf 'smoke_test.sh: OK\n'
