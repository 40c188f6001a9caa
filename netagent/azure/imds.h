// Asks Azure's Instance Metadata Service who this VM is.
//
// Its rules, from Microsoft's "Azure Instance Metadata Service" page: the header "Metadata: true",
// no proxy, at most five requests a second; 410 means that the service is busy for up to 70 s, 429
// too many requests, 5xx try again; any other error will be the same next time.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/os/clock.h"
#include "netagent/azure/fetch.h"
#include "netagent/azure/imds_document.h"

namespace spoke::netagent::azure {

// The patience is longer than the 70 s that a 410 may last.
inline constexpr absl::Duration kImdsPatience = absl::Seconds(80);
inline constexpr absl::Duration kImdsTimeout = absl::Seconds(5);  // The limit of one request.

struct ImdsReading {
  ImdsInstance instance;
  std::string text;  // The document as it came.
};

// Returns the IPv6 addresses that the service lists for the VM's NICs, whichever has them: they
// follow the cloud's API some seconds later. Asks once and waits. `url` is the one Imds() takes.
// Errors, which name the URL: kUnavailable (no answer, or one that says to try again),
// kInvalidArgument (an answer that cannot be read), kFailedPrecondition (any other HTTP status).
absl::StatusOr<std::set<ip::Address>> ReadImdsIpv6(const std::string& url, const Fetch& fetch);

// Blocks the calling thread. Not thread-safe.
class Imds {
 public:
  using Sleep = std::function<void(absl::Duration)>;

  // `url` is "http://169.254.169.254". Borrows `clock`.
  Imds(std::string url, Fetch fetch, const os::Clock& clock, Sleep sleep);

  // Reads the document, for kImdsPatience while the service is away, busy or failing. Errors, which
  // name the URL and last answer: kUnavailable (it stayed so), kInvalidArgument (an answer that is
  // unreadable), kFailedPrecondition (any other HTTP status, or a request that cannot be sent).
  absl::StatusOr<ImdsReading> ReadInstance();

 private:
  // Sleeps until five requests a second allow one more.
  void KeepPace();

  const std::string url_;
  const Fetch fetch_;
  const os::Clock& clock_;
  const Sleep sleep_;
  absl::Time last_request_ = absl::InfinitePast();
};

}  // namespace spoke::netagent::azure
