// Address, Endpoint, Prefix and MacAddress from any text. The law: what parses prints as text that
// parses to the same value, and printing that gives the same text again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/check.h"
#include "lib/ip/address.h"
#include "lib/ip/endpoint.h"
#include "lib/ip/prefix.h"

namespace spoke::ip {
namespace {

template <typename T>
void CheckRoundTrip(std::string_view text) {
  const auto value = T::Parse(text);
  if (!value.ok()) {
    CHECK(value.status().code() == absl::StatusCode::kInvalidArgument, "bad text has one code");
    return;
  }
  const std::string printed = value->ToString();
  const auto again = T::Parse(printed);
  CHECK(again.ok() && *again == *value, "what is printed parses to the same value");
  CHECK(again->ToString() == printed, "the printed form is canonical");
}

void CheckBytes(std::string_view text) {
  const auto address = Address::Parse(text);
  if (address.ok()) {
    const auto again = Address::FromBytes(std::string_view(address->ToBytes()));
    CHECK(again.ok() && *again == *address, "bytes and back is the same address");
  }
  const auto from_bytes = Address::FromBytes(text);
  CHECK(from_bytes.ok() == (text.size() == 4 || text.size() == 16), "4 or 16 bytes are an address");
  if (from_bytes.ok()) CHECK(from_bytes->ToBytes() == text, "bytes and back are the same bytes");
}

void CheckPrefix(std::string_view text) {
  const auto prefix = Prefix::Parse(text);
  if (!prefix.ok()) return;
  CHECK(prefix->Contains(prefix->base()) && prefix->Contains(prefix->last()),
        "its ends are inside");
  CHECK(prefix->Contains(*prefix) && prefix->Overlaps(*prefix), "a block holds itself");
  const auto same = Prefix::Of(prefix->last(), prefix->length());
  CHECK(same.ok() && *same == *prefix, "any address of a block names it");
}

}  // namespace
}  // namespace spoke::ip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  spoke::ip::CheckRoundTrip<spoke::ip::Address>(text);
  spoke::ip::CheckRoundTrip<spoke::ip::Endpoint>(text);
  spoke::ip::CheckRoundTrip<spoke::ip::Prefix>(text);
  spoke::ip::CheckRoundTrip<spoke::ip::MacAddress>(text);
  spoke::ip::CheckBytes(text);
  spoke::ip::CheckPrefix(text);
  return 0;
}
