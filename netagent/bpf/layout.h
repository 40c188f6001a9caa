/* The values that maps of more than one set of programs hold. C, since clang compiles it for the
 * kernel's virtual machine too. */
#ifndef SPOKE_NETAGENT_BPF_LAYOUT_H
#define SPOKE_NETAGENT_BPF_LAYOUT_H

#include <linux/types.h>

/* An address in network order. An IPv4 address stands in the first word, and the rest is 0. */
struct spoke_address { /* NOLINT(readability-identifier-naming): as the kernel's own have them. */
  __u32 word[4];
};

#endif
