#include "netagent/cleanup/file_traces.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/os/file.h"
#include "nlohmann/json.hpp"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxConflistBytes = 1 << 20;
constexpr size_t kMaxPluginBytes = 64 << 20;
constexpr const char* kStateFiles[] = {
    "clock", "journal", "nic", "policy", "series", "store-token", "azure-instance.json"};
// The ending of files that os::WriteFileAtomic() is writing.
constexpr const char* kBeingWritten = ".tmp";
// The directory below /run and /var/lib that is nobody's but ours.
constexpr const char* kRunDirectory = "spoke";

bool IsThere(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

bool IsDirectory(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool HasContentOf(const std::string& path, const std::string& source, size_t limit) {
  const auto content = os::ReadFile(path, limit);
  const auto wanted = os::ReadFile(source, limit);
  return content.ok() && wanted.ok() && *content == *wanted;
}

// Returns the names of what is in `directory` and is no directory, sorted.
std::vector<std::string> FilesIn(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename();
    if (!IsDirectory(directory + "/" + name)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns whether it is a tombstone's name, or that of one that is being written or was put aside.
bool IsTombstone(const std::string& name) {
  constexpr size_t kDigits = 16;
  return name.front() == '.' || (name.size() == kDigits &&
                                 name.find_first_not_of("0123456789abcdef") == std::string::npos);
}

class Finder {
 public:
  explicit Finder(const CleanupPaths& paths) : paths_(paths) {}

  std::vector<TraceFile> Find() {
    FindInstalled();
    const std::string run = os::DirectoryOf(paths_.cni_socket);
    const std::string tombstones = run + "/tombstones";
    const std::string tls = paths_.state_dir + "/tls";
    for (const char* name : kStateFiles) FindWritten(paths_.state_dir + "/" + name);
    for (const std::string& name : FilesIn(tls)) Take(tls + "/" + name);
    for (const std::string& name : FilesIn(tombstones)) {
      if (IsTombstone(name)) Take(tombstones + "/" + name);
    }
    if (!paths_.lasting_dir.empty()) {
      FindWritten(paths_.lasting_dir + "/store-token");
      TakeEmpty(paths_.lasting_dir);
    }
    for (const char* ending : {"", ".new", ".stopped"}) Take(paths_.cni_socket + ending);
    if (!paths_.health_socket.empty()) Take(paths_.health_socket);
    Take(paths_.state_dir + "/journal.lock", FileRole::kLock);
    for (const std::string& directory : {tombstones, tls, paths_.state_dir}) TakeEmpty(directory);
    std::set<std::string> parents = {run, os::DirectoryOf(paths_.state_dir)};
    if (!paths_.lasting_dir.empty()) parents.insert(os::DirectoryOf(paths_.lasting_dir));
    for (const std::string& parent : parents) {
      if (std::filesystem::path(parent).filename() == kRunDirectory) TakeEmpty(parent);
    }
    return std::move(found_);
  }

 private:
  void Take(const std::string& path, FileRole role = FileRole::kState,
            std::string foreign_because = "") {
    if (paths_.keep.contains(path) || !IsThere(path)) return;
    found_.push_back({.path = path, .role = role, .foreign_because = std::move(foreign_because)});
  }
  void TakeEmpty(const std::string& path) {
    if (IsDirectory(path)) found_.push_back({.path = path, .role = FileRole::kDirectory});
  }
  void FindWritten(const std::string& path) {
    Take(path);
    Take(path + kBeingWritten);
  }

  void FindInstalled() {
    if (!paths_.conflist.empty()) {
      const auto content = os::ReadFile(paths_.conflist, kMaxConflistBytes);
      const bool ours = HasContentOf(paths_.conflist, paths_.conflist_source, kMaxConflistBytes) ||
                        (content.ok() && NamesOurPlugin(*content));
      Take(paths_.conflist, FileRole::kConflist,
           ours ? "" : "its first plugin is not of type spoke");
      Take(paths_.conflist + kBeingWritten);
    }
    if (!paths_.plugin.empty()) {
      const bool ours = HasContentOf(paths_.plugin, paths_.plugin_source, kMaxPluginBytes);
      Take(paths_.plugin, FileRole::kPlugin,
           ours ? ""
                : fmt::format("it is not the same as {}; delete it if it is an older one",
                              paths_.plugin_source));
      Take(paths_.plugin + kBeingWritten);
    }
  }

  const CleanupPaths& paths_;
  std::vector<TraceFile> found_;
};

}  // namespace

bool NamesOurPlugin(std::string_view content) {
  const auto json = nlohmann::json::parse(content, nullptr, false);
  if (!json.is_object()) return false;
  const auto plugins = json.find("plugins");
  if (plugins == json.end() || !plugins->is_array() || plugins->empty()) return false;
  const auto& first = plugins->front();
  if (!first.is_object()) return false;
  const auto type = first.find("type");
  return type != first.end() && type->is_string() && type->get<std::string>() == "spoke";
}

std::vector<TraceFile> FindFiles(const CleanupPaths& paths) { return Finder(paths).Find(); }

absl::StatusOr<bool> RemoveFile(const TraceFile& file) {
  const bool is_directory = file.role == FileRole::kDirectory;
  if ((is_directory ? ::rmdir(file.path.c_str()) : ::unlink(file.path.c_str())) == 0) return true;
  const int error = errno;
  if (error == ENOENT) return false;
  // The directory is an orchestrator's that mounts it, or has files of the server's.
  if (is_directory && (error == ENOTEMPTY || error == EEXIST || error == EBUSY)) return false;
  const absl::Status status = base::ErrnoToStatus(error, "delete " + file.path);
  if (!absl::IsPermissionDenied(status)) return status;
  return absl::PermissionDeniedError(fmt::format(
      "{}; mount it writable, run as root, and say --cleanup again", base::MessageOf(status)));
}

}  // namespace spoke::netagent
