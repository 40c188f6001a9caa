#include "netagent/journal/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "lib/base/status.h"
#include "lib/os/file.h"
#include "netagent/journal/frame.h"
#include "proto/spoke/v1/journal.pb.h"

namespace spoke::netagent {
namespace {

constexpr size_t kHeaderBytes = 8;
constexpr uint32_t kMaxPayloadBytes = 4 << 20;

v1::JournalEntry ToProto(const HoldingsReplaced& event) {
  v1::JournalEntry entry;
  for (const Holding& holding : event.holdings) {
    auto& out = *entry.mutable_holdings()->add_holdings();
    out.set_address(holding.address.ToBytes());
    out.set_pool(holding.pool);
    if (holding.nic) out.set_nic_mac(holding.nic->octets.data(), holding.nic->octets.size());
  }
  for (const PoolRule& rule : event.rules) {
    auto& out = *entry.mutable_holdings()->add_rules();
    out.set_pool(rule.pool);
    out.set_cidr(rule.cidr);
    for (const std::string& name : rule.namespaces) out.add_namespaces(name);
  }
  entry.mutable_holdings();  // It is present even when the list is empty.
  return entry;
}

v1::JournalAttachOptions ToProto(const AttachOptions& options) {
  v1::JournalAttachOptions out;
  if (options.pod_mac) {
    out.set_pod_mac(options.pod_mac->octets.data(), options.pod_mac->octets.size());
  }
  out.set_mtu(options.mtu);
  out.set_ordinal(options.ordinal);
  out.set_ingress_rate(options.bandwidth.ingress_rate.count());
  out.set_ingress_burst(options.bandwidth.ingress_burst.count());
  out.set_egress_rate(options.bandwidth.egress_rate.count());
  out.set_egress_burst(options.bandwidth.egress_burst.count());
  out.set_internet_ingress(options.internet.ingress.count());
  out.set_internet_egress(options.internet.egress.count());
  out.set_internet_weight(options.internet.weight);
  return out;
}

v1::JournalEntry ToProto(const AssignmentBegun& event) {
  v1::JournalEntry entry;
  v1::JournalAssignment& out = *entry.mutable_intent()->mutable_assignment();
  out.set_container_id(event.assignment.key.container_id);
  out.set_ifname(event.assignment.key.ifname);
  out.set_pod_namespace(event.assignment.pod.pod_namespace);
  out.set_pod_name(event.assignment.pod.name);
  out.set_pod_uid(event.assignment.pod.uid);
  for (const ip::Address& address : event.assignment.addresses)
    out.add_addresses(address.ToBytes());
  out.set_generation(event.assignment.generation);
  out.set_since_unix_ms(absl::ToUnixMillis(event.assignment.since));
  out.set_attempt(event.assignment.attempt);
  out.set_netns_path(event.assignment.netns_path);
  out.set_network(event.assignment.network);
  *out.mutable_options() = ToProto(event.assignment.options);
  if (const netns::Trace& trace = event.assignment.netns_trace; trace != netns::Trace()) {
    v1::JournalNetnsTrace& netns = *out.mutable_netns_trace();
    netns.set_inode(trace.inode);
    netns.set_cookie(trace.cookie);
    netns.set_directory_device(trace.directory_device);
    netns.set_directory_inode(trace.directory_inode);
  }
  return entry;
}

v1::JournalEntry ToProto(const AssignmentBuilt& event) {
  v1::JournalEntry entry;
  entry.mutable_in_use()->set_container_id(event.key.container_id);
  entry.mutable_in_use()->set_ifname(event.key.ifname);
  return entry;
}

v1::JournalEntry ToProto(const AssignmentReleased& event) {
  v1::JournalEntry entry;
  entry.mutable_released()->set_container_id(event.key.container_id);
  entry.mutable_released()->set_ifname(event.key.ifname);
  entry.mutable_released()->set_at_unix_ms(absl::ToUnixMillis(event.at));
  entry.mutable_released()->set_unused(event.unused);
  return entry;
}

v1::JournalEntry ToProto(const CooldownSet& event) {
  v1::JournalEntry entry;
  entry.mutable_cooldown()->set_address(event.address.ToBytes());
  entry.mutable_cooldown()->set_until_unix_ms(absl::ToUnixMillis(event.until));
  return entry;
}

v1::JournalEntry ToProto(const WithdrawnSet& event) {
  v1::JournalEntry entry;
  v1::JournalWithdrawn& out = *entry.mutable_withdrawn();
  for (const ip::Address& address : event.addresses) out.add_addresses(address.ToBytes());
  out.set_over(!event.withdrawn);
  return entry;
}

v1::JournalEntry ToProto(const ConflictNoted& event) {
  v1::JournalEntry entry;
  entry.mutable_conflict()->set_address(event.address.ToBytes());
  if (event.other_mac) {
    entry.mutable_conflict()->set_other_mac(event.other_mac->octets.data(),
                                            event.other_mac->octets.size());
  }
  return entry;
}

v1::JournalEntry ToProto(const ConflictOver& event) {
  v1::JournalEntry entry;
  entry.mutable_conflict()->set_address(event.address.ToBytes());
  entry.mutable_conflict()->set_over(true);
  return entry;
}

v1::JournalEntry ToProto(const AddressesProven& event) {
  v1::JournalEntry entry;
  v1::JournalProven& out = *entry.mutable_proven();
  for (const ip::Address& address : event.addresses) out.add_addresses(address.ToBytes());
  return entry;
}

absl::StatusOr<ip::MacAddress> MacFromBytes(std::string_view bytes) {
  ip::MacAddress mac;
  if (bytes.size() != mac.octets.size()) {
    return absl::InvalidArgumentError("a MAC address has six bytes");
  }
  std::copy(bytes.begin(), bytes.end(), mac.octets.begin());
  return mac;
}

absl::StatusOr<AttachOptions> FromProto(const v1::JournalAttachOptions& in) {
  AttachOptions options{.mtu = in.mtu(),
                        .ordinal = in.ordinal(),
                        .bandwidth = {.ingress_rate = units::BitRate(in.ingress_rate()),
                                      .ingress_burst = units::BitCount(in.ingress_burst()),
                                      .egress_rate = units::BitRate(in.egress_rate()),
                                      .egress_burst = units::BitCount(in.egress_burst())},
                        .internet = {.ingress = units::BitRate(in.internet_ingress()),
                                     .egress = units::BitRate(in.internet_egress()),
                                     .weight = std::max(in.internet_weight(), 1U)}};
  if (!in.pod_mac().empty()) {
    ASSIGN_OR_RETURN(options.pod_mac, MacFromBytes(in.pod_mac()));
  }
  return options;
}

absl::StatusOr<Event> FromProto(const v1::JournalHoldings& in) {
  HoldingsReplaced event;
  for (const auto& holding : in.holdings()) {
    ASSIGN_OR_RETURN(const ip::Address address, ip::Address::FromBytes(holding.address()));
    event.holdings.push_back({address, holding.pool()});
    if (!holding.nic_mac().empty()) {
      ASSIGN_OR_RETURN(event.holdings.back().nic, MacFromBytes(holding.nic_mac()));
    }
  }
  for (const auto& rule : in.rules()) {
    event.rules.push_back(
        {rule.pool(), rule.cidr(), {rule.namespaces().begin(), rule.namespaces().end()}});
  }
  return event;
}

absl::StatusOr<Event> FromProto(const v1::JournalAssignment& in) {
  Assignment assignment{.key = {in.container_id(), in.ifname()},
                        .pod = {in.pod_namespace(), in.pod_name(), in.pod_uid()},
                        .generation = in.generation(),
                        .since = absl::FromUnixMillis(in.since_unix_ms()),
                        .attempt = in.attempt(),
                        .netns_path = in.netns_path(),
                        .network = in.network(),
                        .netns_trace = {.inode = in.netns_trace().inode(),
                                        .cookie = in.netns_trace().cookie(),
                                        .directory_device = in.netns_trace().directory_device(),
                                        .directory_inode = in.netns_trace().directory_inode()}};
  ASSIGN_OR_RETURN(assignment.options, FromProto(in.options()));
  for (const std::string& bytes : in.addresses()) {
    ASSIGN_OR_RETURN(assignment.addresses.emplace_back(), ip::Address::FromBytes(bytes));
  }
  return AssignmentBegun{std::move(assignment)};
}

absl::StatusOr<Event> FromProto(const v1::JournalWithdrawn& in) {
  WithdrawnSet event{.withdrawn = !in.over()};
  for (const std::string& bytes : in.addresses()) {
    ASSIGN_OR_RETURN(event.addresses.emplace_back(), ip::Address::FromBytes(bytes));
  }
  return event;
}

absl::StatusOr<Event> FromProto(const v1::JournalProven& in) {
  AddressesProven event;
  for (const std::string& bytes : in.addresses()) {
    ASSIGN_OR_RETURN(event.addresses.emplace_back(), ip::Address::FromBytes(bytes));
  }
  return event;
}

absl::StatusOr<Event> FromProto(const v1::JournalConflict& in) {
  ConflictNoted event;
  ASSIGN_OR_RETURN(event.address, ip::Address::FromBytes(in.address()));
  if (in.over()) return ConflictOver{event.address};
  if (in.other_mac().empty()) return event;
  ASSIGN_OR_RETURN(event.other_mac, MacFromBytes(in.other_mac()));
  return event;
}

// Converts an entry; nullopt: one that only a newer agent knows.
absl::StatusOr<std::optional<Event>> FromProto(const v1::JournalEntry& entry) {
  switch (entry.entry_case()) {
    case v1::JournalEntry::kHoldings:
      return FromProto(entry.holdings());
    case v1::JournalEntry::kIntent:
      return FromProto(entry.intent().assignment());
    case v1::JournalEntry::kInUse:
      return AssignmentBuilt{{entry.in_use().container_id(), entry.in_use().ifname()}};
    case v1::JournalEntry::kReleased:
      return AssignmentReleased{{entry.released().container_id(), entry.released().ifname()},
                                absl::FromUnixMillis(entry.released().at_unix_ms()),
                                entry.released().unused()};
    case v1::JournalEntry::kCooldown: {
      ASSIGN_OR_RETURN(const ip::Address address,
                       ip::Address::FromBytes(entry.cooldown().address()));
      return CooldownSet{address, absl::FromUnixMillis(entry.cooldown().until_unix_ms())};
    }
    case v1::JournalEntry::kWithdrawn:
      return FromProto(entry.withdrawn());
    case v1::JournalEntry::kConflict:
      return FromProto(entry.conflict());
    case v1::JournalEntry::kProven:
      return FromProto(entry.proven());
    case v1::JournalEntry::ENTRY_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

class FileJournal final : public Journal {
 public:
  FileJournal(std::string path, os::UniqueFd lock, os::UniqueFd file, size_t size)
      : path_(std::move(path)), lock_(std::move(lock)), file_(std::move(file)), size_(size) {}

  absl::Status Append(const Event& event) override {
    const std::string frame = EncodeFrame(event);
    const ssize_t written = ::write(file_.get(), frame.data(), frame.size());
    if (written == static_cast<ssize_t>(frame.size())) {
      size_ += frame.size();
      return absl::OkStatus();
    }
    const int error = written < 0 ? errno : ENOSPC;
    // A part of a frame would end every later replay.
    if (::ftruncate(file_.get(), static_cast<off_t>(size_)) < 0) {
      return base::ErrnoToStatus(errno, "cut back journal " + path_);
    }
    return base::ErrnoToStatus(error, "append to journal " + path_);
  }

  absl::Status Compact(const std::vector<Event>& events) override {
    std::string content;
    for (const Event& event : events) content += EncodeFrame(event);
    RETURN_IF_ERROR(os::WriteFileAtomic(path_, content, os::Durability::kVisible));
    os::UniqueFd file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!file.valid()) return base::ErrnoToStatus(errno, "open journal " + path_);
    file_ = std::move(file);
    size_ = content.size();
    return absl::OkStatus();
  }

  size_t size() const override { return size_; }

 private:
  const std::string path_;
  const os::UniqueFd lock_;
  os::UniqueFd file_;
  size_t size_;
};

}  // namespace

std::string EncodeFrame(const Event& event) {
  const std::string payload =
      std::visit([](const auto& e) { return ToProto(e).SerializeAsString(); }, event);
  std::string frame;
  AppendLittleEndian(static_cast<uint32_t>(payload.size()), frame);
  AppendLittleEndian(Crc32(payload), frame);
  return frame + payload;
}

ParsedJournal ParseJournal(std::string_view bytes) {
  ParsedJournal parsed;
  while (bytes.size() - parsed.valid_bytes >= kHeaderBytes) {
    std::string_view rest = bytes.substr(parsed.valid_bytes);
    const uint32_t length = ReadLittleEndian(rest.substr(0, 4));
    const uint32_t checksum = ReadLittleEndian(rest.substr(4, 4));
    rest.remove_prefix(kHeaderBytes);
    if (length > kMaxPayloadBytes || length > rest.size()) break;
    const std::string_view payload = rest.substr(0, length);
    if (Crc32(payload) != checksum) break;
    v1::JournalEntry entry;
    if (!entry.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) break;
    auto event = FromProto(entry);
    if (!event.ok()) break;
    if (*event) parsed.events.push_back(**std::move(event));
    parsed.valid_bytes += kHeaderBytes + length;
  }
  return parsed;
}

absl::StatusOr<OpenedJournal> OpenJournal(const std::string& path) {
  // The lock is a file of its own, since the journal is replaced when it is compacted.
  const std::string lock_path = path + ".lock";
  os::UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return base::ErrnoToStatus(errno, "open " + lock_path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno == EWOULDBLOCK) {
      return absl::FailedPreconditionError("another agent holds " + lock_path);
    }
    return base::ErrnoToStatus(errno, "lock " + lock_path);
  }
  os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.valid()) return base::ErrnoToStatus(errno, "open journal " + path);
  ASSIGN_OR_RETURN(const std::string content, os::ReadFile(path));
  ParsedJournal parsed = ParseJournal(content);
  if (::ftruncate(file.get(), static_cast<off_t>(parsed.valid_bytes)) < 0) {
    return base::ErrnoToStatus(errno, "cut back journal " + path);
  }
  return OpenedJournal{.journal = std::make_unique<FileJournal>(
                           path, std::move(lock), std::move(file), parsed.valid_bytes),
                       .events = std::move(parsed.events),
                       .dropped_bytes = content.size() - parsed.valid_bytes};
}

}  // namespace spoke::netagent
