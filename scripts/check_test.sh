#!/usr/bin/env bash
# Shows each check that is a script of ours a bad tree, and insists that it fails and says where, and
# a good one, which it must let pass. ctest runs it (label unit).
# shellcheck disable=SC2016  # The backquotes are Markdown.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# A tree with nothing wrong in it.
fresh_tree() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{lib/base,lib/ip,netagent/attach,ipam-server/ledger}
  printf 'int B();\n' >"$tree/lib/ip/address.h"
  printf '#include "lib/ip/address.h"\nint A();\n' >"$tree/netagent/attach/plan.h"
  printf '#include "netagent/attach/plan.h"\n\n#include <vector>\n' >"$tree/netagent/attach/plan.cc"
  printf '#include <random>\n#include "gtest/gtest.h"\n' >"$tree/netagent/attach/plan_test.cc"
  printf '#include <thread>\n#include "netagent/attach/plan.h"\n' >"$tree/netagent/attach/loop.cc"
  printf '#include <thread>\n' >"$tree/netagent/attach/loop.h"
  printf 'add_component(attach_plan PURE\n  SOURCES plan.cc\n  TESTS plan_test.cc)\n%s\n' \
    'add_component(attach  # The edge.
       SOURCES loop.cc DEPS attach_plan)' >"$tree/netagent/attach/CMakeLists.txt"
}

# expect_finding CHECK FILE LINE CONTENT MESSAGE_PART: with CONTENT appended to FILE, CHECK fails
# and has a line that begins with FILE:LINE and holds MESSAGE_PART.
expect_finding() {
  local check=$1 file=$2 line=$3 content=$4 want=$5 output code=0
  fresh_tree
  mkdir -p "$tree/$(dirname "$file")"
  printf '%b' "$content" >>"$tree/$file"
  output=$("$scripts/$check" "$tree" 2>&1) || code=$?
  if ((code != 1)) || ! grep -qF -- "$want" < <(grep -F "$file:$line: " <<<"$output"); then
    printf '%s: wanted exit code 1 and "%s:%s: ... %s ...", got %d and:\n%s\n' \
      "$check" "$file" "$line" "$want" "$code" "$output" >&2
    failures=$((failures + 1))
  fi
}

expect_clean() {
  local check=$1 output code=0
  output=$("$scripts/$check" "$tree" 2>&1) || code=$?
  if ((code != 0)) || [[ -n $output ]]; then
    printf '%s: wanted nothing, got %d and:\n%s\n' "$check" "$code" "$output" >&2
    failures=$((failures + 1))
  fi
}

test_layers() {
  fresh_tree
  expect_clean check_layers
  local pure=netagent/attach/plan.h name
  for name in fstream thread mutex random chrono iostream unistd.h sys/socket.h linux/netlink.h \
    grpcpp/grpcpp.h google/protobuf/message.h; do
    expect_finding check_layers "$pure" 3 "#include <$name>\n" 'a PURE component may not include'
  done
  for name in absl/time/clock.h absl/synchronization/mutex.h spdlog/spdlog.h sqlite3.h yaml-cpp/yaml.h \
    proto/spoke/v1/node.pb.h netagent/attach/loop.h; do
    expect_finding check_layers "$pure" 3 "#include \"$name\"\n" "may not include $name"
  done
  # A header without a source is as pure as what includes it.
  expect_finding check_layers lib/ip/address.h 2 '#include <mutex>\n' 'a PURE component may not include'
  expect_finding check_layers lib/ip/address.h 2 'struct E { virtual void Act(); };\n' 'take values'
  expect_finding check_layers "$pure" 3 'auto t = absl::Now();\n' 'may not call absl::Now('
  expect_finding check_layers "$pure" 3 'int r = std::rand();\n' 'may not call std::rand'
  expect_finding check_layers netagent/attach/x.cc 1 '#include "ipam-server/ledger/fleet.h"\n' \
    'programs meet in proto/ and lib/'
  expect_finding check_layers lib/base/x.h 1 '#include "netagent/attach/plan.h"\n' 'lib/ may not'
  expect_finding check_layers netagent/attach/x.cc 1 '#include "netagent/attach/testing/fake.h"\n' \
    'that is for tests'
  for name in tests/support/temp_dir.h gtest/gtest.h; do
    expect_finding check_layers lib/base/x.cc 1 "#include \"$name\"\n" 'that is for tests'
    # A header may, but then no code that ships may include the header.
    printf '#include "%s"\n' "$name" >"$tree/lib/base/x.h"
    printf '#include "lib/base/x.h"\n' >"$tree/lib/base/y.h"
    printf '#include "lib/base/y.h"\n' >"$tree/lib/base/x_test.cc"
    rm "$tree/lib/base/x.cc"
    expect_clean check_layers
    printf '#include "lib/base/y.h"\n' >"$tree/lib/base/x.cc"
    if [[ $("$scripts/check_layers" "$tree" || true) != *x.cc:1:*'that is for tests'* ]]; then
      printf 'check_layers: code that ships reaches %s through headers\n' "$name" >&2
      failures=$((failures + 1))
    fi
  done
  expect_finding check_layers netagent/attach/x.cc 1 '#include "../attach/plan.h"\n' 'not by ..'
}

