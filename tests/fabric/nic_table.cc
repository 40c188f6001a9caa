#include "tests/fabric/nic_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::fabric {
namespace {

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> fields;
  while (true) {
    const size_t end = text.find(separator);
    fields.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

absl::StatusOr<Attachment> ParseLine(std::string_view line, int number) {
  const std::vector<std::string> fields = Split(line, '\t');
  if (fields.size() != 3 || fields[2].empty()) {
    return absl::InvalidArgumentError(
        fmt::format("wants <address>/<prefix-length> TAB <MAC> TAB <node>, not \"{}\"", line));
  }
  Attachment attachment;
  attachment.line = number;
  ASSIGN_OR_RETURN(attachment.addresses, ip::Prefix::Parse(fields[0]));
  ASSIGN_OR_RETURN(attachment.mac, ip::MacAddress::Parse(fields[1]));
  attachment.node = fields[2];
  return attachment;
}

}  // namespace

absl::StatusOr<Nic> ParseNic(std::string_view text) {
  const auto bad = [text](std::string_view why) {
    return absl::InvalidArgumentError(
        fmt::format("NIC \"{}\": {} (NAME=DEVICE,MAC,PRIMARY_ADDRESS[,ADDRESS...])", text, why));
  };
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return bad("no name");
  const std::vector<std::string> fields = Split(text.substr(equals + 1), ',');
  if (fields.size() < 3 || fields[0].empty()) return bad("device, MAC and address are needed");

  Nic nic;
  nic.name = std::string(text.substr(0, equals));
  nic.device = fields[0];
  const absl::StatusOr<ip::MacAddress> mac = ip::MacAddress::Parse(fields[1]);
  if (!mac.ok()) return bad(base::MessageOf(mac.status()));
  if (mac->is_multicast()) return bad("the MAC is a multicast address");
  nic.mac = *mac;
  for (size_t i = 2; i < fields.size(); ++i) {
    const absl::StatusOr<ip::Address> address = ip::Address::Parse(fields[i]);
    if (!address.ok()) return bad(base::MessageOf(address.status()));
    nic.addresses.push_back(*address);
  }
  return nic;
}

absl::StatusOr<std::vector<Attachment>> ParseAttachments(std::string_view text) {
  std::vector<Attachment> attachments;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    absl::StatusOr<Attachment> attachment = ParseLine(line, number);
    if (!attachment.ok()) {
      return base::Annotate(attachment.status(), fmt::format("line {}", number));
    }
    attachments.push_back(*std::move(attachment));
  }
  return attachments;
}

absl::Status NicTable::CheckDistinct() const {
  for (size_t i = 0; i < nics_.size(); ++i) {
    for (size_t j = i + 1; j < nics_.size(); ++j) {
      const Nic& one = nics_[i];
      const Nic& other = nics_[j];
      if (one.name != other.name && one.device != other.device && one.mac != other.mac) continue;
      return absl::InvalidArgumentError(
          fmt::format("NICs {} and {} share a name, a device or a MAC", one.name, other.name));
    }
  }
  return absl::OkStatus();
}

absl::Status NicTable::Add(const ip::Prefix& addresses, size_t nic, std::string where) {
  // Held blocks do not overlap each other, so only the last one that starts no later than the new
  // one and the first that starts inside it can clash.
  auto next = held_.upper_bound(addresses.base());
  for (auto near : {next == held_.begin() ? held_.end() : std::prev(next), next}) {
    if (near == held_.end() || !near->second.addresses.Overlaps(addresses)) continue;
    const Held& held = near->second;
    if (held.nic == nic && held.addresses.Contains(addresses)) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format(
        "{} on NIC {} ({}) clashes with {} on NIC {} ({})", addresses.ToString(), nics_[nic].name,
        where, held.addresses.ToString(), nics_[held.nic].name, held.where));
  }
  held_.emplace(addresses.base(), Held{addresses, nic, std::move(where)});
  return absl::OkStatus();
}

absl::StatusOr<NicTable> NicTable::Build(std::vector<Nic> nics,
                                         const std::vector<Attachment>& attachments) {
  NicTable table(std::move(nics));
  RETURN_IF_ERROR(table.CheckDistinct());
  for (size_t i = 0; i < table.nics_.size(); ++i) {
    for (const ip::Address& address : table.nics_[i].addresses) {
      RETURN_IF_ERROR(table.Add(ip::Prefix::Host(address), i, "its own"));
    }
  }
  for (const Attachment& attachment : attachments) {
    const auto nic = std::find_if(table.nics_.begin(), table.nics_.end(),
                                  [&](const Nic& n) { return n.mac == attachment.mac; });
    if (nic == table.nics_.end()) {
      table.left_out_.push_back(attachment);
      continue;
    }
    RETURN_IF_ERROR(table.Add(attachment.addresses, static_cast<size_t>(nic - table.nics_.begin()),
                              fmt::format("attachments line {}", attachment.line)));
  }
  return table;
}

std::optional<size_t> NicTable::HolderOf(const ip::Address& address) const {
  const auto next = held_.upper_bound(address);
  if (next == held_.begin()) return std::nullopt;
  const Held& held = std::prev(next)->second;
  if (!held.addresses.Contains(address)) return std::nullopt;
  return held.nic;
}

}  // namespace spoke::fabric
