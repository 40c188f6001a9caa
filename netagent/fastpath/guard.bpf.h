/* The check of what a pod may send at all: frames from its own MAC and addresses, untagged, and
 * nothing that only a router says. For the kernel's virtual machine alone. */
#ifndef SPOKE_NETAGENT_FASTPATH_GUARD_BPF_H
#define SPOKE_NETAGENT_FASTPATH_GUARD_BPF_H

#include <linux/pkt_cls.h>

#include "netagent/bpf/packet.bpf.h"
#include "netagent/fastpath/layout.h"

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, SPOKE_REFUSED_REASONS);
  __type(key, __u32);
  __type(value, struct spoke_refused_count);
} spoke_refused SEC(".maps");

INLINE int Same(const struct spoke_address* a, const struct spoke_address* b) {
  return a->word[0] == b->word[0] && a->word[1] == b->word[1] && a->word[2] == b->word[2] &&
         a->word[3] == b->word[3];
}

INLINE int Refuse(struct __sk_buff* skb, __u32 reason) {
  struct spoke_refused_count* count = bpf_map_lookup_elem(&spoke_refused, &reason);
  if (count) {
    ++count->packets;
    count->bytes += skb->len;
  }
  return TC_ACT_SHOT;
}

/* The ARP message of RFC 826, over Ethernet and IPv4. */
struct spoke_arp {
  __u16 hardware;
  __u16 protocol;
  __u8 hardware_length;
  __u8 protocol_length;
  __u16 operation;
  __u16 sender_mac[3];
  __u16 sender[2];
  __u16 target_mac[3];
  __u16 target[2];
};

/* Passes a request or a reply of the pod's own MAC, for the pod's own address; or for none, as RFC
 * 5227 asks whether an address is free. */
INLINE int GuardArp(struct __sk_buff* skb, const struct spoke_port* port) {
  struct spoke_arp arp;
  if (bpf_skb_load_bytes(skb, ETH_HLEN, &arp, sizeof(arp)) != 0) {
    return Refuse(skb, SPOKE_REFUSED_PROTOCOL);
  }
  if (arp.hardware != bpf_htons(1) || arp.protocol != bpf_htons(ETH_P_IP) ||
      arp.hardware_length != ETH_ALEN || arp.protocol_length != 4 ||
      (arp.operation != bpf_htons(1) && arp.operation != bpf_htons(2))) {
    return Refuse(skb, SPOKE_REFUSED_PROTOCOL);
  }
  __u32 sender;
  __builtin_memcpy(&sender, arp.sender, sizeof(sender));
  const int own_mac =
      !port->has_mac || (arp.sender_mac[0] == port->mac[0] && arp.sender_mac[1] == port->mac[1] &&
                         arp.sender_mac[2] == port->mac[2]);
  const int own_address = sender == 0 || (port->has_v4 && sender == port->v4.word[0]);
  return own_mac && own_address ? TC_ACT_UNSPEC : Refuse(skb, SPOKE_REFUSED_SOURCE);
}

/* Returns whether it is what routers of multicast say: IGMP's queries, DVMRP and PIM (RFC 9776,
 * 1075, 7761), router discovery (RFC 4286); and ICMP's redirects and router advertisements (RFC
 * 792, 1256). */
INLINE int IsRouterMessage4(struct __sk_buff* skb, __u8 protocol, __u32 at) {
  if (protocol == 103 /* PIM */) return 1;
  if (protocol != 2 /* IGMP */ && protocol != IPPROTO_ICMP) return 0;
  __u8 type = 0;
  if (bpf_skb_load_bytes(skb, at, &type, 1) != 0) return 0;
  if (protocol == IPPROTO_ICMP) return type == 5 || type == 9;
  return type == 0x11 || type == 0x13 || type == 0x14 || (type >= 0x30 && type <= 0x32);
}

