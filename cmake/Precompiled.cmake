# Headers that most files read, parsed once a build instead of once a file.
#
# use_precompiled(<target> <kind>) lets each source of <target> begin with those of a kind. That saves
# time and means nothing else: a file includes all that it uses, as scripts/check_includes insists, and
# the same objects come out with -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON. docs/TESTING.md says what each
# header costs; one that few files read does not belong here, since all of them then load it.
set(PRECOMPILED_code
    <algorithm> <array> <cerrno> <charconv> <cstddef> <cstdint> <cstdlib> <cstring> <deque> <functional>
    <limits> <map> <memory> <optional> <set> <span> <string> <string_view> <tuple> <utility> <variant>
    <vector>
    absl/container/flat_hash_map.h absl/container/inlined_vector.h absl/functional/function_ref.h
    absl/status/status.h absl/status/statusor.h absl/strings/ascii.h absl/strings/match.h
    absl/synchronization/mutex.h absl/time/clock.h absl/time/time.h
    fmt/core.h fmt/format.h)
set(PRECOMPILED_cold ${PRECOMPILED_code} nlohmann/json.hpp)
set(PRECOMPILED_test ${PRECOMPILED_cold} <filesystem> <fstream> <random> <thread> gmock/gmock.h gtest/gtest.h)

# Compilers take a precompiled header only with the optimisation that it was made with.
function(optimize_less target)
  # For size: it is a third smaller than with -O1. GCC follows too few values then to know which of
  # them were set.
  target_compile_options(${target} PRIVATE
    "$<$<CONFIG:Release>:-Os;$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>>")
endfunction()

# add_precompiled(<kind> [DEPS ...]): the precompiled headers of a kind. DEPS are what the headers
# belong to: a compiler takes them only where the same macros are defined as here.
function(add_precompiled kind)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  set(empty ${PROJECT_BINARY_DIR}/generated/precompiled_${kind}.cc)
  file(CONFIGURE OUTPUT ${empty} CONTENT "// Nothing: CMake wants a source beside the headers.\n")
  add_library(precompiled_${kind} OBJECT ${empty})
  target_link_libraries(precompiled_${kind} PRIVATE ${ARG_DEPS} project_warnings)
  # Without times the same headers give the same bytes, so that what ccache has of another checkout fits.
  target_compile_options(precompiled_${kind} PRIVATE -pthread
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  if(kind STREQUAL "cold")
    optimize_less(precompiled_${kind})
  endif()
  list(TRANSFORM PRECOMPILED_${kind} REPLACE "^([^<].*)$" "<\\1>" OUTPUT_VARIABLE headers)
  target_precompile_headers(precompiled_${kind} PRIVATE ${headers})
  set_target_properties(precompiled_${kind} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
endfunction()

function(use_precompiled target kind)
  if(kind STREQUAL "cold")
    optimize_less(${target})
  endif()
  target_precompile_headers(${target} REUSE_FROM precompiled_${kind})
  target_compile_options(${target} PRIVATE -pthread)
  target_compile_definitions(${target} PRIVATE
    $<TARGET_PROPERTY:precompiled_${kind},COMPILE_DEFINITIONS>)
endfunction()

set(PRECOMPILED_DEPS absl::flat_hash_map absl::inlined_vector absl::status absl::statusor absl::strings
                     absl::synchronization absl::time fmt::fmt)
add_precompiled(code DEPS ${PRECOMPILED_DEPS})
add_precompiled(cold DEPS ${PRECOMPILED_DEPS} nlohmann_json::nlohmann_json)
add_precompiled(test DEPS ${PRECOMPILED_DEPS} nlohmann_json::nlohmann_json GTest::gmock)
