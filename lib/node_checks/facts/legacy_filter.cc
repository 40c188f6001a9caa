#include "lib/node_checks/facts/legacy_filter.h"

#include <arpa/inet.h>  // This comes first: the kernel's header makes way for it.
#include <linux/netfilter_ipv4/ip_tables.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/status.h"
#include "lib/os/file.h"
#include "lib/os/unique_fd.h"

namespace spoke::node_checks {
namespace {

using nft::ChainGist;
using nft::Fate;
using nft::RuleGist;

constexpr const char* kTable = "filter (legacy)";
constexpr size_t kMaxBytes = size_t{16} << 20U;
constexpr uint32_t kForwardHook = 2;  // The number NF_INET_FORWARD.

absl::Status Malformed() { return absl::DataLossError("malformed table of legacy iptables"); }

// Returns false when `bytes` end before. The kernel's structs end in arrays without a length, which
// no optional holds.
template <typename T>
bool ReadAt(std::span<const uint8_t> bytes, size_t offset, T& value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return true;
}

std::string Text(const char* bytes, size_t most) { return {bytes, ::strnlen(bytes, most)}; }

// Returns the device's name. iptables' "docker+" is a beginning: its mask ends with the name.
std::string Device(const char* name, const unsigned char* mask) {
  std::string text = Text(name, IFNAMSIZ);
  if (!text.empty() && text.size() < IFNAMSIZ && mask[text.size()] == 0) text += '*';
  return text;
}

void ReadHeader(const ipt_ip& header, RuleGist& rule) {
  const std::string in = Device(header.iniface, header.iniface_mask);
  const std::string out = Device(header.outiface, header.outiface_mask);
  if (!in.empty() && (header.invflags & IPT_INV_VIA_IN) == 0) rule.devices.push_back(in);
  if (!out.empty() && (header.invflags & IPT_INV_VIA_OUT) == 0) rule.devices.push_back(out);
  rule.conditional = !in.empty() || !out.empty() || header.smsk.s_addr != 0 ||
                     header.dmsk.s_addr != 0 || header.proto != 0 ||
                     (header.flags & IPT_F_FRAG) != 0;
}

// Returns false for malformed input.
bool ReadMatches(std::span<const uint8_t> entry, size_t end, RuleGist& rule) {
  size_t at = sizeof(ipt_entry);
  while (at < end) {
    xt_entry_match match{};
    if (!ReadAt(entry, at, match) || match.u.match_size < sizeof(match) ||
        match.u.match_size > end - at) {
      return false;
    }
    const std::string name = Text(match.u.user.name, sizeof(match.u.user.name));
    if (name != "comment") rule.conditional = true;
    if (name == "conntrack" || name == "state" || name == "mark" || name == "connmark") {
      rule.on_state = true;
    }
    at += match.u.match_size;
  }
  return at == end;
}

// One entry, with what it says about the structure of the table.
struct Entry {
  RuleGist rule;
  size_t offset = 0;
  size_t size = 0;
  std::optional<size_t> jump;  // The offset of the entry that the jump leads to.
  std::string begins;          // The chain that begins behind it; empty: none.
};

absl::StatusOr<Entry> ReadEntry(std::span<const uint8_t> entries, size_t offset) {
  ipt_entry header{};
  if (!ReadAt(entries, offset, header) ||
      header.next_offset < sizeof(ipt_entry) + sizeof(xt_entry_target) ||
      header.next_offset > entries.size() - offset || header.target_offset < sizeof(ipt_entry) ||
      header.target_offset > header.next_offset - sizeof(xt_entry_target)) {
    return Malformed();
  }
  Entry entry{.offset = offset, .size = header.next_offset};
  const auto bytes = entries.subspan(offset, entry.size);
  ReadHeader(header.ip, entry.rule);
  if (!ReadMatches(bytes, header.target_offset, entry.rule)) return Malformed();
  xt_entry_target target{};
  if (!ReadAt(bytes, header.target_offset, target)) return Malformed();
  const std::string name = Text(target.u.user.name, sizeof(target.u.user.name));
  if (name == XT_ERROR_TARGET) {
    xt_error_target error{};
    if (ReadAt(bytes, header.target_offset, error)) {
      entry.begins = Text(error.errorname, sizeof(error.errorname));
    }
  } else if (name == "REJECT") {
    entry.rule.fate = Fate::kReject;
  } else if (name.empty()) {  // This is XT_STANDARD_TARGET.
    xt_standard_target standard{};
    if (!ReadAt(bytes, header.target_offset, standard)) return Malformed();
    if (standard.verdict >= 0) {
      entry.jump = static_cast<size_t>(standard.verdict);
      const bool next = *entry.jump == offset + entry.size;
      if (next) entry.jump.reset();  // It is a rule without a target.
      const bool gone = (header.ip.flags & IPT_F_GOTO) != 0;
      if (!next) entry.rule.fate = gone ? Fate::kGoto : Fate::kJump;
    } else if (standard.verdict == XT_RETURN) {
      entry.rule.fate = Fate::kReturn;
    } else {
      entry.rule.fate = -standard.verdict - 1 == NF_ACCEPT ? Fate::kAccept : Fate::kDrop;
    }
  }
  return entry;
}

}  // namespace

absl::StatusOr<std::vector<ChainGist>> ParseLegacyFilter(std::span<const uint8_t> entries,
                                                         const LegacyHook& forward) {
  std::vector<Entry> all;
  for (size_t at = 0; at < entries.size();) {
    ASSIGN_OR_RETURN(Entry entry, ReadEntry(entries, at));
    at += entry.size;
    all.push_back(std::move(entry));
  }
  // The offset of a chain's first entry, and its place among the chains.
  std::map<size_t, size_t> chains_at;
  std::vector<ChainGist> chains = {{"ip", kTable, "FORWARD", true, false, {}}};
  chains_at[forward.begin] = 0;
  for (const Entry& entry : all) {
    if (entry.begins.empty() || entry.offset + entry.size >= entries.size()) continue;
    chains_at[entry.offset + entry.size] = chains.size();
    chains.push_back({"ip", kTable, entry.begins, false, false, {}});
  }
  bool has_policy = false;
  std::optional<size_t> in;  // The chain that the entry belongs to; nullopt: another hook's.
  for (Entry& entry : all) {
    if (const auto begins = chains_at.find(entry.offset); begins != chains_at.end()) {
      in = begins->second;
    }
    if (entry.offset == forward.policy) {
      chains[0].drops = entry.rule.fate == Fate::kDrop;
      has_policy = true;
      in.reset();
    }
    if (!entry.begins.empty()) in.reset();
    if (!in) continue;
    if (entry.jump) {
      const auto target = chains_at.find(*entry.jump);
      if (target == chains_at.end()) return Malformed();
      entry.rule.target = chains[target->second].name;
    }
    chains[*in].rules.push_back(std::move(entry.rule));
  }
  if (!has_policy) return Malformed();
  return chains;
}

absl::StatusOr<std::vector<ChainGist>> ReadLegacyFilter(const std::string& proc) {
  // A question for a table loads its module, and so makes it; the file names those that are there.
  const auto names = os::ReadFile(proc + "/net/ip_tables_names", 4096);
  if (absl::IsPermissionDenied(names.status())) return names.status();
  if (!names.ok() || ("\n" + *names).find("\nfilter\n") == std::string::npos) {
    return std::vector<ChainGist>();
  }
  const os::UniqueFd fd(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
  if (!fd.valid()) return base::ErrnoToStatus(errno, "open a raw socket");
  ipt_getinfo info{};
  std::strncpy(info.name, "filter", sizeof(info.name) - 1);
  socklen_t size = sizeof(info);
  if (::getsockopt(fd.get(), IPPROTO_IP, IPT_SO_GET_INFO, &info, &size) < 0) {
    return base::ErrnoToStatus(errno, "read legacy iptables' filter table");
  }
  if (info.size > kMaxBytes)
    return absl::ResourceExhaustedError("legacy filter table is too large");
  std::vector<uint8_t> answer(sizeof(ipt_get_entries) + info.size);
  auto* const wanted = reinterpret_cast<ipt_get_entries*>(answer.data());
  std::strncpy(wanted->name, "filter", sizeof(wanted->name) - 1);
  wanted->size = info.size;
  size = static_cast<socklen_t>(answer.size());
  if (::getsockopt(fd.get(), IPPROTO_IP, IPT_SO_GET_ENTRIES, answer.data(), &size) < 0) {
    return base::ErrnoToStatus(errno, "read legacy iptables' rules");
  }
  return ParseLegacyFilter(std::span<const uint8_t>(answer).subspan(sizeof(ipt_get_entries)),
                           {info.hook_entry[kForwardHook], info.underflow[kForwardHook]});
}

}  // namespace spoke::node_checks
