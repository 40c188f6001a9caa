// The simulated Azure behind its listeners: one lock around the models, faults of the transport,
// the endpoints under /sim/, and the file that tells the fabric what is on which NIC. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/http/message.h"
#include "lib/os/clock.h"
#include "tests/azure-sim/arm_model.h"
#include "tests/azure-sim/imds_model.h"
#include "tests/azure-sim/wireserver_model.h"

namespace spoke::azure_sim {

// The fault that happens to an answer on its way.
struct TransportFault {
  enum class Kind : uint8_t {
    kNone,
    kStall,      // It comes `seconds` late.
    kDrop,       // The connection ends instead.
    kTruncate,   // The connection ends in the middle of the body.
    kReset,      // The connection is reset in the middle.
    kMalformed,  // The body is cut, and its length fits.
    kHtml,       // A proxy's page with status 200.
    kRedirect,   // A 307 to `location`.
  };
  Kind kind = Kind::kNone;
  double seconds = 0;
  std::string location;
};

struct Answer {
  http::Response response;
  TransportFault fault;
};

class SimService {
 public:
  // Makes the service. `clock` and what it names are borrowed. With an empty `attachments_file`
  // none is written.
  SimService(std::unique_ptr<ArmModel> arm, const os::Clock& clock, std::string attachments_file);

  // Handles requests at the listener for everybody: ARM, tokens, /sim/..., and for tests without
  // namespaces also /metadata and /machine, of the VM that the header X-Sim-Instance names, else of
  // the first one.
  Answer Handle(const http::Request& request);
  // Handles requests at a node's own listeners: 169.254.169.254 and 168.63.129.16.
  Answer HandleImds(const http::Request& request, std::string_view instance_id);
  Answer HandleWireserver(const http::Request& request, std::string_view instance_id);

  // Lets happen what is due, and publishes it. Errors: as os::WriteFileAtomic().
  absl::Status Tick();

  // Errors: kNotFound.
  absl::Status CheckInstance(std::string_view id);

 private:
  struct Planned {
    std::string method;  // The method; empty: any.
    std::string part;    // The part of the URL.
    int count = 1;
    TransportFault fault;
  };

  http::Response Admin(const http::Request& request, const Target& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  http::Response State() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  http::Response CountersJson() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  http::Response ChangeInstance(const Json& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  http::Response Scale(const Json& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  http::Response PlanEvent(const Json& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  http::Response PlanFault(const Json& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  http::Response Login(const http::Request& request, const Target& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TransportFault FaultFor(const http::Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string FirstInstance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The clock may be set back; the models must not see that.
  absl::Time Now() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  const os::Clock& clock_;
  const std::string attachments_file_;
  const std::unique_ptr<ArmModel> arm_ ABSL_GUARDED_BY(mutex_);
  ImdsModel imds_ ABSL_GUARDED_BY(mutex_);
  WireserverModel wireserver_ ABSL_GUARDED_BY(mutex_);
  std::vector<Planned> planned_ ABSL_GUARDED_BY(mutex_);
  absl::Time latest_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t published_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ever_published_ ABSL_GUARDED_BY(mutex_) = false;
};

// Returns a line for each secondary entry on the wire, as the test fabric reads them; sorted.
std::string FormatWire(const ArmModel& arm);

}  // namespace spoke::azure_sim