# CMake refuses a PURE component with a dependency that is not, once all components are known.
test_pure_components() {
  local dependency output code
  fresh_tree
  printf 'int A() { return 1; }\n' >"$tree/a.cc"
  for dependency in decisions edge; do
    cat >"$tree/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.25)
project(pure LANGUAGES CXX)
function(use_unity_build)
endfunction()
function(use_precompiled)
endfunction()
add_library(project_warnings INTERFACE)
add_library(fmt::fmt INTERFACE IMPORTED)
include($scripts/../cmake/Component.cmake)
add_component(plan PURE SOURCES a.cc DEPS $dependency PRIVATE_DEPS fmt::fmt)
add_component(decisions PURE SOURCES a.cc)
add_component(edge SOURCES a.cc)
check_pure_components()
EOF
    code=0
    output=$(cmake -S "$tree" -B "$tree/build" 2>&1) || code=$?
    if [[ $dependency == decisions && $code != 0 ]] ||
      [[ $dependency == edge && $output != *"pure component 'plan' may not depend on 'edge'"* ]]; then
      printf 'check_pure_components: with %s got %d and:\n%s\n' "$dependency" "$code" "$output" >&2
      failures=$((failures + 1))
    fi
  done
  grep -q '^check_pure_components()$' "$scripts/../CMakeLists.txt" || {
    printf 'check_pure_components: CMakeLists.txt does not call it\n' >&2
    failures=$((failures + 1))
  }
}

test_size() {
  fresh_tree
  expect_clean check_size
  local long
  long=$(printf 'x\\n%.0s' {1..600})
  expect_finding check_size lib/base/long.cc 600 "$long" 'split it'
  long=$(printf '  x\\n%.0s' {1..70})
  expect_finding check_size lib/base/a_test.cc 2 "\nTEST(A, B) {\n  x\n$long}\n" 'a function of 72 lines'
  expect_finding check_size lib/base/a.cc 2 "\nint A(int b) {\n  x\n$long}\n" 'a function of 72 lines'
  long=$(printf 'x\\n%.0s' {1..600})
  expect_finding check_size lib/run 601 "#!/bin/sh\n$long" 'split it'
  fresh_tree
  for long in {1..35}; do touch "$tree/netagent/attach/f$long"; done
  if [[ $("$scripts/check_size" "$tree" || true) != netagent/attach:1:*41\ files* ]]; then
    printf 'check_size: a folder of 41 files passes\n' >&2
    failures=$((failures + 1))
  fi
  expect_finding check_size lib/string_util.h 1 'int A();\n' 'says nothing'
  expect_finding check_size netagent/common/a.h 1 'int A();\n' 'says nothing'
  expect_finding check_size lib/base/a.h 2 '\nclass PodManager {\n' '"PodManager" says nothing'
  expect_finding check_size lib/base/a.h 1 'struct ParseHelper;\n' 'says nothing'
  expect_finding check_size lib/base/a.h 1 'namespace spoke::helpers {\n' 'says nothing'
  expect_finding check_size lib/base/a.h 2 '\nnamespace util {\n' '"util" says nothing'
}

