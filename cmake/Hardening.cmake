# The compiler's and linker's defences against attacks on memory, by the kind of a target, in builds that
# users get (Release). Builds for tests have the sanitizers, which find what these only stop.
#
#   defence               programs (glibc)  plugin (musl)         what it does
#   stack protector       strong            strong                a return address that an overrun has
#                                                                 changed is not used
#   stack clash           yes               yes                   no stack grows over its guard page
#   _FORTIFY_SOURCE       3                 no: musl has none     calls of libc know the buffer's size
#   control flow          full, on x86      no: musl has no CET   indirect calls end where the compiler says
#                         standard, on arm64                      the same (BTI), and return addresses are
#                                                                 signed (PAC); the plugin too
#   RELRO and BIND_NOW    yes               yes                   no table of addresses stays writable
#   PIE                   yes               yes, static           code is elsewhere at each start
#   stack not executable  yes               yes                   data on the stack is not run
#
# The choice follows the OpenSSF's "Compiler Options Hardening Guide for C and C++" and Debian's
# dpkg-buildflags(1) with hardening=+all. scripts/check_hardening reads in the programs whether it is so.
#
# The plugin is executed for each pod, so what it pays was measured: posix_spawn to wait4 of VERSION, with
# and without, in turns, n = 3000, median, five times. The stack protector costs nothing that shows; a
# static PIE with RELRO 5 to 9 % (25 relocations in a page that is then copied, and mprotect(2)).
#
# What is not taken from the guide, and why:
# - -D_GLIBCXX_ASSERTIONS and -ftrivial-auto-var-init=zero cost time in each loop; the sanitizers see the
#   same mistakes in the tests.
# - The note "all of this is made for CET" is not forced (-z ibt): linkers write it where each object has
#   it, and the startup files of Debian 12's glibc have none. Our own code has the instructions.
set(hardening_all -fstack-protector-strong -fstack-clash-protection)
# Level 3 also knows the size of what was allocated at run time: GCC 12, glibc 2.34. Distributions that
# set a level of their own in the compiler would have it defined twice.
set(hardening_programs -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fPIE)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND hardening_programs -fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  list(APPEND hardening_programs -mbranch-protection=standard)
endif()
set(hardening_links -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT SPOKE_SANITIZE)
  add_compile_options(${hardening_all} ${hardening_programs})
  add_link_options(${hardening_links})
endif()
