/* The programs of the fast path: see netagent/fastpath/fast_path.h for what it promises. They run
 * at tc's ingress and egress (tc-bpf(8)); TC_ACT_UNSPEC lets a packet go the ordinary way. */
#include <linux/pkt_cls.h>

#include "netagent/bpf/packet.bpf.h"
#include "netagent/fastpath/guard.bpf.h"
#include "netagent/fastpath/layout.h"

/* The entry 0 says which of the two entries of spoke_tables is in force. The agent fills the other
 * one, then turns. The entry 1 is the id of the pod that was added last; for the agent alone. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 2);
  __type(key, __u32);
  __type(value, __u32);
} spoke_turn SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 2);
  __type(key, __u32);
  __type(value, struct spoke_table);
} spoke_tables SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, SPOKE_MAX_PODS);
  __type(key, __u32);
  __type(value, struct spoke_port);
} spoke_ports SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, SPOKE_MAX_PODS);
  __type(key, __u32);
  __type(value, struct spoke_place);
} spoke_places4 SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, SPOKE_MAX_PODS);
  __type(key, struct spoke_address);
  __type(value, struct spoke_place);
} spoke_places6 SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, SPOKE_MAX_PODS);
  __type(key, __u32);
  __type(value, struct spoke_slot);
} spoke_slots SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, SPOKE_MAX_PODS);
  __type(key, __u32);
  __type(value, struct spoke_counts);
} spoke_count SEC(".maps");

/* These maps, when full, take no other pair: what they would forget is somebody's connection. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, SPOKE_MAX_PAIRS);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct spoke_pair4);
  __type(value, __u64);
} spoke_pairs4 SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, SPOKE_MAX_PAIRS);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct spoke_pair6);
  __type(value, __u64);
} spoke_pairs6 SEC(".maps");

/* The number of pairs of which the pod is one side, by slot. The agent counts anew from time to
 * time. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, SPOKE_MAX_PODS);
  __type(key, __u32);
  __type(value, __u32);
} spoke_pairs_of SEC(".maps");

/* By slot, 1 once a pair of the pod was not remembered, until it ends. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, SPOKE_MAX_PODS);
  __type(key, __u32);
  __type(value, __u32);
} spoke_excluded SEC(".maps");

INLINE const struct spoke_table* TableInForce(void) {
  const __u32 zero = 0;
  const __u32* turn = bpf_map_lookup_elem(&spoke_turn, &zero);
  if (!turn) return 0;
  const __u32 which = *turn & 1;
  return bpf_map_lookup_elem(&spoke_tables, &which);
}

/* Returns the hop that holds the address, or null. */
INLINE const struct spoke_hop4* Hop4(const struct spoke_table* table, __u32 address) {
  const __u32 number = bpf_ntohl(address);
  for (__u32 i = 0; i < SPOKE_MAX_HOPS; ++i) {
    if (i >= table->count4) return 0;
    const struct spoke_hop4* hop = &table->hop4[i];
    if (number >= hop->first && number <= hop->last) return hop;
  }
  return 0;
}

INLINE int AtLeast(const struct spoke_number6* a, const struct spoke_number6* b) {
  return a->high != b->high ? a->high > b->high : a->low >= b->low;
}

INLINE const struct spoke_hop6* Hop6(const struct spoke_table* table,
                                     const struct spoke_address* address) {
  const struct spoke_number6 number = {
      (__u64)bpf_ntohl(address->word[0]) << 32 | bpf_ntohl(address->word[1]),
      (__u64)bpf_ntohl(address->word[2]) << 32 | bpf_ntohl(address->word[3])};
  for (__u32 i = 0; i < SPOKE_MAX_HOPS; ++i) {
    if (i >= table->count6) return 0;
    const struct spoke_hop6* hop = &table->hop6[i];
    if (AtLeast(&number, &hop->first) && AtLeast(&hop->last, &number)) return hop;
  }
  return 0;
}

