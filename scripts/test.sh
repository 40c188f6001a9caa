#!/usr/bin/env bash
# Builds what is tested, and runs the tests.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/test.sh [GROUP] [-- CTEST-ARGUMENT...]

  all    everything (the default)
  unit   values in, values out: no kernel, no network
  netns  edges against a real kernel, in network namespaces of their own; needs root
  conformance  what a CNI plugin owes to its runtime, a test a behaviour; needs root
  e2e    real programs and a real container runtime on this machine; needs root
  ha     several servers on etcd, of which one leads, killed, stopped and cut off; needs root
  chaos  the same and nodes with pods, with anything killed, paused, cut off, filled up or drained at random for half a
         minute; longer: scripts/test.sh chaos -- --minutes 60 [--seed N]; not in `all`; needs root
  alerts  each alert of conf/alerts.yaml caused with real programs, seen to fire in Debian's Prometheus and to be
         resolved; six to nine minutes; not in `all`; needs root. Single ones: tests/alerts/alerts_test.py build/dev/bin ALERT...
  sim    all runs of a specification of who leads, at a small size; fleets of servers and agents on one clock
  kubernetes  a real cluster, on which Spoke is installed by image and manifests, used, upgraded,
         hurt and removed, another one with three servers on etcd, one on the simulated Azure, and one of a node
         alone by the steps of docs/QUICKSTART.md (case quickstart); not in `all`; makes Kubernetes first, once, in
         some 10 minutes; needs root. Single cases: scripts/test.sh kubernetes -- CASE...
  upgrade  programs of another commit against those of this tree: scripts/test.sh upgrade -- COMMIT; not
         in `all`; needs root
  packages  the image and the Debian packages, of release programs; needs root, and a network the first
         time. Only when asked for: not part of all
  arm64  released programs for arm64 in an emulator; amd64 only, needs root. Only when asked for: it installs a cross
         compiler and arm64 packages, and builds half an hour the first time
  dashboard  the page of spokectl dashboard in a real browser, with 7,500 simulated nodes; installs Debian's Chromium
         (120 MB) the first time. Only when asked for: not part of all
  jobs   a parallel job of 20 pods on reserved addresses, with Debian's Open MPI over SSH; cluster DNS by Debian's
         dnsmasq; needs root. Only when asked for: it installs these, without starting a service
  schemas  the manifests and what the chart installs against the published schemas of Kubernetes, by npm packages; a network
         the first time. Only when asked for: not part of all
  nightly  all groups that are not in `all`, one after the other, then the fuzz targets for hours, and says which passed:
         scripts/test.sh nightly -- [--minutes CHAOS] [--hours FUZZ] [GROUP...]; an hour and four hours without these; what
         each printed is in build/nightly
  threads  tests of what runs on several threads, under the thread sanitizer; `all` has those of the server and of what
         it shares with the agent
  fuzz   the fuzz targets' seeds and some mutations of them; scripts/fuzz.sh looks for more
  ...    any other label that a test has

Examples: scripts/test.sh unit -- -R lib_config     scripts/test.sh all -- --repeat until-fail:10
A test that cannot run here fails: it does not skip. docs/TESTING.md says what each group proves.
EOF
}

