#!/usr/bin/env bash
# Makes the container image: the four programs and what they need, and nothing else.
set -euo pipefail

usage() {
  cat <<'EOT'
usage: scripts/image.sh [--simulator] [--arch ARCHITECTURE] [-o FILE] [--contents FILE] [--json]

  -o FILE      where the image goes; build/spoke-VERSION.tar without it
  --arch ARCHITECTURE
               of programs for arm64 (on amd64: preset release-arm64), not for this machine
  --contents FILE
               write which files are in the image, their checksums, and the Debian package that each is from,
               as JSON: the bill of a release is made of it (scripts/release/spdx)
  --json       print what has been made as one JSON object
  --simulator  the image spoke-azure-sim, of the simulated Azure alone, for trying Spoke out

Builds the release preset and writes an OCI image layout with one layer as a tar file, without a
container tool and without a network. Prints the image's name, digest and sizes. The same programs
on the same Debian release give the same bytes. It holds no shell. Load it with
  ctr --namespace k8s.io images import FILE      or      podman load -i FILE

Exit status: 0 made, 1 it could not be made or is larger than 60 MiB (arm64: 68), 2 wrong usage.

Environment:
  SPOKE_BIN=DIR        take the release programs in DIR instead of building them; the image is then of
                       their architecture
  SOURCE_DATE_EPOCH=N  the time of all files and of the image, in seconds since 1970; else 0
EOT
}

main() {
  local here out='' preset arch options=() programs=(spoke spoke-netagent spoke-ipam-server spokectl)
  arch=$(dpkg --print-architecture)
  while (($# > 0)); do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --arch)
        if (($# < 2)); then usage >&2 && exit 2; fi
        arch=$2
        shift
        ;;
      -o)
        if (($# < 2)); then usage >&2 && exit 2; fi
        out=$(realpath -m -- "$2")
        shift
        ;;
      --contents)
        if (($# < 2)); then usage >&2 && exit 2; fi
        options+=(--contents "$(realpath -m -- "$2")")
        shift
        ;;
      --json) options+=(--json) ;;
      --simulator)
        options+=(--simulator)
        programs=(spoke-azure-sim spokectl)
        ;;
      *) usage >&2 && exit 2 ;;
    esac
    shift
  done
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  if [[ -n $out ]]; then options+=(--out "$out"); fi

  local bin=${SPOKE_BIN:-}
  if [[ -z $bin ]]; then
    preset=$("$here/scripts/preset_of" "$arch")
    bin=$here/build/$preset/bin
    "$here/scripts/build.sh" "$preset" "${programs[@]}" >&2
  fi
  exec python3 -B "$here/scripts/image/make_image.py" --bin "$bin" "${options[@]}"
}

main "$@"
