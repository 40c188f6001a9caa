#include "lib/nft/text.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <variant>

#include "fmt/format.h"
#include "lib/nft/validity.h"

namespace spoke::nft {
namespace {

constexpr size_t kRegisterBytes = 4;

std::string_view NameOf(Family family) {
  constexpr std::array<std::string_view, 4> kNames = {"inet", "netdev", "ip", "ip6"};
  return kNames[static_cast<size_t>(family)];
}

std::string_view NameOf(Hook hook) {
  constexpr std::array<std::string_view, 7> kNames = {"prerouting",  "input",   "forward", "output",
                                                      "postrouting", "ingress", "egress"};
  return kNames[static_cast<size_t>(hook)];
}

std::string_view NameOf(ChainType type) {
  constexpr std::array<std::string_view, 3> kNames = {"filter", "nat", "route"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view NameOf(MetaKey key) {
  constexpr std::array<std::string_view, 11> kNames = {"mark",    "iif",     "oif",      "iifname",
                                                       "oifname", "nfproto", "protocol", "l4proto",
                                                       "length",  "skuid",   "priority"};
  return kNames[static_cast<size_t>(key)];
}

std::string_view NameOf(CtKey key) {
  constexpr std::array<std::string_view, 4> kNames = {"ct state", "ct status", "ct mark",
                                                      "ct direction"};
  return kNames[static_cast<size_t>(key)];
}

std::string_view NameOf(Field field) {
  constexpr std::array<std::string_view, 8> kNames = {"ipv4_addr",   "ipv6_addr", "mark",
                                                      "iface_index", "ifname",    "inet_service",
                                                      "inet_proto",  "integer"};
  return kNames[static_cast<size_t>(field)];
}

std::string_view SignOf(Comparison comparison) {
  constexpr std::array<std::string_view, 6> kSigns = {"==", "!=", "<", "<=", ">", ">="};
  return kSigns[static_cast<size_t>(comparison)];
}

std::string Hex(const Bytes& bytes) {
  std::string text = "0x";
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

uint32_t HostNumber(const Bytes& bytes) {
  uint32_t number = 0;
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(&number));
  return number;
}

// Device names: the NULs behind them are padding.
std::string Quoted(const Bytes& bytes) {
  const auto end = std::find(bytes.begin(), bytes.end(), uint8_t{0});
  return fmt::format("\"{}\"{}", std::string(bytes.begin(), end),
                     // Less than all sixteen bytes: only the beginning of a name.
                     bytes.size() < BytesOf(Field::kInterfaceName) ? "*" : "");
}

std::string ValueText(const Bytes& bytes, std::optional<Field> field) {
  if (!field) return Hex(bytes);
  if (*field == Field::kInterfaceName) return Quoted(bytes);
  if (bytes.size() != BytesOf(*field)) return Hex(bytes);
  switch (*field) {
    case Field::kIpv4:
    case Field::kIpv6: {
      const auto address = ip::Address::FromBytes(bytes);
      return address.ok() ? address->ToString() : Hex(bytes);
    }
    case Field::kMark:
      return fmt::format("{:#x}", HostNumber(bytes));
    case Field::kInterfaceIndex:
      return fmt::format("{}", HostNumber(bytes));
    case Field::kPort:
      return fmt::format("{}", bytes[0] << 8U | bytes[1]);
    case Field::kProtocol:
      return fmt::format("{}", bytes[0]);
    case Field::kInterfaceName:
    case Field::kBytes4:
      break;
  }
  return Hex(bytes);
}

std::string KeyText(const Bytes& key, const Set* set) {
  if (set == nullptr || key.size() != BytesOf(set->key)) return Hex(key);
  std::string text;
  size_t begin = 0;
  for (const Field field : set->key) {
    const size_t size = BytesOf(field);
    if (!text.empty()) text += " . ";
    const auto from = key.begin() + static_cast<std::ptrdiff_t>(begin);
    text += ValueText(Bytes(from, from + static_cast<std::ptrdiff_t>(size)), field);
    begin += (size + kRegisterBytes - 1) / kRegisterBytes * kRegisterBytes;
  }
  return text;
}

std::string VerdictText(const Verdict& verdict) {
  constexpr std::array<std::string_view, 5> kNames = {"accept", "drop", "return", "jump", "goto"};
  const std::string_view name = kNames[static_cast<size_t>(verdict.kind)];
  return verdict.chain.empty() ? std::string(name) : fmt::format("{} {}", name, verdict.chain);
}

struct PayloadName {
  LoadPayload load;  // From register 0.
  std::string_view text;
  std::optional<Field> field;
};

constexpr std::array<PayloadName, 12> kPayloadNames = {{
    {{Header::kNetwork, 12, 4, 0}, "ip saddr", Field::kIpv4},
    {{Header::kNetwork, 16, 4, 0}, "ip daddr", Field::kIpv4},
    {{Header::kNetwork, 8, 1, 0}, "ip ttl", Field::kProtocol},
    {{Header::kNetwork, 9, 1, 0}, "ip protocol", Field::kProtocol},
    {{Header::kNetwork, 6, 2, 0}, "ip frag-off", std::nullopt},
    {{Header::kNetwork, 8, 16, 0}, "ip6 saddr", Field::kIpv6},
    {{Header::kNetwork, 24, 16, 0}, "ip6 daddr", Field::kIpv6},
    {{Header::kNetwork, 7, 1, 0}, "ip6 hoplimit", Field::kProtocol},
    {{Header::kNetwork, 6, 1, 0}, "ip6 nexthdr", Field::kProtocol},
    {{Header::kTransport, 0, 2, 0}, "th sport", Field::kPort},
    {{Header::kTransport, 2, 2, 0}, "th dport", Field::kPort},
    {{Header::kTransport, 13, 1, 0}, "tcp flags", std::nullopt},
}};

std::optional<Field> FieldOf(MetaKey key) {
  switch (key) {
    case MetaKey::kMark:
    case MetaKey::kPriority:
      return Field::kMark;
    case MetaKey::kInterface:
    case MetaKey::kOutInterface:
    case MetaKey::kLength:
    case MetaKey::kSkuid:
      return Field::kInterfaceIndex;  // A number in the machine's order, written in decimal.
    case MetaKey::kInterfaceName:
    case MetaKey::kOutInterfaceName:
      return Field::kInterfaceName;
    case MetaKey::kFamily:
    case MetaKey::kTransport:
      return Field::kProtocol;
    case MetaKey::kEtherType:
      return std::nullopt;
  }
  return std::nullopt;
}

// Writes a rule's expressions one after another, and remembers what each register holds.
class RuleWriter {
 public:
  std::string operator()(const LoadMeta& e) {
    Holds(e.to, FieldOf(e.key));
    return fmt::format("r{} = {}", e.to, NameOf(e.key));
  }
  std::string operator()(const SetMeta& e) {
    return fmt::format("{} = r{}", NameOf(e.key), e.from);
  }
  std::string operator()(const LoadPayload& e) {
    for (const PayloadName& name : kPayloadNames) {
      if (name.load != LoadPayload{e.header, e.offset, e.length, 0}) continue;
      Holds(e.to, name.field);
      return fmt::format("r{} = {}", e.to, name.text);
    }
    constexpr std::array<std::string_view, 3> kHeaders = {"link", "network", "transport"};
    Holds(e.to, std::nullopt);
    return fmt::format("r{} = {}[{}+{}]", e.to, kHeaders[static_cast<size_t>(e.header)], e.offset,
                       e.length);
  }
  std::string operator()(const MaskBits& e) {
    const std::optional<Field> field = Held(e.from);
    Holds(e.to, field);
    std::string text = fmt::format("r{} = r{} & {}", e.to, e.from, ValueText(e.mask, field));
    if (std::any_of(e.toggle.begin(), e.toggle.end(), [](uint8_t byte) { return byte != 0; })) {
      text += fmt::format(" ^ {}", ValueText(e.toggle, field));
    }
    return text;
  }
  std::string operator()(const Compare& e) {
    return fmt::format("r{} {} {}", e.from, SignOf(e.comparison), ValueText(e.value, Held(e.from)));
  }
  std::string operator()(const LookUp& e) {
    if (e.to) {
      Holds(*e.to, Field::kMark);
      return fmt::format("r{} = @{}[r{}]", *e.to, e.set, e.from);
    }
    if (e.verdict) return fmt::format("verdict @{}[r{}]", e.set, e.from);
    return fmt::format("r{} {} @{}", e.from, e.inverted ? "not in" : "in", e.set);
  }
  std::string operator()(const CountHere& e) {
    if (e == CountHere{}) return "counter";
    return fmt::format("counter packets {} bytes {}", e.packets, e.bytes);
  }
  std::string operator()(const CountIn& e) { return fmt::format("counter {}", e.counter); }
  std::string operator()(const LimitRate& e) {
    return fmt::format("limit rate {}{}/second burst {}", e.over ? "over " : "", e.per_second,
                       e.burst);
  }
  std::string operator()(const LimitConnections& e) {
    return fmt::format("ct count {}{}", e.over ? "over " : "", e.count);
  }
  std::string operator()(const PutInSet& e) {
    std::string text = fmt::format("{} @{} r{}", e.refresh ? "update" : "add", e.set, e.from);
    if (e.timeout > absl::ZeroDuration()) {
      text += fmt::format(" timeout {}s", absl::ToInt64Seconds(e.timeout));
    }
    for (const auto& each : e.each) text += " " + std::visit(*this, each);
    return text;
  }
  std::string operator()(const LoadImmediate& e) {
    Holds(e.to, std::nullopt);
    return fmt::format("r{} = {}", e.to, Hex(e.value));
  }
  std::string operator()(const Verdict& e) { return VerdictText(e); }
  std::string operator()(const Forward& e) {
    return fmt::format("fwd {} to r{} device r{}", e.ipv6 ? "ip6" : "ip", e.address, e.device);
  }
  std::string operator()(const LoadCt& e) {
    Holds(e.to, e.key == CtKey::kDirection ? Field::kProtocol : Field::kMark);
    return fmt::format("r{} = {}", e.to, NameOf(e.key));
  }
  std::string operator()(const SetCtMark& e) { return fmt::format("ct mark = r{}", e.from); }
  std::string operator()(const NoTrack& /*none*/) { return "notrack"; }
  std::string operator()(const HashOf& e) {
    Holds(e.to, Field::kMark);
    return fmt::format("r{} = jhash r{}+{} mod {} seed {:#x} offset {}", e.to, e.from, e.length,
                       e.modulus, e.seed, e.offset);
  }
  std::string operator()(const Masquerade& e) {
    return e.fully_random ? "masquerade fully-random" : "masquerade";
  }
  std::string operator()(const TranslateSource& e) {
    std::string text = fmt::format("snat {} to r{}", e.ipv6 ? "ip6" : "ip", e.address_from);
    if (e.address_to != e.address_from) text += fmt::format("-r{}", e.address_to);
    if (e.ports) text += fmt::format(" ports r{}-r{}", e.ports->first, e.ports->second);
    if (e.fully_random) text += " fully-random";
    return text;
  }
  std::string operator()(const TranslateDestination& e) {
    std::string text = fmt::format("dnat {} to r{}", e.ipv6 ? "ip6" : "ip", e.address);
    if (e.port) text += fmt::format(" port r{}", *e.port);
    return text;
  }
  std::string operator()(const Reject& e) {
    return e.tcp_reset ? "reject with tcp reset" : "reject";
  }

 private:
  void Holds(Register reg, std::optional<Field> field) { held_[reg] = field; }
  std::optional<Field> Held(Register reg) const {
    const auto found = held_.find(reg);
    return found == held_.end() ? std::nullopt : found->second;
  }

  std::map<Register, std::optional<Field>> held_;
};

std::string TextOf(const Chain& chain) {
  if (!chain.base) return chain.name;
  std::string text =
      fmt::format("{} type {} hook {} priority {}", chain.name, NameOf(chain.base->type),
                  NameOf(chain.base->hook), chain.base->priority);
  if (!chain.base->devices.empty()) {
    text += fmt::format(" devices {}", fmt::join(chain.base->devices, ", "));
  }
  return text;
}

std::string TextOf(const Set& set) {
  std::string text = fmt::format("{} type ", set.name);
  for (size_t i = 0; i < set.key.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " . ", NameOf(set.key[i]));
  }
  if (set.value) text += fmt::format(" : {}", NameOf(*set.value));
  if (set.verdicts) text += " : verdict";
  if (set.intervals) text += " interval";
  if (set.dynamic) text += " dynamic";
  if (set.counts) text += " counter";
  if (set.size != 0) text += fmt::format(" size {}", set.size);
  if (set.timeout > absl::ZeroDuration()) {
    text += fmt::format(" timeout {}s", absl::ToInt64Seconds(set.timeout));
  }
  return text;
}

std::string ElementText(const Element& element, const Set* set) {
  std::string text = KeyText(element.key, set);
  if (!element.last.empty() && element.last != element.key) {
    text += fmt::format("-{}", KeyText(element.last, set));
  }
  if (!element.value.empty()) {
    text += fmt::format(" : {}", ValueText(element.value, set ? set->value : std::nullopt));
  }
  if (element.verdict) text += fmt::format(" : {}", VerdictText(*element.verdict));
  if (element.seed != CountHere{}) {
    text += fmt::format(" counter packets {} bytes {}", element.seed.packets, element.seed.bytes);
  }
  return text;
}

std::string NameOf(const TableKey& table) {
  return fmt::format("{} {}", NameOf(table.family), table.name);
}

// "add rule" and "forward": what a step does, and to what.
struct StepTitle {
  std::string_view verb;
  std::string_view object;
};

StepTitle TitleParts(const Change& change) {
  struct Namer {
    StepTitle operator()(const AddTable& /*none*/) { return {"add table", {}}; }
    StepTitle operator()(const DeleteTable& /*none*/) { return {"delete table", {}}; }
    StepTitle operator()(const AddChain& c) { return {"add chain", c.chain.name}; }
    StepTitle operator()(const FlushChain& c) { return {"flush chain", c.chain}; }
    StepTitle operator()(const DeleteChain& c) { return {"delete chain", c.chain}; }
    StepTitle operator()(const AddRule& c) { return {"add rule", c.rule.chain}; }
    StepTitle operator()(const DeleteRule& c) { return {"delete rule of", c.chain}; }
    StepTitle operator()(const AddSet& c) { return {"add set", c.set.name}; }
    StepTitle operator()(const DeleteSet& c) { return {"delete set", c.set}; }
    StepTitle operator()(const AddElements& c) { return {"add element", c.set}; }
    StepTitle operator()(const DeleteElements& c) { return {"delete element", c.set}; }
    StepTitle operator()(const FlushSet& c) { return {"flush set", c.set}; }
    StepTitle operator()(const AddCounter& c) { return {"add counter", c.name}; }
    StepTitle operator()(const DeleteCounter& c) { return {"delete counter", c.name}; }
    StepTitle operator()(const AddDevices& c) { return {"add devices", c.chain.name}; }
    StepTitle operator()(const DeleteDevices& c) { return {"delete devices", c.chain.name}; }
  };
  return std::visit(Namer{}, change);
}

using SetsByName = std::map<std::pair<TableKey, std::string>, const Set*>;

std::string Lines(const Step& step, const std::string& set, const std::vector<Element>& elements,
                  const SetsByName& sets) {
  const auto known = sets.find({step.table, set});
  std::string text;
  for (const Element& element : elements) {
    text += fmt::format("{} {}\n", TitleOf(step),
                        ElementText(element, known == sets.end() ? nullptr : known->second));
  }
  return text;
}

std::string Lines(const Step& step, const SetsByName& sets) {
  const std::string head = fmt::format("{} {}", TitleParts(step.change).verb, NameOf(step.table));
  if (const auto* add = std::get_if<AddChain>(&step.change)) {
    return fmt::format("{} {}\n", head, TextOf(add->chain));
  }
  if (const auto* add = std::get_if<AddDevices>(&step.change)) {
    return fmt::format("{} {}\n", head, TextOf(add->chain));
  }
  if (const auto* remove = std::get_if<DeleteDevices>(&step.change)) {
    return fmt::format("{} {}\n", head, TextOf(remove->chain));
  }
  if (const auto* add = std::get_if<AddRule>(&step.change)) {
    return fmt::format("{}: {}\n", TitleOf(step), TextOf(add->rule));
  }
  if (const auto* add = std::get_if<AddSet>(&step.change)) {
    return fmt::format("{} {}\n", head, TextOf(add->set));
  }
  if (const auto* add = std::get_if<AddElements>(&step.change)) {
    return Lines(step, add->set, add->elements, sets);
  }
  if (const auto* remove = std::get_if<DeleteElements>(&step.change)) {
    return Lines(step, remove->set, remove->elements, sets);
  }
  if (const auto* add = std::get_if<AddCounter>(&step.change); add && add->seed != CountHere{}) {
    return fmt::format("{} packets {} bytes {}\n", TitleOf(step), add->seed.packets,
                       add->seed.bytes);
  }
  return TitleOf(step) + "\n";
}

}  // namespace

std::string TextOf(const Rule& rule) {
  RuleWriter writer;
  std::string text;
  for (const Expression& expression : rule.expressions) {
    if (!text.empty()) text += "; ";
    text += std::visit(writer, expression);
  }
  if (!rule.comment.empty()) text += fmt::format(" # {}", rule.comment);
  return text;
}

std::string TextOf(const Transaction& transaction) {
  SetsByName sets;
  std::string text;
  for (const Step& step : transaction.steps) {
    if (const auto* add = std::get_if<AddSet>(&step.change)) {
      sets[{step.table, add->set.name}] = &add->set;
    }
    text += Lines(step, sets);
  }
  return text;
}

std::string TitleOf(const Step& step) {
  const StepTitle title = TitleParts(step.change);
  std::string text = fmt::format("{} {}", title.verb, NameOf(step.table));
  if (!title.object.empty()) text += fmt::format(" {}", title.object);
  return text;
}

std::string TitleOf(const Transaction& transaction, size_t index) {
  return fmt::format("step {} of {}, {}", index + 1, transaction.steps.size(),
                     TitleOf(transaction.steps[index]));
}

}  // namespace spoke::nft