test_words() {
  fresh_tree
  expect_clean check_words
  expect_finding check_words docs/a.md 2 'x\nsee /work/x\n' 'a path of one machine'
  expect_finding check_words conf/a.yaml 1 'key: /home/ann/key\n' 'a path of one machine'
  expect_finding check_words docs/a.md 1 'see ../shared/notes\n' 'outside the tree'
  expect_finding check_words lib/base/a.cc 1 '// TODO: later\n' 'a note to self'
  expect_finding check_words lib/base/a.cc 2 '\n// FIXME\n' 'a note to self'
  expect_finding check_words lib/base/a.cc 1 '<<<<<<< ours\n' 'a merge marker'
  expect_finding check_words lib/base/a.cc 1 'int a;  // NOLINT\n' 'must name its check'
  expect_finding check_words lib/base/a.cc 2 '\nif (a) GTEST_SKIP();\n' 'fail in one of the 3 lines above'
  expect_finding check_words lib/base/a.h 5 'F("NETNS_TESTS_REQUIRED");\n\n\n\nGTEST_SKIP();\n' \
    'fail in one of the 3 lines above'
  fresh_tree
  printf 'the network /workers/x and home/ann; mktemp XXXXXX; GTEST_SKIP\n' >"$tree/lib/a.md"
  printf 'F("NETNS_TESTS_REQUIRED");\n\n\nGTEST_SKIP();\n' >"$tree/lib/a.cc"
  expect_clean check_words
}

test_sources() {
  fresh_tree
  expect_clean check_sources
  expect_finding check_sources netagent/attach/dead.cc 1 'int a;\n' 'in no CMakeLists.txt'
  # The same name in another folder, or in a comment, is not this file.
  expect_finding check_sources netagent/session/plan.cc 1 'int a;\n' 'in no CMakeLists.txt'
  printf '# gone.cc\n' >>"$tree/netagent/attach/CMakeLists.txt"
  printf 'int a;\n' >"$tree/netagent/attach/gone.cc"
  if [[ $("$scripts/check_sources" "$tree" || true) != *netagent/attach/gone.cc:1:* ]]; then
    printf 'check_sources: a comment passes for a listing\n' >&2
    failures=$((failures + 1))
  fi
}

test_python() {
  fresh_tree
  expect_clean check_python
  expect_finding check_python scripts/a.py 2 'b = {}\nprint(f"{b["c"]}")\n' 'does not parse'
  expect_finding check_python scripts/a 2 '#!/usr/bin/env -S python3 -B\nprint(\n' 'does not parse'
}

