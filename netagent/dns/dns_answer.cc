#include "netagent/dns/dns_answer.h"

#include <map>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

// The numbers are those of RFC 1035, sections 2.3.4, 3.2 and 4.1; AAAA is RFC 3596's.
constexpr size_t kMaxNameBytes = 255;
constexpr uint16_t kTypeA = 1;
constexpr uint16_t kTypeCname = 5;
constexpr uint16_t kTypeAaaa = 28;
constexpr uint16_t kClassInternet = 1;
constexpr uint16_t kResponse = 0x8000;
constexpr uint16_t kOpcode = 0x7800;
constexpr uint16_t kTruncated = 0x0200;
constexpr uint16_t kResponseCode = 0x000F;
constexpr size_t kPointerTag = 0xC0;

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("no DNS answer: {}", what));
}

// Returns the letter in lower case, a digit, '-' or '_'; NUL for any other: with a dot inside of a
// label one name could pass for another.
char Plain(uint8_t byte) {
  const auto c = static_cast<char>(byte);
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  return plain ? c : '\0';
}

struct Record {
  std::string owner;
  uint16_t type = 0;
  uint16_t record_class = 0;
  uint32_t ttl = 0;  // The time to live in seconds.
  size_t data = 0;   // Where the data begins.
  size_t length = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> message) : message_(message) {}

  absl::StatusOr<uint16_t> Short() {
    if (message_.size() - at_ < 2) return Malformed("it ends too early");
    const auto high = static_cast<unsigned>(message_[at_]);
    const auto value = static_cast<uint16_t>(high << 8U | message_[at_ + 1]);
    at_ += 2;
    return value;
  }

  absl::StatusOr<std::string> Name() {
    auto [name, end] = std::pair<std::string, size_t>();
    RETURN_IF_ERROR(ReadName(at_, &name, &end));
    at_ = end;
    return name;
  }

  absl::StatusOr<Record> NextRecord() {
    Record record;
    ASSIGN_OR_RETURN(record.owner, Name());
    ASSIGN_OR_RETURN(record.type, Short());
    ASSIGN_OR_RETURN(record.record_class, Short());
    ASSIGN_OR_RETURN(const uint16_t ttl_high, Short());
    ASSIGN_OR_RETURN(const uint16_t ttl_low, Short());
    // A TTL with the first bit set is zero (RFC 2181, section 8).
    if (ttl_high < 0x8000) record.ttl = static_cast<uint32_t>(ttl_high) << 16U | ttl_low;
    ASSIGN_OR_RETURN(record.length, Short());
    record.data = at_;
    if (message_.size() - at_ < record.length) return Malformed("a record ends too early");
    at_ += record.length;
    return record;
  }

  // Returns the name that is all of a record's data.
  absl::StatusOr<std::string> NameIn(const Record& record) const {
    auto [name, end] = std::pair<std::string, size_t>();
    RETURN_IF_ERROR(ReadName(record.data, &name, &end));
    if (end != record.data + record.length) return Malformed("an alias of another length");
    return name;
  }

  absl::StatusOr<ip::Address> AddressIn(const Record& record) const {
    if (record.length != (record.type == kTypeA ? 4U : 16U)) {
      return Malformed("an address of another length");
    }
    return ip::Address::FromBytes(message_.subspan(record.data, record.length));
  }

 private:
  // Reads a name; `end` is behind the name, or behind its first pointer.
  absl::Status ReadName(size_t at, std::string* name, size_t* end) const {
    // Each pointer leads to before where the last one led, so that this ends.
    size_t limit = at;
    size_t bytes = 0;
    bool jumped = false;
    while (true) {
      if (at >= message_.size()) return Malformed("a name ends too early");
      const size_t length = message_[at++];
      if ((length & kPointerTag) == kPointerTag) {
        if (at >= message_.size()) return Malformed("a name ends too early");
        const size_t target = (length & ~kPointerTag) << 8U | message_[at++];
        if (!std::exchange(jumped, true)) *end = at;
        if (target >= limit) return Malformed("a compression pointer that points forward");
        limit = at = target;
        continue;
      }
      if ((length & kPointerTag) != 0) return Malformed("a label of an unknown kind");
      bytes += length + 1;
      if (bytes > kMaxNameBytes) return Malformed("a name of more than 255 bytes");
      if (length == 0) break;
      if (message_.size() - at < length) return Malformed("a name ends too early");
      if (!name->empty()) name->push_back('.');
      for (const uint8_t byte : message_.subspan(at, length)) {
        const char c = Plain(byte);
        if (c == '\0') return Malformed("a name with other than letters, digits, '-' and '_'");
        name->push_back(c);
      }
      at += length;
    }
    if (!jumped) *end = at;
    return absl::OkStatus();
  }

  const std::span<const uint8_t> message_;
  size_t at_ = 0;  // The place in the message, at most its size.
};

