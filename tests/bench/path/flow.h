// Two sockets in two network namespaces that talk to each other, both held by one thread.
//
// One thread, pinned to one processor, is what makes the figures mean something: the kernel then
// carries a packet from the one socket to the other inside the send call (veth and loopback devices
// hand over in the sender's softirq), so the thread's CPU time is that of the whole path.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/netns/netns.h"
#include "lib/os/unique_fd.h"

namespace spoke::path_bench {

struct Ends {
  netns::Netns from;
  netns::Netns to;
  ip::Address source;  // The address of `from`.
  ip::Address destination;
  uint16_t port = 0;  // The port of the destination.
};

// The two sockets, connected to each other; neither blocks.
struct Flow {
  os::UniqueFd sender;
  os::UniqueFd receiver;
};

// Opens a UDP flow. The calling thread stays in its namespace. Errors: as errno says.
absl::StatusOr<Flow> OpenUdp(const Ends& ends);

// Opens a TCP flow with congestion control "reno": what paces by timers would be measured with its
// timers. Errors: as errno says; kDeadlineExceeded (no connection within 5 s).
absl::StatusOr<Flow> OpenTcp(const Ends& ends);

// Keeps the calling thread on one processor. Errors: as errno says.
absl::Status PinTo(int processor);

// Returns the CPU time of the calling thread so far, in nanoseconds.
int64_t ThreadCpuNs();

// Returns the monotonic time, in nanoseconds.
int64_t NowNs();

}  // namespace spoke::path_bench
