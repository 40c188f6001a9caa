#include "tests/bench/path/modes.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/status.h"
#include "tests/bench/path/quantile.h"

namespace spoke::path_bench {
namespace {

constexpr size_t kBatch = 64;
constexpr size_t kPayload = 64;
// The packets of a turn: so many to warm the caches, so many that count.
constexpr size_t kWarmBatches = 1;
constexpr size_t kBatchesATurn = 8;
constexpr size_t kWarmChunks = 2;
constexpr size_t kChunksATurn = 16;
constexpr size_t kWarmRounds = 16;
constexpr size_t kRoundsATurn = 128;
// The pause of a steady flow between two looks: others on this processor shall get their work done.
constexpr absl::Duration kPause = absl::Microseconds(300);
// The bytes by which a connection's window has opened.
constexpr size_t kChunksAtStart = 32;
// The time by which a packet is there that somebody else carries on (ksoftirqd, when our turn was
// too long).
constexpr int64_t kLatePatienceNs = 1'000'000'000;
constexpr int64_t kStandstillNs = 10'000'000'000;
constexpr size_t kChunk = 256UL << 10U;
constexpr size_t kMebibyte = 1UL << 20U;

// One array of messages for all batches: what is measured is the kernel, not the set-up of calls.
class Batch {
 public:
  Batch() {
    for (size_t i = 0; i < kBatch; ++i) {
      parts_[i] = {payloads_[i].data(), kPayload};
      messages_[i].msg_hdr.msg_iov = &parts_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  absl::Status Send(int fd) {
    size_t sent = 0;
    while (sent < kBatch) {
      const int now = ::sendmmsg(fd, &messages_[sent], static_cast<unsigned>(kBatch - sent), 0);
      if (now < 0 && errno != EINTR) return base::ErrnoToStatus(errno, "send");
      if (now > 0) sent += static_cast<size_t>(now);
    }
    return absl::OkStatus();
  }

  // Takes those that are there now; returns how many.
  size_t Take(int fd) {
    const int taken = ::recvmmsg(fd, messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
    return taken > 0 ? static_cast<size_t>(taken) : 0;
  }

 private:
  std::array<std::array<uint8_t, kPayload>, kBatch> payloads_{};
  std::array<iovec, kBatch> parts_{};
  std::array<mmsghdr, kBatch> messages_{};
};

// Takes a whole batch; returns how many of it had to be waited for.
absl::StatusOr<size_t> TakeAll(Batch& batch, int fd) {
  size_t taken = batch.Take(fd);
  const size_t late = kBatch - taken;
  const int64_t deadline = NowNs() + kLatePatienceNs;
  while (taken < kBatch) {
    taken += batch.Take(fd);
    if (NowNs() > deadline) {
      return absl::DataLossError(
          fmt::format("{} of {} packets are missing", kBatch - taken, kBatch));
    }
  }
  return late;
}

// Sends all of `chunk` and takes all of it.
absl::Status PushChunk(const Flow& flow, std::vector<uint8_t>& chunk, std::vector<uint8_t>& into) {
  size_t sent = 0;
  size_t received = 0;
  int64_t moved = NowNs();
  while (received < chunk.size()) {
    if (sent < chunk.size()) {
      const ssize_t now =
          ::send(flow.sender.get(), chunk.data() + sent, chunk.size() - sent, MSG_NOSIGNAL);
      if (now > 0) sent += static_cast<size_t>(now);
      if (now < 0 && errno != EAGAIN) return base::ErrnoToStatus(errno, "send");
    }
    const ssize_t now = ::recv(flow.receiver.get(), into.data(), into.size(), 0);
    if (now == 0) return absl::DataLossError("the connection has ended");
    if (now < 0 && errno != EAGAIN) return base::ErrnoToStatus(errno, "receive");
    if (now > 0) {
      received += static_cast<size_t>(now);
      moved = NowNs();
    } else if (NowNs() - moved > kStandstillNs) {
      return absl::DeadlineExceededError("the connection stands still");
    }
  }
  return absl::OkStatus();
}

absl::Status PassOne(int from, int to) {
  uint64_t payload = 0;
  if (::send(from, &payload, sizeof payload, 0) < 0) return base::ErrnoToStatus(errno, "send");
  const int64_t deadline = NowNs() + kLatePatienceNs;
  while (::recv(to, &payload, sizeof payload, 0) < 0) {
    if (errno != EAGAIN) return base::ErrnoToStatus(errno, "receive");
    if (NowNs() > deadline) return absl::DataLossError("a packet is missing");
  }
  return absl::OkStatus();
}

// The counts of what has become of numbered packets.
class Numbers {
 public:
  void Arrive(uint64_t number, int64_t now) {
    if (number >= seen_.size()) seen_.resize((number + 1) * 2);
    if (seen_[number]) {
      ++twice_;
      return;
    }
    seen_[number] = true;
    ++received_;
    if (number < next_) ++out_of_order_;
    next_ = std::max(next_, number + 1);
    if (last_ != 0) gap_ns_ = std::max(gap_ns_, now - last_);
    last_ = now;
  }

  uint64_t received() const { return received_; }

  nlohmann::json Judge(uint64_t sent) const {
    return {{"sent", sent},
            {"received", received_},
            {"lost", sent - received_},
            {"twice", twice_},
            {"order", out_of_order_},
            {"gap_us", static_cast<double>(gap_ns_) / 1000}};
  }

 private:
  std::vector<bool> seen_ = std::vector<bool>(4096);
  uint64_t received_ = 0;
  uint64_t twice_ = 0;
  uint64_t out_of_order_ = 0;
  uint64_t next_ = 0;
  int64_t last_ = 0;
  int64_t gap_ns_ = 0;
};

absl::Status TakeNumbers(int fd, Numbers& numbers) {
  std::array<uint8_t, 2048> payload{};
  while (true) {
    const ssize_t size = ::recv(fd, payload.data(), payload.size(), 0);
    if (size < 0 && errno == EAGAIN) return absl::OkStatus();
    if (size < 0) return base::ErrnoToStatus(errno, "receive");
    uint64_t number = 0;
    if (static_cast<size_t>(size) < sizeof number) continue;
    std::memcpy(&number, payload.data(), sizeof number);
    numbers.Arrive(number, NowNs());
  }
}

// One path's sockets, and what has been measured on it.
struct Track {
  Flow flow;
  std::vector<double> each;
  int64_t total = 0;
  size_t late = 0;
  uint64_t sent = 0;  // The packets or bytes, including what only warmed up.
};

absl::StatusOr<std::vector<Track>> OpenAll(const std::vector<Ends>& paths,
                                           absl::StatusOr<Flow> (*open)(const Ends&)) {
  std::vector<Track> tracks;
  for (const Ends& ends : paths) {
    ASSIGN_OR_RETURN(Flow flow, open(ends));
    tracks.push_back({.flow = std::move(flow)});
  }
  return tracks;
}

absl::Status UdpTurn(Batch& batch, Track& track) {
  for (size_t i = 0; i < kWarmBatches + kBatchesATurn; ++i) {
    const int64_t began = ThreadCpuNs();
    RETURN_IF_ERROR(batch.Send(track.flow.sender.get()));
    const int64_t took = ThreadCpuNs() - began;
    track.sent += kBatch;
    ASSIGN_OR_RETURN(const size_t late, TakeAll(batch, track.flow.receiver.get()));
    if (i < kWarmBatches) continue;
    track.total += took;
    track.late += late;
    track.each.push_back(static_cast<double>(took) / kBatch);
  }
  return absl::OkStatus();
}

struct Chunks {
  std::vector<uint8_t> out = std::vector<uint8_t>(kChunk);
  std::vector<uint8_t> in = std::vector<uint8_t>(kChunk);
};

absl::Status TcpTurn(Chunks& chunks, Track& track) {
  for (size_t i = 0; i < kWarmChunks + kChunksATurn; ++i) {
    const int64_t began = ThreadCpuNs();
    RETURN_IF_ERROR(PushChunk(track.flow, chunks.out, chunks.in));
    const int64_t took = ThreadCpuNs() - began;
    track.sent += kChunk;
    if (i < kWarmChunks) continue;
    track.total += took;
    track.each.push_back(static_cast<double>(took) * (static_cast<double>(kMebibyte) / kChunk));
  }
  return absl::OkStatus();
}

absl::Status RoundTripTurn(Track& track) {
  for (size_t i = 0; i < kWarmRounds + kRoundsATurn; ++i) {
    const int64_t began = NowNs();
    RETURN_IF_ERROR(PassOne(track.flow.sender.get(), track.flow.receiver.get()));
    RETURN_IF_ERROR(PassOne(track.flow.receiver.get(), track.flow.sender.get()));
    ++track.sent;
    if (i >= kWarmRounds) track.each.push_back(static_cast<double>(NowNs() - began));
  }
  return absl::OkStatus();
}

size_t Turns(size_t wanted, size_t each) { return std::max<size_t>(1, wanted / each); }

}  // namespace

absl::StatusOr<nlohmann::json> MeasureUdp(const std::vector<Ends>& paths, size_t packets) {
  ASSIGN_OR_RETURN(std::vector<Track> tracks, OpenAll(paths, OpenUdp));
  Batch batch;
  const size_t turns = Turns(packets, kBatch * kBatchesATurn);
  for (size_t turn = 0; turn < turns; ++turn) {
    for (Track& track : tracks) RETURN_IF_ERROR(UdpTurn(batch, track));
  }
  nlohmann::json result = nlohmann::json::array();
  for (Track& track : tracks) {
    const auto measured = static_cast<double>(track.each.size() * kBatch);
    result.push_back({{"sent", track.sent},
                      {"mean_ns", static_cast<double>(track.total) / measured},
                      {"median_ns", Quantile(track.each, 0.5)},
                      {"p25_ns", Quantile(track.each, 0.25)},
                      {"late", track.late}});
  }
  return result;
}

absl::StatusOr<nlohmann::json> MeasureTcp(const std::vector<Ends>& paths, size_t mebibytes) {
  ASSIGN_OR_RETURN(std::vector<Track> tracks, OpenAll(paths, OpenTcp));
  Chunks chunks;
  for (Track& track : tracks) {
    for (size_t i = 0; i < kChunksAtStart; ++i) {
      RETURN_IF_ERROR(PushChunk(track.flow, chunks.out, chunks.in));
      track.sent += kChunk;
    }
  }
  const size_t turns = Turns(mebibytes * kMebibyte, kChunk * kChunksATurn);
  for (size_t turn = 0; turn < turns; ++turn) {
    for (Track& track : tracks) RETURN_IF_ERROR(TcpTurn(chunks, track));
  }
  nlohmann::json result = nlohmann::json::array();
  for (Track& track : tracks) {
    const double measured = static_cast<double>(track.each.size() * kChunk) / kMebibyte;
    result.push_back({{"sent", track.sent},
                      {"mean_ns", static_cast<double>(track.total) / measured},
                      {"median_ns", Quantile(track.each, 0.5)},
                      {"p25_ns", Quantile(track.each, 0.25)}});
  }
  return result;
}

absl::StatusOr<nlohmann::json> MeasureRoundTrip(const std::vector<Ends>& paths, size_t rounds) {
  ASSIGN_OR_RETURN(std::vector<Track> tracks, OpenAll(paths, OpenUdp));
  const size_t turns = Turns(rounds, kRoundsATurn);
  for (size_t turn = 0; turn < turns; ++turn) {
    for (Track& track : tracks) RETURN_IF_ERROR(RoundTripTurn(track));
  }
  nlohmann::json result = nlohmann::json::array();
  for (Track& track : tracks) {
    result.push_back({{"sent", track.sent},
                      {"p10_ns", Quantile(track.each, 0.1)},
                      {"p50_ns", Quantile(track.each, 0.5)}});
  }
  return result;
}

absl::StatusOr<nlohmann::json> Conserve(const Ends& ends, const Steady& steady) {
  ASSIGN_OR_RETURN(const Flow flow, OpenUdp(ends));
  std::vector<uint8_t> payload(std::max<size_t>(steady.payload, sizeof(uint64_t)));
  Numbers numbers;
  uint64_t sent = 0;
  const int64_t began = NowNs();
  const int64_t length = absl::ToInt64Nanoseconds(steady.length);
  while (NowNs() - began < length) {
    const auto due = static_cast<uint64_t>(static_cast<double>(NowNs() - began) *
                                           static_cast<double>(steady.packets_per_second) / 1e9);
    // There are never more at once than the receiver has room for, however long we were kept from
    // running.
    for (size_t burst = 0; sent < due && burst < kBatch; ++burst, ++sent) {
      std::memcpy(payload.data(), &sent, sizeof sent);
      if (::send(flow.sender.get(), payload.data(), payload.size(), 0) < 0) {
        return base::ErrnoToStatus(errno, "send");
      }
    }
    RETURN_IF_ERROR(TakeNumbers(flow.receiver.get(), numbers));
    absl::SleepFor(kPause);
  }
  const int64_t deadline = NowNs() + kLatePatienceNs;
  while (numbers.received() < sent && NowNs() < deadline) {
    RETURN_IF_ERROR(TakeNumbers(flow.receiver.get(), numbers));
  }
  nlohmann::json result = numbers.Judge(sent);
  result["payload"] = payload.size();
  return result;
}

}  // namespace spoke::path_bench
