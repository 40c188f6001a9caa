// CHECK: a broken invariant names itself and ends the program, in release builds too. A restart is
// cheap; two pods on one address are not. It is never for what the world can cause: that is a
// Status.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(condition, meaning)                                                             \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      std::fprintf(stderr, "%s:%d: broken invariant: %s (%s)\n", __FILE__, __LINE__, meaning, \
                   #condition);                                                               \
      std::abort();                                                                           \
    }                                                                                         \
  } while (false)