test_includes() {
  fresh_tree
  expect_clean check_includes
  local use header
  while read -r header use; do
    expect_finding check_includes lib/base/a.cc 2 "\\n$use\\n" "add #include $header"
    # The include may be a header's, and a comment or a string uses nothing.
    printf '#include %s\n' "$header" >"$tree/lib/base/b.h"
    printf '#include "lib/base/b.h"\n%s\n' "$use" >"$tree/lib/base/a.cc"
    expect_clean check_includes
    printf '// %s\nconst char* a = "%s";\n' "$use" "${use//\"/}" >"$tree/lib/base/a.cc"
    expect_clean check_includes
  done <<'EOF'
<algorithm> auto a = std::min(1, 2);
<array> std::array<int, 2> a;
<cerrno> int a = errno;
<charconv> auto a = std::from_chars(b, c, d);
<cstdint> uint8_t a;
<cstddef> size_t a;
<cstdlib> auto a = std::getenv(b);
<cstring> auto a = std::strerror(2);
<deque> std::deque<int> a;
<functional> std::function<int()> a;
<limits> std::numeric_limits<int> a;
<map> std::map<int, int> a;
<memory> auto a = std::make_unique<int>();
<optional> std::optional<int> a;
<set> std::set<int> a;
<span> std::span<int> a;
<string> std::string a;
<string_view> std::string_view a;
<tuple> auto a = std::tie(b, c);
<utility> auto a = std::move(b);
<variant> std::variant<int> a;
<vector> std::vector<int> a;
<filesystem> std::filesystem::path a;
<fstream> std::ifstream a;
<random> std::mt19937 a;
<thread> std::thread a;
"absl/status/status.h" absl::Status a;
"absl/status/statusor.h" absl::StatusOr<int> a;
"absl/strings/ascii.h" absl::AsciiStrToLower(a);
"absl/strings/match.h" absl::StrContains(a, b);
"absl/synchronization/mutex.h" absl::Mutex a;
"absl/time/clock.h" auto a = absl::Now();
"absl/time/time.h" absl::Duration a;
"fmt/core.h" auto a = fmt::format(b);
"nlohmann/json.hpp" nlohmann::json a;
"gtest/gtest.h" TEST(A, B) {}
"gmock/gmock.h" EXPECT_THAT(a, b);
EOF
}

# Each header that stands before every file is one that check_includes looks for.
test_precompiled() {
  local header
  while read -r header; do
    if ! grep -qF "\"$header\"" "$scripts/check_includes"; then
      printf 'check_includes: does not know %s, which is in cmake/Precompiled.cmake\n' "$header" >&2
      failures=$((failures + 1))
    fi
  done < <(awk '/^set\(PRECOMPILED/ {on = 1} on {print} /\)$/ {on = 0}' "$scripts/../cmake/Precompiled.cmake" |
    grep -oE '<[a-z_]+>|[a-z_]+(/[a-z_]+)+\.h(pp)?')
}

test_events() {
  fresh_tree
  mkdir -p "$tree/docs"
  printf '| \140disk_full\140 | error | full | free some |\n' >"$tree/docs/OPERATIONS.md"
  printf 'log_.Error("disk_full", {});\n' >"$tree/lib/base/a.cc"
  expect_clean check_events
  local code=0
  printf 'log->Warn(\n    "disk_slow", {});\n' >>"$tree/lib/base/a.cc"
  printf '| \140disk_gone\140 | warning | gone | find it |\n' >>"$tree/docs/OPERATIONS.md"
  local output
  output=$("$scripts/check_events" "$tree") || code=$?
  if ((code != 1)) || [[ $output != *lib/base/a.cc:2:*disk_slow*OPERATIONS.md:2:*disk_gone* ]]; then
    printf 'check_events: wanted disk_slow and disk_gone, got %d and:\n%s\n' "$code" "$output" >&2
    failures=$((failures + 1))
  fi
}

# A metric with a row and an alert, to which expect_metrics adds what is wrong.
metrics_tree() {
  fresh_tree
  mkdir -p "$tree/docs" "$tree/conf/grafana"
  printf '  CounterSpec(\n      "a_total", "what (or not)",\n      {OneOf("b", {"c"})}),\n' >"$tree/lib/base/table.cc"
  printf '| \140a_total\140 | counter | \140b\140 | what | \140SpokeA\140 |\n' >"$tree/docs/METRICS.md"
  printf -- '- alert: SpokeA\n  expr: a_total > 0\n' >"$tree/conf/alerts.yaml"
}

