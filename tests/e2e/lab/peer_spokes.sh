# shellcheck shell=bash
# Two spokes, of which each has the other's network in its policy. Part of lab.sh. CONTROL is a command: spokectl, of one
# of the two servers.

# _lab_peers BLOCK: a policy by which the block is another spoke's.
_lab_peers() {
  printf 'apiVersion: spoke/v1\nkind: ClusterNetwork\nmetadata: {name: peers}\nspec: {peerSpoke: ["%s"]}\n' "$1"
}

# _lab_pool BLOCK: a policy by which the block is a pool.
_lab_pool() { printf 'apiVersion: spoke/v1\nkind: Pool\nmetadata: {name: more}\nspec: {cidr: %s}\n' "$1"; }

# _lab_refused CODE MESSAGE COMMAND...: COMMAND, which is spokectl, ends with CODE and says so, of what is on standard
# input.
_lab_refused() {
  local want=$1 message=$2 said code=0
  said=$("${@:3}" 2>&1) || code=$?
  if [[ $code != "$want" || $said != *"$message"* ]]; then
    lab_error "it ended with $code and said \"$said\", instead of $want and \"$message\""
    return 1
  fi
  lab_say "$message"
}

# lab_pools_are CONTROL POOLS: the server has these blocks, and no other.
lab_pools_are() {
  local blocks
  blocks=$("$1" pool list -o json | jq -r '.[].cidr' | paste -s -d ' ')
  if [[ $blocks != "$2" ]]; then
    lab_error "the pools are $blocks, not $2"
    return 1
  fi
}

# lab_spokes_apart CONTROL POOL_NAME POOL PEER WITHIN: the server has that pool alone, which its configuration names. It
# refuses it for another spoke's network. It takes PEER for one, and from then on refuses a pool WITHIN, in each way to
# make one.
lab_spokes_apart() {
  local control=$1 name=$2 pool=$3 peer=$4 within=$5 change='change one of them'
  lab_pools_are "$control" "$pool" || return 1
  _lab_peers "$pool" | _lab_refused 5 "spec.peerSpoke: $pool overlaps $pool, the cidr of Pool \"$name\" (in the server's configuration): $change" \
    "$control" apply -f - || return 1
  # Without the policy it is a pool like any other; in one file with it, the file is wrong.
  _lab_pool "$within" | "$control" apply -f - --dry-run >/dev/null || return 1
  { _lab_peers "$peer" && printf -- '---\n' && _lab_pool "$within"; } |
    _lab_refused 2 "spec.cidr: $within overlaps $peer, a block of peerSpoke of ClusterNetwork \"peers\" (stdin:4): $change" \
      "$control" apply -f - || return 1
  _lab_peers "$peer" | "$control" apply -f - >/dev/null || return 1
  _lab_pool "$within" |
    _lab_refused 5 "spec.cidr: $within overlaps $peer, a block of peerSpoke of ClusterNetwork \"peers\" (applied before): $change" \
      "$control" apply -f - || return 1
  _lab_refused 5 "$within overlaps $peer, a block of peerSpoke" "$control" pool create more --cidr "$within" </dev/null || return 1
  lab_pools_are "$control" "$pool"
}
