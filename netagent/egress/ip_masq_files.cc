#include "netagent/egress/ip_masq_files.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "netagent/egress/ip_masq_text.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kFilePrefix = "ip-masq";
constexpr size_t kMaxFiles = 64;
// The pause after a mistake: it is looked at again sooner, since somebody is at it.
constexpr absl::Duration kRetry = absl::Seconds(5);

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
  if (directory == nullptr) return base::ErrnoToStatus(errno, "open " + path);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name.substr(0, kFilePrefix.size()) == kFilePrefix) names.emplace_back(name);
    if (names.size() > kMaxFiles) {
      return absl::InvalidArgumentError(fmt::format("{} has more than {} files that begin with {}",
                                                    path, kMaxFiles, kFilePrefix));
    }
  }
  return names;
}

}  // namespace

IpMasqFilesWatch::IpMasqFilesWatch(std::string path, bool ipv6, Apply apply, telemetry::Log& log)
    : path_(std::move(path)), ipv6_(ipv6), apply_(std::move(apply)), log_(log) {}

IpMasqConfig IpMasqFilesWatch::Start(absl::Time now) {
  good_ = ParseIpMasq({})->config;
  good_.ipv6 = ipv6_;
  Look(now);
  pending_ = false;
  return good_;
}

absl::StatusOr<std::map<std::string, std::string>> IpMasqFilesWatch::ReadFiles() const {
  std::map<std::string, std::string> files;
  struct stat status {};
  // The defaults are in force, as with ip-masq-agent, without a file.
  if (::stat(path_.c_str(), &status) < 0) {
    if (errno == ENOENT) return files;
    return base::ErrnoToStatus(errno, "look at " + path_);
  }
  if (!S_ISDIR(status.st_mode)) {
    ASSIGN_OR_RETURN(files[path_], os::ReadFile(path_));
    return files;
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path_));
  for (const std::string& name : names) {
    auto text = os::ReadFile(path_ + "/" + name);
    if (absl::IsNotFound(text.status())) continue;  // The file went between the two looks.
    if (!text.ok()) return text.status();
    files[name] = *std::move(text);
  }
  return files;
}

void IpMasqFilesWatch::Fail(absl::Time now, absl::Status problem) {
  if (problem != problem_) {
    log_.Warn("ip_masq_file_refused", {{"path", path_}, {"error", problem}});
  }
  problem_ = std::move(problem);
  next_ = now + std::min(resync_, kRetry);
}

bool IpMasqFilesWatch::Look(absl::Time now) {
  next_ = now + resync_;
  auto files = ReadFiles();
  if (!files.ok()) {
    Fail(now, files.status());
    return false;
  }
  if (looked_ && *files == read_) return false;
  auto parsed = ParseIpMasq({files->begin(), files->end()});
  if (!parsed.ok()) {
    Fail(now, parsed.status());
    return false;
  }
  looked_ = true;
  read_ = *std::move(files);
  problem_ = absl::OkStatus();
  resync_ = parsed->resync;
  next_ = now + resync_;
  for (const std::string& key : parsed->unknown_keys) {
    log_.Warn("ip_masq_key_unknown", {{"path", path_}, {"key", key}});
  }
  parsed->config.ipv6 = ipv6_;
  if (parsed->config == good_) return false;
  good_ = std::move(parsed->config);
  return true;
}

void IpMasqFilesWatch::Tick(absl::Time now) {
  if (now < next_) return;
  pending_ = Look(now) || pending_;
  if (!pending_) return;
  const absl::Status status = apply_(good_);
  if (!status.ok()) {
    Fail(now, base::Annotate(status, "put in force"));
    return;
  }
  pending_ = false;
  problem_ = absl::OkStatus();
  log_.Info("ip_masq_in_force",
            {{"path", path_}, {"files", read_.size()}, {"blocks", good_.non_masquerade.size()}});
}

}  // namespace spoke::netagent
