// Feeds texts that the agent's metrics are made from: the kernel's, and what the agent before this
// one left of its series. Never a crash, and what is written is read as it was.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/check.h"
#include "lib/telemetry/process_metrics.h"
#include "netagent/exporters/conntrack.h"
#include "netagent/exporters/series_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spoke::netagent;  // NOLINT(google-build-using-namespace): the only function.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(ParseConntrackStat(text));
  static_cast<void>(spoke::telemetry::ParseProcessStat(text));
  const auto state = DecodeSeriesState(text);
  if (!state.ok()) return 0;
  const auto again = DecodeSeriesState(EncodeSeriesState(*state));
  CHECK(again.ok() && *again == *state, "a state that is read survives a round trip");
  return 0;
}
