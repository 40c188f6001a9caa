/* The programs that lead packets of shaped pods by way of queues: see netagent/shaping/shaper.h for
 * what they are for. On a link spoke_shape_* says in tc_index, a field of the packet that nothing
 * else uses, which class it is of; spoke_divert, behind it, lets those go to the queues' device;
 * and at that device's root spoke_classify puts them into the class. The packet comes back from
 * there as it was. At a link's ingress it passes no tc hook again; at an egress it passes the same
 * programs, and the diverting action lets it go.
 *
 * A pod's link knows the pod, but sees a Service's address where the far end is; an outer link sees
 * the far end, but maybe the node's address where the pod is. So what comes in by an outer link
 * takes its scope along in tc_index, and what leaves by one has its class from the link that it
 * came in by.
 *
 * TC_ACT_UNSPEC lets a packet go the ordinary way. */
#include <linux/pkt_cls.h>

#include "netagent/bpf/packet.bpf.h"
#include "netagent/shaping/queues/layout.h"

/* The entry 0 is SPOKE_SHAPE_LAYOUT. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} spoke_shape SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, SPOKE_MAX_BLOCKS);
  __type(key, struct spoke_block4);
  __type(value, __u32);
} spoke_scopes4 SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, SPOKE_MAX_BLOCKS);
  __type(key, struct spoke_block6);
  __type(value, __u32);
} spoke_scopes6 SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, SPOKE_MAX_FLOWS);
  __type(key, struct spoke_flow_key);
  __type(value, struct spoke_flow);
} spoke_flows SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, SPOKE_MAX_FLOWS);
  __type(key, struct spoke_flow_key);
  __type(value, struct spoke_offered);
} spoke_offered SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, SPOKE_MAX_BUCKETS);
  __type(key, __u32);
  __type(value, struct spoke_bucket);
} spoke_buckets SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, SPOKE_MAX_LINKS);
  __type(key, __u32);
  __type(value, __u32);
} spoke_links SEC(".maps");

/* The part behind the IP header. */
struct upper {
  __u32 offset;
  __u8 protocol;
  __u8 is_later; /* A fragment that is not the first. */
};

enum far_end { SOURCE, DESTINATION };

INLINE const __u32* Scope4(struct __sk_buff* skb, enum far_end end, struct upper* upper) {
  if (!Pull(skb, ETH_HLEN + sizeof(struct iphdr))) return 0;
  const struct iphdr* packet = (void*)(long)skb->data + ETH_HLEN;
  if ((void*)(packet + 1) > (void*)(long)skb->data_end) return 0;
  upper->offset = ETH_HLEN + packet->ihl * 4;
  upper->protocol = packet->protocol;
  upper->is_later = (packet->frag_off & bpf_htons(0x1FFF)) != 0;
  const struct spoke_block4 far = {32, end == DESTINATION ? packet->daddr : packet->saddr};
  return bpf_map_lookup_elem(&spoke_scopes4, &far);
}

INLINE const __u32* Scope6(struct __sk_buff* skb, enum far_end end, struct upper* upper) {
  if (!Pull(skb, ETH_HLEN + sizeof(struct ipv6hdr))) return 0;
  const struct ipv6hdr* packet = (void*)(long)skb->data + ETH_HLEN;
  if ((void*)(packet + 1) > (void*)(long)skb->data_end) return 0;
  upper->offset = ETH_HLEN + sizeof(*packet);
  upper->protocol = packet->nexthdr;
  upper->is_later = 0;
  struct spoke_block6 far = {.length = 128};
  far.address = Address6(end == DESTINATION ? &packet->daddr : &packet->saddr);
  return bpf_map_lookup_elem(&spoke_scopes6, &far);
}

/* Returns the scope of the address at that end; 0: it is in none, or the packet has no address. */
INLINE __u32 ScopeOf(struct __sk_buff* skb, enum far_end end, struct upper* upper) {
  const __u32* scope = 0;
  if (skb->protocol == bpf_htons(ETH_P_IP)) {
    scope = Scope4(skb, end, upper);
  } else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
    scope = Scope6(skb, end, upper);
  }
  return scope ? *scope : 0;
}

/* Finds the upper header past IPv6's extension headers (RFC 8200, 4): behind those a pod could hide
 * what it begins. A packet with more than these is no TCP that a host would take. */
