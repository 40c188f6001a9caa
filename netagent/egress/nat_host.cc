#include "netagent/egress/nat_host.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "fmt/core.h"
#include "netagent/claims.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/nftables/rule_parts.h"

namespace spoke::netagent {
namespace {

using nft::MetaKey;
using nft::Register;
using rules::All;
using rules::Expressions;

// The base chains. Marks are set before anybody translates destinations (kube-proxy at -100), and
// our translation comes before that too.
constexpr char kMark[] = "nathost_mark";
constexpr char kChoose[] = "nathost_choose";
constexpr char kSource[] = "nathost_source";
constexpr char kRefuse[] = "nathost_refuse";

// The set of the hub; it has "4" or "6" behind its name, as have the others.
constexpr char kFromHub[] = "nathost_hub";
constexpr char kRange[] = "nathost_range";  // The addresses of Services.
// The map from address, protocol and port to chain.
constexpr char kServices[] = "nathost_services";
constexpr char kAddresses[] = "nathost_addresses";  // The map from these and a slot to endpoint.
constexpr char kPorts[] = "nathost_ports";

constexpr uint8_t kTcp = 6;
constexpr ip::Family kFamilies[] = {ip::Family::kV4, ip::Family::kV6};

// Returns the chain that Services with as many endpoints have together.
std::string ChoiceOf(size_t endpoints) { return fmt::format("nathost_of_{}", endpoints); }

std::vector<nft::Chain> BaseChains() {
  using nft::BaseHook;
  return {
      {kMark, BaseHook{nft::ChainType::kFilter, nft::Hook::kPrerouting, -110}},
      {kChoose, BaseHook{nft::ChainType::kNat, nft::Hook::kPrerouting, -105}},
      {kSource, BaseHook{nft::ChainType::kNat, nft::Hook::kPostrouting, 95}},
      {kRefuse, BaseHook{nft::ChainType::kFilter, nft::Hook::kForward, 0}},
  };
}

std::vector<nft::Set> Sets() {
  using nft::Field;
  std::vector<nft::Set> sets;
  for (const ip::Family family : kFamilies) {
    const Field address = rules::AddressField(family);
    const std::string suffix = rules::Suffix(family);
    const std::vector<Field> service = {address, Field::kProtocol, Field::kPort};
    const std::vector<Field> slot = {address, Field::kProtocol, Field::kPort, Field::kMark};
    sets.push_back({.name = kFromHub + suffix, .key = {address}, .intervals = true});
    sets.push_back({.name = kRange + suffix, .key = {address}, .intervals = true});
    sets.push_back({.name = kServices + suffix, .key = service, .verdicts = true});
    sets.push_back({.name = kAddresses + suffix, .key = slot, .value = address});
    sets.push_back({.name = kPorts + suffix, .key = slot, .value = Field::kPort});
  }
  return sets;
}

absl::Status Check(const EndpointTable& table) {
  if (table.services.size() > kMaxNatServices) {
    return absl::InvalidArgumentError(
        fmt::format("{} services; at most {} are taken", table.services.size(), kMaxNatServices));
  }
  std::set<std::tuple<ip::Address, uint8_t, uint16_t>> seen;
  for (const NatService& service : table.services) {
    const std::string name = fmt::format("{} port {}", service.address.ToString(), service.port);
    if (!seen.emplace(service.address, service.protocol, service.port).second) {
      return absl::InvalidArgumentError(name + " is there twice");
    }
    if (service.endpoints.size() > kMaxNatEndpoints) {
      return absl::InvalidArgumentError(fmt::format("{} has {} endpoints; at most {} are taken",
                                                    name, service.endpoints.size(),
                                                    kMaxNatEndpoints));
    }
    for (const NatEndpoint& endpoint : service.endpoints) {
      if (endpoint.address.family() != service.address.family()) {
        return absl::InvalidArgumentError(
            fmt::format("{} has the endpoint {}", name, endpoint.address.ToString()));
      }
    }
  }
  return absl::OkStatus();
}

std::set<std::string> Chains(const std::optional<EndpointTable>& table) {
  std::set<std::string> names = {kMark, kChoose, kSource, kRefuse};
  if (!table) return names;
  for (const NatService& service : table->services) {
    if (!service.endpoints.empty()) names.insert(ChoiceOf(service.endpoints.size()));
  }
  return names;
}

class Writer {
 public:
  explicit Writer(nft::Transaction& transaction) : transaction_(transaction) {}

