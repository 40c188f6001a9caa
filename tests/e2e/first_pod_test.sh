#!/usr/bin/env bash
# The first pods of a cluster, as scripts/demo.sh shows them: two nodes, pods on both that reach each
# other untranslated, and everything back when they are deleted.
# usage: first_pod_test.sh DIRECTORY_OF_PROGRAMS
set -euo pipefail
# shellcheck source=lab/lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

lab_for_test "${1:-}"
lab_cluster_up
step_pods
step_pings
step_show
step_delete
step_no_traces

lab_step "The same once more: nothing of the first round is in the way"
step_pods
step_pings
step_delete
step_no_traces
