#include "netagent/cni/tombstones.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/cni_api/wire.h"
#include "lib/os/unique_fd.h"

namespace spoke::netagent {
namespace {

struct File {
  std::string content;
  absl::Time written;
};

// Reads a file. Errors: kNotFound; kInvalidArgument (not a file, or too long); what errno says.
absl::StatusOr<File> ReadTombstone(const std::string& path) {
  // A tombstone may be anything: a FIFO must not block, a link is not followed.
  const os::UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) {
    if (errno == ELOOP) return absl::InvalidArgumentError("a symbolic link");
    return base::ErrnoToStatus(errno, "open " + path);
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) < 0) return base::ErrnoToStatus(errno, "stat " + path);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError("not a regular file");
  if (info.st_size > static_cast<off_t>(Tombstones::kMaxBytes)) {
    return absl::InvalidArgumentError(fmt::format("{} bytes", info.st_size));
  }
  File file{.content = std::string(static_cast<size_t>(info.st_size), '\0'),
            .written = absl::TimeFromTimespec(info.st_mtim)};
  const ssize_t got = ::read(fd.get(), file.content.data(), file.content.size());
  if (got < 0) return base::ErrnoToStatus(errno, "read " + path);
  file.content.resize(static_cast<size_t>(got));
  return file;
}

}  // namespace

std::string TombstoneName(const AttachmentKey& key) {
  return fmt::format("{:016x}", StableHash(key));
}

absl::StatusOr<AttachmentKey> ParseTombstone(const std::string& name, std::string_view content) {
  if (content.size() > Tombstones::kMaxBytes) return absl::InvalidArgumentError("not a request");
  const auto request = cni::DecodeRequest(content);
  if (!request) return absl::InvalidArgumentError("not a request");
  if (request->verb != cni::Verb::kDel || request->container_id.empty() ||
      request->ifname.empty()) {
    return absl::InvalidArgumentError("not the DEL of an attachment");
  }
  AttachmentKey key{request->container_id, request->ifname};
  if (TombstoneName(key) != name) {
    return absl::InvalidArgumentError(fmt::format("belongs into {}", TombstoneName(key)));
  }
  return key;
}

Tombstones::Tombstones(std::string directory, Take take, telemetry::Log& log)
    : directory_(std::move(directory)), take_(std::move(take)), log_(log) {}

Tombstones::~Tombstones() = default;

bool Tombstones::TakeUp(size_t limit, absl::Time now) {
  if (open_ == nullptr) {
    open_.reset(::opendir(directory_.c_str()));
    if (open_ == nullptr) {
      if (errno != ENOENT && !std::exchange(complained_, true)) {
        log_.Warn("tombstones_unreadable",
                  {{"error", base::ErrnoToStatus(errno, "open " + directory_)}});
      }
      return false;
    }
  }
  for (size_t i = 0; i < limit; ++i) {
    const dirent* entry = ::readdir(open_.get());
    if (entry == nullptr) {
      open_.reset();
      return false;
    }
    const std::string name(entry->d_name);
    if (name == "." || name == "..") continue;
    if (name.front() == '.') {
      RemoveIfOld(name, now);
    } else {
      TakeFile(name, now);
    }
  }
  return true;
}

void Tombstones::Tick(absl::Time now) {
  if (now < next_) return;
  next_ = TakeUp(kFilesATick, now) ? now : now + kPause;
}

bool Tombstones::TakeUpOne(const AttachmentKey& key, absl::Time now) {
  const std::string name = TombstoneName(key);
  const std::string path = directory_ + "/" + name;
  return ::access(path.c_str(), F_OK) == 0 && TakeFile(name, now) == Outcome::kDone;
}

Tombstones::Outcome Tombstones::TakeFile(const std::string& name, absl::Time now) {
  const std::string path = directory_ + "/" + name;
  const absl::StatusOr<File> file = ReadTombstone(path);
  if (absl::IsNotFound(file.status())) return Outcome::kStays;  // It has changed or gone meanwhile.
  const absl::StatusOr<AttachmentKey> key =
      file.ok() ? ParseTombstone(name, file->content) : file.status();
  if (absl::IsInvalidArgument(key.status())) {
    PutAside(name, key.status());
    return Outcome::kStays;
  }
  if (!key.ok()) {
    log_.Warn("tombstone_failed", {{"file", path}, {"error", key.status()}});
    return Outcome::kStays;
  }
  if (const absl::Status status = take_(*key, file->written); !status.ok()) {
    log_.Warn("tombstone_failed", {{"file", path},
                                   {"container", key->container_id},
                                   {"ifname", key->ifname},
                                   {"error", status}});
    return Outcome::kStays;
  }
  ::unlink(path.c_str());
  log_.Info("tombstone_taken_up", {{"container", key->container_id},
                                   {"ifname", key->ifname},
                                   {"age", absl::FormatDuration(now - file->written)}});
  return Outcome::kDone;
}

void Tombstones::PutAside(const std::string& name, const absl::Status& why) {
  const std::string path = directory_ + "/" + name;
  // A file under another name is passed over from now on, and so warned of once.
  const bool moved = std::rename(path.c_str(), (directory_ + "/." + name).c_str()) == 0;
  log_.Warn("tombstone_malformed", {{"file", path}, {"moved_aside", moved}, {"error", why}});
}

void Tombstones::RemoveIfOld(const std::string& name, absl::Time now) const {
  const std::string path = directory_ + "/" + name;
  struct stat info {};
  if (::lstat(path.c_str(), &info) < 0) return;
  if (now - absl::TimeFromTimespec(info.st_mtim) < kKeepAside) return;
  // A file that cannot be removed is looked at again.
  [[maybe_unused]] const int removed = std::remove(path.c_str());
}

}  // namespace spoke::netagent