INLINE void CountSent(__u32 slot, __u64 packets, __u64 bytes) {
  struct spoke_counts* counts = bpf_map_lookup_elem(&spoke_count, &slot);
  if (!counts) return;
  counts->sent_packets += packets;
  counts->sent_bytes += bytes;
}

INLINE void CountReceived(__u32 slot, __u64 packets, __u64 bytes) {
  struct spoke_counts* counts = bpf_map_lookup_elem(&spoke_count, &slot);
  if (!counts) return;
  counts->received_packets += packets;
  counts->received_bytes += bytes;
}

INLINE struct spoke_pair4 Pair4(__u32 a, __u32 b) {
  const struct spoke_pair4 pair = {a < b ? a : b, a < b ? b : a};
  return pair;
}

INLINE int Less(const struct spoke_address* a, const struct spoke_address* b) {
  for (int i = 0; i < 4; ++i) {
    if (a->word[i] != b->word[i]) return a->word[i] < b->word[i];
  }
  return 0;
}

INLINE struct spoke_pair6 Pair6(const struct spoke_address* a, const struct spoke_address* b) {
  struct spoke_pair6 pair;
  if (Less(a, b)) {
    pair.low = *a;
    pair.high = *b;
  } else {
    pair.low = *b;
    pair.high = *a;
  }
  return pair;
}

/* Decreases the TTL. RFC 1624: the sum of the header changes by what the word with the TTL changes
 * by. */
INLINE void DecreaseTtl(struct iphdr* ip) {
  __u32 check = ip->check;
  check += bpf_htons(0x0100);
  ip->check = (__u16)(check + (check >= 0xFFFF));
  --ip->ttl;
}

/* Delivers into the pod behind `place`: its end of the link receives it as if it had come by the
 * link. The kernel takes the packet for the pod's own whatever its MAC addresses are, so they stay.
 */
INLINE int Deliver(const struct spoke_place* place) { return bpf_redirect_peer(place->link, 0); }

/* Returns whether routing would see the frame too: sent to this host, and without a VLAN tag, which
 * the kernel keeps beside the packet and bpf_redirect_neigh() would send on. */
INLINE int IsPlainFrame(const struct __sk_buff* skb) {
  return skb->pkt_type == 0 /* PACKET_HOST */ && !skb->vlan_present;
}

/* Returns whether the sum of a header without options is right (RFC 1071). */
INLINE int HasRightSum(const struct iphdr* packet) {
  const __u32* words = (const __u32*)packet;
  __u64 sum = 0;
  for (int i = 0; i < 5; ++i) sum += words[i];
  sum = (sum & 0xFFFFFFFF) + (sum >> 32);
  sum = (sum & 0xFFFF) + (sum >> 16);
  sum = (sum & 0xFFFF) + (sum >> 16);
  return (__u16)(sum + (sum >> 16)) == 0xFFFF;
}

/* Returns whether it is an error. Errors are about a packet inside, whose addresses may have been
 * translated: then connection tracking has to see them. It would take those about packets that
 * passed by it for invalid. RFC 792; RFC 4443 section 2.1: below 128. `at` is where the type is. */
INLINE int IsIcmpError4(struct __sk_buff* skb, __u32 at) {
  __u8 type = 0;
  if (bpf_skb_load_bytes(skb, at, &type, 1) != 0) return 1;
  return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}
INLINE int IsIcmpError6(struct __sk_buff* skb, __u32 at) {
  __u8 type = 0;
  return bpf_skb_load_bytes(skb, at, &type, 1) != 0 || type < 128;
}

/* Returns the header, or null unless it is proven plain: the whole header is there, right, without
 * options, of a packet that is whole and no fragment, and may go one hop more. */
