#include "tests/azure-sim/world.h"

#include <algorithm>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/azure-sim/target.h"

namespace spoke::azure_sim {
namespace {

constexpr std::string_view kComputerDigits = "0123456789abcdefghijklmnopqrstuvwxyz";

// Instance ids end computer names in base 36: 36 is "000010". Unverified beyond "000000".
std::string ComputerName(std::string_view prefix, int64_t number) {
  std::string digits(6, '0');
  for (size_t i = digits.size(); i-- > 0 && number > 0; number /= 36) {
    digits[i] = kComputerDigits[static_cast<size_t>(number % 36)];
  }
  return fmt::format("{}{}", prefix, digits);
}

// Makes a MAC of the prefix of Microsoft's own NICs, and a number.
ip::MacAddress MacOf(uint64_t serial) {
  return {{0x00, 0x0D, 0x3A, static_cast<uint8_t>(serial >> 16U),
           static_cast<uint8_t>(serial >> 8U), static_cast<uint8_t>(serial)}};
}

Json References(const std::vector<std::string>& ids) {
  Json list = Json::array();
  for (const std::string& id : ids) list.push_back({{"id", id}});
  return list;
}

// Takes one address, or a block of them.
bool TakeFixed(SubnetPool* pool, const ip::Address& base, int block_length) {
  const uint64_t count = block_length != 0 ? 16 : 1;
  for (uint64_t i = 0; i < count; ++i) {
    if (pool->Take(ip::Advance(base, i)) == SubnetPool::Taken::kYes) continue;
    if (i > 0) pool->Free(base, i);
    return false;
  }
  return true;
}

Extra Share(Json value) {
  return value.empty() ? nullptr : std::make_shared<const Json>(std::move(value));
}

}  // namespace

bool SameExtra(const Extra& a, const Extra& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

std::string GuidOf(uint64_t serial, uint64_t version) {
  SeededRandom random(serial * 0x9E3779B97F4A7C15ULL + version);
  return random.Guid();
}

std::string_view NameOf(State state) {
  switch (state) {
    case State::kSucceeded:
      return "Succeeded";
    case State::kCreating:
      return "Creating";
    case State::kUpdating:
      return "Updating";
    case State::kDeleting:
      return "Deleting";
    case State::kFailed:
      return "Failed";
    case State::kCanceled:
      return "Canceled";
  }
  return "";
}

bool IpConfig::operator==(const IpConfig& other) const {
  return name == other.name && subnet == other.subnet && family == other.family &&
         block_length == other.block_length && fixed == other.fixed &&
         primary.value_or(false) == other.primary.value_or(false) && SameExtra(extra, other.extra);
}

bool NicConfig::operator==(const NicConfig& other) const {
  return name == other.name && primary == other.primary && SameExtra(extra, other.extra) &&
         ip_configs == other.ip_configs;
}

const NicEntry* Nic::FindEntry(std::string_view entry_name) const {
  for (const NicEntry& entry : entries) {
    if (entry.name == entry_name) return &entry;
  }
  return nullptr;
}

size_t ScaleSet::Living() const {
  return static_cast<size_t>(std::count_if(instances.begin(), instances.end(),
                                           [](const auto& each) { return !each.second->gone; }));
}

absl::StatusOr<std::unique_ptr<World>> World::Build(const SimSpec& spec, absl::Time now) {
  std::unique_ptr<World> world(new World(spec.seed));
  for (const std::string& id : spec.resource_groups) {
    const Target target = ParseTarget(id);
    if (target.size() != 4) {
      return absl::InvalidArgumentError(fmt::format("{}: not the id of a resource group", id));
    }
    world->AddGroup(target.Segment(1), target.Segment(3), "eastus2");
  }
  for (const SubnetSpec& subnet : spec.subnets) {
    RETURN_IF_ERROR(world->AddSubnet(subnet).status());
  }
  for (const ScaleSetSpec& set_spec : spec.scale_sets) {
    ASSIGN_OR_RETURN(ScaleSet * set, world->AddSet(set_spec, now));
    for (int i = 0; i < set_spec.instances; ++i) {
      RETURN_IF_ERROR(world->AddInstance(*set, now).status());
    }
    set->capacity = set_spec.instances;
  }
  return world;
}

bool World::HasSubscription(std::string_view subscription) const {
  return groups_.count(Lower(subscription)) != 0;
}

ResourceGroup* World::FindGroup(std::string_view subscription, std::string_view name) {
  const auto found = groups_.find(Lower(subscription));
  if (found == groups_.end()) return nullptr;
  const auto group = found->second.find(Lower(name));
  return group == found->second.end() ? nullptr : group->second.get();
}

ScaleSet* World::FindSet(std::string_view id) {
  const auto found = sets_.find(Lower(id));
  return found == sets_.end() ? nullptr : found->second;
}

Instance* World::FindInstance(ScaleSet& set, int64_t number) {
  const auto found = set.instances.find(number);
  return found == set.instances.end() || found->second->gone ? nullptr : found->second.get();
}

Instance* World::FindInstance(std::string_view id) {
  const auto found = vms_.find(Lower(id));
  return found == vms_.end() || found->second->gone ? nullptr : found->second;
}

Subnet* World::FindSubnet(std::string_view id) {
  const auto found = subnets_.find(Lower(id));
  return found == subnets_.end() ? nullptr : found->second;
}

ResourceGroup& World::AddGroup(std::string_view subscription, std::string_view name,
                               std::string_view location) {
  std::unique_ptr<ResourceGroup>& group = groups_[Lower(subscription)][Lower(name)];
  if (group == nullptr) {
    group = std::make_unique<ResourceGroup>();
    group->subscription = std::string(subscription);
    group->name = std::string(name);
    group->location = std::string(location);
  }
  return *group;
}

absl::StatusOr<Subnet*> World::AddSubnet(const SubnetSpec& spec) {
  const Target id = ParseTarget(spec.id);
  if (id.size() != 10 || id.Key(0) != "subscriptions" || id.Key(6) != "virtualnetworks" ||
      id.Key(8) != "subnets") {
    return absl::InvalidArgumentError(fmt::format("{}: not the id of a subnet", spec.id));
  }
  if (FindSubnet(spec.id) != nullptr) {
    return absl::InvalidArgumentError(fmt::format("{}: there twice", spec.id));
  }
  ResourceGroup& group = AddGroup(id.Segment(1), id.Segment(3), spec.location);
  std::unique_ptr<VirtualNetwork>& network = group.networks[id.keys[7]];
  if (network == nullptr) {
    network = std::make_unique<VirtualNetwork>();
    network->id = spec.id.substr(0, spec.id.rfind("/subnets/"));
    network->name = id.segments[7];
    network->location = spec.location;
    network->serial = NextSerial();
  }
  network->prefixes.push_back(spec.prefix.ToString());
  auto subnet = std::make_unique<Subnet>(
      Subnet{spec.id, id.segments[9], SubnetPool(spec.prefix), std::nullopt, 1, NextSerial()});
  if (spec.prefix_v6.has_value()) subnet->v6.emplace(*spec.prefix_v6);
  Subnet* const added = subnet.get();
  network->subnets[id.keys[9]] = std::move(subnet);
  subnets_[Lower(spec.id)] = added;
  return added;
}

NetworkProfile World::ModelOf(const ScaleSetSpec& spec, Subnet* subnet) const {
  Json shared = Json::object();
  if (!spec.application_security_groups.empty()) {
    shared["applicationSecurityGroups"] = References(spec.application_security_groups);
  }
  const Extra secondary = Share(shared);
  if (!spec.load_balancer_pools.empty()) {
    shared["loadBalancerBackendAddressPools"] = References(spec.load_balancer_pools);
  }
  const Extra primary = Share(std::move(shared));
  // The keys are in alphabetical order: what clients send back is sorted before it is compared.
  Json nic = {{"disableTcpStateTracking", false},
              {"dnsSettings", {{"dnsServers", Json::array()}}},
              {"enableAcceleratedNetworking", spec.accelerated_networking},
              {"enableIPForwarding", spec.ip_forwarding}};
  if (!spec.network_security_group.empty()) {
    nic["networkSecurityGroup"] = {{"id", spec.network_security_group}};
  }
  const Extra nic_extra = Share(std::move(nic));

  NetworkProfile model;
  for (int i = 0; i < std::max(spec.nics, 1); ++i) {
    NicConfig config;
    config.name = i == 0 ? spec.nic : fmt::format("{}{}", spec.nic, i);
    config.primary = i == 0;
    config.extra = nic_extra;
    const int baked = i == 0 ? spec.baked_addresses + spec.baked_blocks : 0;
    IpConfig first;
    first.name = spec.ip_configuration;
    first.subnet = subnet;
    first.extra = primary;
    if (baked > 0 || spec.instances_know_primary) first.primary = true;
    config.ip_configs.push_back(std::move(first));
    for (int n = 0; n < baked; ++n) {
      IpConfig more;
      more.name = fmt::format("{}{}", spec.baked_prefix, n);
      more.subnet = subnet;
      more.extra = secondary;
      more.primary = false;
      more.block_length = n < spec.baked_addresses ? 0 : 28;
      config.ip_configs.push_back(std::move(more));
    }
    model.push_back(std::move(config));
  }
  return model;
}

absl::StatusOr<ScaleSet*> World::AddSet(const ScaleSetSpec& spec, absl::Time now) {
  Subnet* const subnet = FindSubnet(spec.subnet_id);
  if (subnet == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("{}: there is no subnet {}", spec.name, spec.subnet_id));
  }
  ResourceGroup& group = AddGroup(spec.subscription, spec.resource_group, spec.location);
  auto set = std::make_unique<ScaleSet>();
  set->group = &group;
  set->spec = spec;
  set->id = spec.id();
  set->key = Lower(set->id);
  if (sets_.count(set->key) != 0) {
    return absl::InvalidArgumentError(fmt::format("{}: there twice", set->id));
  }
  set->unique_id = GuidOf(NextSerial(), 0);
  set->sku = spec.sku;
  set->model = ModelOf(spec, subnet);
  set->next_instance = spec.first_instance;
  set->created = now;
  ScaleSet* const added = set.get();
  sets_[set->key] = added;
  group.sets[Lower(spec.name)] = std::move(set);
  return added;
}

std::optional<NicEntry> World::Assign(const IpConfig& config) {
  NicEntry entry;
  entry.name = config.name;
  entry.subnet = config.subnet;
  entry.extra = config.extra;
  entry.primary = config.primary.value_or(false);
  entry.block_length = config.block_length;
  entry.is_static = config.fixed.has_value();
  std::optional<ip::Address> base;
  if (config.fixed.has_value()) {
    if (TakeFixed(&config.subnet->v4, *config.fixed, config.block_length)) base = config.fixed;
  } else if (config.family == ip::Family::kV6) {
    if (config.subnet->v6.has_value()) base = config.subnet->v6->TakeLowest();
  } else {
    base =
        config.block_length != 0 ? config.subnet->v4.TakeBlock() : config.subnet->v4.TakeLowest();
  }
  if (!base.has_value()) return std::nullopt;
  const int length = config.block_length != 0 ? config.block_length : base->bits();
  entry.range = *ip::Prefix::Of(*base, length);
  return entry;
}

void World::Release(const NicEntry& entry) {
  SubnetPool& pool = entry.range.base().is_v4() ? entry.subnet->v4 : *entry.subnet->v6;
  pool.Free(entry.range.base(), entry.range.size());
}

absl::StatusOr<std::vector<NicEntry>> World::AssignAll(const NicConfig& config,
                                                       const std::optional<ip::Address>& wanted) {
  std::vector<NicEntry> entries;
  for (const IpConfig& ip_config : config.ip_configs) {
    std::optional<NicEntry> entry;
    if (entries.empty() && wanted.has_value()) {
      if (ip_config.subnet->v4.Take(*wanted) != SubnetPool::Taken::kYes) {
        return absl::InvalidArgumentError(
            fmt::format("{}: not a free address of the subnet", wanted->ToString()));
      }
      entry.emplace();
      entry->name = ip_config.name;
      entry->subnet = ip_config.subnet;
      entry->extra = ip_config.extra;
      entry->range = ip::Prefix::Host(*wanted);
    } else {
      entry = Assign(ip_config);
    }
    if (!entry.has_value()) {
      for (const NicEntry& taken : entries) Release(taken);
      return absl::ResourceExhaustedError(fmt::format(
          "Subnet {} with address prefix {} does not have enough capacity for 1 IP addresses.",
          ip_config.subnet->name, ip_config.subnet->v4.prefix().ToString()));
    }
    // A single IP configuration is the primary one, whether or not it says so.
    if (config.ip_configs.size() == 1) entry->primary = true;
    entries.push_back(*std::move(entry));
  }
  return entries;
}

std::unique_ptr<Nic> World::MakeNic(const Instance& instance, const NicConfig& config) {
  auto nic = std::make_unique<Nic>();
  nic->serial = NextSerial();
  nic->mac = MacOf(nic->serial);
  nic->primary = config.primary;
  nic->extra = config.extra;
  nic->location = instance.set->spec.location;
  if (instance.set->spec.orchestration == Orchestration::kUniform) {
    nic->name = config.name;
    nic->id = fmt::format("{}/networkInterfaces/{}", instance.id, nic->name);
  } else {
    nic->standalone = true;
    nic->name = fmt::format("{}-{}", instance.name, config.name);
    nic->id = fmt::format(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/networkInterfaces/{}",
        instance.set->group->subscription, instance.set->group->name, nic->name);
  }
  return nic;
}

absl::StatusOr<Instance*> World::AddInstance(ScaleSet& set, absl::Time now) {
  const bool uniform = set.spec.orchestration == Orchestration::kUniform;
  auto instance = std::make_unique<Instance>();
  instance->set = &set;
  instance->number = set.next_instance;
  instance->created = now;
  instance->vm_id = random_.Guid();
  const std::string& prefix =
      set.spec.computer_name_prefix.empty() ? set.spec.name : set.spec.computer_name_prefix;
  instance->computer_name = ComputerName(prefix, instance->number);
  const auto index = static_cast<size_t>(instance->number - set.spec.first_instance);
  const InstanceSpec wanted =
      index < set.spec.first.size() ? set.spec.first[index] : InstanceSpec();
  if (uniform) {
    instance->name = fmt::format("{}_{}", set.spec.name, instance->number);
    instance->id = fmt::format("{}/virtualMachines/{}", set.id, instance->number);
    instance->profile = set.model;
  } else {
    instance->name = wanted.name.empty()
                         ? fmt::format("{}_{:08x}", set.spec.name,
                                       static_cast<uint32_t>(random_.Next() & 0xFFFFFFFFU))
                         : wanted.name;
    instance->id = fmt::format(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/virtualMachines/{}",
        set.group->subscription, set.group->name, instance->name);
  }
  instance->node = instance->computer_name;

  if (!wanted.node.empty()) instance->node = wanted.node;
  for (const NicConfig& config : set.model) {
    auto entries = AssignAll(config, config.primary ? wanted.address : std::nullopt);
    if (!entries.ok()) {
      for (const auto& nic : instance->owned_nics) {
        for (const NicEntry& entry : nic->entries) Release(entry);
      }
      return entries.status();
    }
    std::unique_ptr<Nic> nic = MakeNic(*instance, config);
    if (config.primary && wanted.mac.has_value()) nic->mac = *wanted.mac;
    nic->entries = *std::move(entries);
    nic->vm = instance.get();
    instance->nics.push_back(nic.get());
    instance->owned_nics.push_back(std::move(nic));
  }
  if (!uniform) {
    for (auto& nic : instance->owned_nics) set.group->nics[Lower(nic->name)] = std::move(nic);
    instance->owned_nics.clear();
    set.group->vms[Lower(instance->name)] = instance.get();
  }
  Instance* const added = instance.get();
  vms_[Lower(added->id)] = added;
  set.instances[set.next_instance++] = std::move(instance);
  WireChanged();
  return added;
}

Nic& World::AddNic(ResourceGroup& group, std::string_view name, std::string_view location) {
  auto nic = std::make_unique<Nic>();
  nic->serial = NextSerial();
  nic->mac = MacOf(nic->serial);
  nic->standalone = true;
  nic->name = std::string(name);
  nic->location = std::string(location);
  nic->id = fmt::format(
      "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/networkInterfaces/{}",
      group.subscription, group.name, name);
  std::unique_ptr<Nic>& kept = group.nics[Lower(name)];
  kept = std::move(nic);
  return *kept;
}

void World::Forget(Instance& instance) {
  ResourceGroup& group = *instance.set->group;
  if (instance.set->spec.orchestration == Orchestration::kFlexible) {
    for (Nic* nic : instance.nics) group.nics.erase(Lower(nic->name));
    group.vms.erase(Lower(instance.name));
  }
  vms_.erase(Lower(instance.id));
  instance.set->instances.erase(instance.number);
}

}  // namespace spoke::azure_sim
