// The DELs that came while no agent was there: the plugin leaves one file each, and the agent takes
// them up when it is back.
//
// The files lie in a directory beside the socket. A file's name is 16 hex digits of StableHash() of
// the attachment, its content the encoded cni::Request of that DEL. Files whose names begin with
// '.' are being written, or could not be understood and were moved aside; after kKeepAside they go.
#pragma once

#include <dirent.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/telemetry/log.h"
#include "netagent/links/attach_plan.h"

namespace spoke::netagent {

// The name of the file for `key`. Pure.
std::string TombstoneName(const AttachmentKey& key);

// Returns whose DEL the file `name` with `content` is. Pure. Errors: kInvalidArgument (not a DEL,
// or the DEL of another attachment than its name says).
absl::StatusOr<AttachmentKey> ParseTombstone(const std::string& name, std::string_view content);

// Not thread-safe; belongs to the loop's thread.
class Tombstones {
 public:
  static constexpr size_t kMaxBytes = 64 << 10;  // The limit of one file.
  static constexpr size_t kFilesATick = 64;  // Each may be a link to take down: half a millisecond.
  static constexpr size_t kFilesAtStart = 2048;  // More than a node can have pods.
  static constexpr absl::Duration kPause = absl::Seconds(10);
  static constexpr absl::Duration kKeepAside = absl::Hours(24);

  // Carries out the DEL of `key` that was asked for at `written`. An error: the file stays, and it
  // is tried again.
  using Take = std::function<absl::Status(const AttachmentKey& key, absl::Time written)>;

  // `directory` need not exist: the plugin makes it. Borrows `log`.
  Tombstones(std::string directory, Take take, telemetry::Log& log);
  ~Tombstones();

  // Takes up to `limit` of them up, going on where the last call stopped. Returns whether there may
  // be more.
  bool TakeUp(size_t limit, absl::Time now);

  // Does TakeUp() of kFilesATick every kPause, and at once again while there are more.
  void Tick(absl::Time now);
  absl::Time NextWake() const { return next_; }

  // Takes up the one for `key`, if there is one. True: its DEL has been carried out.
  bool TakeUpOne(const AttachmentKey& key, absl::Time now);

 private:
  enum class Outcome { kDone, kStays };
  Outcome TakeFile(const std::string& name, absl::Time now);
  void PutAside(const std::string& name, const absl::Status& why);
  void RemoveIfOld(const std::string& name, absl::Time now) const;

  struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  const std::string directory_;
  const Take take_;
  telemetry::Log& log_;
  std::unique_ptr<DIR, CloseDirectory> open_;  // Where the last call stopped; null: at the end.
  absl::Time next_ = absl::InfinitePast();
  bool complained_ = false;  // Whether it has said that the directory cannot be read.
};

}  // namespace spoke::netagent
