// The fabric's one loop: frames between its ports, the attachments file, counters.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"
#include "tests/fabric/counters.h"
#include "tests/fabric/decide.h"
#include "tests/fabric/nic_table.h"
#include "tests/fabric/packet_port.h"

namespace spoke::fabric {

struct SwitchOptions {
  std::vector<Nic> nics;
  Rules rules;
  std::string attachments_path;  // The path; empty: none.
  std::string stats_path;        // The path; empty: none.
};

// The switch. Not thread-safe.
class Switch {
 public:
  // Opens a port on the device of each NIC and reads the attachments, if the file is there. Blocks
  // SIGTERM, SIGINT and SIGUSR1 in this thread: Run() takes them.
  // Errors: kInvalidArgument (NICs that clash); kNotFound (no such device, or no directory for the
  // attachments file); as errno says. Mistakes in the attachments file are only reported.
  static absl::StatusOr<Switch> Open(SwitchOptions options);

  // Forwards until SIGTERM or SIGINT, then returns OK. SIGUSR1 writes the counters, as does the
  // end. Errors: as errno says.
  absl::Status Run();

 private:
  Switch(SwitchOptions options, NicTable table);

  absl::Status WatchAttachments();
  absl::Status OpenSignals();
  void LoadAttachments();
  void DrainPort(size_t nic);
  void Apply(size_t from, const Offload& offload, const Decision& decision);
  void Send(size_t nic, const Offload& offload, const std::vector<uint8_t>& frame);
  // Returns whether the signals that wait ask to end.
  absl::StatusOr<bool> HandleSignals();
  void HandleDirectoryEvents();
  void WriteStats();

  SwitchOptions options_;
  NicTable table_;
  std::vector<PacketPort> ports_;  // The ports, one for each NIC of table_, in its order.
  os::UniqueFd directory_;         // The inotify on the attachments file's directory.
  os::UniqueFd signals_;
  Counters counters_;
};

}  // namespace spoke::fabric
