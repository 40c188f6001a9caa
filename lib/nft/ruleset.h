// nf_tables objects as values: expressions, rules, sets, chains, and the transaction that puts them
// into the kernel. Pure. The kernel's side of each is in linux/netfilter/nf_tables.h and nft(8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"

namespace spoke::nft {

// Numbers and addresses in them are in the order in which the kernel compares them: network order
// what is read from a packet, host order what is read with Meta and Ct.
using Bytes = std::vector<uint8_t>;

// Makes the bytes of a number of 32 bits that the kernel made itself: a mark, an index, a state.
Bytes HostOrder(uint32_t value);
// Makes the bytes as they stand in a packet.
Bytes NetworkOrder(uint16_t value);
Bytes NetworkOrder(const ip::Address& address);
// A device's name, padded to 16 bytes (IFNAMSIZ). For a name that begins so, compare with the
// name's own bytes.
Bytes DeviceName(std::string_view name);
// A key of several parts: each begins a register, so it is padded to a multiple of four bytes.
Bytes Join(std::initializer_list<Bytes> parts);

enum class Family : uint8_t { kInet, kNetdev, kIp, kIp6 };

struct TableKey {
  Family family = Family::kInet;
  std::string name;

  auto operator<=>(const TableKey&) const = default;
};

// One of the sixteen registers of 32 bits (NFT_REG32_00 and on). What is longer takes the next ones
// too; a key of several parts stands in registers that follow each other, each part beginning one.
using Register = uint8_t;

enum class MetaKey : uint8_t {
  kMark,
  kInterface,      // The value that nft calls iif: index of the device a packet came by.
  kOutInterface,   // The value that nft calls oif.
  kInterfaceName,  // The value that nft calls iifname: 16 bytes, padded with NULs.
  kOutInterfaceName,
  kFamily,     // The value that nft calls nfproto: one byte, AF_INET or AF_INET6.
  kTransport,  // The value that nft calls l4proto: one byte.
  kLength,
  kPriority,  // The priority that the queues of devices go by.
};

struct LoadMeta {
  MetaKey key;
  Register to = 0;
  bool operator==(const LoadMeta&) const = default;
};

struct SetMeta {
  MetaKey key;
  Register from = 0;
  bool operator==(const SetMeta&) const = default;
};

enum class Header : uint8_t { kLink, kNetwork, kTransport };

struct LoadPayload {
  Header header = Header::kNetwork;
  uint8_t offset = 0;  // The offset in bytes.
  uint8_t length = 0;
  Register to = 0;
  bool operator==(const LoadPayload&) const = default;
};

// Computes to = (from & mask) ^ toggle; all are of one length.
struct MaskBits {
  Register from = 0;
  Register to = 0;
  Bytes mask;
  Bytes toggle;
  bool operator==(const MaskBits&) const = default;
};

enum class Comparison : uint8_t { kEqual, kNotEqual };

// Ends the rule unless `from` compares so with `value`.
struct Compare {
  Comparison comparison = Comparison::kEqual;
  Register from = 0;
  Bytes value;
  bool operator==(const Compare&) const = default;
};

// Ends the rule unless the key is in the set (`inverted`: if it is). For a map, loads the value
// into `to`; for a verdict map, gives the verdict (`verdict`). Counts in the element, where
// elements do, but not when `inverted`.
struct LookUp {
  std::string set;
  Register from = 0;
  std::optional<Register> to = std::nullopt;
  bool verdict = false;
  bool inverted = false;
  bool operator==(const LookUp&) const = default;
};

// Counts in the rule: begins at 0 with each new version of the rule, unless given.
struct CountHere {
  uint64_t packets = 0;
  uint64_t bytes = 0;
  bool operator==(const CountHere&) const = default;
};

struct CountIn {  // Counts in the named counter.
  std::string counter;
  bool operator==(const CountIn&) const = default;
};

// Matches up to (`over`: above) so many a second.
struct LimitRate {
  uint64_t per_second = 0;
  uint32_t burst = 0;  // The burst in packets.
  bool over = false;
  bool operator==(const LimitRate&) const = default;
};

// Matches up to (`over`: above) so many tracked connections.
struct LimitConnections {
  uint32_t count = 0;
  bool over = false;
  bool operator==(const LimitConnections&) const = default;
};

// Puts the key into the dynamic set, or finds it there, and applies `each` to the element. Ends the
// rule when the set is full, and when `each` does not match. `refresh` starts the timeout again
// (nft's "update", not "add").
struct PutInSet {
  std::string set;
  Register from = 0;
  bool refresh = false;
  absl::Duration timeout = absl::ZeroDuration();  // The timeout; zero: the set's.
  std::vector<std::variant<CountHere, LimitRate, LimitConnections>> each;
  bool operator==(const PutInSet&) const = default;
};

struct LoadImmediate {
  Register to = 0;
  Bytes value;
  bool operator==(const LoadImmediate&) const = default;
};

enum class VerdictKind : uint8_t { kAccept, kDrop, kReturn, kJump, kGoto };

struct Verdict {
  VerdictKind kind = VerdictKind::kAccept;
  std::string chain = {};  // The chain of jump and goto.
  bool operator==(const Verdict&) const = default;
};

enum class CtKey : uint8_t {
  kState,   // The state, as the four constants below.
  kStatus,  // The status, bits of enum ip_conntrack_status: IPS_DST_NAT is 32, IPS_SRC_NAT 16.
  kMark,
  kDirection,  // The direction in one byte; 0: original.
};
inline constexpr uint32_t kCtInvalid = 1;
inline constexpr uint32_t kCtEstablished = 2;
inline constexpr uint32_t kCtRelated = 4;
inline constexpr uint32_t kCtNew = 8;

struct LoadCt {
  CtKey key;
  Register to = 0;
  bool operator==(const LoadCt&) const = default;
};

struct SetCtMark {
  Register from = 0;
  bool operator==(const SetCtMark&) const = default;
};

struct NoTrack {
  bool operator==(const NoTrack&) const = default;
};

// Computes to = jhash(from, length, seed) % modulus + offset.
struct HashOf {
  Register from = 0;
  uint8_t length = 0;  // The length in bytes.
  Register to = 0;
  uint32_t modulus = 1;
  uint32_t seed = 0;
  uint32_t offset = 0;
  bool operator==(const HashOf&) const = default;
};

// Translates the source to the address of the device the packet leaves by; ports at random.
struct Masquerade {
  bool fully_random = true;
  bool operator==(const Masquerade&) const = default;
};

// Translates the source to an address in `address_from`..`address_to` (the same for one), IPv4 or
// IPv6, chosen by the kernel; `ports`: registers of the first and the last port.
struct TranslateSource {
  Register address_from = 0;
  Register address_to = 0;
  bool ipv6 = false;
  bool fully_random = true;
  std::optional<std::pair<Register, Register>> ports = std::nullopt;
  bool operator==(const TranslateSource&) const = default;
};

struct TranslateDestination {
  Register address = 0;
  std::optional<Register> port = std::nullopt;
  bool ipv6 = false;
  bool operator==(const TranslateDestination&) const = default;
};

struct Reject {  // Answers a TCP reset for TCP, else ICMP port unreachable of the packet's family.
  bool tcp_reset = false;
  bool operator==(const Reject&) const = default;
};

using Expression =
    std::variant<LoadMeta, SetMeta, LoadPayload, MaskBits, Compare, LookUp, CountHere, CountIn,
                 LimitRate, LimitConnections, PutInSet, LoadImmediate, Verdict, LoadCt, SetCtMark,
                 NoTrack, HashOf, Masquerade, TranslateSource, TranslateDestination, Reject>;

struct Rule {
  std::string chain;
  std::vector<Expression> expressions;
  std::string comment = {};  // A comment of at most 127 bytes; nft and iptables-nft show it.
  bool operator==(const Rule&) const = default;
};

enum class Hook : uint8_t { kPrerouting, kInput, kForward, kOutput, kPostrouting };
enum class ChainType : uint8_t { kFilter, kNat, kRoute };

struct BaseHook {
  ChainType type = ChainType::kFilter;
  Hook hook = Hook::kForward;
  int32_t priority = 0;
  bool operator==(const BaseHook&) const = default;
};

struct Chain {
  std::string name;
  std::optional<BaseHook> base = std::nullopt;  // The hook; its policy is accept.
  bool operator==(const Chain&) const = default;
};

// The type of one part of a key, or of a value: only so that nft prints it well.
enum class Field : uint8_t {
  kIpv4,
  kIpv6,
  kMark,
  kInterfaceIndex,
  kInterfaceName,
  kPort,
  kProtocol
};

struct Set {
  std::string name;
  std::vector<Field> key;
  std::optional<Field> value = std::nullopt;  // The values of a map.
  bool verdicts = false;                      // Whether it is a verdict map.
  // Whether keys are intervals: one key part only, an address or a number in network order; neither
  // dynamic nor with a size.
  bool intervals = false;
  bool dynamic = false;  // Whether PutInSet fills it; it then has a size.
  bool counts = false;   // Whether elements count.
  uint32_t size = 0;     // The most elements; 0: as many as memory has room for.
  absl::Duration timeout = absl::ZeroDuration();  // The timeout; zero: elements stay.
  bool operator==(const Set&) const = default;
};

struct Element {
  Bytes key;
  // The last key of the interval in a set with intervals, the same as `key` for one alone. Empty in
  // all other sets.
  Bytes last = {};
  Bytes value = {};                               // The value in a map.
  std::optional<Verdict> verdict = std::nullopt;  // The verdict in a verdict map.
  CountHere seed = {};                            // The numbers that its counter begins with.
  bool operator==(const Element&) const = default;
};

// Each step works as the kernel has it: adding what is there with the same description changes
// nothing, elements and counters keep what they have counted, and a rule is always one more.
struct AddTable {};
// Deletes all in it as well. OK when there is none.
struct DeleteTable {};
struct AddChain {
  Chain chain;
};
// Removes the chain's rules; elements stay.
struct FlushChain {
  std::string chain;
};
struct DeleteChain {
  std::string chain;
};
struct AddRule {
  Rule rule;
};
// Deletes by the handle that RuleReading has: the kernel never gives one twice in a table.
struct DeleteRule {
  std::string chain;
  uint64_t handle = 0;
};
struct AddSet {
  Set set;
};
struct DeleteSet {
  std::string set;
};
// This is refused as a whole when an element is there with another value.
struct AddElements {
  std::string set;
  std::vector<Element> elements;
};
// This is refused as a whole when one is not there.
struct DeleteElements {
  std::string set;
  std::vector<Element> elements;
};
struct FlushSet {
  std::string set;
};
struct AddCounter {
  std::string name;
  CountHere seed;
};
struct DeleteCounter {
  std::string name;
};
using Change = std::variant<AddTable, DeleteTable, AddChain, FlushChain, DeleteChain, AddRule,
                            DeleteRule, AddSet, DeleteSet, AddElements, DeleteElements, FlushSet,
                            AddCounter, DeleteCounter>;

struct Step {
  TableKey table;
  Change change;
};

// Steps of which all are done or none; packets see either the state before or the one after.
struct Transaction {
  std::vector<Step> steps;

