# Sources of a target are compiled several at a time: most of the time goes into the headers that they
# have in common, and into the code of templates that each would make again. It takes a third of the time.
#
# use_unity_build(<target>) asks for it, and make_unity_builds(), when all targets are there, finds out
# which sources can go together (unity_groups). A program means the same either way, as every source includes
# all that it uses. With -DSPOKE_UNITY_BUILD=OFF each is compiled by itself: for those who change one
# source again and again, and for tools that read compile_commands.json.
option(SPOKE_UNITY_BUILD "Compile several sources of a target at a time" ON)
# More make a change of one of them dear.
set(SPOKE_UNITY_MOST 8)

# keep_out_of_unity_builds(<path> ...): sources that are an object by themselves, in any target.
function(keep_out_of_unity_builds)
  set_property(GLOBAL APPEND PROPERTY UNITY_ALONE ${ARGN})
endfunction()

function(use_unity_build target)
  set_property(GLOBAL APPEND PROPERTY UNITY_TARGETS ${target})
endfunction()

# Which sources go together is kept in build/PRESET/unity_groups.txt, so that scripts/build.sh sees whether
# a change of a source has changed it.
function(make_unity_builds)
  if(NOT SPOKE_UNITY_BUILD)
    return()
  endif()
  get_property(targets GLOBAL PROPERTY UNITY_TARGETS)
  get_property(alone GLOBAL PROPERTY UNITY_ALONE)
  set(lines "")
  foreach(target IN LISTS targets)
    get_target_property(folder ${target} SOURCE_DIR)
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
      cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} generated)
      if(source MATCHES "\\.cc$" AND NOT generated AND NOT source IN_LIST alone)
        string(APPEND lines "${target}\t${source}\n")
      endif()
    endforeach()
  endforeach()
  set(asked ${PROJECT_BINARY_DIR}/unity_sources.txt)
  set(answer ${PROJECT_BINARY_DIR}/unity_groups.txt)
  file(CONFIGURE OUTPUT ${asked} CONTENT "${lines}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/unity_groups)
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/cmake/unity_groups ${PROJECT_SOURCE_DIR} ${SPOKE_UNITY_MOST}
                  INPUT_FILE ${asked} OUTPUT_FILE ${answer} COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${answer} lines)
  foreach(line IN LISTS lines)
    string(REPLACE "\t" ";" line "${line}")
    list(GET line 0 target)
    list(GET line 1 source)
    list(GET line 2 group)
    # Two targets of a folder may share a source, and its property: the group's name says whose it is.
    set_property(SOURCE ${source} TARGET_DIRECTORY ${target} PROPERTY UNITY_GROUP ${target}_${group})
  endforeach()
  set_target_properties(${targets} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(target IN LISTS targets)
    # GCC warns of a type with a member of an anonymous namespace unless the file itself declares both.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endforeach()
endfunction()