INLINE void FindUpper6(struct __sk_buff* skb, struct upper* upper) {
#pragma unroll
  for (int i = 0; i < 6; ++i) {
    __u8 header[4] = {};
    if (bpf_skb_load_bytes(skb, upper->offset, header, sizeof(header)) != 0) return;
    switch (upper->protocol) {
      case 44: /* Fragment. */
        upper->is_later = ((header[2] << 8 | header[3]) & 0xFFF8) != 0;
        if (upper->is_later) return;
        upper->offset += 8;
        break;
      case 51: /* Authentication. */
        upper->offset += (header[1] + 2) * 4;
        break;
      case 0:  /* Hop by hop. */
      case 43: /* Routing. */
      case 60: /* Destination options. */
        upper->offset += (header[1] + 1) * 8;
        break;
      default:
        return;
    }
    upper->protocol = header[0];
  }
}

/* Returns whether the packet asks for a connection, or is too short to tell. */
INLINE int IsNewConnection(struct __sk_buff* skb, const struct upper* upper) {
  if (upper->protocol != IPPROTO_TCP || upper->is_later) return 0;
  __u8 flags = 0;
  if (bpf_skb_load_bytes(skb, upper->offset + 13, &flags, 1) != 0) return 1;
  return (flags & 0x12) == 0x02; /* SYN, and not ACK. */
}

/* Returns the bytes as they will be on a wire, cut into packets with headers of their own. */
INLINE __u64 WireBytes(struct __sk_buff* skb, const struct upper* upper, __u64 packets) {
  if (packets <= 1) return skb->len;
  __u32 headers = upper->offset + 8;
  __u8 length = 0;
  if (upper->protocol == IPPROTO_TCP &&
      bpf_skb_load_bytes(skb, upper->offset + 12, &length, 1) == 0) {
    headers = upper->offset + (length >> 4) * 4;
  }
  return skb->len + (packets - 1) * headers;
}

INLINE int MayBegin(__u32 id) {
  struct spoke_bucket* bucket = bpf_map_lookup_elem(&spoke_buckets, &id);
  if (!bucket) return 1;
  const __u64 second = 1000000000;
  const __u64 now = bpf_ktime_get_ns() + second; /* Right in the first second since boot too. */
  int may = 0;
  bpf_spin_lock(&bucket->lock);
  __u64 paid = bucket->paid_until;
  if (paid < now - second) paid = now - second;
  if (bucket->interval <= second && paid + bucket->interval <= now) {
    bucket->paid_until = paid + bucket->interval;
    may = 1;
  }
  bpf_spin_unlock(&bucket->lock);
  return may;
}

/* Returns whether a VLAN tag is left. The kernel takes one VLAN tag off before tc's hook sees a
 * packet, and behind it more of them if they are of VLAN 0, which is none: a pod's way past the
 * queues. No pod has a VLAN here. */
INLINE int IsTagged(const struct __sk_buff* skb) {
  return skb->protocol == bpf_htons(ETH_P_8021Q) || skb->protocol == bpf_htons(ETH_P_8021AD);
}

INLINE void Count(struct __sk_buff* skb, const struct spoke_flow_key* key,
                  const struct upper* upper, int begins, int refused) {
  struct spoke_offered* offered = bpf_map_lookup_elem(&spoke_offered, key);
  if (!offered) return;
  const __u64 packets = skb->gso_segs > 1 ? skb->gso_segs : 1;
  offered->packets += packets;
  offered->bytes += WireBytes(skb, upper, packets);
  offered->connections += begins && !refused;
  offered->refused += refused;
}

INLINE __u32 IndexOf(const struct spoke_flow* flow) {
  return flow->class_id ? flow->class_id : SPOKE_COUNTED;
}

/* Counts a packet of the flow, refuses it, or says of which class it is. */
INLINE int Lead(struct __sk_buff* skb, const struct spoke_flow_key* key,
                const struct spoke_flow* flow, struct upper* upper) {
  const int from_pod = key->direction == SPOKE_EGRESS;
  const __u32 index = IndexOf(flow);
  const __u32 bucket = flow->bucket;
  if (skb->protocol == bpf_htons(ETH_P_IPV6)) FindUpper6(skb, upper);
  const int begins = IsNewConnection(skb, upper);
  const int refused = begins && from_pod && bucket && !MayBegin(bucket);
  Count(skb, key, upper, begins, refused);
  if (refused) return TC_ACT_SHOT;
  skb->tc_index = index;
  return TC_ACT_UNSPEC;
}

/* Returns the kind of the link by which a packet came in. One that has waited comes from the device
 * of its queue, and still has its class, by which the diverting action learns that it has been
 * there. */
