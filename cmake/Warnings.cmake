# Warnings are errors, in our own code only: generated code and system headers are left alone.
# -Wmissing-field-initializers is off: it fires on designated initializers, whose point is to leave
# the defaults in the struct.
add_library(project_warnings INTERFACE)
target_compile_options(project_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wno-missing-field-initializers -Werror
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