INLINE struct iphdr* Ipv4(struct __sk_buff* skb) {
  if (!Pull(skb, ETH_HLEN + sizeof(struct iphdr))) return 0;
  struct iphdr* packet = (void*)(long)skb->data + ETH_HLEN;
  if ((void*)(packet + 1) > (void*)(long)skb->data_end) return 0;
  if (packet->version != 4 || packet->ihl != 5 || packet->ttl <= 1) return 0;
  if (packet->frag_off & bpf_htons(0x3FFF /* More fragments, or an offset. */)) return 0;
  const __u32 length = bpf_ntohs(packet->tot_len);
  if (length < sizeof(*packet) || length > skb->len - ETH_HLEN) return 0;
  return HasRightSum(packet) ? packet : 0;
}

/* Returns the same for IPv6. Extension headers stand where options do: hop by hop, routing,
 * fragment, destination, and mobility, HIP, shim6 (RFC 7045). A length of 0 is a jumbogram's, which
 * has one of them. */
INLINE struct ipv6hdr* Ipv6(struct __sk_buff* skb) {
  if (!Pull(skb, ETH_HLEN + sizeof(struct ipv6hdr))) return 0;
  struct ipv6hdr* packet = (void*)(long)skb->data + ETH_HLEN;
  if ((void*)(packet + 1) > (void*)(long)skb->data_end) return 0;
  if (packet->version != 6 || packet->hop_limit <= 1) return 0;
  const __u32 length = bpf_ntohs(packet->payload_len);
  if (length == 0 || length > skb->len - ETH_HLEN - sizeof(*packet)) return 0;
  switch (packet->nexthdr) {
    case 0:
    case 43:
    case 44:
    case 60:
    case 135:
    case 139:
    case 140:
      return 0;
    default:
      return packet;
  }
}

/* The addresses that an ICMP error says its packet had, behind eight bytes (RFC 792, RFC 4443). */
struct quoted4 {
  __u32 from;
  __u32 to;
};
struct quoted6 {
  struct spoke_address from;
  struct spoke_address to;
};

/* Returns whether the packet is an error, and about which. An error whose packet cannot be read
 * quotes none. */
INLINE int IsError4(struct __sk_buff* skb, const struct iphdr* packet, struct quoted4* quoted) {
  const __u32 at = ETH_HLEN + sizeof(struct iphdr);
  if (packet->protocol != IPPROTO_ICMP || !IsIcmpError4(skb, at)) return 0;
  if (bpf_skb_load_bytes(skb, at + 8 + 12, quoted, sizeof(*quoted)) != 0) quoted->from = 0;
  return 1;
}
INLINE int IsError6(struct __sk_buff* skb, const struct ipv6hdr* packet, struct quoted6* quoted) {
  const __u32 at = ETH_HLEN + sizeof(struct ipv6hdr);
  if (packet->nexthdr != IPPROTO_ICMPV6 || !IsIcmpError6(skb, at)) return 0;
  if (bpf_skb_load_bytes(skb, at + 8 + 8, quoted, sizeof(*quoted)) != 0) quoted->from.word[0] = 0;
  return 1;
}

INLINE __u64 IpBytes(const struct __sk_buff* skb) { return skb->len - ETH_HLEN; }

INLINE int FromPod4(struct __sk_buff* skb, const struct spoke_port* port,
                    const struct spoke_table* table) {
  struct iphdr* packet = Ipv4(skb);
  if (!packet || !port->has_v4 || packet->saddr != port->v4.word[0]) return TC_ACT_UNSPEC;
  const __u32 to = packet->daddr;
  struct quoted4 quoted = {};
  if (IsError4(skb, packet, &quoted) && (quoted.from != to || quoted.to != packet->saddr)) {
    return TC_ACT_UNSPEC;
  }
  const struct spoke_pair4 pair = Pair4(packet->saddr, to);
  const struct spoke_place* place = bpf_map_lookup_elem(&spoke_places4, &to);
  if (place && !place->link) return TC_ACT_UNSPEC;
  const struct spoke_hop4* hop = place ? 0 : Hop4(table, to);
  if (!place && !hop) return TC_ACT_UNSPEC;
  if (bpf_map_lookup_elem(&spoke_pairs4, &pair)) return TC_ACT_UNSPEC;
  CountSent(port->slot, 1, IpBytes(skb));
  DecreaseTtl(packet);
  if (place) {
    CountReceived(place->slot, 1, IpBytes(skb));
    return Deliver(place);
  }
  struct bpf_redir_neigh next = {.nh_family = AF_INET};
  next.ipv4_nh = hop->via ? hop->via : to;
  return bpf_redirect_neigh(table->uplink, &next, sizeof(next), 0);
}