# expect_metrics FILE LINE CONTENT MESSAGE_PART: as expect_finding.
expect_metrics() {
  local file=$1 line=$2 content=$3 want=$4 output code=0
  metrics_tree
  printf '%b' "$content" >>"$tree/$file"
  output=$("$scripts/check_metrics" "$tree" 2>&1) || code=$?
  if ((code != 1)) || [[ $output != "$file:$line: "*"$want"* ]]; then
    printf 'check_metrics: wanted exit code 1 and "%s:%s: ... %s ...", got %d and:\n%s\n' \
      "$file" "$line" "$want" "$code" "$output" >&2
    failures=$((failures + 1))
  fi
}

test_metrics() {
  metrics_tree
  expect_clean check_metrics
  local page=docs/METRICS.md
  expect_metrics lib/base/table.cc 4 'GaugeSpec("d", "what"),\n' 'd has no row'
  expect_metrics $page 2 '| `d` | gauge | | what | |\n' 'no program has the metric d'
  expect_metrics $page 2 '| `a_total` | gauge | `b` | what | |\n' 'is a counter, not a gauge'
  expect_metrics $page 2 '| `a_total` | counter | `b`, `x` | what | |\n' 'has the labels'
  expect_metrics $page 2 '| `a_total` | counter | `b` | | |\n' 'say what it means'
  expect_metrics $page 2 'see `SpokeB`\n' 'has no alert SpokeB'
  expect_metrics conf/alerts.yaml 3 '  expr: spoke_x > 0\n' 'no program has the metric spoke_x'
  local recordings=conf/recording-rules.yaml
  expect_metrics $recordings 1 '  expr: spoke_x\n' 'no program has the metric spoke_x'
  expect_metrics conf/grafana/a.json 1 '{"expr": "spoke_x / 2"}\n' 'no program has the metric spoke_x'
  expect_metrics conf/grafana/a.json 1 '{"expr": "b:c:d"}\n' 'records no b:c:d'
  # A recording rule whose values no test expects.
  local rule='- record: b:c:d\n' expr="- expr: 'b:c:d'\\n" samples="    - {labels: 'b:c:d{e=\"f\"}', value: 1}\\n"
  expect_metrics $recordings 1 "$rule" 'expects a sample of b:c:d'
  metrics_tree
  printf '%b' "$rule" >"$tree/$recordings"
  printf '%b' "$expr  exp_samples:\n$samples" >"$tree/lib/base/rules_test.yaml"
  expect_clean check_metrics
  printf '%b' "$expr  exp_samples: []\n- expr: 'b:c:e'\n$samples" >"$tree/lib/base/rules_test.yaml"
  if "$scripts/check_metrics" "$tree" >/dev/null; then
    printf 'check_metrics: takes a test that expects nothing of a rule\n' >&2
    failures=$((failures + 1))
  fi
  test_rule_objects
}

# The objects PrometheusRule of manifests and chart are made of the rules, and --fix makes them.
test_rule_objects() {
  local folder output
  metrics_tree
  mkdir -p "$tree"/conf/{helm/spoke/templates,kubernetes/monitoring}
  touch "$tree/conf/helm/spoke/Chart.yaml" "$tree/conf/kubernetes/monitoring/kustomization.yaml"
  printf '# Rules.\ngroups:\n  - alert: SpokeA\n    runbook_url: docs/runbooks/SpokeA.md {{ $value }}\n' >"$tree/conf/alerts.yaml"
  printf 'groups:\n  - {}\n' >"$tree/conf/recording-rules.yaml"
  for folder in conf/kubernetes/monitoring conf/helm/spoke/templates; do
    output=$("$scripts/check_metrics" "$tree") || true
    if [[ $output != *"$folder/prometheus-rules.yaml:1: is not what is made of the rules"* ]]; then
      printf 'check_metrics: takes a %s/prometheus-rules.yaml that is not made of the rules:\n%s\n' "$folder" "$output" >&2
      failures=$((failures + 1))
    fi
    "$scripts/check_metrics" --fix "$tree" || failures=$((failures + 1))
    expect_clean check_metrics
    sed -i 's/SpokeA$/SpokeB/' "$tree/conf/helm/spoke/templates/prometheus-rules.yaml"
  done
  if ! grep -qF '      runbook_url: {{ $runbooks }}/SpokeA.md {{ "{{" }} $value }}' "$tree/conf/helm/spoke/templates/prometheus-rules.yaml"; then
    printf 'check_metrics --fix made:\n%s\n' "$(cat "$tree/conf/helm/spoke/templates/prometheus-rules.yaml")" >&2
    failures=$((failures + 1))
  fi
}

