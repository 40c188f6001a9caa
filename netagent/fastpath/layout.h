/* What the programs of the fast path (programs.bpf.c) and the agent (bpf_fast_path.cc) share: the
 * contents of the maps. C, since clang compiles it for the kernel's virtual machine too. A change
 * of any of it needs another SPOKE_LAYOUT: an agent does not take over maps of another layout.
 *
 * Addresses are in network order where nothing else is said, all other numbers in the host's. */
#ifndef SPOKE_NETAGENT_FASTPATH_LAYOUT_H
#define SPOKE_NETAGENT_FASTPATH_LAYOUT_H

#include <linux/types.h>

#include "netagent/bpf/layout.h"

/* The names are as the kernel's own have them. */
/* NOLINTBEGIN(readability-identifier-naming) */

#define SPOKE_LAYOUT 4

/* The mark, as claims.h has it. */
#define SPOKE_TRANSLATED_MARK 0x10000000

#define SPOKE_MAX_HOPS 32
#define SPOKE_MAX_PODS 1024
/* The most pairs of a family, and the most with one pod, of both families: so many that no pod of
 * ordinary use comes near it, and so few that one pod leaves nearly all to the others. */
#define SPOKE_MAX_PAIRS 65536
#define SPOKE_MAX_PAIRS_OF_POD 2048

/* The addresses `first` to `last`, in the host's order so that they can be compared; by `via`, or
 * with none the destination itself. */
struct spoke_hop4 {
  __u32 first;
  __u32 last;
  __u32 via; /* Network order. 0: none. */
};

struct spoke_number6 {
  __u64 high;
  __u64 low;
};

struct spoke_hop6 {
  struct spoke_number6 first;
  struct spoke_number6 last;
  struct spoke_address via; /* All 0: none. */
};

struct spoke_table {
  __u32 layout;
  __u32 uplink; /* Index of the device. */
  __u32 count4;
  __u32 count6;
  struct spoke_hop4 hop4[SPOKE_MAX_HOPS];
  struct spoke_hop6 hop6[SPOKE_MAX_HOPS];
};

/* The reasons why a packet was refused at the link by which it came: indexes of spoke_refused. */
#define SPOKE_REFUSED_SOURCE 0
#define SPOKE_REFUSED_VLAN_TAG 1
#define SPOKE_REFUSED_ROUTER_MESSAGE 2
#define SPOKE_REFUSED_PROTOCOL 3
#define SPOKE_REFUSED_REASONS 4

struct spoke_refused_count {
  __u64 packets;
  __u64 bytes;
};

/* What may come by a pod's link; the key is the index of the node's end. */
struct spoke_port {
  struct spoke_address v4;
  struct spoke_address v6;
  __u32 has_v4;
  __u32 has_v6;
  __u32 has_mac;
  __u32 fast; /* 0: all of it goes the ordinary way. */
  __u16 mac[3];
  __u16 unused;
  __u32 slot;
};

/* The place of each address that is this node's: where a fast pod is, or that packets to it go the
 * ordinary way. */
struct spoke_place {
  __u32 link; /* Index of the node's end. 0: the ordinary way. */
  __u32 slot; /* SPOKE_MAX_PODS: the address is no pod's. */
};

/* The pod in a slot; the key is the slot. It only ever grows at its end: those of layouts 1 and 3
 * are its beginning, up to has_mac and up to begun. */
struct spoke_slot {
  __u64 id; /* 0: free. */
  __u32 link;
  __u32 ended;
  struct spoke_address v4;
  struct spoke_address v6;
  __u32 has_v4;
  __u32 has_v6;
  __u32 has_mac;
  __u32 fast;
  __u16 mac[3];
  __u16 unused;
  __u64 begun; /* When the pod got the addresses, by the clock of pairs. */
};

/* The counts of a slot, one for each processor. */
struct spoke_counts {
  __u64 sent_packets;
  __u64 sent_bytes;
  __u64 received_packets;
  __u64 received_bytes;
};

/* Two addresses, the smaller first (as the host compares the words). The value is when something
 * translated last passed between them: nanoseconds by CLOCK_MONOTONIC_COARSE. */
struct spoke_pair4 {
  __u32 low;
  __u32 high;
};
struct spoke_pair6 {
  struct spoke_address low;
  struct spoke_address high;
};

/* NOLINTEND(readability-identifier-naming) */

#endif