  void Add(nft::Change change) { transaction_.Add(kSpokeTable, std::move(change)); }
  void AddRule(const std::string& chain, Expressions expressions) {
    Add(nft::AddRule{{chain, std::move(expressions)}});
  }
  void AddElements(const std::string& set, std::vector<nft::Element> elements) {
    if (!elements.empty()) Add(nft::AddElements{set, std::move(elements)});
  }

  void AddPlaces(const ClassMap& classes) {
    for (const ip::Family family : kFamilies) {
      std::vector<nft::Element> hub;
      for (const ClassRange& range : classes.ranges(family)) {
        if (range.number == kHub) hub.push_back(rules::RangeElement(range.first, range.last));
      }
      AddElements(kFromHub + rules::Suffix(family), std::move(hub));
      // Only outermost blocks are elements: intervals must not overlap.
      std::vector<nft::Element> range;
      for (const ip::Prefix& block : classes.services()) {
        const bool inner =
            std::any_of(classes.services().begin(), classes.services().end(),
                        [&](const ip::Prefix& b) { return b != block && b.Contains(block); });
        if (block.family() != family || inner) continue;
        range.push_back(rules::RangeElement(block.base(), block.last()));
      }
      AddElements(kRange + rules::Suffix(family), std::move(range));
    }
  }

  void AddServices(const EndpointTable& table) {
    for (const ip::Family family : kFamilies) {
      std::vector<nft::Element> services;
      std::vector<nft::Element> addresses;
      std::vector<nft::Element> ports;
      for (const NatService& service : table.services) {
        if (service.address.family() != family || service.endpoints.empty()) continue;
        const nft::Bytes key =
            nft::Join({nft::NetworkOrder(service.address), nft::Bytes{service.protocol},
                       nft::NetworkOrder(service.port)});
        services.push_back(
            {.key = key,
             .verdict = nft::Verdict{nft::VerdictKind::kGoto, ChoiceOf(service.endpoints.size())}});
        for (uint32_t slot = 0; slot < service.endpoints.size(); ++slot) {
          const NatEndpoint& endpoint = service.endpoints[slot];
          const nft::Bytes place = nft::Join({key, nft::HostOrder(slot)});
          addresses.push_back({.key = place, .value = nft::NetworkOrder(endpoint.address)});
          ports.push_back({.key = place, .value = nft::NetworkOrder(endpoint.port)});
        }
      }
      const std::string suffix = rules::Suffix(family);
      AddElements(kServices + suffix, std::move(services));
      AddElements(kAddresses + suffix, std::move(addresses));
      AddElements(kPorts + suffix, std::move(ports));
    }
  }

  void AddRules(const std::optional<EndpointTable>& table) {
    for (const ip::Family family : kFamilies) {
      const std::string suffix = rules::Suffix(family);
      constexpr Register kAddress = 4;
      AddRule(kMark, All({rules::IsPodLink(MetaKey::kInterfaceName, false),
                          rules::IsFamily(family),
                          rules::LoadSource(family, kAddress),
                          {nft::LookUp{.set = kFromHub + suffix, .from = kAddress}},
                          rules::LoadDestination(family, kAddress),
                          {nft::LookUp{.set = kRange + suffix, .from = kAddress}},
                          rules::SetFlowMark(claims::kFlowOfNatHost)}));
      if (!table) continue;
      AddRule(kChoose, All({rules::FlowMarkIs(claims::kFlowOfNatHost),
                            rules::IsFamily(family),
                            LoadService(family),
                            {nft::LookUp{.set = kServices + suffix, .from = 0, .verdict = true}}}));
    }
    std::set<size_t> counts;
    for (const NatService& service : table ? table->services : std::vector<NatService>()) {
      if (!service.endpoints.empty()) counts.insert(service.endpoints.size());
    }
    for (const size_t count : counts) {
      for (const ip::Family family : kFamilies) AddRule(ChoiceOf(count), Choice(family, count));
    }
    // A pod of this very node answers by way of it anyhow.
    AddRule(kSource, All({rules::IsPodLink(MetaKey::kOutInterfaceName, false),
                          rules::FlowMarkIs(claims::kFlowOfNatHost),
                          rules::CtStatusHas(rules::kDestinationNat),
                          {nft::Masquerade{}}}));
    // It would go out as it came, and come back: the network takes it here.
    const Expressions unanswered = All({rules::FlowMarkIs(claims::kFlowOfNatHost),
                                        rules::CtStatusHas(rules::kDestinationNat, false)});
    AddRule(kRefuse, All({unanswered,
                          {nft::LoadMeta{MetaKey::kTransport, 0},
                           nft::Compare{nft::Comparison::kEqual, 0, {kTcp}},
                           nft::CountIn{kNoEndpointCounter}, nft::Reject{.tcp_reset = true}}}));
    AddRule(kRefuse, All({unanswered, {nft::CountIn{kNoEndpointCounter}, nft::Reject{}}}));
  }

