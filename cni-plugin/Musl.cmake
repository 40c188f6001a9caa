# link_with_musl(<target>): a static executable of C++ that has neither libstdc++ nor glibc in it.
#
# libstdc++'s headers are used as they are, with musl's beneath them; what they need of libstdc++
# itself is in small_runtime.cc, and what is missing there fails to link. Debian: musl-tools.
function(link_with_musl target)
  string(REPLACE "-gnu" "-musl" triple "${CMAKE_CXX_LIBRARY_ARCHITECTURE}")
  find_path(MUSL_INCLUDE stdlib.h PATHS /usr/include/${triple} NO_DEFAULT_PATH REQUIRED)
  find_path(MUSL_LIB rcrt1.o PATHS /usr/lib/${triple} NO_DEFAULT_PATH REQUIRED)
  find_path(RAPIDJSON_INCLUDE rapidjson/document.h REQUIRED)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-libgcc-file-name
                  OUTPUT_VARIABLE libgcc OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  cmake_path(GET libgcc PARENT_PATH gcc_folder)

  # RapidJSON lies among glibc's headers, which must not be seen.
  set(visible ${CMAKE_CURRENT_BINARY_DIR}/include)
  file(MAKE_DIRECTORY ${visible})
  file(CREATE_LINK ${RAPIDJSON_INCLUDE}/rapidjson ${visible}/rapidjson SYMBOLIC)

  set(includes)
  foreach(folder IN LISTS CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    if(folder MATCHES "/c\\+\\+/")
      list(APPEND includes "SHELL:-isystem ${folder}")
    endif()
  endforeach()
  list(APPEND includes "SHELL:-isystem ${MUSL_INCLUDE}" "SHELL:-isystem ${gcc_folder}/include"
       "SHELL:-isystem ${visible}")
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE project_warnings)
  target_compile_options(${target} PRIVATE
    -nostdinc -nostdinc++ ${includes}
    # Debian's libstdc++ was configured for glibc; these are the two things of it that its headers
    # take for granted.
    "-D__GLIBC_PREREQ(a,b)=0" -D__locale_t=locale_t
    # No use of what only libstdc++.a has.
    -D_GLIBCXX_EXTERN_TEMPLATE=0 -fno-exceptions -fno-rtti -fno-threadsafe-statics
    -fno-sanitize=all -Os -fPIE -fno-asynchronous-unwind-tables -fno-unwind-tables -fcf-protection=none -ffunction-sections
    -fdata-sections)
  # Few segments: each is a mapping to make, and its first use a fault. rcrt1.o relocates the program
  # before anything else of it runs; cmake/Hardening.cmake says what that costs.
  target_link_options(${target} PRIVATE
    -fno-sanitize=all -static-pie -nostdlib -nostartfiles -fuse-ld=bfd -s ${MUSL_LIB}/rcrt1.o
    -Wl,--gc-sections -Wl,-z,noseparate-code -Wl,--build-id=none)
  target_link_libraries(${target} PRIVATE ${MUSL_LIB}/libc.a ${libgcc})
  set_target_properties(${target} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
endfunction()
