// A file that gets its name only when it is whole, for backups and bundles. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/os/unique_fd.h"

namespace spoke::ctl {

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