  void Add(const TableKey& table, Change change) { steps.push_back({table, std::move(change)}); }
  bool empty() const { return steps.empty(); }
};

struct ElementReading {
  Element element;  // The element without a seed.
  uint64_t packets = 0;
  uint64_t bytes = 0;
};

struct CounterReading {
  std::string name;
  uint64_t packets = 0;
  uint64_t bytes = 0;
};

struct RuleReading {
  std::string chain;
  uint64_t handle = 0;
  std::string comment;
  // The packets of the first counter in it.
  uint64_t packets = 0;
  uint64_t bytes = 0;
};

// The steps of a transaction in words, for errors.

// Returns what a step does, in short: "add rule inet spoke forward".
std::string TitleOf(const Step& step);
// Returns the same with its number: "step 3 of 17, add rule inet spoke forward".
std::string TitleOf(const Transaction& transaction, size_t index);

// Checks for what the kernel would refuse, or misunderstand, whatever its tables hold.

// The most that the kernel takes (NFT_RULE_MAXEXPRS, a set's key; NFT_NAME_MAXLEN counts the NUL).
inline constexpr size_t kMaxExpressionsPerRule = 128;
inline constexpr size_t kMaxKeyBytes = 64;
inline constexpr size_t kMaxNameBytes = 255;
// The longest comment of a rule, without the NUL.
inline constexpr size_t kMaxCommentBytes = 127;

// Returns the bytes of a field as a packet or the kernel has it, and of a key, each of whose parts
// begins a register.
size_t BytesOf(Field field);
size_t BytesOf(const std::vector<Field>& key);

// All of these return kInvalidArgument, with the reason.

// Checks the name of a table, chain, set, counter or device.
absl::Status CheckName(const std::string& name);
absl::Status CheckRule(const Rule& rule);
// Refuses a description that contradicts itself.
absl::Status CheckSet(const Set& set);
// Checks an element as far as can be told without the set.
absl::Status CheckElement(const Element& element);
// Checks lengths, and that an interval is in a set with intervals, and no other element is.
absl::Status CheckFits(const Element& element, const Set& set);

}  // namespace spoke::nft
