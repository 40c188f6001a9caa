// Proves addresses before the first pod gets them: observes what waits, lets
// verification/address_verification decide, asks the host and the fabric, and tells Attachments
// what works.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/os/clock.h"
#include "lib/telemetry/log.h"
#include "netagent/attach/attachments.h"
#include "netagent/verification/address_verification.h"
#include "netagent/verification/host_list.h"
#include "netagent/verification/wire_probe.h"

namespace spoke::netagent {

// The pause between two looks for answers while a probe is under way.
inline constexpr absl::Duration kAnswerLook = absl::Milliseconds(50);
// The pause before a proof that could not be journalled is tried again.
inline constexpr absl::Duration kKeepPause = absl::Seconds(5);

// Not thread-safe; the agent's one loop owns it. It must end before the loop does, and `host` or
// `wire`, if there is one, after it.
class AddressVerifier {
 public:
  struct Edges {
    HostList* host = nullptr;   // Null: the listing is not wanted.
    WireProbe* wire = nullptr;  // Null: the answer is not wanted.
    const os::Clock& clock;
    telemetry::Log& log;
    // Runs work on the loop's thread, later. Thread-safe.
    std::function<void(std::function<void()>)> post;
  };
  // Proves addresses of one family. Borrows all edges and `attachments`.
  AddressVerifier(const Edges& edges, ip::Family family, absl::Duration deadline,
                  Attachments& attachments);
  AddressVerifier(const AddressVerifier&) = delete;
  AddressVerifier& operator=(const AddressVerifier&) = delete;
  // Makes outcomes of readings that arrive later be passed over.
  ~AddressVerifier();

  // Does what is due. Call after every change of what is attached, and at NextWake(). Never blocks.
  void Tick();
  std::optional<absl::Time> NextWake() const;

  // Says, for people, what the addresses that wait are waiting for.
  std::string Explain() const { return readiness_.Explain(); }

 private:
  void UpdateWanted(absl::Time now);
  void HearAnswers();
  void Keep(absl::Time now);
  void BeginReading(absl::Time now);
  void OnReading(const absl::StatusOr<std::set<ip::Address>>& listed);
  void SendProbes(absl::Time now);
  void ReportOverdue(absl::Time now);
  // Logs the first of several failures in a row.
  void NoteWire(const absl::Status& status);

  const Edges edges_;
  const ip::Family family_;
  Attachments& attachments_;
  Readiness readiness_;
  std::set<ip::Address> unkept_;  // Proven and not journalled yet.
  absl::Time next_keep_ = absl::InfinitePast();
  uint64_t failed_readings_ = 0;  // The number of failures in a row.
  bool wire_failed_ = false;
  // Expires with the verifier, so that an outcome on its way finds nobody.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace spoke::netagent
