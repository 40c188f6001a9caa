// Runs spoke-ipam-server on one store and one port, started and killed as often as a test likes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/crash/child_process.h"

namespace spoke::crash {

// The server. Not thread-safe. The programs are those in the directory SPOKE_BIN says, else the
// build's own.
class ServerUnderTest {
 public:
  // Makes a server. `directory` must exist; the configuration, the store, the socket and the log
  // live in it. `settings` is the configuration's part that matters to the test: cloud, pools and
  // so on. `store` is the value of its key "store"; empty: SQLite in the directory.
  ServerUnderTest(std::string directory, std::string_view settings,
                  std::string_view tls = "tls: {insecure: true}", std::string_view store = {});

  // Starts the server, and does not wait for anything. There must be no server running.
  absl::Status Exec();
  // Returns whether agents are accepted. Errors: kInternal (it has ended by itself).
  absl::StatusOr<bool> IsReady();
  // Returns an empty text while it runs, and how it ended once it has.
  std::string HasEnded() { return process_->HasEnded(); }
  // Sends kill -9. Errors: kInternal (it had ended by itself).
  absl::Status Kill();
  // Asks it to end. Errors: kInternal (it had ended already, or ends with another code than 0).
  absl::Status Stop();

  std::string target() const;  // Returns the target for agents, as gRPC names it.
  uint16_t port() const { return port_; }
  std::string admin() const { return "unix:" + directory_ + "/admin.sock"; }

  // Copies the store as it is on disk into the directory `to`, which is made. No server may run.
  // Returns the copy's path.
  absl::StatusOr<std::string> CopyStore(const std::string& to) const;

  struct Answer {
    int code = 0;
    std::string output;  // The output of both streams.
  };
  // Returns what spokectl says to `words`.
  absl::StatusOr<Answer> Ask(const std::vector<std::string>& words) const;

  // Returns the last lines of its log, without what is as it should be.
  std::string Warnings() const;

 private:
  std::string File(std::string_view name) const { return directory_ + "/" + std::string(name); }

  const std::string directory_;
  const uint16_t port_;
  std::optional<ChildProcess> process_;
};

}  // namespace spoke::crash