 private:
  // Loads the destination, protocol and port, from the first register on.
  static Expressions LoadService(ip::Family family) {
    const Register next = rules::Width(family);
    return All(
        {rules::LoadDestination(family, 0),
         {nft::LoadMeta{MetaKey::kTransport, next},
          nft::LoadPayload{nft::Header::kTransport, 2, 2, static_cast<Register>(next + 1)}}});
  }

  // Chooses an endpoint. All of the key comes from the packet: nft up to 1.0.6 cannot list a rule
  // that looks up what a map has given.
  static Expressions Choice(ip::Family family, size_t count) {
    const Register width = rules::Width(family);
    // The slot stands right behind the service.
    const auto slot = static_cast<Register>(width + 2);
    constexpr Register kAddress = 8;
    const auto behind = static_cast<Register>(kAddress + width);
    const std::string suffix = rules::Suffix(family);
    return All({rules::IsFamily(family),
                LoadService(family),
                rules::LoadSource(family, kAddress),
                // Both ports are hashed, so that each flow is chosen for.
                {nft::LoadPayload{nft::Header::kTransport, 0, 4, behind},
                 nft::HashOf{.from = kAddress,
                             .length = static_cast<uint8_t>(4 * (width + 1)),
                             .to = slot,
                             .modulus = static_cast<uint32_t>(count)},
                 nft::LookUp{.set = kAddresses + suffix, .from = 0, .to = kAddress},
                 nft::LookUp{.set = kPorts + suffix, .from = 0, .to = behind},
                 nft::TranslateDestination{
                     .address = kAddress, .port = behind, .ipv6 = family == ip::Family::kV6}}});
  }

  nft::Transaction& transaction_;
};

std::set<std::string> OldChains(const std::vector<nft::RuleReading>& seen) {
  std::set<std::string> old;
  for (const nft::RuleReading& rule : seen) {
    if (rule.chain.rfind(kNatHostPrefix, 0) == 0) old.insert(rule.chain);
  }
  return old;
}

}  // namespace

absl::Status AppendNatHost(const ClassMap& classes, const std::optional<EndpointTable>& endpoints,
                           const std::vector<nft::RuleReading>& seen,
                           nft::Transaction& transaction) {
  if (endpoints) {
    if (absl::Status status = Check(*endpoints); !status.ok()) return status;
  }
  Writer writer(transaction);
  const std::set<std::string> names = Chains(endpoints);
  std::set<std::string> all = OldChains(seen);
  all.insert(names.begin(), names.end());
  writer.Add(nft::AddCounter{kNoEndpointCounter, {}});
  for (const nft::Set& set : Sets()) writer.Add(nft::AddSet{set});
  for (const nft::Chain& chain : BaseChains()) writer.Add(nft::AddChain{chain});
  for (const std::string& name : names) {
    if (name.rfind("nathost_of_", 0) == 0) writer.Add(nft::AddChain{{name}});
  }
  for (const std::string& name : all) writer.Add(nft::FlushChain{name});
  for (const nft::Set& set : Sets()) writer.Add(nft::FlushSet{set.name});
  for (const std::string& name : all) {
    if (!names.contains(name)) writer.Add(nft::DeleteChain{name});
  }
  writer.AddPlaces(classes);
  if (endpoints) writer.AddServices(*endpoints);
  writer.AddRules(endpoints);
  return absl::OkStatus();
}

void AppendNoNatHost(const std::vector<nft::RuleReading>& seen, nft::Transaction& transaction) {
  Writer writer(transaction);
  std::set<std::string> all = OldChains(seen);
  // Sets are added first, since what is not there cannot be deleted.
  for (const nft::Set& set : Sets()) writer.Add(nft::AddSet{set});
  for (const nft::Chain& chain : BaseChains()) {
    writer.Add(nft::AddChain{chain});
    all.insert(chain.name);
  }
  for (const std::string& name : all) writer.Add(nft::FlushChain{name});
  for (const nft::Set& set : Sets()) writer.Add(nft::FlushSet{set.name});
  for (const std::string& name : all) writer.Add(nft::DeleteChain{name});
  for (const nft::Set& set : Sets()) writer.Add(nft::DeleteSet{set.name});
}

}  // namespace spoke::netagent
