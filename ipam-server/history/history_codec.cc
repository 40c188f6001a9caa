#include "ipam-server/history/history_codec.h"

#include <limits>
#include <unordered_map>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "proto/spoke/v1/history.pb.h"

namespace spoke::ipam {
namespace {

constexpr char kPlain = 0;
constexpr char kHex = 1;
constexpr char kUuid = 2;
constexpr size_t kMinHexDigits = 8;  // Shorter texts are not worth a second look.
constexpr size_t kUuidLength = 36;
constexpr int64_t kMaxUnixMs = 253'402'300'799'999;  // The end of the year 9999.
constexpr auto kLastEvent = static_cast<uint32_t>(HistoryEvent::kAdopted);

absl::Status Damaged(std::string_view what) {
  return absl::DataLossError(fmt::format("history chunk: {}", what));
}

bool IsDash(size_t position) {
  return position == 8 || position == 13 || position == 18 || position == 23;
}

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

char FromHex(char c) { return static_cast<char>(c <= '9' ? c - '0' : c - 'a' + 10); }

// The hexadecimal digits of a UUID, or an empty text.
std::string DigitsOfUuid(std::string_view text) {
  std::string digits;
  if (text.size() != kUuidLength) return digits;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsDash(i) != (text[i] == '-')) return {};
    if (!IsDash(i)) digits += text[i];
  }
  return digits;
}

bool IsPackable(std::string_view digits) {
  if (digits.size() < kMinHexDigits || digits.size() % 2 != 0) return false;
  for (const char c : digits) {
    if (!IsHex(c)) return false;
  }
  return true;
}

std::string PackHex(char tag, std::string_view digits) {
  std::string packed(1, tag);
  for (size_t i = 0; i < digits.size(); i += 2) {
    packed += static_cast<char>((FromHex(digits[i]) << 4) | FromHex(digits[i + 1]));
  }
  return packed;
}

// Container ids and pod UIDs are hexadecimal: half as long, and they are most of what is stored.
std::string Pack(std::string_view text) {
  if (IsPackable(text)) return PackHex(kHex, text);
  const std::string uuid = DigitsOfUuid(text);
  if (IsPackable(uuid)) return PackHex(kUuid, uuid);
  return std::string(1, kPlain).append(text);
}

absl::StatusOr<std::string> Unpack(std::string_view packed) {
  if (packed.empty()) return Damaged("a text without its first byte");
  const char tag = packed.front();
  packed.remove_prefix(1);
  if (tag == kPlain) return std::string(packed);
  if (tag != kHex && tag != kUuid) return Damaged("a text packed in an unknown way");
  if (tag == kUuid && packed.size() != 16) return Damaged("a UUID that has not 16 bytes");
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : packed) {
    if (tag == kUuid && IsDash(text.size())) text += '-';
    text += kDigits[static_cast<unsigned char>(c) >> 4U];
    text += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return text;
}

class TextTable {
 public:
  explicit TextTable(v1::HistoryChunk& chunk) : chunk_(chunk) {}

  uint32_t NumberOf(const std::string& text) {
    if (text.empty()) return 0;
    const auto [entry, is_new] =
        numbers_.try_emplace(text, static_cast<uint32_t>(numbers_.size() + 1));
    if (is_new) chunk_.add_texts(Pack(text));
    return entry->second;
  }

 private:
  v1::HistoryChunk& chunk_;
  std::unordered_map<std::string, uint32_t> numbers_;
};

bool HasEqualColumns(const v1::HistoryChunk& chunk) {
  const int count = chunk.addresses_size();
  for (const int size : {chunk.time_steps_ms_size(), chunk.events_size(), chunk.generations_size(),
                         chunk.nodes_size(), chunk.vm_ids_size(), chunk.pod_namespaces_size(),
                         chunk.pod_names_size(), chunk.pod_uids_size(), chunk.container_ids_size(),
                         chunk.ifnames_size()}) {
    if (size != count) return false;
  }
  return true;
}