INLINE int FromPod6(struct __sk_buff* skb, const struct spoke_port* port,
                    const struct spoke_table* table) {
  struct ipv6hdr* packet = Ipv6(skb);
  if (!packet || !port->has_v6) return TC_ACT_UNSPEC;
  const struct spoke_address from = Address6(&packet->saddr);
  const struct spoke_address to = Address6(&packet->daddr);
  if (!Same(&from, &port->v6)) return TC_ACT_UNSPEC;
  struct quoted6 quoted = {};
  if (IsError6(skb, packet, &quoted) && (!Same(&quoted.from, &to) || !Same(&quoted.to, &from))) {
    return TC_ACT_UNSPEC;
  }
  const struct spoke_place* place = bpf_map_lookup_elem(&spoke_places6, &to);
  if (place && !place->link) return TC_ACT_UNSPEC;
  const struct spoke_hop6* hop = place ? 0 : Hop6(table, &to);
  if (!place && !hop) return TC_ACT_UNSPEC;
  const struct spoke_pair6 pair = Pair6(&from, &to);
  if (bpf_map_lookup_elem(&spoke_pairs6, &pair)) return TC_ACT_UNSPEC;
  CountSent(port->slot, 1, IpBytes(skb));
  --packet->hop_limit;
  if (place) {
    CountReceived(place->slot, 1, IpBytes(skb));
    return Deliver(place);
  }
  struct bpf_redir_neigh next = {.nh_family = AF_INET6};
  const struct spoke_address none = {};
  const struct spoke_address* by = Same(&hop->via, &none) ? &to : &hop->via;
  __builtin_memcpy(next.ipv6_nh, by, sizeof(next.ipv6_nh));
  return bpf_redirect_neigh(table->uplink, &next, sizeof(next), 0);
}

INLINE int HasMac(const struct ethhdr* frame, const struct spoke_port* port) {
  const __u16* from = (const __u16*)frame->h_source;
  return !port->has_mac ||
         (from[0] == port->mac[0] && from[1] == port->mac[1] && from[2] == port->mac[2]);
}

/* This runs at the ingress of the node's end of a pod's link. It does not depend on anybody's
 * rules: what is not the pod's own ends here. */
SEC("tc")
int spoke_from_pod(struct __sk_buff* skb) {
  const __u32 link = skb->ifindex;
  const struct spoke_port* port = bpf_map_lookup_elem(&spoke_ports, &link);
  if (!port) return Refuse(skb, SPOKE_REFUSED_SOURCE);
  if (skb->vlan_present) return Refuse(skb, SPOKE_REFUSED_VLAN_TAG);
  if (!Pull(skb, ETH_HLEN)) return Refuse(skb, SPOKE_REFUSED_PROTOCOL);
  const struct ethhdr* frame = (void*)(long)skb->data;
  if ((void*)(frame + 1) > (void*)(long)skb->data_end) return Refuse(skb, SPOKE_REFUSED_PROTOCOL);
  if (!HasMac(frame, port)) return Refuse(skb, SPOKE_REFUSED_SOURCE);
  const __u16 protocol = frame->h_proto;
  if (port->fast && IsPlainFrame(skb)) {
    const struct spoke_table* table = TableInForce();
    int verdict = TC_ACT_UNSPEC;
    if (table && protocol == bpf_htons(ETH_P_IP)) verdict = FromPod4(skb, port, table);
    if (table && protocol == bpf_htons(ETH_P_IPV6)) verdict = FromPod6(skb, port, table);
    if (verdict != TC_ACT_UNSPEC) return verdict;
  }
  if (protocol == bpf_htons(ETH_P_IP)) return Guard4(skb, port);
  if (protocol == bpf_htons(ETH_P_IPV6)) return Guard6(skb, port);
  if (protocol == bpf_htons(ETH_P_ARP)) return GuardArp(skb, port);
  return Refuse(skb, SPOKE_REFUSED_PROTOCOL);
}

