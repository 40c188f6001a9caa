/* Looks at a packet for programs at tc's hooks, and is for the kernel's virtual machine alone. */
#ifndef SPOKE_NETAGENT_BPF_PACKET_BPF_H
#define SPOKE_NETAGENT_BPF_PACKET_BPF_H

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "netagent/bpf/layout.h"

/* sys/socket.h is not for this machine. */
#define AF_INET 2
#define AF_INET6 10

#define INLINE static __always_inline

/* Makes the headers readable: a driver may leave them outside the part that programs see. */
INLINE int Pull(struct __sk_buff* skb, __u32 bytes) {
  if ((void*)(long)skb->data + bytes <= (void*)(long)skb->data_end) return 1;
  return bpf_skb_pull_data(skb, bytes) == 0;
}

INLINE struct spoke_address Address6(const struct in6_addr* in) {
  struct spoke_address address;
  __builtin_memcpy(&address, in, sizeof(address));
  return address;
}

#endif
