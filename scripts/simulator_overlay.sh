#!/usr/bin/env bash
# Fills in the overlay `simulator` for this machine, to try Spoke out on a cluster of one node without Azure.
set -euo pipefail

usage() {
  cat <<'EOT'
usage: scripts/simulator_overlay.sh [--nic DEVICE] [--taken ADDRESS]... [-o FOLDER]

Run it on the node. It writes a copy of conf/kubernetes/overlays/simulator with this machine's name, its MAC, its address
and its subnet, and prints the folder, for kubectl apply -k. The simulated Azure gives pods addresses of that subnet
that it takes for free: neither the machine's own, nor its gateway's, nor those of the neighbours that it knows, nor
those that --taken names.

  --nic DEVICE     the device with the node's address; without it that of the default route
  --taken ADDRESS  somebody else has this address of the subnet; may be given several times
  -o FOLDER        where the overlay goes, in this source tree; build/simulator without it

Exit status: 0 written, 1 this machine has no such device or address, 2 wrong usage.

Examples:
  kubectl apply -k "$(scripts/simulator_overlay.sh)"
  scripts/simulator_overlay.sh --nic ens3 --taken 192.168.1.10 --taken 192.168.1.11
EOT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly here from=$here/conf/kubernetes/overlays/simulator

fail() {
  printf 'simulator_overlay.sh: %s\n' "$*" >&2
  exit 1
}

# default_nic: prints the device of the default route with the lowest metric.
default_nic() {
  ip -4 -j route show default | jq -r 'map(select(.dev)) | sort_by(.metric // 0) | .[0].dev // empty'
}

# address_of NIC: prints its first IPv4 address, that one's subnet, and whether Azure would keep the address.
address_of() {
  ip -4 -j address show dev "$1" | jq -r '
    [.[].addr_info[] | select(.scope == "global")][0] | select(.) | "\(.local) \(.prefixlen)"' |
    python3 -c 'import ipaddress, sys
for line in sys.stdin:
    address, length = line.split()
    subnet = ipaddress.ip_interface(f"{address}/{length}").network
    place = int(ipaddress.ip_address(address)) - int(subnet[0])
    print(address, subnet, "kept" if place < 4 or place == subnet.num_addresses - 1 else "free")'
}

# others_of NIC SUBNET ADDRESS TAKEN...: prints a JSON list of instances, for the other addresses of the subnet that
# somebody has. Their MACs are invented. Azure keeps five of each subnet for itself (learn.microsoft.com, "Virtual network
# FAQ"), and gives them to nobody anyway.
others_of() {
  local nic=$1 subnet=$2 own=$3
  {
    printf '%s\n' "${@:4}"
    ip -4 -j route show default dev "$nic" | jq -r '.[].gateway // empty'
    ip -4 -j neighbour show dev "$nic" | jq -r '.[] | select(.lladdr).dst'
  } | python3 -c 'import ipaddress, json, sys
subnet, own = ipaddress.ip_network(sys.argv[1]), sys.argv[2]
found = {ipaddress.ip_address(line.strip()) for line in sys.stdin if line.strip()}
kept = [subnet[i] for i in (0, 1, 2, 3, -1)]
others = [each for each in sorted(found - set(kept)) if each in subnet and str(each) != own]
print(json.dumps([{"node": f"other{i}", "mac": f"02:5b:00:00:{i >> 8:02x}:{i & 255:02x}", "address": str(each)}
                  for i, each in enumerate(others)]))' "$subnet" "$own"
}

# spec NODE MAC ADDRESS SUBNET OTHERS: prints spec.json of this machine.
spec() {
  jq --arg node "$1" --arg mac "$2" --arg address "$3" --arg subnet "$4" --argjson others "$5" '
    .subnets[0].prefix = $subnet
    | .scale_sets[0].first = [{$node, $mac, $address}]
    | .scale_sets[1].instances = ($others | length)
    | .scale_sets[1].first = $others
    | .scale_sets |= map(select(.instances > 0))' "$from/spec.json"
}

main() {
  local nic='' folder=$here/build/simulator taken=() address subnet place mac base
  while (($# > 0)); do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --nic | --taken | -o) (($# >= 2)) || { usage >&2 && exit 2; } ;;
      *) usage >&2 && exit 2 ;;
    esac
    case $1 in
      --nic) nic=$2 ;;
      --taken)
        python3 -c 'import ipaddress, sys; ipaddress.IPv4Address(sys.argv[1])' "$2" 2>/dev/null ||
          { printf 'simulator_overlay.sh: --taken: %s is no IPv4 address\n' "$2" >&2 && exit 2; }
        taken+=("$2")
        ;;
      -o) folder=$(realpath -m -- "$2") ;;
    esac
    shift 2
  done
  [[ -n $nic ]] || nic=$(default_nic)
  [[ -n $nic ]] || fail "there is no default route: name the device with the node's address by --nic"
  mac=$(ip -j link show dev "$nic" 2>/dev/null | jq -r '.[0].address') || fail "there is no device $nic"
  read -r address subnet place < <(address_of "$nic") || fail "the device $nic has no IPv4 address"
  [[ $subnet != */32 ]] || fail "the address $address of $nic has no subnet that pods could have addresses of"
  [[ $place == free ]] ||
    fail "$nic has $address, and Azure, simulated or not, gives the first four addresses of a subnet and its last to no machine"
  mkdir -p "$folder"
  base=$(realpath --relative-to "$folder" "$here/conf/kubernetes/azure")
  sed "s|^  - ../../azure\$|  - $base|" "$from/kustomization.yaml" >"$folder/kustomization.yaml"
  cp "$from"/{azure-sim,no-disk}.yaml "$folder/"
  sed "s|^    cidr: .*|    cidr: $subnet|" "$from/ipam-server.yaml" >"$folder/ipam-server.yaml"
  spec "$(uname -n)" "$mac" "$address" "$subnet" "$(others_of "$nic" "$subnet" "$address" "${taken[@]}")" >"$folder/spec.json"
  printf '%s\n' "$folder"
}

main "$@"
