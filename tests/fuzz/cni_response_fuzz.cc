// Feeds what the agent may answer the plugin, decoded by the codec of both: never a crash, what it
// takes, protobuf takes for the same, and what it writes it reads again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/base/check.h"
#include "lib/cni_api/wire.h"
#include "proto/spoke/v1/cni.pb.h"

namespace {

using Outcome = spoke::cni::Response::Outcome;

void CheckAttachment(const spoke::cni::Attachment& ours, const spoke::v1::CniAttachment& theirs) {
  CHECK(ours.host_link == theirs.host_link() && ours.host_mac == theirs.host_mac(), "host end");
  CHECK(ours.pod_mac == theirs.pod_mac() && ours.mtu == theirs.mtu(), "pod end");
  CHECK(ours.addresses.size() == static_cast<size_t>(theirs.addresses_size()), "as many addresses");
  for (size_t i = 0; i < ours.addresses.size(); ++i) {
    const auto& address = theirs.addresses(static_cast<int>(i));
    CHECK(ours.addresses[i].address == address.address(), "the same address");
    CHECK(ours.addresses[i].gateway == address.gateway(), "the same gateway");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto ours = spoke::cni::DecodeResponse(bytes);
  if (!ours) return 0;
  CHECK(spoke::cni::DecodeResponse(EncodeResponse(*ours)) == *ours,
        "what is written is read again");
  spoke::v1::CniResponse theirs;
  CHECK(theirs.ParseFromString(bytes), "what the plugin takes, protobuf takes");
  CHECK(static_cast<int>(theirs.outcome_case()) == static_cast<int>(ours->outcome),
        "both see the same outcome");
  if (ours->outcome == Outcome::kAttachment) CheckAttachment(ours->attachment, theirs.attachment());
  if (ours->outcome == Outcome::kError) {
    CHECK(ours->error.code == theirs.error().code(), "the same code");
    CHECK(ours->error.message == theirs.error().message(), "the same message");
    CHECK(ours->error.details == theirs.error().details(), "the same details");
  }
  return 0;
}
