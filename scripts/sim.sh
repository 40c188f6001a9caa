#!/usr/bin/env bash
# Builds the simulation and runs it; see --help, which it prints itself.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${SPOKE_SIM_PRESET:-dev}
scripts/build.sh "$preset" spoke-sim >&2
exec "build/$preset/bin/spoke-sim" "$@"
