#include "netagent/shaping/queues/shape_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <set>
#include <utility>

#include "lib/base/status.h"
#include "netagent/bpf/maps.h"
#include "netagent/claims.h"
#include "netagent/shaping/queues/layout.h"
#include "netagent/shaping/queues/shape_programs.h"

namespace spoke::netagent {
namespace {

static_assert(claims::kTreeHandle == SPOKE_TREE_HANDLE);
static_assert(kMaxShapedFlows == SPOKE_MAX_FLOWS && kMaxConnectionBuckets == SPOKE_MAX_BUCKETS);
static_assert(2 * kMaxShapedPrefixes <= SPOKE_MAX_BLOCKS);
static_assert(2 * kMaxShapedFlows <= SPOKE_MAX_LINKS);
static_assert(kMaxShapeClassId == SPOKE_MAX_CLASS && kWholeLink == SPOKE_WHOLE_LINK);
static_assert(kFirstGroup + kMaxGroups < SPOKE_COUNTED);

constexpr uint64_t kSecond = 1'000'000'000;  // One second in nanoseconds.

spoke_block4 Block4(const ip::Prefix& prefix) {
  return {static_cast<uint32_t>(prefix.length()), ToLayout(prefix.base()).word[0]};
}
spoke_block6 Block6(const ip::Prefix& prefix) {
  return {static_cast<uint32_t>(prefix.length()), ToLayout(prefix.base())};
}

ip::Prefix PrefixOf(const spoke_block4& block) {
  const spoke_address address{{block.address, 0, 0, 0}};
  return ip::Prefix::Of(FromLayout(address, true), static_cast<int>(block.length)).value();
}
ip::Prefix PrefixOf(const spoke_block6& block) {
  return ip::Prefix::Of(FromLayout(block.address, false), static_cast<int>(block.length)).value();
}

// Calls `each` with all keys and values of a map. Nobody else changes it.
template <typename Key, typename Value, typename Each>
absl::Status ReadMap(int map, const char* what, const Each& each) {
  Key key{};
  const Key* previous = nullptr;
  while (true) {
    Key next{};
    if (bpf_map_get_next_key(map, previous, &next) != 0) {
      return errno == ENOENT ? absl::OkStatus() : MapError(errno, what);
    }
    Value value{};
    if (bpf_map_lookup_elem(map, &next, &value) != 0) return MapError(errno, what);
    each(next, value);
    key = next;
    previous = &key;
  }
}

// Appends to `only_one` and `only_other` what is in one of two sorted lists and not in the other,
// and to `only_other` also what has another value there.
void Compare(const std::vector<ShapeMaps::ScopeBlock>& one,
             const std::vector<ShapeMaps::ScopeBlock>& other,
             std::vector<ShapeMaps::ScopeBlock>& only_one,
             std::vector<ShapeMaps::ScopeBlock>& only_other) {
  auto a = one.begin();
  auto b = other.begin();
  while (a != one.end() || b != other.end()) {
    if (b == other.end() || (a != one.end() && a->prefix < b->prefix)) {
      only_one.push_back(*a++);
    } else if (a == one.end() || b->prefix < a->prefix) {
      only_other.push_back(*b++);
    } else {
      if (a->value != b->value) only_other.push_back(*b);
      ++a;
      ++b;
    }
  }
}

// The blocks of one family, as the kernel takes many at once.
template <typename Key>
struct InMap {
  std::vector<Key> keys;
  std::vector<uint32_t> values;
};

template <typename Key, typename ToKey>
InMap<Key> OfFamily(const std::vector<ShapeMaps::ScopeBlock>& blocks, ip::Family family,
                    const ToKey& to_key) {
  InMap<Key> in_map;
  for (const ShapeMaps::ScopeBlock& block : blocks) {
    if (block.prefix.family() != family) continue;
    in_map.keys.push_back(to_key(block.prefix));
    in_map.values.push_back(block.value);
  }
  return in_map;
}

// Puts blocks in one call where the kernel can (Linux 5.13), else one by one.
template <typename Key>
absl::Status PutAll(int map, const InMap<Key>& blocks) {
  auto count = static_cast<uint32_t>(blocks.keys.size());
  if (count == 0) return absl::OkStatus();
  if (bpf_map_update_batch(map, blocks.keys.data(), blocks.values.data(), &count, nullptr) == 0) {
    return absl::OkStatus();
  }
  for (size_t i = 0; i < blocks.keys.size(); ++i) {
    RETURN_IF_ERROR(Put(map, blocks.keys[i], blocks.values[i], "write a scope"));
  }
  return absl::OkStatus();
}

template <typename Key>
absl::Status EraseAll(int map, const InMap<Key>& blocks) {
  auto count = static_cast<uint32_t>(blocks.keys.size());
  if (count == 0) return absl::OkStatus();
  if (bpf_map_delete_batch(map, blocks.keys.data(), &count, nullptr) == 0) return absl::OkStatus();
  for (const Key& key : blocks.keys) RETURN_IF_ERROR(Erase(map, key, "erase a scope"));
  return absl::OkStatus();
}

template <typename FlowKey>
spoke_flow_key KeyInMap(const FlowKey& key) {
  return {key.link, key.scope,
          key.direction == TrafficDirection::kIngress ? uint32_t{SPOKE_INGRESS}
                                                      : uint32_t{SPOKE_EGRESS}};
}

uint64_t IntervalOf(const ConnectionBucket& bucket) {
  return bucket.per_second == 0 ? std::numeric_limits<uint64_t>::max()
                                : kSecond / bucket.per_second;
}

}  // namespace

absl::StatusOr<ShapeMaps> ShapeMaps::Load(uint32_t found) {
  ASSIGN_OR_RETURN(Programs programs, Programs::Load(ShapePrograms(), found));
  ShapeMaps maps(std::move(programs));
  const int processors = libbpf_num_possible_cpus();
  if (processors <= 0) return MapError(-processors, "count the processors");
  maps.processors_ = static_cast<size_t>(processors);
  RETURN_IF_ERROR(Put(maps.programs_.map("spoke_shape"), uint32_t{0}, uint32_t{SPOKE_SHAPE_LAYOUT},
                      "say how maps are laid out"));
  RETURN_IF_ERROR(maps.Refresh());
  return maps;
}

ShapeMaps::FlowKey ShapeMaps::KeyOf(const ShapedFlow& flow) {
  return {flow.host_index, flow.scope, flow.direction};
}

absl::Status ShapeMaps::ReadScopes() {
  scopes_.clear();
  const auto keep = [this](const auto& key, uint32_t scope) {
    scopes_.push_back({PrefixOf(key), scope});
  };
  const char* const what = "read the scopes";
  RETURN_IF_ERROR((ReadMap<spoke_block4, uint32_t>(programs_.map("spoke_scopes4"), what, keep)));
  RETURN_IF_ERROR((ReadMap<spoke_block6, uint32_t>(programs_.map("spoke_scopes6"), what, keep)));
  std::sort(scopes_.begin(), scopes_.end(),
            [](const ScopeBlock& a, const ScopeBlock& b) { return a.prefix < b.prefix; });
  return absl::OkStatus();
}

absl::Status ShapeMaps::Refresh() {
  RETURN_IF_ERROR(ReadScopes());
  flows_.clear();
  RETURN_IF_ERROR((ReadMap<spoke_flow_key, spoke_flow>(
      programs_.map("spoke_flows"), "read the flows",
      [this](const spoke_flow_key& key, const spoke_flow& flow) {
        const auto direction =
            key.direction == SPOKE_INGRESS ? TrafficDirection::kIngress : TrafficDirection::kEgress;
        flows_[{key.link, key.scope, direction}] = {flow.class_id, flow.bucket};
      })));
  links_.clear();
  RETURN_IF_ERROR(
      (ReadMap<uint32_t, uint32_t>(programs_.map("spoke_links"), "read the links",
                                   [this](uint32_t link, uint32_t kind) { links_[link] = kind; })));
  buckets_.clear();
  return ReadMap<uint32_t, spoke_bucket>(
      programs_.map("spoke_buckets"), "read the buckets",
      [this](uint32_t id, const spoke_bucket& bucket) {
        // Division goes down: good enough to find that nothing has to be done, mostly.
        const uint64_t rate = bucket.interval == 0 ? 0 : kSecond / bucket.interval;
        buckets_[static_cast<uint16_t>(id)] = static_cast<uint32_t>(rate);
      });
}

absl::Status ShapeMaps::PutBuckets(const std::vector<ConnectionBucket>& wanted) {
  const int map = programs_.map("spoke_buckets");
  for (const ConnectionBucket& bucket : wanted) {
    const auto at = buckets_.find(bucket.id);
    if (at != buckets_.end() && at->second == bucket.per_second) continue;
    const uint32_t id = bucket.id;
    spoke_bucket value{};
    // A bucket keeps what it has let through.
    if (bpf_map_lookup_elem_flags(map, &id, &value, BPF_F_LOCK) != 0) value = {};
    value.interval = IntervalOf(bucket);
    if (bpf_map_update_elem(map, &id, &value, at == buckets_.end() ? BPF_ANY : BPF_F_LOCK) != 0) {
      return MapError(errno, "write a bucket of connections");
    }
    buckets_[bucket.id] = bucket.per_second;
  }
  return absl::OkStatus();
}

absl::Status ShapeMaps::KeepBuckets(const std::vector<ConnectionBucket>& wanted) {
  std::set<uint16_t> keep;
  for (const ConnectionBucket& bucket : wanted) keep.insert(bucket.id);
  for (auto at = buckets_.begin(); at != buckets_.end();) {
    if (keep.count(at->first) != 0) {
      ++at;
      continue;
    }
    RETURN_IF_ERROR(Erase(programs_.map("spoke_buckets"), uint32_t{at->first}, "erase a bucket"));
    at = buckets_.erase(at);
  }
  return absl::OkStatus();
}

absl::Status ShapeMaps::PutFlow(const ShapedFlow& wanted) {
  const FlowKey key = KeyOf(wanted);
  const FlowValue value{wanted.class_id, wanted.bucket};
  const auto at = flows_.find(key);
  if (at != flows_.end() && at->second == value) return absl::OkStatus();
  const spoke_flow_key in_map = KeyInMap(key);
  if (at == flows_.end()) {
    const std::vector<spoke_offered> none(processors_);
    RETURN_IF_ERROR(
        PutElement(programs_.map("spoke_offered"), &in_map, none.data(), "begin to count a flow"));
  }
  const spoke_flow flow{value.class_id, value.bucket};
  RETURN_IF_ERROR(Put(programs_.map("spoke_flows"), in_map, flow, "write a flow"));
  flows_[key] = value;
  return absl::OkStatus();
}

absl::Status ShapeMaps::EraseFlow(const FlowKey& key) {
  const spoke_flow_key in_map = KeyInMap(key);
  RETURN_IF_ERROR(Erase(programs_.map("spoke_flows"), in_map, "erase a flow"));
  return Erase(programs_.map("spoke_offered"), in_map, "erase what a flow has counted");
}

absl::Status ShapeMaps::KeepFlows(const std::vector<ShapedFlow>& wanted) {
  std::set<FlowKey> keep;
  for (const ShapedFlow& flow : wanted) keep.insert(KeyOf(flow));
  for (auto at = flows_.begin(); at != flows_.end();) {
    if (keep.count(at->first) != 0) {
      ++at;
      continue;
    }
    RETURN_IF_ERROR(EraseFlow(at->first));
    at = flows_.erase(at);
  }
  return absl::OkStatus();
}

absl::Status ShapeMaps::PutScopes(const std::vector<ScopeBlock>& blocks) {
  RETURN_IF_ERROR(PutAll(programs_.map("spoke_scopes4"),
                         OfFamily<spoke_block4>(blocks, ip::Family::kV4, Block4)));
  return PutAll(programs_.map("spoke_scopes6"),
                OfFamily<spoke_block6>(blocks, ip::Family::kV6, Block6));
}

absl::Status ShapeMaps::EraseScopes(const std::vector<ScopeBlock>& blocks) {
  RETURN_IF_ERROR(EraseAll(programs_.map("spoke_scopes4"),
                           OfFamily<spoke_block4>(blocks, ip::Family::kV4, Block4)));
  return EraseAll(programs_.map("spoke_scopes6"),
                  OfFamily<spoke_block6>(blocks, ip::Family::kV6, Block6));
}

absl::Status ShapeMaps::SetScopes(const std::vector<ScopeBlock>& wanted) {
  std::vector<ScopeBlock> old;
  std::vector<ScopeBlock> fresh;
  Compare(scopes_, wanted, old, fresh);
  RETURN_IF_ERROR(PutScopes(fresh));
  RETURN_IF_ERROR(EraseScopes(old));
  scopes_ = wanted;
  return absl::OkStatus();
}

absl::Status ShapeMaps::SetLinks(const std::map<uint32_t, uint32_t>& wanted) {
  const int map = programs_.map("spoke_links");
  for (const auto& [link, kind] : wanted) {
    const auto at = links_.find(link);
    if (at != links_.end() && at->second == kind) continue;
    RETURN_IF_ERROR(Put(map, link, kind, "write a link"));
    links_[link] = kind;
  }
  for (auto at = links_.begin(); at != links_.end();) {
    if (wanted.count(at->first) != 0) {
      ++at;
      continue;
    }
    RETURN_IF_ERROR(Erase(map, at->first, "erase a link"));
    at = links_.erase(at);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ShapedFlowReading>> ShapeMaps::ReadFlows() const {
  std::vector<ShapedFlowReading> readings;
  readings.reserve(flows_.size());
  std::vector<spoke_offered> all(processors_);
  for (const auto& [key, value] : flows_) {
    const spoke_flow_key in_map = KeyInMap(key);
    if (bpf_map_lookup_elem(programs_.map("spoke_offered"), &in_map, all.data()) != 0) {
      return MapError(errno, "read what a flow has counted");
    }
    ShapedFlowReading reading{
        .host_index = key.link, .scope = key.scope, .direction = key.direction};
    for (const spoke_offered& one : all) {
      reading.packets += one.packets;
      reading.offered += units::ByteCount(one.bytes);
      reading.connections += one.connections;
      reading.refused_connections += one.refused;
    }
    readings.push_back(reading);
  }
  return readings;
}

}  // namespace spoke::netagent
