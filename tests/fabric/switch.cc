#include "tests/fabric/switch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>
#include <variant>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::fabric {
namespace {

// The most frames taken from one port before the others have their turn.
constexpr int kBurst = 64;

void Report(std::string_view what) {
  fmt::print(stderr, "spoke-fabric: {}\n", what);
  (void)std::fflush(stderr);
}

std::string FileNameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Switch::Switch(SwitchOptions options, NicTable table)
    : options_(std::move(options)), table_(std::move(table)) {
  counters_.addresses = table_.size();
}

absl::StatusOr<Switch> Switch::Open(SwitchOptions options) {
  ASSIGN_OR_RETURN(NicTable table, NicTable::Build(options.nics, {}));
  Switch fabric(std::move(options), std::move(table));
  for (const Nic& nic : fabric.options_.nics) {
    ASSIGN_OR_RETURN(PacketPort port, PacketPort::Open(nic.device));
    fabric.ports_.push_back(std::move(port));
  }
  RETURN_IF_ERROR(fabric.OpenSignals());
  if (!fabric.options_.attachments_path.empty()) {
    // The file is watched before it is read: a change in between is read twice, never missed.
    RETURN_IF_ERROR(fabric.WatchAttachments());
    fabric.LoadAttachments();
  }
  return fabric;
}

absl::Status Switch::OpenSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) ::sigaddset(&set, signal);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) < 0) {
    return base::ErrnoToStatus(errno, "block signals");
  }
  signals_ = os::UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return base::ErrnoToStatus(errno, "open signalfd");
  return absl::OkStatus();
}

absl::Status Switch::WatchAttachments() {
  const std::string directory = os::DirectoryOf(options_.attachments_path);
  directory_ = os::UniqueFd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!directory_.valid()) return base::ErrnoToStatus(errno, "open inotify");
  // The file itself cannot be watched: rename(2) puts another one in its place.
  if (::inotify_add_watch(directory_.get(), directory.c_str(),
                          IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR) < 0) {
    return base::ErrnoToStatus(errno, "watch directory " + directory);
  }
  return absl::OkStatus();
}

void Switch::LoadAttachments() {
  const std::string& path = options_.attachments_path;
  const absl::StatusOr<std::string> text = os::ReadFile(path);
  if (absl::IsNotFound(text.status())) return;  // The file is not written yet.
  const auto load = [&]() -> absl::StatusOr<NicTable> {
    RETURN_IF_ERROR(text.status());
    ASSIGN_OR_RETURN(const std::vector<Attachment> attachments, ParseAttachments(*text));
    return NicTable::Build(options_.nics, attachments);
  };
  absl::StatusOr<NicTable> table = load();
  if (!table.ok()) {
    ++counters_.tables_refused;
    Report(fmt::format("{}: {}; the previous table stays", path, base::MessageOf(table.status())));
    return;
  }
  table_ = *std::move(table);
  ++counters_.tables_loaded;
  counters_.addresses = table_.size();
  if (!table_.left_out().empty()) {
    const Attachment& first = table_.left_out().front();
    Report(fmt::format("{}: {} attachments left out: no NIC here has their MAC (line {}: {}, {})",
                       path, table_.left_out().size(), first.line, first.mac.ToString(),
                       first.node));
  }
}

void Switch::HandleDirectoryEvents() {
  const std::string wanted = FileNameOf(options_.attachments_path);
  alignas(inotify_event) std::array<char, 4096> buffer;
  bool changed = false;
  while (true) {
    const ssize_t got = ::read(directory_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    for (size_t at = 0; at < static_cast<size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const std::string name(buffer.data() + at + sizeof(event),
                             ::strnlen(buffer.data() + at + sizeof(event), event.len));
      // After an overflow of the queue nobody knows what happened, so look.
      changed = changed || name == wanted || (event.mask & IN_Q_OVERFLOW) != 0;
      at += sizeof(event) + event.len;
    }
  }
  if (changed) LoadAttachments();
}

void Switch::Send(size_t nic, const Offload& offload, const std::vector<uint8_t>& frame) {
  const absl::Status status = ports_[nic].Send(offload, frame);
  if (status.ok()) return;
  // This is as on a real wire: what does not fit, or meets a device that is down, is lost.
  ++counters_.send_failed;
  if (absl::IsInternal(status)) Report(base::MessageOf(status));
}

void Switch::DrainPort(size_t nic) {
  for (int i = 0; i < kBurst; ++i) {
    const auto received = ports_[nic].Receive();
    if (!received.ok()) {
      Report(base::MessageOf(received.status()));
      return;
    }
    if (!received->has_value()) return;
    ++counters_.received;
    const auto& [offload, frame] = **received;
    Apply(nic, offload,
          Decide(table_, options_.rules, Arrival{nic, frame, SegmentBytes(offload, frame)}));
  }
}

void Switch::Apply(size_t from, const Offload& offload, const Decision& decision) {
  if (const auto* drop = std::get_if<Drop>(&decision)) {
    ++counters_.DroppedFor(drop->reason);
  } else if (const auto* refuse = std::get_if<Refuse>(&decision)) {
    ++counters_.DroppedFor(refuse->reason);
    ++counters_.icmp_errors;
    Send(from, Offload{}, refuse->error);
  } else if (const auto* reply = std::get_if<Reply>(&decision)) {
    ++counters_.replied;
    Send(from, Offload{}, reply->frame);
  } else if (const auto* forward = std::get_if<Forward>(&decision)) {
    ++counters_.forwarded;
    if (forward->tagged) ++counters_.tagged;
    Send(forward->nic, offload, forward->frame);
  }
}

absl::StatusOr<bool> Switch::HandleSignals() {
  bool end = false;
  signalfd_siginfo info{};
  while (true) {
    const ssize_t got = ::read(signals_.get(), &info, sizeof(info));
    if (got < 0 && errno == EAGAIN) return end;
    if (got < 0) return base::ErrnoToStatus(errno, "read signalfd");
    if (info.ssi_signo == SIGUSR1) {
      WriteStats();
    } else {
      end = true;
    }
  }
}

void Switch::WriteStats() {
  for (PacketPort& port : ports_) counters_.overflowed += port.TakeOverflowed();
  if (options_.stats_path.empty()) return;
  const absl::Status status =
      os::WriteFileAtomic(options_.stats_path, counters_.ToText(), os::Durability::kVisible);
  if (!status.ok()) Report(base::MessageOf(status));
}

absl::Status Switch::Run() {
  std::vector<pollfd> waits;
  for (const PacketPort& port : ports_) waits.push_back({port.fd(), POLLIN, 0});
  waits.push_back({signals_.get(), POLLIN, 0});
  waits.push_back({directory_.get(), POLLIN, 0});  // poll(2) skips it when it is -1.
  while (true) {
    if (::poll(waits.data(), waits.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return base::ErrnoToStatus(errno, "poll");
    }
    if (waits[ports_.size()].revents != 0) {
      ASSIGN_OR_RETURN(const bool end, HandleSignals());
      if (end) {
        WriteStats();
        return absl::OkStatus();
      }
    }
    // The table comes first: what was attached before a frame was sent must count for it.
    if (waits[ports_.size() + 1].revents != 0) HandleDirectoryEvents();
    for (size_t nic = 0; nic < ports_.size(); ++nic) {
      if (waits[nic].revents != 0) DrainPort(nic);
    }
  }
}

}  // namespace spoke::fabric