INLINE int FromUplink4(struct __sk_buff* skb, const struct spoke_table* table) {
  struct iphdr* packet = Ipv4(skb);
  if (!packet) return TC_ACT_UNSPEC;
  const __u32 to = packet->daddr;
  const struct spoke_place* place = bpf_map_lookup_elem(&spoke_places4, &to);
  if (!place || !place->link || !Hop4(table, packet->saddr)) return TC_ACT_UNSPEC;
  const struct spoke_pair4 pair = Pair4(packet->saddr, to);
  if (bpf_map_lookup_elem(&spoke_pairs4, &pair)) return TC_ACT_UNSPEC;
  struct quoted4 quoted = {};
  if (IsError4(skb, packet, &quoted)) {
    if (quoted.from != to || !Hop4(table, quoted.to)) return TC_ACT_UNSPEC;
    const struct spoke_pair4 about = Pair4(quoted.from, quoted.to);
    if (bpf_map_lookup_elem(&spoke_pairs4, &about)) return TC_ACT_UNSPEC;
  }
  CountReceived(place->slot, 1, IpBytes(skb));
  DecreaseTtl(packet);
  return Deliver(place);
}

INLINE int FromUplink6(struct __sk_buff* skb, const struct spoke_table* table) {
  struct ipv6hdr* packet = Ipv6(skb);
  if (!packet) return TC_ACT_UNSPEC;
  const struct spoke_address from = Address6(&packet->saddr);
  const struct spoke_address to = Address6(&packet->daddr);
  const struct spoke_place* place = bpf_map_lookup_elem(&spoke_places6, &to);
  if (!place || !place->link || !Hop6(table, &from)) return TC_ACT_UNSPEC;
  const struct spoke_pair6 pair = Pair6(&from, &to);
  if (bpf_map_lookup_elem(&spoke_pairs6, &pair)) return TC_ACT_UNSPEC;
  struct quoted6 quoted = {};
  if (IsError6(skb, packet, &quoted)) {
    if (!Same(&quoted.from, &to) || !Hop6(table, &quoted.to)) return TC_ACT_UNSPEC;
    const struct spoke_pair6 about = Pair6(&quoted.from, &quoted.to);
    if (bpf_map_lookup_elem(&spoke_pairs6, &about)) return TC_ACT_UNSPEC;
  }
  CountReceived(place->slot, 1, IpBytes(skb));
  --packet->hop_limit;
  return Deliver(place);
}

/* This runs at the ingress of the uplink. */
SEC("tc")
int spoke_from_wire(struct __sk_buff* skb) {
  if (!IsPlainFrame(skb)) return TC_ACT_UNSPEC;
  const struct spoke_table* table = TableInForce();
  if (!table) return TC_ACT_UNSPEC;
  if (skb->protocol == bpf_htons(ETH_P_IP)) return FromUplink4(skb, table);
  if (skb->protocol == bpf_htons(ETH_P_IPV6)) return FromUplink6(skb, table);
  return TC_ACT_UNSPEC;
}

/* Lets the pod keep to the ordinary way until it ends: a connection of which nobody remembers that
 * it is translated must not pass by any other. */
INLINE void LeaveTheFastPath(__u32 slot, struct spoke_port* port) {
  __u32* over_share = bpf_map_lookup_elem(&spoke_excluded, &slot);
  if (over_share) *over_share = 1;
  if (!port) return;
  port->fast = 0;
  const __u32 v4 = port->v4.word[0];
  const struct spoke_address v6 = port->v6;
  struct spoke_place* place4 = port->has_v4 ? bpf_map_lookup_elem(&spoke_places4, &v4) : 0;
  struct spoke_place* place6 = port->has_v6 ? bpf_map_lookup_elem(&spoke_places6, &v6) : 0;
  if (place4) place4->link = 0;
  if (place6) place6->link = 0;
}

