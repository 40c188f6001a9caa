// The place of what spokectl saves as a whole, a backup or a bundle: a file, or standard output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "admin-cli/output/console.h"
#include "admin-cli/server/archive.h"

namespace spoke::ctl {

// With the path "-" all goes to standard output as it comes, and nothing else may: notes are for
// standard error. Any other path is that of a GrowingFile. Not thread-safe; borrows the console.
class SavedOutput {
 public:
  SavedOutput(const std::string& path, Console& console);

  // Comes first of all. Errors: kInvalidArgument (standard output is a terminal);
  // GrowingFile::Open()'s.
  absl::Status Open();

  // Errors: as errno says.
  absl::Status Append(std::string_view data);

  // Comes last of all. Errors: GrowingFile::Finish()'s. What standard output has taken may still be
  // lost behind it: whoever reads it has to look at the exit code.
  absl::Status Finish();

  bool is_standard_output() const { return !file_.has_value(); }
  uint64_t size() const { return size_; }  // The bytes so far.

 private:
  Console& console_;
  std::optional<GrowingFile> file_;
  uint64_t size_ = 0;
};

}  // namespace spoke::ctl
