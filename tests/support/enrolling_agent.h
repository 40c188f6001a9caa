// What an agent does to get and keep its certificate, with the files that it has. Tests only.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/os/clock.h"
#include "lib/os/file.h"
#include "lib/rpc/credentials.h"
#include "lib/telemetry/log.h"
#include "netagent/enroll/enroll_call.h"
#include "netagent/enroll/enroller.h"
#include "tests/support/temp_dir.h"

namespace spoke::testing_support {

// Not thread-safe.
class EnrollingAgent {
 public:
  // Asks `servers` in their order, and trusts `authority` in the beginning. Borrows clock and log.
  EnrollingAgent(std::vector<std::string> servers, const std::string& authority,
                 const os::Clock& clock, telemetry::Log& log)
      : servers_(std::move(servers)), clock_(clock), log_(log) {
    Trust(authority);
  }

  // Gets a certificate where there is none, or where it is time: whether it has got one.
  absl::StatusOr<bool> Enroll(const std::string& token = "good",
                              const std::string& node = "node-1") {
    Put(dir_.File("token"), token + "\n");
    netagent::EnrollCall call(
        {.servers = servers_, .server_name = "spoke-ipam-server", .ca_file = ca_file_});
    netagent::Enroller enroller(
        {.files = files_,
         .ca_file = ca_file_,
         .token_file = dir_.File("token"),
         .node_name = node,
         .vm_id = "vm-1"},
        {.ask = [&](const netagent::EnrollAsk& ask) { return call.Ask(ask); },
         .cancel = nullptr,
         .on_ready = [] { return absl::OkStatus(); },
         .clock = clock_,
         .log = log_});
    return enroller.KeepCertificate();
  }

  void Trust(const std::string& authority) { Put(ca_file_, authority); }
  void Forget() { std::filesystem::remove(files_.certificate); }
  const rpc::TlsFiles& files() const { return files_; }

 private:
  static void Put(const std::string& path, const std::string& text) {
    EXPECT_TRUE(os::WriteFileAtomic(path, text, os::Durability::kVisible).ok());
  }

  const TempDir dir_;
  const std::vector<std::string> servers_;
  const os::Clock& clock_;
  telemetry::Log& log_;
  const std::string ca_file_ = dir_.File("agent-ca.pem");
  const rpc::TlsFiles files_{.ca = dir_.File("tls/roots.pem"),
                             .certificate = dir_.File("tls/node.pem"),
                             .key = dir_.File("tls/node.key")};
};

}  // namespace spoke::testing_support