absl::Status CheckFlags(uint16_t flags) {
  if ((flags & kResponse) == 0) return Malformed("it is a question");
  if ((flags & kOpcode) != 0) return Malformed("it answers no query");
  if ((flags & kTruncated) != 0) return Malformed("it is truncated");
  if ((flags & kResponseCode) != 0) {
    return Malformed(fmt::format("it says error {}", flags & kResponseCode));
  }
  return absl::OkStatus();
}

// What the records say, by owner.
struct Said {
  std::map<std::string, std::string> aliases;
  std::multimap<std::string, DnsAddress> addresses;
};

absl::Status Take(const Reader& reader, Record record, Said* said) {
  if (record.record_class != kClassInternet) return absl::OkStatus();
  if (record.type == kTypeCname) {
    ASSIGN_OR_RETURN(std::string target, reader.NameIn(record));
    // Only one alias may be there (RFC 1034, section 3.6.2).
    if (!said->aliases.emplace(std::move(record.owner), std::move(target)).second) {
      return Malformed("a name is an alias twice");
    }
  } else if (record.type == kTypeA || record.type == kTypeAaaa) {
    ASSIGN_OR_RETURN(const ip::Address address, reader.AddressIn(record));
    said->addresses.emplace(std::move(record.owner),
                            DnsAddress{address, absl::Seconds(record.ttl)});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DnsAnswer> ParseDnsAnswer(std::span<const uint8_t> message) {
  Reader reader(message);
  RETURN_IF_ERROR(reader.Short().status());  // This is the id.
  ASSIGN_OR_RETURN(const uint16_t flags, reader.Short());
  RETURN_IF_ERROR(CheckFlags(flags));
  ASSIGN_OR_RETURN(const uint16_t questions, reader.Short());
  ASSIGN_OR_RETURN(const uint16_t answers, reader.Short());
  if (questions != 1) return Malformed(fmt::format("{} questions", questions));
  if (answers > kMaxDnsRecords) return Malformed(fmt::format("{} answers", answers));
  RETURN_IF_ERROR(reader.Short().status());  // These are the counts of the sections behind.
  RETURN_IF_ERROR(reader.Short().status());
  DnsAnswer out;
  ASSIGN_OR_RETURN(out.question, reader.Name());
  RETURN_IF_ERROR(reader.Short().status());  // This is what was asked for: the answers say it.
  ASSIGN_OR_RETURN(const uint16_t question_class, reader.Short());
  if (question_class != kClassInternet) return Malformed("it is not of the Internet's names");
  Said said;
  for (uint16_t i = 0; i < answers; ++i) {
    ASSIGN_OR_RETURN(Record record, reader.NextRecord());
    RETURN_IF_ERROR(Take(reader, std::move(record), &said));
  }
  std::string last = out.question;
  for (auto next = said.aliases.find(last); next != said.aliases.end();
       next = said.aliases.find(last)) {
    if (out.aliases.size() == said.aliases.size()) return Malformed("aliases in a circle");
    out.aliases.push_back(last = next->second);
  }
  const auto [begin, end] = said.addresses.equal_range(last);
  for (auto it = begin; it != end; ++it) out.addresses.push_back(it->second);
  return out;
}

}  // namespace spoke::netagent