/* Returns the slot of the pod that the packet goes to (by its link) or comes from (`place`, by the
 * uplink); SPOKE_MAX_PODS: it is no pod's. */
INLINE __u32 SlotOf(const struct spoke_port* port, const struct spoke_place* place) {
  if (port) return port->slot;
  return place ? place->slot : SPOKE_MAX_PODS;
}

/* Remembers one more pair of the pod in `slot`, which has one more to spare, or leaves the fast
 * path. */
INLINE void Remember(void* pairs, const void* pair, __u32 slot, struct spoke_port* port) {
  __u32* count = bpf_map_lookup_elem(&spoke_pairs_of, &slot);
  if (!count) return; /* The slot is no pod's. */
  const __u64 now = bpf_ktime_get_coarse_ns();
  if (*count < SPOKE_MAX_PAIRS_OF_POD && bpf_map_update_elem(pairs, pair, &now, BPF_ANY) == 0) {
    __sync_fetch_and_add(count, 1);
  } else {
    LeaveTheFastPath(slot, port);
  }
}

INLINE void Learn4(struct __sk_buff* skb) {
  const struct iphdr* packet = (void*)(long)skb->data + ETH_HLEN;
  if ((void*)(packet + 1) > (void*)(long)skb->data_end) return;
  const __u32 from = packet->saddr;
  const __u32 to = packet->daddr;
  const struct spoke_pair4 pair = Pair4(from, to);
  __u64* last = bpf_map_lookup_elem(&spoke_pairs4, &pair);
  if (last) {
    *last = bpf_ktime_get_coarse_ns();
    return;
  }
  const __u32 link = skb->ifindex;
  struct spoke_port* port = bpf_map_lookup_elem(&spoke_ports, &link);
  const struct spoke_place* place = bpf_map_lookup_elem(&spoke_places4, &from);
  const __u32 slot = SlotOf(port, place);
  const __u32 out = place ? place->link : 0;
  if (!port) port = bpf_map_lookup_elem(&spoke_ports, &out);
  Remember(&spoke_pairs4, &pair, slot, port);
}

INLINE void Learn6(struct __sk_buff* skb) {
  const struct ipv6hdr* packet = (void*)(long)skb->data + ETH_HLEN;
  if ((void*)(packet + 1) > (void*)(long)skb->data_end) return;
  const struct spoke_address from = Address6(&packet->saddr);
  const struct spoke_address to = Address6(&packet->daddr);
  const struct spoke_pair6 pair = Pair6(&from, &to);
  __u64* last = bpf_map_lookup_elem(&spoke_pairs6, &pair);
  if (last) {
    *last = bpf_ktime_get_coarse_ns();
    return;
  }
  const __u32 link = skb->ifindex;
  struct spoke_port* port = bpf_map_lookup_elem(&spoke_ports, &link);
  const struct spoke_place* place = bpf_map_lookup_elem(&spoke_places6, &from);
  const __u32 slot = SlotOf(port, place);
  const __u32 out = place ? place->link : 0;
  if (!port) port = bpf_map_lookup_elem(&spoke_ports, &out);
  Remember(&spoke_pairs6, &pair, slot, port);
}

/* This runs at the egress of the uplink and of pods' links: learns whose connections are
 * translated. */
SEC("tc")
int spoke_leaving(struct __sk_buff* skb) {
  if (!(skb->mark & SPOKE_TRANSLATED_MARK)) return TC_ACT_UNSPEC;
  if (skb->protocol == bpf_htons(ETH_P_IP)) Learn4(skb);
  if (skb->protocol == bpf_htons(ETH_P_IPV6)) Learn6(skb);
  return TC_ACT_UNSPEC;
}

/* The agent knows its own programs by this. None of the helpers used needs the GPL. */
char spoke_license[] SEC("license") = "Apache-2.0";
