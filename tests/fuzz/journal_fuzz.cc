// Feeds what a damaged tmpfs may hold: never a crash, and what was read can be written and read
// again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/base/check.h"
#include "netagent/attach/assignments.h"
#include "netagent/journal/journal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using spoke::netagent::Event;
  const auto parsed = spoke::netagent::ParseJournal({reinterpret_cast<const char*>(data), size});
  CHECK(parsed.valid_bytes <= size, "no more is valid than there is");
  spoke::netagent::Assignments assignments(absl::Seconds(30));
  std::string written;
  for (const Event& event : parsed.events) {
    assignments.Apply(event);
    written += spoke::netagent::EncodeFrame(event);
  }
  CHECK(spoke::netagent::ParseJournal(written).events.size() == parsed.events.size(),
        "what was read can be written and read again");
  spoke::netagent::Assignments replayed(absl::Seconds(30));
  for (const Event& event : assignments.Snapshot()) replayed.Apply(event);
  CHECK(replayed.Attached() == assignments.Attached() &&
            replayed.Cooldown() == assignments.Cooldown() &&
            replayed.Withdrawn() == assignments.Withdrawn() &&
            replayed.Conflicts() == assignments.Conflicts() &&
            replayed.Rules() == assignments.Rules() && replayed.Proven() == assignments.Proven(),
        "a snapshot is the whole state");
  return 0;
}
