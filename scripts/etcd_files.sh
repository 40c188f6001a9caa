#!/usr/bin/env bash
# Makes what an etcd of Spoke's own needs: an authority, a certificate and a configuration for each member,
# and a certificate for the servers.
set -euo pipefail

usage() {
  cat <<'EOT'
usage: scripts/etcd_files.sh -o DIR [OPTION...] NAME=ADDRESS...

  -o DIR             where the files go; the authority that is there already is used again
  --client-port N    the port for servers; 2379 without it
  --peer-port N      the port among members; 2380 without it
  --metrics-port N   the port for /health and /metrics, on 127.0.0.1 only; 2381 without it
  --files PATH       where members will find the files; /etc/spoke/etcd without it
  --data PATH        where members will keep their data; /var/lib/spoke-etcd without it
  --also ADDRESS     another IP address in each member's certificate, as often as you like. etcd 3.4 takes a member
                     only from an address of its certificate: behind Services name each node's address

Makes for each member NAME at ADDRESS (an IP address, or a name that all others can resolve):
  NAME.yaml NAME.pem NAME.key    its configuration, its certificate and its key
and for all: ca.pem, peer.pem and peer.key (what members show each other), client.pem and client.key (the
servers' own), and ca.key, which belongs in a safe place and not on members. Certificates are for ten years. Needs openssl.

Exit status: 0 made, 1 not, 2 wrong usage.
EOT
}

readonly days=3650

# key_made FILE: a key on P-256, for its owner alone.
key_made() {
  [[ -e $1 ]] || (umask 077 && openssl ecparam -name prime256v1 -genkey -noout -out "$1")
}

# signed STEM NAME EXTENSIONS: DIR/STEM.pem for the key DIR/STEM.key.
signed() {
  key_made "$out/$1.key"
  openssl req -new -key "$out/$1.key" -subj "/CN=$2" |
    openssl x509 -req -sha256 -days "$days" -CA "$out/ca.pem" -CAkey "$out/ca.key" -set_serial "0x$(openssl rand -hex 16)" \
      -extfile <(printf 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n%s\n' "$3") \
      -out "$out/$1.pem" 2>/dev/null
}

authority_made() {
  key_made "$out/ca.key"
  [[ -e $out/ca.pem ]] || openssl req -x509 -new -sha256 -days "$days" -key "$out/ca.key" -subj '/CN=spoke-etcd' \
    -addext 'keyUsage=critical,keyCertSign,cRLSign' -out "$out/ca.pem"
}

# in_url ADDRESS: as it stands in a URL.
in_url() {
  if [[ $1 == *:* ]]; then printf '[%s]' "$1"; else printf '%s' "$1"; fi
}

# member_made NAME ADDRESS: a member asks itself too, at 127.0.0.1.
member_made() {
  local names=DNS:$2 address
  if [[ $2 == *:* || $2 =~ ^[0-9.]+$ ]]; then names=IP:$2,IP:127.0.0.1; fi
  names+=$also
  address=$(in_url "$2")
  signed "$1" "$1" "subjectAltName=$names
extendedKeyUsage=serverAuth,clientAuth"
  cat >"$out/$1.yaml" <<YAML
# A member of Spoke's etcd. The timings are those that docs/HA.md counts on.
name: $1
data-dir: $data
heartbeat-interval: 50
election-timeout: 500
quota-backend-bytes: 4294967296
snapshot-count: 10000
listen-client-urls: $(listening "$client_port" "$2")
advertise-client-urls: https://$address:$client_port
listen-peer-urls: $(listening "$peer_port" "$2")
initial-advertise-peer-urls: https://$address:$peer_port
listen-metrics-urls: http://127.0.0.1:$metrics_port
initial-cluster: $cluster
initial-cluster-token: spoke
initial-cluster-state: new
client-transport-security:
  cert-file: $files/$1.pem
  key-file: $files/$1.key
  client-cert-auth: true
  trusted-ca-file: $files/ca.pem
peer-transport-security:
  cert-file: $files/$1.pem
  key-file: $files/$1.key
  # A certificate with addresses is taken from these addresses only, and behind a Service a member comes from
  # its node's. This one has none. etcd 3.4 does not know these two keys, and shows the one above (--also).
  client-cert-file: $files/peer.pem
  client-key-file: $files/peer.key
  client-cert-auth: true
  trusted-ca-file: $files/ca.pem
YAML
}

# listening PORT ADDRESS: all of this machine, since the address may be a Service's; a loopback address is
# listened at alone.
listening() {
  case $2 in
    127.*) printf 'https://%s:%s' "$2" "$1" ;;
    *) printf 'https://0.0.0.0:%s' "$1" ;;
  esac
}

main() {
  out='' client_port=2379 peer_port=2380 metrics_port=2381 files=/etc/spoke/etcd data=/var/lib/spoke-etcd cluster='' also=''
  local members=() member
  while (($# > 0)); do
    case $1 in
      -h | --help) usage && exit 0 ;;
      -o | --client-port | --peer-port | --metrics-port | --files | --data | --also)
        if (($# < 2)); then usage >&2 && exit 2; fi
        case $1 in
          -o) out=$2 ;;
          --client-port) client_port=$2 ;;
          --peer-port) peer_port=$2 ;;
          --metrics-port) metrics_port=$2 ;;
          --files) files=$2 ;;
          --data) data=$2 ;;
          --also)
            if [[ ! $2 =~ ^[0-9a-fA-F.:]+$ ]]; then
              printf 'etcd_files.sh: --also %s: it takes an IP address\n' "$2" >&2
              exit 2
            fi
            also+=,IP:$2
            ;;
        esac
        shift
        ;;
      ?*=?*) members+=("$1") ;;
      *) usage >&2 && exit 2 ;;
    esac
    shift
  done
  if [[ -z $out || ${#members[@]} == 0 ]]; then usage >&2 && exit 2; fi
  for member in "${members[@]}"; do
    if [[ ! ${member%%=*} =~ ^[a-z0-9][a-z0-9-]*$ || ! ${member#*=} =~ ^[A-Za-z0-9.:-]+$ ]]; then
      printf 'etcd_files.sh: %s: NAME is small letters, digits and -, ADDRESS an IP address or a name\n' "$member" >&2
      exit 2
    fi
    cluster+=${cluster:+,}${member%%=*}=https://$(in_url "${member#*=}"):$peer_port
  done
  mkdir -p "$out"
  authority_made
  for member in "${members[@]}"; do member_made "${member%%=*}" "${member#*=}"; done
  signed peer spoke-etcd 'extendedKeyUsage=clientAuth'
  signed client spoke-ipam-server 'extendedKeyUsage=clientAuth'
  printf 'etcd_files.sh: %s members in %s; keep ca.key elsewhere\n' "${#members[@]}" "$out"
}

main "$@"