INLINE int Guard4(struct __sk_buff* skb, const struct spoke_port* port) {
  if (!Pull(skb, ETH_HLEN + sizeof(struct iphdr))) return Refuse(skb, SPOKE_REFUSED_PROTOCOL);
  const struct iphdr* packet = (void*)(long)skb->data + ETH_HLEN;
  if ((void*)(packet + 1) > (void*)(long)skb->data_end || packet->version != 4) {
    return Refuse(skb, SPOKE_REFUSED_PROTOCOL);
  }
  if (!port->has_v4 || packet->saddr != port->v4.word[0]) return Refuse(skb, SPOKE_REFUSED_SOURCE);
  if (packet->frag_off & bpf_htons(0x1FFF)) return TC_ACT_UNSPEC;
  return IsRouterMessage4(skb, packet->protocol, ETH_HLEN + 4 * packet->ihl)
             ? Refuse(skb, SPOKE_REFUSED_ROUTER_MESSAGE)
             : TC_ACT_UNSPEC;
}

/* Returns whether it is what only a router says. RFC 4861: router solicitations, advertisements and
 * redirects; MLD's queries (RFC 9777), renumbering (RFC 2894), router discovery (RFC 4286). */
INLINE int IsRouterMessage6(__u8 type) {
  return type == 130 || type == 133 || type == 134 || type == 137 || type == 138 ||
         (type >= 151 && type <= 153);
}
#define SPOKE_NEIGHBOUR_SOLICITATION 135
#define SPOKE_NEIGHBOUR_ADVERTISEMENT 136

/* Returns whether it is a listener's report, or says that one is done (RFC 9777, 2710). */
INLINE int IsListenerMessage(__u8 type) { return type == 131 || type == 132 || type == 143; }

INLINE int IsLinkLocal(const struct spoke_address* address) {
  return (address->word[0] & bpf_htonl(0xFFC00000)) == bpf_htonl(0xFE800000);
}

/* Returns whether the advertisement that stands at `at` speaks for the pod's own address. */
INLINE int AdvertisesItself(struct __sk_buff* skb, const struct spoke_port* port, __u32 at) {
  struct spoke_address target;
  if (bpf_skb_load_bytes(skb, at + 8, &target, sizeof(target)) != 0) return 0;
  return IsLinkLocal(&target) || (port->has_v6 && Same(&target, &port->v6));
}

/* Checks an IPv6 packet. From a link-local address, or none, a pod has to say only that it is a
 * neighbour and that it listens to a group. */
INLINE int Guard6(struct __sk_buff* skb, const struct spoke_port* port) {
  if (!Pull(skb, ETH_HLEN + sizeof(struct ipv6hdr))) return Refuse(skb, SPOKE_REFUSED_PROTOCOL);
  const struct ipv6hdr* packet = (void*)(long)skb->data + ETH_HLEN;
  if ((void*)(packet + 1) > (void*)(long)skb->data_end || packet->version != 6) {
    return Refuse(skb, SPOKE_REFUSED_PROTOCOL);
  }
  const struct spoke_address from = Address6(&packet->saddr);
  const struct spoke_address none = {};
  const int own = port->has_v6 && Same(&from, &port->v6);
  if (!own && !IsLinkLocal(&from) && !Same(&from, &none)) return Refuse(skb, SPOKE_REFUSED_SOURCE);
  __u32 at = ETH_HLEN + sizeof(*packet);
  __u8 next = packet->nexthdr;
  __u8 option[2] = {0, 0};
  if (next == 0 /* Hop-by-hop options, which messages about listeners have. */) {
    if (bpf_skb_load_bytes(skb, at, option, sizeof(option)) != 0) {
      return Refuse(skb, SPOKE_REFUSED_PROTOCOL);
    }
    next = option[0];
    at += 8 + 8 * option[1];
  }
  if (next == 103 /* PIM */) return Refuse(skb, SPOKE_REFUSED_ROUTER_MESSAGE);
  __u8 type = 0;
  if (next != IPPROTO_ICMPV6 || bpf_skb_load_bytes(skb, at, &type, 1) != 0) {
    return own ? TC_ACT_UNSPEC : Refuse(skb, SPOKE_REFUSED_SOURCE);
  }
  if (IsRouterMessage6(type)) return Refuse(skb, SPOKE_REFUSED_ROUTER_MESSAGE);
  if (type == SPOKE_NEIGHBOUR_ADVERTISEMENT) {
    return AdvertisesItself(skb, port, at) ? TC_ACT_UNSPEC : Refuse(skb, SPOKE_REFUSED_SOURCE);
  }
  if (own || type == SPOKE_NEIGHBOUR_SOLICITATION || IsListenerMessage(type)) return TC_ACT_UNSPEC;
  return Refuse(skb, SPOKE_REFUSED_SOURCE);
}

#endif