# ctest runs its tests side by side; those that use the one machine there is must say so.
require_lock_of_e2e() {
  local loose
  loose=$(ctest --test-dir build/dev --show-only=json-v1 | jq -r '
    .tests[] | (.properties // []) as $p
    | select(any($p[]; .name == "LABELS" and (.value | index("e2e"))))
    | select(any($p[]; .name == "RESOURCE_LOCK" and (.value | index("machine"))) | not) | .name')
  if [[ -n $loose ]]; then
    printf 'test.sh: give these e2e tests the property RESOURCE_LOCK machine:\n%s\n' "$loose" >&2
    return 1
  fi
}

# kubernetes [CASE...]: with release programs, as users run them. Cases of several servers, ha_..., have a
# cluster of their own, and so have those on Azure, azure_....
test_kubernetes() {
  local name one=() several=() azure=() first=() failed=0
  for name in "$@"; do
    case $name in
      ha_*) several+=("$name") ;;
      azure_*) azure+=("$name") ;;
      quickstart) first+=("$name") ;;
      *) one+=("$name") ;;
    esac
  done
  # For the pods of jobs and of cluster DNS.
  scripts/setup.sh --also openmpi-bin libopenmpi-dev openssh-server openssh-client dnsmasq-base bind9-dnsutils
  KUBERNETES_BIN=$(scripts/kubernetes.sh)
  export KUBERNETES_BIN
  scripts/build.sh release programs
  scripts/image.sh -o build/spoke.tar
  if (($# == 0 || ${#one[@]} > 0)); then
    tests/kubernetes/kubernetes_test.sh build/release/bin build/spoke.tar "${one[@]}" || failed=1
  fi
  if (($# == 0 || ${#several[@]} > 0)); then
    tests/kubernetes/ha_test.sh build/release/bin build/spoke.tar "${several[@]}" || failed=1
  fi
  if (($# == 0 || ${#azure[@]} > 0)); then
    tests/kubernetes/azure_test.sh build/release/bin build/spoke.tar "${azure[@]}" || failed=1
  fi
  if (($# == 0 || ${#first[@]} > 0)); then
    scripts/image.sh --simulator -o build/simulator.tar
    tests/kubernetes/quickstart_test.sh build/release/bin build/spoke.tar build/simulator.tar || failed=1
  fi
  exit "$failed"
}

# upgrade COMMIT
test_upgrade() {
  if (($# != 1)); then
    printf 'test.sh: say which version to upgrade from: scripts/test.sh upgrade -- COMMIT\n' >&2
    exit 2
  fi
  local commit old
  commit=$(git rev-parse --verify "$1^{commit}")
  old=build/upgrade/$commit
  if [[ ! -x $old/bin/spokectl ]]; then
    mkdir -p "$old/source"
    git archive "$commit" | tar -x -C "$old/source"
    "$old/source/scripts/build.sh" release programs
    cp -r "$old/source/build/release/bin" "$old/"
    rm -rf "$old/source"
  fi
  scripts/build.sh release programs
  exec tests/upgrade/versions_test.sh "$old/bin" build/release/bin
}

# What goes from thread to thread through gRPC is ordered by atomics inside of Debian's build of it, which the
# sanitizer does not see: tests of sessions are not among these. The first are part of `all`: those of the rest,
# which are of the agent, take as long again to build.
readonly concurrent=(annotated_mutex_test ipam_audit_test ipam_loop_test ipam_store_test lib_http_client_test lib_http_plain_test
  lib_metrics_test lib_os_test lib_telemetry_test lib_text_endpoint_test)
readonly concurrent_rest=(ipam_history_test netagent_cni_test netagent_connections_test netagent_exporters_test
  netagent_iptables_test netagent_links_test)

# test_threads TEST... [-- CTEST-ARGUMENT...]
test_threads() {
  local tests=()
  while (($# > 0)) && [[ $1 != -- ]]; do
    tests+=("$1")
    shift
  done
  scripts/build.sh tsan "${tests[@]}"
  (run_ctest build/tsan "${arguments[@]}" -R "^($(IFS='|' && printf '%s' "${tests[*]}"))\$" "${@:2}")
}

# run_ctest BUILD ARGUMENT...: ends the script. What tests that failed complained of stands at the end once more, for
# whoever has the last lines only.
run_ctest() {
  local status=0
  ctest --test-dir "$1" "${@:2}" || status=$?
  if ((status == 0)); then exit 0; fi
  awk '
    /^[0-9]+\/[0-9]+ Testing: / { name = $3; inside = complaints = rest = 0; last = "" }
    /^<end of output>/ { inside = 0 }
    inside && /Failure$|ERROR: |SUMMARY: |runtime error:|FAILED|[Ff]ailed|Error: / && rest == 0 { rest = 5 }
    inside && rest > 0 && NF > 0 && complaints < 12 { complaint[++complaints] = substr($0, 1, 300) }
    inside && rest > 0 { --rest }
    inside && NF > 0 { last = substr($0, 1, 300) }
    /^Output:$/ { inside = 1 }
    /^Test Failed\.$/ {
      if (complaints == 0) complaint[++complaints] = last
      for (i = 1; i <= complaints; ++i) printf "%s: %s\n", name, complaint[i]
    }' "$1/Testing/Temporary/LastTest.log"
  local all failed
  all=$(awk '/^[0-9]+\/[0-9]+ Testing: / { ++all } END { print all + 0 }' "$1/Testing/Temporary/LastTest.log")
  failed=$(wc -l <"$1/Testing/Temporary/LastTestsFailed.log")
  printf '%d passed, %d failed\n' $((all - failed)) "$failed"
  exit "$status"
}

# chaos --minutes N [--seed N]
test_chaos() {
  scripts/build.sh dev programs
  exec tests/chaos/chaos_test.py build/dev/bin "$@"
}

# nightly [--minutes N] [--hours N] [GROUP...]: goes on when one fails; the exit status is that of all.
test_nightly() {
  local minutes=60 hours=4 group groups=() command failed=0 took log=build/nightly
  while (($# > 0)); do
    case $1 in
      --minutes | --hours)
        if [[ ! ${2:-} =~ ^[1-9][0-9]*$ ]]; then usage >&2 && exit 2; fi
        printf -v "${1#--}" %s "$2"
        shift
        ;;
      alerts | jobs | dashboard | packages | arm64 | schemas | kubernetes | threads | chaos | fuzz) groups+=("$1") ;;
      *) usage >&2 && exit 2 ;;
    esac
    shift
  done
  if ((${#groups[@]} == 0)); then groups=(alerts jobs dashboard packages arm64 schemas kubernetes threads chaos fuzz); fi
  mkdir -p "$log"
  for group in "${groups[@]}"; do
    command=(scripts/test.sh "$group")
    if [[ $group == chaos ]]; then command+=(-- --minutes "$minutes"); fi
    if [[ $group == fuzz ]]; then command=(scripts/fuzz.sh --hours "$hours"); fi
    took=$SECONDS
    if "${command[@]}" >"$log/$group.log" 2>&1 </dev/null; then
      printf '%-12s ok (%d min)\n' "$group" $(((SECONDS - took) / 60))
    else
      printf '%-12s FAILED (%d min): %s/%s.log\n' "$group" $(((SECONDS - took) / 60)) "$log" "$group"
      failed=$((failed + 1))
    fi
  done
  if ((failed > 0)); then
    printf 'test.sh: %d of %d groups FAILED\n' "$failed" "${#groups[@]}"
    exit 1
  fi
  printf 'test.sh: all %d groups OK\n' "${#groups[@]}"
  exit 0
}

# What users get is made of release programs, and none of those is needed by another group.
exec_packages() {
  scripts/build.sh release released spokectl_share spoke-azure-sim
  run_ctest build/release -L '^packages$' "$@"
}

# In build/release-arm64 alone are those tests. One is of a release for both architectures.
exec_arm64() {
  scripts/build.sh release released spokectl_share spoke-azure-sim
  scripts/build.sh release-arm64 released spokectl_share spoke-azure-sim
  run_ctest build/release-arm64 -L '^arm64$' "$@"
}

main() {
  local group=all
  if (($# > 0)) && [[ $1 != -- ]]; then
    group=$1
    shift
  fi
  case $group in
    -h | --help) usage && exit 0 ;;
    *[!a-z0-9]*) usage >&2 && exit 2 ;;
  esac
  if (($# > 0)); then
    if [[ $1 != -- ]]; then usage >&2 && exit 2; fi
    shift
  fi

  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  scripts/setup.sh
  # Debian's programs first: a version manager's stand-in for Python takes ten times as long to start.
  export PATH=/usr/bin:/bin:$PATH
  if [[ $group == dashboard ]]; then scripts/setup.sh --also chromium; fi
  if [[ $group == jobs ]]; then
    scripts/setup.sh --also openmpi-bin libopenmpi-dev openssh-server openssh-client dnsmasq-base bind9-dnsutils
  fi
  if [[ $group == kubernetes ]]; then test_kubernetes "$@"; fi
  if [[ $group == schemas ]]; then
    command -v npm >/dev/null || scripts/setup.sh --also nodejs npm
    exec tests/kubernetes/published_test.sh
  fi
  if [[ $group == nightly ]]; then test_nightly "$@"; fi
  if [[ $group == upgrade ]]; then test_upgrade "$@"; fi
  if [[ $group == chaos && ${1-} == --* ]]; then test_chaos "$@"; fi
  # Tests wait a third of their time: for timers, for the kernel, for other processes.
  local arguments=(--output-on-failure "-j$(($(nproc) + 1))" --no-tests=error)
  if [[ $group == threads ]]; then
    test_threads "${concurrent[@]}" "${concurrent_rest[@]}" -- "$@"
    exit
  fi
  if [[ $group == packages ]]; then exec_packages "${arguments[@]}" "$@"; fi
  if [[ $group == arm64 ]]; then exec_arm64 "${arguments[@]}" "$@"; fi
  if [[ $group == all ]] && (($# == 0)); then test_threads "${concurrent[@]}"; fi
  # Some tests are of what users get, as GCC makes it.
  case $group in
    all | e2e | jobs) scripts/build.sh release released ;;
    netns | conformance) scripts/build.sh release spoke ;;
  esac
  scripts/build.sh dev
  if [[ -t 1 ]]; then arguments+=(--progress); fi
  if [[ $group == all ]]; then arguments+=(-LE '^(packages|chaos|dashboard|alerts|jobs)$'); else arguments+=(-L "^$group\$"); fi
  require_lock_of_e2e
  # A test that skips where it cannot run would pass for a success.
  export NETNS_TESTS_REQUIRED=1
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
  run_ctest build/dev "${arguments[@]}" "$@"
}

main "$@"
