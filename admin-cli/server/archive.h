// A .tar.gz in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/os/unique_fd.h"

namespace spoke::ctl {

struct ArchiveFile {
  // The name is neither empty nor absolute, without "..": anything else is a caller's bug.
  std::string name;
  std::string content;
};

// Packs POSIX ustar entries of regular files of root's, mode 0600, last modified at `unix_seconds`,
// as one gzip member without name or time: equal input gives equal output. Errors: kInternal
// (a name of more than 100 bytes, a content of 8 GiB, 4 GiB in all, or zlib has no memory).
absl::StatusOr<std::string> TarGz(const std::vector<ArchiveFile>& files, int64_t unix_seconds);

// A file that gets its name only when it is whole, for backups and bundles. Not thread-safe.

// The file is FILE.partial while it grows, readable for its owner only; FILE once it is on the disk
// and reads back as it was written. The destructor removes what has not become FILE.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_(std::move(path)), partial_(path_ + ".partial") {}
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;
  ~GrowingFile();

  // Opens the file; comes first of all. A FILE.partial that a killed run has left is overwritten.
  // Errors: kAlreadyExists (FILE is there), else as errno says.
  absl::Status Open();

  absl::Status Append(std::string_view data);

  // Finishes the file; comes last of all. Errors: kDataLoss (it does not read back as it was
  // written), kAlreadyExists (somebody has made FILE meanwhile), else as errno says.
  absl::Status Finish();

  uint64_t size() const { return size_; }

 private:
  absl::Status ReadBack() const;
  absl::Status GiveName() const;

  std::string path_;
  std::string partial_;
  os::UniqueFd fd_;
  uint64_t size_ = 0;
  unsigned long sum_ = 0;  // The CRC-32 of zlib.
};

}  // namespace spoke::ctl
