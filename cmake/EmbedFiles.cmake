# embed_files(<source> <file>...): makes a C++ source, below the folder of generated code, that holds the
# files as arrays; they are read when it is built, by CMake itself. The source defines PageFiles() of
# admin-cli/dashboard/page_files.h.
function(embed_files source)
  set(out ${PROJECT_BINARY_DIR}/generated/${source})
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  string(REPLACE ";" "," joined "${files}")
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -D OUT=${out} -D FILES=${joined}
            -P ${PROJECT_SOURCE_DIR}/cmake/write_embedded.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/write_embedded.cmake
    VERBATIM)
endfunction()