# expect_tidy CODE WHAT: what check_tidy exits with, on the tree as it is.
expect_tidy() {
  local want=$1 what=$2 output code=0
  output=$("$tree/scripts/check_tidy" "$tree/build/x" 2>&1) || code=$?
  if ((code != want)); then
    printf 'check_tidy, %s: wanted exit code %d, got %d and:\n%s\n' \
      "$what" "$want" "$code" "$output" >&2
    failures=$((failures + 1))
  fi
}

# tidy_tree SOURCE...: a build directory that compiles these.
tidy_tree() {
  local source entries=()
  for source in "$@"; do
    entries+=("{\"directory\": \"$tree/build/x\", \"file\": \"$tree/$source\",
      \"command\": \"env A=b ccache c++ -I$tree -std=c++20 -Winvalid-pch -include $tree/no/pch.hxx -o x.o -c $tree/$source\"}")
  done
  local IFS=,
  printf '[%s]' "${entries[*]}" >"$tree/build/x/compile_commands.json"
}

test_tidy() {
  fresh_tree
  mkdir -p "$tree/scripts" "$tree/build/x"
  cp "$scripts/check_tidy" "$scripts/source_tree.py" "$tree/scripts/"
  cp "$scripts/../.clang-tidy" "$tree/"
  tidy_tree
  expect_tidy 1 'a build directory that compiles nothing'
  tidy_tree lib/a.cc
  printf '#include "lib/inner.h"\n' >"$tree/lib/a.h"
  printf 'int Right();\n' >"$tree/lib/inner.h"
  printf '#include "lib/a.h"\nint Right() { return 1; }\n' >"$tree/lib/a.cc"
  expect_tidy 0 'a good file'
  expect_tidy 0 'a good file, from the cache'
  local passed=("$tree"/build/tidy-cache/*)
  if ((${#passed[@]} != 1)); then
    printf 'check_tidy: wanted one cached result, got %d\n' "${#passed[@]}" >&2
    failures=$((failures + 1))
  fi
  printf 'class bad_name {};\n' >>"$tree/lib/inner.h"
  expect_tidy 1 'a header two includes away that turned bad'
  expect_tidy 1 'the same again: a failure is not cached'
  printf 'int Right();\n' >"$tree/lib/inner.h"
  expect_tidy 0 'the header as it was'
  printf 'int Wrong( {\n' >>"$tree/lib/a.cc"
  expect_tidy 1 'a file that does not compile'
}

# Sources are looked at several as one: nothing may be lost by that, and those that do not compile as
# one are still looked at.
test_tidy_batches() {
  local output want
  printf 'int A();\nint A() { return 1; }\nstatic int Same(int a) { return a; }\n' >"$tree/lib/a.cc"
  printf '#include <string>\n#include <utility>\n
int B(const std::string& text);
int B(const std::string& text) {
  std::string taken = text;
  const std::string moved = std::move(taken);
  return static_cast<int>(taken.size() + moved.size());
}\n' >"$tree/lib/b.cc"
  printf 'struct C {\n  C(int value);\n  int a = 0;\n};\nC::C(int value) : a(value) {}\n' >"$tree/lib/c.cc"
  printf 'namespace { int Same(char b) { return b; } }\nint D(int n) { return n > 0 ? D(n - 1) : Same(1); }\n' >"$tree/lib/d.cc"
  printf 'static double Same(int a) { return a; }\nint badName = static_cast<int>(Same(1));\n' >"$tree/lib/e.cc"
  tidy_tree lib/a.cc lib/b.cc lib/c.cc lib/d.cc lib/e.cc
  output=$("$tree/scripts/check_tidy" "$tree/build/x" 2>&1 || true)
  for want in lib/b.cc:8:*bugprone-use-after-move lib/c.cc:2:*google-explicit-constructor \
    lib/d.cc:2:*misc-no-recursion lib/e.cc:2:*readability-identifier-naming; do
    # shellcheck disable=SC2053  # A pattern.
    if [[ $output != *$want* ]]; then
      printf 'check_tidy: wanted %s, got:\n%s\n' "$want" "$output" >&2
      failures=$((failures + 1))
    fi
  done
  if [[ $output == *'clang-diagnostic'* ]]; then
    printf 'check_tidy: looked only together at what does not compile as one:\n%s\n' "$output" >&2
    failures=$((failures + 1))
  fi
}

# Names inside of functions do not keep sources apart, or most of them would be looked at alone.
test_tidy_batches_are_whole() {
  local real name
  real=$(command -v clang-tidy-14)
  mkdir -p "$tree/bin"
  printf '#!/bin/sh\necho "$*" >>%q\nexec %q "$@"\n' "$tree/runs" "$real" >"$tree/bin/clang-tidy-14"
  chmod +x "$tree/bin/clang-tidy-14"
  for name in One Two Three; do
    printf 'namespace words { struct %s {}; }\nusing words::%s;\nint %s();\nint %s() {\n  int same = 1;\n  return same;\n}\n' \
      "Of$name" "Of$name" "$name" "$name" >"$tree/lib/$name.cc"
  done
  tidy_tree lib/One.cc lib/Two.cc lib/Three.cc
  PATH=$tree/bin:$PATH expect_tidy 0 'three files that fit together'
  if (($(grep -c -- --checks "$tree/runs") != 1)); then
    printf 'check_tidy: wanted one run for three files that fit together, got:\n%s\n' "$(<"$tree/runs")" >&2
    failures=$((failures + 1))
  fi
}

# What is compiled as one (cmake/UnityBuild.cmake) is looked at source by source.
test_tidy_of_unity_builds() {
  local output folder=$tree/build/x/a.dir/Unity
  mkdir -p "$folder"
  printf '#include "%s"\n\n#include "%s"\n' "$tree/lib/One.cc" "$tree/lib/bad.cc" >"$folder/unity_a_0_cxx.cxx"
  printf 'int badName = 1;\n' >"$tree/lib/bad.cc"
  tidy_tree build/x/a.dir/Unity/unity_a_0_cxx.cxx
  output=$("$tree/scripts/check_tidy" "$tree/build/x" 2>&1 || true)
  if [[ $output != lib/bad.cc:1:*readability-identifier-naming* ]]; then
    printf 'check_tidy: wanted what is wrong with lib/bad.cc, got:\n%s\n' "$output" >&2
    failures=$((failures + 1))
  fi
}

# Pages with a link, and an alert with its runbook, to which expect_docs adds what is wrong.
docs_tree() {
  fresh_tree
  mkdir -p "$tree/docs/runbooks/symptoms" "$tree/conf"
  printf '# A\n\n[b](docs/B.md#two-words)\n' >"$tree/README.md"
  printf '## Two *words*\n' >"$tree/docs/B.md"
  printf '[SpokeA](SpokeA.md)\n' >"$tree/docs/runbooks/README.md"
  printf '# SpokeA\n## What it means\n## Is anyone hurt\n## Look\n## Do\n' >"$tree/docs/runbooks/SpokeA.md"
  printf -- '- alert: SpokeA\n  runbook_url: docs/runbooks/SpokeA.md\n' >"$tree/conf/alerts.yaml"
}

# expect_docs FILE CONTENT MESSAGE_PART: with CONTENT appended to FILE, the check fails and says so.
expect_docs() {
  local output code=0
  docs_tree
  printf -- '%b' "$2" >>"$tree/$1"
  output=$("$scripts/check_docs" "$tree" 2>&1) || code=$?
  if ((code != 1)) || [[ $output != *"$3"* ]]; then
    printf 'check_docs: wanted "... %s ...", got %d and:\n%s\n' "$3" "$code" "$output" >&2
    failures=$((failures + 1))
  fi
}

test_docs() {
  docs_tree
  expect_clean check_docs
  expect_docs README.md '[c](docs/C.md)\n' 'README.md:4: docs/C.md leads to no file'
  expect_docs docs/B.md '[a](../README.md#b)\n' 'docs/B.md:2: ../README.md#b leads to no heading'
  expect_docs conf/alerts.yaml '- alert: SpokeB\n' 'conf/alerts.yaml:3: alert SpokeB has no page'
  expect_docs conf/alerts.yaml '- alert: SpokeB\n  runbook_url: docs/runbooks/SpokeA.md\n' 'say runbook_url: docs/runbooks/SpokeB.md'
  expect_docs docs/runbooks/SpokeA.md '## More\n' 'docs/runbooks/SpokeA.md: its headings are not: # SpokeA, ## What it means'
  expect_docs docs/runbooks/symptoms/pod-is-slow.md '# pod-is-slow\n' 'docs/runbooks/symptoms/pod-is-slow.md: its headings are not'
  expect_docs docs/runbooks/SpokeC.md '# C\n' 'there is no alert SpokeC'
  expect_docs docs/runbooks/symptoms/pod-is-slow.md '# S\n' 'README.md does not list it'
  docs_tree
  printf -- '- alert: SpokeA\n' >"$tree/conf/alerts.yaml"
  local output
  output=$("$scripts/check_docs" "$tree") || true
  if [[ $output != *'say runbook_url: docs/runbooks/SpokeA.md'* ]]; then
    printf 'check_docs: an alert without runbook_url passed: %s\n' "$output" >&2
    failures=$((failures + 1))
  fi
  test_folders
}

# The table of files per folder is refused where it is stale, and --fix makes it right.
test_folders() {
  docs_tree
  printf '\n| folder | files |\n|---|---|\n| \140docs\140 | 7 |\n' >"$tree/docs/ARCHITECTURE.md"
  git -C "$tree" init --quiet
  git -C "$tree" add docs README.md
  local output
  output=$("$scripts/check_docs" "$tree") || true
  if [[ $output != *'docs/ARCHITECTURE.md: the table of files per folder is not'* ]]; then
    printf 'check_docs: a stale table of folders passed: %s\n' "$output" >&2
    failures=$((failures + 1))
  fi
  "$scripts/check_docs" --fix "$tree" || failures=$((failures + 1))
  expect_clean check_docs
  if ! grep -q '^| `\.` | 1 | `docs` | 2 | `docs/runbooks` | 2 |' "$tree/docs/ARCHITECTURE.md"; then
    printf 'check_docs --fix made:\n%s\n' "$(cat "$tree/docs/ARCHITECTURE.md")" >&2
    failures=$((failures + 1))
  fi
  rm -rf "$tree/.git"
}

# shellcheck source=SCRIPTDIR/check_test/hardening.sh
source "$scripts/check_test/hardening.sh"
# shellcheck source=SCRIPTDIR/check_test/versions.sh
source "$scripts/check_test/versions.sh"

main() {
  test_layers
  test_pure_components
  test_size
  test_words
  test_includes
  test_precompiled
  test_sources
  test_versions
  test_python
  test_events
  test_metrics
  test_docs
  test_tidy
  test_tidy_batches
  test_tidy_batches_are_whole
  test_tidy_of_unity_builds
  test_hardening
  if ((failures > 0)); then
    printf 'check_test.sh: %d expectations FAILED\n' "$failures" >&2
    exit 1
  fi
  printf 'check_test.sh: OK\n'
}

main "$@"
