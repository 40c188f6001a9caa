#include "netagent/classes/traffic_class.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "netagent/classes/address_ranges.h"

namespace spoke::netagent {
namespace {

// The longest name of a group: it stands in the names of kernel objects, which have 255 bytes.
constexpr size_t kMaxGroupName = 200;
constexpr std::string_view kGroupPrefix = "group:";
constexpr ClassNumber kNone = 0;

struct NamedClass {
  ClassNumber number;
  const char* name;
};
constexpr NamedClass kNames[] = {
    {kLoopback, "loopback"},    {kPlatform, "platform"},
    {kCluster, "cluster"},      {kHub, "hub"},
    {kPeerSpoke, "peer-spoke"}, {kStorage, "storage"},
    {kInternet, "internet"},    {kPlatformDenied, "platform-denied"},
};

// The blocks that no policy has to name. RFC 6890 and RFC 4291: loopback; "this network",
// link-local, multicast, broadcast.
struct BuiltIn {
  const char* block;
  ClassNumber number;
};
constexpr BuiltIn kBuiltIn[] = {
    {"127.0.0.0/8", kLoopback},      {"::1/128", kLoopback},     {"0.0.0.0/8", kPlatform},
    {"169.254.0.0/16", kPlatform},   {"224.0.0.0/4", kPlatform}, {"255.255.255.255/32", kPlatform},
    {"168.63.129.16/32", kPlatform},  // This is Azure's wireserver.
    {"::/128", kPlatform},           {"fe80::/10", kPlatform},   {"ff00::/8", kPlatform},
};

struct Block {
  ip::Prefix prefix;
  ClassNumber number = kNone;
  std::string origin;  // The origin, for people.
};

// Returns `networks`, except that where they say Internet it is what `groups` say, if anything.
std::vector<ClassRange> Overlay(const std::vector<AddressRange<ClassNumber>>& networks,
                                const std::vector<AddressRange<ClassNumber>>& groups) {
  std::vector<ClassRange> ranges;
  for (const auto& range :
       Merge<ClassNumber>(networks, groups, [](ClassNumber network, ClassNumber group) {
         return network == kInternet && group != kNone ? group : network;
       })) {
    ranges.push_back({range.first, range.last, range.value});
  }
  return ranges;
}

std::vector<AddressRange<ClassNumber>> Flattened(const std::vector<Block>& blocks,
                                                 ip::Family family, ClassNumber otherwise) {
  std::vector<AddressBlock<ClassNumber>> numbered;
  for (const Block& block : blocks) numbered.push_back({block.prefix, block.number});
  return Flatten<ClassNumber>(std::move(numbered), family, otherwise);
}

void Collect(const std::vector<ip::Prefix>& blocks, ClassNumber number, const std::string& origin,
             std::vector<Block>& out) {
  for (const ip::Prefix& block : blocks) out.push_back({block, number, origin});
}

void CollectNetwork(const std::string& key, const policy::ClusterNetwork& network,
                    std::vector<Block>& out) {
  const auto collect = [&](const std::vector<ip::Prefix>& blocks, ClassNumber number,
                           std::string_view field) {
    Collect(blocks, number, fmt::format("{} {}", key, field), out);
  };
  collect(network.cluster, kCluster, "cluster");
  collect(network.services, kCluster, "services");
  collect(network.hub, kHub, "hub");
  collect(network.peer_spoke, kPeerSpoke, "peer-spoke");
  collect(network.platform, kPlatform, "platform");
  collect(network.storage, kStorage, "storage");
}

// Sorts blocks so that each comes before those inside it, and checks them.
absl::Status SortAndCheck(std::vector<Block>& blocks) {
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.prefix < b.prefix; });
  for (size_t i = 1; i < blocks.size(); ++i) {
    const Block& one = blocks[i - 1];
    const Block& other = blocks[i];
    if (one.prefix != other.prefix || one.number == other.number) continue;
    return absl::InvalidArgumentError(fmt::format("{} is in two classes: {} and {}",
                                                  one.prefix.ToString(), one.origin, other.origin));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, ClassNumber>> NumberGroups(
    const std::set<std::string>& names, const std::map<std::string, ClassNumber>& known) {
  std::map<std::string, ClassNumber> numbers;
  std::set<ClassNumber> taken;
  for (const auto& [name, number] : known) taken.insert(number);
  ClassNumber next = kFirstGroup;
  for (const std::string& name : names) {
    if (name.size() > kMaxGroupName) {
      return absl::InvalidArgumentError(
          fmt::format("DestinationGroup/{}: a name of {} bytes; at most {} are counted by name",
                      name, name.size(), kMaxGroupName));
    }
    if (const auto found = known.find(name); found != known.end()) {
      numbers[name] = found->second;
      continue;
    }
    while (taken.contains(next)) ++next;
    if (next >= kFirstGroup + kMaxGroups) {
      return absl::InvalidArgumentError(
          fmt::format("DestinationGroup/{}: {} groups have numbers already, and at most {} can",
                      name, taken.size(), kMaxGroups));
    }
    taken.insert(next);
    numbers[name] = next;
  }
  return numbers;
}

}  // namespace

absl::StatusOr<ClassMap> ClassMap::Compile(const Policy& policy,
                                           const std::map<std::string, ClassNumber>& known) {
  ClassMap map;
  std::vector<Block> networks;
  for (const BuiltIn& built_in : kBuiltIn) {
    networks.push_back({ip::Prefix::Parse(built_in.block).value(), built_in.number,
                        fmt::format("the built-in {}", map.NameOf(built_in.number))});
  }
  std::map<std::string, const policy::DestinationGroup*> groups;
  for (const auto& [key, entry] : policy.entries) {
    if (const auto* network = std::get_if<policy::ClusterNetwork>(&entry.value)) {
      CollectNetwork(key, *network, networks);
      map.services_.insert(map.services_.end(), network->services.begin(), network->services.end());
    } else if (const auto* group = std::get_if<policy::DestinationGroup>(&entry.value)) {
      groups[key.substr(key.find('/') + 1)] = group;
    }
  }
  std::set<std::string> names;
  for (const auto& [name, group] : groups) names.insert(name);
  ASSIGN_OR_RETURN(map.groups_, NumberGroups(names, known));
  std::vector<Block> named;
  for (const auto& [name, group] : groups) {
    Collect(group->cidrs, map.groups_[name], "DestinationGroup/" + name, named);
  }
  RETURN_IF_ERROR(SortAndCheck(networks));
  RETURN_IF_ERROR(SortAndCheck(named));
  for (const ip::Family family : {ip::Family::kV4, ip::Family::kV6}) {
    auto& ranges = family == ip::Family::kV4 ? map.v4_ : map.v6_;
    ranges = Overlay(Flattened(networks, family, kInternet), Flattened(named, family, kNone));
  }
  return map;
}

ClassNumber ClassMap::ClassOf(const ip::Address& address) const {
  const std::vector<ClassRange>& all = ranges(address.family());
  const auto found = std::lower_bound(
      all.begin(), all.end(), address,
      [](const ClassRange& range, const ip::Address& a) { return range.last < a; });
  return found == all.end() ? kInternet : found->number;
}

const std::vector<ClassRange>& ClassMap::ranges(ip::Family family) const {
  return family == ip::Family::kV4 ? v4_ : v6_;
}

std::string ClassMap::NameOf(ClassNumber number) const {
  for (const NamedClass& named : kNames) {
    if (named.number == number) return named.name;
  }
  for (const auto& [name, group] : groups_) {
    if (group == number) return std::string(kGroupPrefix) + name;
  }
  return "other";
}

bool ClassMap::Touches(const ip::Prefix& block, ClassNumber number) const {
  const std::vector<ClassRange>& all = ranges(block.family());
  return std::any_of(all.begin(), all.end(), [&](const ClassRange& range) {
    return range.number == number && range.first <= block.last() && block.base() <= range.last;
  });
}

}  // namespace spoke::netagent
