# Faster tools where they are installed; the build does not depend on them.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Without the two, ccache keeps nothing that has to do with precompiled headers: it cannot see which
  # macros they depend on. Ours depend on none but those of the command line, which it does see.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
# Debian's cross compilers do not find it.
if(MOLD_PROGRAM AND NOT CMAKE_CROSSCOMPILING)
  add_link_options(-fuse-ld=mold)
endif()
