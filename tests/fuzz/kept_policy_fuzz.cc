// Feeds what a damaged tmpfs may hold in the policy's place: never a crash, and a policy that is
// read can be written and read again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/check.h"
#include "lib/policy/wire.h"
#include "netagent/journal/frame.h"
#include "netagent/policy/policy_bundle.h"
#include "netagent/policy/policy_file.h"
#include "proto/spoke/v1/policy.pb.h"

namespace {

using spoke::netagent::DecodePolicyFile;

void CheckFile(std::string_view bytes) {
  const auto policy = DecodePolicyFile(bytes);
  if (!policy.ok()) return;
  CHECK(policy->version != 0, "a policy that is kept has a version");
  for (const auto& [key, entry] : policy->entries) {
    CHECK(key == entry.key, "an entry is found by its key");
    spoke::v1::PolicyEntry wire;
    CHECK(wire.ParseFromString(entry.bytes), "an entry keeps its bytes");
    CHECK(spoke::policy::FromWire(wire).value() == entry, "bytes and value are the same");
    const bool parses = wire.ParseFromString(spoke::policy::ToWire(key, entry.value));
    CHECK(parses && spoke::policy::FromWire(wire)->value == entry.value,
          "what is written of a value is read as the same");
  }
  const auto again = DecodePolicyFile(EncodePolicyFile(*policy));
  CHECK(again.ok() && *again == *policy, "what was read can be written and read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckFile(bytes);
  // The same as a payload whose frame is right: few mutations would get past the checksum.
  std::string framed = "SPOKEPOL";
  spoke::netagent::AppendLittleEndian(1, framed);
  spoke::netagent::AppendLittleEndian(static_cast<uint32_t>(size), framed);
  spoke::netagent::AppendLittleEndian(spoke::netagent::Crc32(bytes), framed);
  CheckFile(framed.append(bytes));
  return 0;
}