INLINE __u32 KindOfOrigin(const struct __sk_buff* skb) {
  const __u32 link = skb->ingress_ifindex;
  if (!link) return 0; /* It was made on this node. */
  const __u32* kind = bpf_map_lookup_elem(&spoke_links, &link);
  return kind ? *kind : 0;
}

/* This runs at the ingress of the node's end of a pod's link. */
SEC("tc")
int spoke_shape_out(struct __sk_buff* skb) {
  struct upper upper = {};
  skb->tc_index = 0; /* Whatever it was: of the pod's making, maybe. */
  if (IsTagged(skb)) return TC_ACT_SHOT;
  const __u32 scope = ScopeOf(skb, DESTINATION, &upper);
  struct spoke_flow_key key = {skb->ifindex, SPOKE_WHOLE_LINK, SPOKE_EGRESS};
  const struct spoke_flow* flow = bpf_map_lookup_elem(&spoke_flows, &key);
  if (flow) {
    /* The packet can have one class here. That of its scope comes where it leaves the node. */
    skb->tc_index = IndexOf(flow);
    Count(skb, &key, &upper, 0, 0);
    return TC_ACT_UNSPEC;
  }
  if (!scope) return TC_ACT_UNSPEC;
  key.scope = scope;
  flow = bpf_map_lookup_elem(&spoke_flows, &key);
  return flow ? Lead(skb, &key, flow, &upper) : TC_ACT_UNSPEC;
}

/* This runs at the egress of the node's end of a pod's link. */
SEC("tc")
int spoke_shape_in(struct __sk_buff* skb) {
  const __u32 origin = KindOfOrigin(skb);
  if (origin == SPOKE_QUEUES) return TC_ACT_UNSPEC;
  struct upper upper = {};
  const __u32 noted = skb->tc_index;
  skb->tc_index = 0;
  __u32 scope = ScopeOf(skb, SOURCE, &upper);
  /* A Service's address may stand there now. */
  if (noted && origin == SPOKE_OUTER_LINK) scope = noted;
  if (!scope) return TC_ACT_UNSPEC;
  const struct spoke_flow_key key = {skb->ifindex, scope, SPOKE_INGRESS};
  const struct spoke_flow* flow = bpf_map_lookup_elem(&spoke_flows, &key);
  return flow ? Lead(skb, &key, flow, &upper) : TC_ACT_UNSPEC;
}

/* This runs at the ingress of an outer link, before any address is translated back. */
SEC("tc")
int spoke_enters_node(struct __sk_buff* skb) {
  struct upper upper = {};
  const __u32 scope = ScopeOf(skb, SOURCE, &upper);
  skb->tc_index = scope;
  return TC_ACT_UNSPEC;
}

/* This runs at the egress of an outer link, when all addresses are translated. */
SEC("tc")
int spoke_leaves_node(struct __sk_buff* skb) {
  const __u32 origin = KindOfOrigin(skb);
  if (origin == SPOKE_QUEUES) return TC_ACT_UNSPEC;
  const __u32 before = skb->tc_index;
  skb->tc_index = 0;
  if (origin != SPOKE_SCOPED_LINK) return TC_ACT_UNSPEC;
  struct upper upper = {};
  const __u32 scope = ScopeOf(skb, DESTINATION, &upper);
  if (!scope) return TC_ACT_UNSPEC;
  const struct spoke_flow_key key = {skb->ingress_ifindex, scope, SPOKE_EGRESS};
  const struct spoke_flow* flow = bpf_map_lookup_elem(&spoke_flows, &key);
  if (!flow) return TC_ACT_UNSPEC;
  /* The packet has been counted, and has waited, where it left the pod. */
  if (before == IndexOf(flow)) return TC_ACT_UNSPEC;
  return Lead(skb, &key, flow, &upper);
}

/* This runs behind any of these except spoke_enters_node, with an action that leads to the queues'
 * device: -1 takes it, 0 does not. */
SEC("tc")
int spoke_divert(struct __sk_buff* skb) {
  return skb->tc_index && skb->tc_index != SPOKE_COUNTED ? -1 : 0;
}

/* This runs at the root of the queues' device, and says the class. */
SEC("tc")
int spoke_classify(struct __sk_buff* skb) {
  return skb->tc_index ? (int)(SPOKE_TREE_HANDLE | skb->tc_index) : 0;
}

/* The agent knows its own programs by this. None of the helpers used needs the GPL. */
char spoke_license[] SEC("license") = "Apache-2.0";
