#include "cni-plugin/agent/tombstone.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lib/base/fnv1a.h"
#include "lib/os/unique_fd.h"

namespace spoke::cni {
namespace {

std::string Hex(uint64_t number) {
  std::string text(16, '0');
  for (size_t i = text.size(); i > 0; number >>= 4U) text[--i] = "0123456789abcdef"[number & 0xFU];
  return text;
}

Error Failed(const std::string& path, int error) {
  return {kTryAgainLater, "spoke-netagent is away, and the deletion cannot be noted down for it",
          path + ": " + std::strerror(error) + "; start the agent, or make room"};
}

// After a reboot not even the agent's own folder is there before the agent is.
bool MakeFolder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return true;
  if (errno != ENOENT) return false;
  ::mkdir(folder.substr(0, folder.rfind('/')).c_str(), 0755);
  return ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
}

bool WriteFile(const std::string& path, const std::string& bytes) {
  const os::UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return false;
  errno = ENOSPC;  // A short write means that.
  return ::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

std::string TombstoneName(const std::string& container_id, const std::string& ifname) {
  // The separator keeps ("ab", "c") apart from ("a", "bc").
  return Hex(
      base::Fnv1a(ifname, base::Fnv1a(std::string_view("\0", 1), base::Fnv1a(container_id))));
}

std::string TombstoneFolder(const std::string& socket) {
  return socket.substr(0, socket.rfind('/')) + "/tombstones";
}

std::optional<Error> LeaveTombstone(const std::string& socket, const Request& del) {
  const std::string folder = TombstoneFolder(socket);
  if (!MakeFolder(folder)) return Failed(folder, errno);
  const std::string path = folder + "/" + TombstoneName(del.container_id, del.ifname);
  const std::string temporary = folder + "/." + Hex(del.attempt);
  // A reader takes only names that do not begin with a dot, so it never sees half of one. The file
  // is not synced: the folder is on tmpfs, and what a power cut takes is gone from the kernel as
  // well.
  if (!WriteFile(temporary, EncodeRequest(del)) ||
      std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return Failed(temporary, error);
  }
  return std::nullopt;
}

}  // namespace spoke::cni