// Columns of numbers to texts, noting a number that no text has.
class TextReader {
 public:
  static absl::StatusOr<TextReader> Open(const v1::HistoryChunk& chunk) {
    TextReader reader;
    reader.texts_.emplace_back();
    for (const std::string& packed : chunk.texts()) {
      ASSIGN_OR_RETURN(std::string text, Unpack(packed));
      reader.texts_.push_back(std::move(text));
    }
    return reader;
  }

  const std::string& At(uint32_t number) {
    if (number < texts_.size()) return texts_[number];
    all_known_ = false;
    return texts_.front();
  }
  bool all_known() const { return all_known_; }

 private:
  TextReader() = default;

  std::vector<std::string> texts_;
  bool all_known_ = true;
};

}  // namespace

std::string EncodeHistory(std::span<const HistoryEntry> entries) {
  v1::HistoryChunk chunk;
  TextTable texts(chunk);
  int64_t last_ms = 0;
  for (const HistoryEntry& entry : entries) {
    const int64_t unix_ms = absl::ToUnixMillis(entry.at);
    chunk.add_addresses(entry.address.ToBytes());
    chunk.add_time_steps_ms(unix_ms - last_ms);
    last_ms = unix_ms;
    chunk.add_events(static_cast<uint32_t>(entry.event));
    chunk.add_generations(entry.generation);
    chunk.add_nodes(texts.NumberOf(entry.node));
    chunk.add_vm_ids(texts.NumberOf(entry.vm_id));
    chunk.add_pod_namespaces(texts.NumberOf(entry.pod_namespace));
    chunk.add_pod_names(texts.NumberOf(entry.pod_name));
    chunk.add_pod_uids(texts.NumberOf(entry.pod_uid));
    chunk.add_container_ids(texts.NumberOf(entry.container_id));
    chunk.add_ifnames(texts.NumberOf(entry.ifname));
  }
  return chunk.SerializeAsString();
}

absl::StatusOr<std::vector<HistoryEntry>> DecodeHistory(std::string_view bytes) {
  v1::HistoryChunk chunk;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !chunk.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Damaged("not one of ours");
  }
  if (!HasEqualColumns(chunk)) return Damaged("its columns differ in length");
  ASSIGN_OR_RETURN(TextReader texts, TextReader::Open(chunk));
  std::vector<HistoryEntry> entries;
  int64_t unix_ms = 0;
  for (int i = 0; i < chunk.addresses_size(); ++i) {
    const int64_t step = chunk.time_steps_ms(i);
    if (step < -kMaxUnixMs || step > kMaxUnixMs) return Damaged("a time beyond the year 9999");
    unix_ms += step;
    if (unix_ms < 0 || unix_ms > kMaxUnixMs) return Damaged("a time beyond the year 9999");
    const auto address = ip::Address::FromBytes(chunk.addresses(i));
    if (!address.ok()) return Damaged(base::MessageOf(address.status()));
    if (chunk.events(i) == 0 || chunk.events(i) > kLastEvent) continue;
    entries.push_back({.at = absl::FromUnixMillis(unix_ms),
                       .event = static_cast<HistoryEvent>(chunk.events(i)),
                       .address = *address,
                       .node = texts.At(chunk.nodes(i)),
                       .vm_id = texts.At(chunk.vm_ids(i)),
                       .pod_namespace = texts.At(chunk.pod_namespaces(i)),
                       .pod_name = texts.At(chunk.pod_names(i)),
                       .pod_uid = texts.At(chunk.pod_uids(i)),
                       .container_id = texts.At(chunk.container_ids(i)),
                       .ifname = texts.At(chunk.ifnames(i)),
                       .generation = chunk.generations(i)});
  }
  if (!texts.all_known()) return Damaged("a number that no text has");
  return entries;
}

bool MayMention(std::string_view bytes, const ip::Address& address) {
  return bytes.find(address.ToBytes()) != std::string_view::npos;
}

}  // namespace spoke::ipam
