// Puts a file into the program, as read-only bytes from `symbol` to `symbol`_end.
#pragma once

// clang-format off
// NOLINTBEGIN(bugprone-macro-parentheses): names cannot stand in parentheses.
#define SPOKE_EMBED_OBJECT(symbol, file)               \
  __asm__(                                             \
      ".section .rodata\n"                             \
      ".balign 16\n"                                   \
      #symbol ":\n"                                    \
      ".incbin \"" file "\"\n"                         \
      #symbol "_end:\n"                                \
      ".byte 0\n"                                      \
      ".previous\n");                                  \
  extern const char symbol[] __asm__(#symbol);         \
  extern const char symbol##_end[] __asm__(#symbol "_end")
// NOLINTEND(bugprone-macro-parentheses)
// clang-format on
