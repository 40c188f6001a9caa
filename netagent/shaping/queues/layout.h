/* What the programs that shape (programs.bpf.c) and the agent (shape_maps.cc) share: the contents
 * of the maps. A change of any of it needs another SPOKE_SHAPE_LAYOUT: an agent does not take over
 * maps of another layout. */
#ifndef SPOKE_NETAGENT_SHAPER_LAYOUT_H
#define SPOKE_NETAGENT_SHAPER_LAYOUT_H

#include <linux/bpf.h>
#include <linux/types.h>

#include "netagent/bpf/layout.h"

/* The names are as the kernel's own have them. */
/* NOLINTBEGIN(readability-identifier-naming) */

#define SPOKE_SHAPE_LAYOUT 2

/* The handle of the trees of classes, as claims.h has it. */
#define SPOKE_TREE_HANDLE 0x05B00000

/* What tc_index says while a packet is on its way through the node: nothing (0); the number of its
 * class; that its flow has counted it, and has no class; or, between an outer link by which it came
 * in and the link of a pod, the scope of the far end. */
#define SPOKE_MAX_CLASS 0xFFFE
#define SPOKE_COUNTED 0xFFFF

/* A flow's scope that stands for whatever the pod sends, wherever to. */
#define SPOKE_WHOLE_LINK 0xFFFFFFFF

#define SPOKE_MAX_FLOWS 16384
#define SPOKE_MAX_BUCKETS 1024
/* The most blocks: twice as many as there may be, since what is new is there before what is old has
 * gone. */
#define SPOKE_MAX_BLOCKS 131072

/* Blocks of addresses, in network order; the value is the scope. The longest one wins. */
struct spoke_block4 {
  __u32 length; /* In bits. */
  __u32 address;
};
struct spoke_block6 {
  __u32 length;
  struct spoke_address address;
};

/* The most links in the map that has them by index, and the kinds of links that are its values. */
#define SPOKE_MAX_LINKS 32768
#define SPOKE_OUTER_LINK 1  /* Leads out of the node. */
#define SPOKE_SCOPED_LINK 2 /* A pod's, with flows of scopes. */
#define SPOKE_QUEUES 3      /* A device of queues. */

/* The directions as the pod sees them. */
#define SPOKE_INGRESS 0
#define SPOKE_EGRESS 1

struct spoke_flow_key {
  __u32 link; /* Index of the node's end. */
  __u32 scope;
  __u32 direction;
};

struct spoke_flow {
  __u16 class_id; /* Minor number; 0: only counted. */
  __u16 bucket;   /* 0: none. */
};

/* The counts of a flow, by its key, one for each processor. */
struct spoke_offered {
  __u64 packets;
  __u64 bytes;
  __u64 connections;
  __u64 refused;
};

/* Lets a connection through each `interval` nanoseconds, and as many at once as in a second. */
struct spoke_bucket {
  struct bpf_spin_lock lock;
  __u32 unused;
  __u64 interval;
  __u64 paid_until; /* Nanoseconds since boot. */
};

/* NOLINTEND(readability-identifier-naming) */

#endif
