// Opens the sockets that a server listens at, as its configuration names them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"

namespace spoke::rpc {

struct ListeningSockets {
  std::vector<os::UniqueFd> sockets;  // The sockets, non-blocking.
  int port = 0;                       // The port; 0: a socket of files.
  std::string path;                   // The path of a socket of files; else empty.
};

// Opens sockets at `address`, which is "host:port" or "unix:/an/absolute/path". All addresses of a
// host's name are listened at; 0.0.0.0 and [::] are all of this machine, of both families. Port 0
// is any free one. The socket of a program that is gone is replaced. With `receive_buffer_bytes`
// the kernel keeps no more than some twice that of what a connection has sent; 0: as it likes.
// Errors: kInvalidArgument (no such address); kUnavailable (in use, or not of this machine; the
// message names it).
absl::StatusOr<ListeningSockets> ListenAt(const std::string& address, int receive_buffer_bytes = 0);

}  // namespace spoke::rpc
