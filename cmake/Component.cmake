# add_component(<name> [PURE] [COLD] SOURCES ... [DEPS ...] [PRIVATE_DEPS ...] [TESTS ...] [TEST_DEPS ...])
#
# One static library and one test binary a component, which is a ctest test with the label "unit". A PURE
# component holds decisions: it may depend only on PURE components and on PURE_EXTERNAL_DEPS, so a decision that grows a netlink, gRPC or database dependency fails when
# CMake configures, not in review. COLD: see Precompiled.cmake.
set(PURE_EXTERNAL_DEPS absl::status absl::statusor absl::strings absl::time absl::flat_hash_map absl::flat_hash_set absl::inlined_vector
    fmt::fmt nlohmann_json::nlohmann_json EXPAT::EXPAT)

function(add_component name)
  cmake_parse_arguments(ARG "PURE;COLD" "" "SOURCES;DEPS;PRIVATE_DEPS;TESTS;TEST_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS} project_warnings)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  use_unity_build(${name})
  set_property(TARGET ${name} PROPERTY COMPONENT_PURE ${ARG_PURE})
  if(ARG_COLD)
    use_precompiled(${name} cold)
  else()
    use_precompiled(${name} code)
  endif()
  if(ARG_PURE)
    foreach(dep IN LISTS ARG_DEPS ARG_PRIVATE_DEPS)
      set_property(GLOBAL APPEND PROPERTY PURE_DEPENDENCIES "${name}|${dep}")
    endforeach()
  endif()
  if(ARG_TESTS)
    add_spoke_test(${name}_test LABEL unit SOURCES ${ARG_TESTS} DEPS ${name} ${ARG_TEST_DEPS})
  endif()
endfunction()

# Refuses a PURE component with a dependency that is not. Call when all components are there.
function(check_pure_components)
  get_property(pairs GLOBAL PROPERTY PURE_DEPENDENCIES)
  foreach(pair IN LISTS pairs)
    string(REPLACE "|" ";" pair "${pair}")
    list(GET pair 0 name)
    list(GET pair 1 dep)
    if(dep IN_LIST PURE_EXTERNAL_DEPS)
      continue()
    endif()
    set(dep_pure FALSE)
    if(TARGET ${dep})
      get_property(dep_pure TARGET ${dep} PROPERTY COMPONENT_PURE)
    endif()
    if(NOT dep_pure)
      message(FATAL_ERROR "pure component '${name}' may not depend on '${dep}'")
    endif()
  endforeach()
endfunction()

# add_spoke_test(<name> LABEL <group> SOURCES ... [DEPS ...]): one test binary; `scripts/test.sh
# <group>` runs it. Those that touch the kernel do it in namespaces of their own, and each of their cases
# is a ctest test. Of unit tests the binary is one: thousands of cases take less time than as many starts
# of a program with sanitizers. It says what fails, and no more; a case that cannot run here fails, since
# ctest would not see that one of many was skipped.
function(add_spoke_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock_main project_warnings)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  use_precompiled(${name} test)
  use_unity_build(${name})
  sanitize_test(${name})
  target_compile_definitions(${name} PRIVATE SPOKE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(ARG_LABEL STREQUAL "unit")
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 600
                         ENVIRONMENT NETNS_TESTS_REQUIRED=1)
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 300)
  endif()
endfunction()
