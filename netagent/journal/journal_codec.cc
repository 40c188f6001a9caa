#include "netagent/journal/journal_codec.h"

#include <zlib.h>

#include <optional>
#include <utility>

#include "lib/base/status.h"
#include "proto/spoke/v1/journal.pb.h"

namespace spoke::netagent {
namespace {

constexpr size_t kHeaderBytes = 8;
constexpr uint32_t kMaxPayloadBytes = 4 << 20;

uint32_t Crc32(std::string_view payload) {
  return static_cast<uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(payload.data()),
                                       static_cast<uInt>(payload.size())));
}

void AppendLittleEndian(uint32_t value, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>((value >> shift) & 0xFFU);
}

uint32_t ReadLittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i > 0; --i) value = (value << 8U) | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

v1::JournalEntry ToProto(const HoldingsReplaced& event) {
  v1::JournalEntry entry;
  for (const Holding& holding : event.holdings) {
    auto& out = *entry.mutable_holdings()->add_holdings();
    out.set_address(holding.address.ToBytes());
    out.set_pool(holding.pool);
  }
  entry.mutable_holdings();  // Present even when the list is empty.
  return entry;
}

v1::JournalEntry ToProto(const LendingBegun& event) {
  v1::JournalEntry entry;
  v1::JournalLending& out = *entry.mutable_intent()->mutable_lending();
  out.set_container_id(event.lending.key.container_id);
  out.set_ifname(event.lending.key.ifname);
  out.set_pod_namespace(event.lending.pod.pod_namespace);
  out.set_pod_name(event.lending.pod.name);
  out.set_pod_uid(event.lending.pod.uid);
  for (const ip::Address& address : event.lending.addresses) out.add_addresses(address.ToBytes());
  out.set_generation(event.lending.generation);
  out.set_since_unix_ms(absl::ToUnixMillis(event.lending.since));
  return entry;
}

v1::JournalEntry ToProto(const LendingBuilt& event) {
  v1::JournalEntry entry;
  entry.mutable_lent()->set_container_id(event.key.container_id);
  entry.mutable_lent()->set_ifname(event.key.ifname);
  return entry;
}

v1::JournalEntry ToProto(const LendingReleased& event) {
  v1::JournalEntry entry;
  entry.mutable_released()->set_container_id(event.key.container_id);
  entry.mutable_released()->set_ifname(event.key.ifname);
  entry.mutable_released()->set_at_unix_ms(absl::ToUnixMillis(event.at));
  entry.mutable_released()->set_unused(event.unused);
  return entry;
}

v1::JournalEntry ToProto(const CoolingSet& event) {
  v1::JournalEntry entry;
  entry.mutable_cooling()->set_address(event.address.ToBytes());
  entry.mutable_cooling()->set_until_unix_ms(absl::ToUnixMillis(event.until));
  return entry;
}

absl::StatusOr<Event> FromProto(const v1::JournalHoldings& in) {
  HoldingsReplaced event;
  for (const auto& holding : in.holdings()) {
    ASSIGN_OR_RETURN(const ip::Address address, ip::Address::FromBytes(holding.address()));
    event.holdings.push_back({address, holding.pool()});
  }
  return event;
}

absl::StatusOr<Event> FromProto(const v1::JournalLending& in) {
  Lending lending{.key = {in.container_id(), in.ifname()},
                  .pod = {in.pod_namespace(), in.pod_name(), in.pod_uid()},
                  .generation = in.generation(),
                  .since = absl::FromUnixMillis(in.since_unix_ms())};
  for (const std::string& bytes : in.addresses()) {
    ASSIGN_OR_RETURN(lending.addresses.emplace_back(), ip::Address::FromBytes(bytes));
  }
  return LendingBegun{std::move(lending)};
}

// nullopt: an entry that only a newer agent knows.
absl::StatusOr<std::optional<Event>> FromProto(const v1::JournalEntry& entry) {
  switch (entry.entry_case()) {
    case v1::JournalEntry::kHoldings:
      return FromProto(entry.holdings());
    case v1::JournalEntry::kIntent:
      return FromProto(entry.intent().lending());
    case v1::JournalEntry::kLent:
      return LendingBuilt{{entry.lent().container_id(), entry.lent().ifname()}};
    case v1::JournalEntry::kReleased:
      return LendingReleased{{entry.released().container_id(), entry.released().ifname()},
                             absl::FromUnixMillis(entry.released().at_unix_ms()),
                             entry.released().unused()};
    case v1::JournalEntry::kCooling: {
      ASSIGN_OR_RETURN(const ip::Address address,
                       ip::Address::FromBytes(entry.cooling().address()));
      return CoolingSet{address, absl::FromUnixMillis(entry.cooling().until_unix_ms())};
    }
    case v1::JournalEntry::ENTRY_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

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

}  // namespace spoke::netagent
