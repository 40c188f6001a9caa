#include "admin-cli/server/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::ctl {
namespace {

la_ssize_t Append(archive* /*unused*/, void* to, const void* data, size_t size) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
  return static_cast<la_ssize_t>(size);
}

unsigned long Checksum(unsigned long sum, const char* data, size_t size) {
  return ::crc32_z(sum, reinterpret_cast<const Bytef*>(data), size);
}

absl::Status Exists(const std::string& path) {
  return absl::AlreadyExistsError(
      fmt::format("{} exists and is not overwritten; choose another name", path));
}

}  // namespace

absl::StatusOr<std::string> TarGz(const std::vector<ArchiveFile>& files, int64_t unix_seconds) {
  std::string packed;
  const std::unique_ptr<archive, int (*)(archive*)> out(::archive_write_new(),
                                                        &::archive_write_free);
  const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(::archive_entry_new(),
                                                                       &::archive_entry_free);
  CHECK(out != nullptr && entry != nullptr, "there is memory");
  // The last block has one byte: nothing pads what gzip has written.
  bool ok = ::archive_write_set_format_ustar(out.get()) == ARCHIVE_OK &&
            ::archive_write_add_filter_gzip(out.get()) == ARCHIVE_OK &&
            ::archive_write_set_options(out.get(), "gzip:!timestamp") == ARCHIVE_OK &&
            ::archive_write_set_bytes_in_last_block(out.get(), 1) == ARCHIVE_OK &&
            ::archive_write_open(out.get(), &packed, nullptr, &Append, nullptr) == ARCHIVE_OK;
  for (const ArchiveFile& file : files) {
    CHECK(!file.name.empty() && file.name[0] != '/' && file.name.find("..") == std::string::npos,
          "a file of an archive stays below where it is unpacked");
    ::archive_entry_clear(entry.get());
    ::archive_entry_set_pathname(entry.get(), file.name.c_str());
    ::archive_entry_set_filetype(entry.get(), AE_IFREG);
    ::archive_entry_set_perm(entry.get(), 0600);
    ::archive_entry_set_mtime(entry.get(), unix_seconds, 0);
    ::archive_entry_set_size(entry.get(), static_cast<la_int64_t>(file.content.size()));
    ::archive_entry_set_uname(entry.get(), "root");
    ::archive_entry_set_gname(entry.get(), "root");
    ok = ok && ::archive_write_header(out.get(), entry.get()) == ARCHIVE_OK &&
         ::archive_write_data(out.get(), file.content.data(), file.content.size()) ==
             static_cast<la_ssize_t>(file.content.size());
  }
  if (ok && ::archive_write_close(out.get()) == ARCHIVE_OK) return packed;
  const char* why = ::archive_error_string(out.get());
  return absl::InternalError(fmt::format("libarchive: {}", why == nullptr ? "no reason" : why));
}

GrowingFile::~GrowingFile() {
  if (fd_.valid()) ::unlink(partial_.c_str());
}

absl::Status GrowingFile::Open() {
  struct stat info {};
  if (::lstat(path_.c_str(), &info) == 0) return Exists(path_);
  fd_ = os::UniqueFd(::open(partial_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd_.valid()) return base::ErrnoToStatus(errno, "create " + partial_);
  return absl::OkStatus();
}

absl::Status GrowingFile::Append(std::string_view data) {
  sum_ = Checksum(sum_, data.data(), data.size());
  size_ += data.size();
  while (!data.empty()) {
    const ssize_t wrote = ::write(fd_.get(), data.data(), data.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return base::ErrnoToStatus(errno, "write " + partial_);
    data.remove_prefix(static_cast<size_t>(wrote));
  }
  return absl::OkStatus();
}

absl::Status GrowingFile::Finish() {
  if (::fsync(fd_.get()) < 0) return base::ErrnoToStatus(errno, "sync " + partial_);
  RETURN_IF_ERROR(ReadBack());
  RETURN_IF_ERROR(GiveName());
  fd_.Reset();
  const std::string directory = os::DirectoryOf(path_);
  const os::UniqueFd folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() || ::fsync(folder.get()) < 0) {
    return base::ErrnoToStatus(errno, "sync the folder " + directory);
  }
  return absl::OkStatus();
}

absl::Status GrowingFile::ReadBack() const {
  std::array<char, 1 << 16> buffer{};
  unsigned long sum = 0;
  off_t at = 0;
  while (true) {
    const ssize_t got = ::pread(fd_.get(), buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::ErrnoToStatus(errno, "read back " + partial_);
    if (got == 0) break;
    sum = Checksum(sum, buffer.data(), static_cast<size_t>(got));
    at += got;
  }
  if (static_cast<uint64_t>(at) != size_ || sum != sum_) {
    return absl::DataLossError(
        fmt::format("{} does not read back as it was written: check the disk", partial_));
  }
  return absl::OkStatus();
}

absl::Status GrowingFile::GiveName() const {
  // Neither of these ever replaces a file that has come meanwhile, as rename() does. Network file
  // systems know the first, those without hard links the second.
  if (::link(partial_.c_str(), path_.c_str()) == 0) {
    ::unlink(partial_.c_str());
    return absl::OkStatus();
  }
  if (errno == EPERM || errno == EOPNOTSUPP) {
    if (::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) {
      return absl::OkStatus();
    }
  }
  return errno == EEXIST ? Exists(path_) : base::ErrnoToStatus(errno, "create " + path_);
}

}  // namespace spoke::ctl
