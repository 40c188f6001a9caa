// Writes what this version writes into a directory: `compat_record tests/compat/testdata/VERSION`,
// once, before VERSION is released. What has been recorded is never written again.
#include <cstdio>
#include <string>

#include "fmt/core.h"
#include "ipam-server/store/record_codec.h"
#include "lib/os/file.h"
#include "netagent/journal/journal.h"
#include "tests/compat/samples.h"

int main(int argc, char** argv) {
  using namespace spoke;  // NOLINT(google-build-using-namespace): a page of calls.
  if (argc != 2) {
    fmt::print(stderr, "usage: compat_record DIRECTORY\n");
    return 2;
  }
  const auto [address, quarantine] = compat::QuarantineSample();
  std::string journal;
  for (const auto& event : compat::JournalSample()) journal += netagent::EncodeFrame(event);
  const auto schema = os::ReadFile(SPOKE_SCHEMA);
  if (!schema.ok()) return 1;
  const std::pair<const char*, std::string> files[] = {
      {"schema", *schema},
      {"journal", journal},
      {"node", ipam::EncodeNode(compat::NodeSample())},
      {"quarantine", ipam::EncodeQuarantine(address, quarantine)},
      {"reservation", ipam::EncodeReservation(compat::ReservationSample())},
      {"breaker", ipam::EncodeBreaker(compat::BreakerSample())},
      {"hello", compat::HelloBytes()},
      {"welcome", compat::WelcomeBytes()},
      {"desired", compat::DesiredBytes()},
      {"cni_request", compat::CniRequestBytes()},
      {"cni_response", compat::CniResponseBytes()}};
  for (const auto& [name, bytes] : files) {
    const auto status =
        os::WriteFileAtomic(std::string(argv[1]) + "/" + name, bytes, os::Durability::kVisible);
    if (!status.ok()) {
      fmt::print(stderr, "{}\n", status.ToString());
      return 1;
    }
  }
  return 0;
}
