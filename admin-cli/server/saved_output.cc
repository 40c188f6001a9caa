#include "admin-cli/server/saved_output.h"

namespace spoke::ctl {

SavedOutput::SavedOutput(const std::string& path, Console& console) : console_(console) {
  if (path != "-") file_.emplace(path);
}

absl::Status SavedOutput::Open() {
  if (file_) return file_->Open();
  if (!console_.out_is_terminal()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "standard output is a terminal: send it to a file or a pipe, or name a file");
}

absl::Status SavedOutput::Append(std::string_view data) {
  size_ += data.size();
  if (file_) return file_->Append(data);
  console_.Out(data);
  return console_.written();
}

absl::Status SavedOutput::Finish() { return file_ ? file_->Finish() : console_.written(); }

}  // namespace spoke::ctl
