// Serves the dashboard's page over HTTP at 127.0.0.1, to whoever access.h lets in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "admin-cli/dashboard/access.h"
#include "admin-cli/dashboard/answers.h"

namespace spoke::ctl {

class PageServer {
 public:
  // Listens, and serves with threads of its own until it is destroyed. `port` 0 is any that is
  // free. Borrows the answers. Errors: kFailedPrecondition (the port cannot be had).
  static absl::StatusOr<std::unique_ptr<PageServer>> Open(uint16_t port, DashboardKeys keys,
                                                          Answers& answers);
  virtual ~PageServer() = default;

  // Returns the URL that lets in whoever has it.
  virtual std::string url() const = 0;
};

}  // namespace spoke::ctl
