// The measurements on a path. Each is bounded in packets and in time, and none leaves anything
// behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tests/bench/path/flow.h"

namespace spoke::path_bench {

// The first three take turns: a few milliseconds of one path, then of the next, so that whatever
// else the machine does meets all of them alike. Each gives an object for each path, in their
// order.

// Measures UDP with a payload of 64 bytes, `packets` of them a path, in batches of 64 by
// sendmmsg(2). CPU time of the send calls alone, the receiver being emptied in between, in
// nanoseconds per packet: "mean_ns", and over batches "median_ns" and "p25_ns". "late": packets
// that were not there when the send call came back, so that somebody else has worked for them.
// Errors: as errno says; kDataLoss (a packet is missing).
absl::StatusOr<nlohmann::json> MeasureUdp(const std::vector<Ends>& paths, size_t packets);

// Sends `mebibytes` a path through one TCP connection: CPU time of both ends per MiB, "mean_ns",
// "median_ns", "p25_ns". Errors: as errno says; kDeadlineExceeded (it stands still).
absl::StatusOr<nlohmann::json> MeasureTcp(const std::vector<Ends>& paths, size_t mebibytes);

// Measures `rounds` of a small UDP packet there and back on each path, nothing ever asleep: wall
// clock, "p10_ns" and "p50_ns". Errors: as errno says; kDataLoss.
absl::StatusOr<nlohmann::json> MeasureRoundTrip(const std::vector<Ends>& paths, size_t rounds);

struct Steady {
  size_t packets_per_second = 20'000;
  absl::Duration length = absl::Seconds(1);
  size_t payload = 64;  // The payload in bytes, at least 8.
};

// Measures a steady flow of numbered UDP packets: how many were "sent", "received", "lost", came
// "twice" or out of "order", and the longest time without one that arrived, "gap_us". Errors: as
// errno says.
absl::StatusOr<nlohmann::json> Conserve(const Ends& ends, const Steady& steady);

}  // namespace spoke::path_bench
