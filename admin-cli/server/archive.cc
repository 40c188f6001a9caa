#include "admin-cli/server/archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::ctl {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMostContent = size_t{1} << 33U;  // A size has eleven octal digits.

// POSIX.1-1988's header, byte by byte; numbers are octal text.
struct UstarHeader {
  std::array<char, 100> name;
  std::array<char, 8> mode;
  std::array<char, 8> uid;
  std::array<char, 8> gid;
  std::array<char, 12> size;
  std::array<char, 12> mtime;
  std::array<char, 8> checksum;
  char type;
  std::array<char, 100> link;
  std::array<char, 6> magic;
  std::array<char, 2> version;
  std::array<char, 32> user;
  std::array<char, 32> group;
  std::array<char, 8> device_major;
  std::array<char, 8> device_minor;
  std::array<char, 155> prefix;
  std::array<char, 12> padding;
};
static_assert(sizeof(UstarHeader) == kBlock);

template <size_t kSize>
void Put(std::array<char, kSize>& field, std::string_view text) {
  CHECK(text.size() <= kSize, "a tar header's field is long enough");
  std::memcpy(field.data(), text.data(), text.size());
}

std::string HeaderOf(const ArchiveFile& file, int64_t unix_seconds) {
  UstarHeader header{};
  Put(header.name, file.name);
  Put(header.mode, "0000600");
  Put(header.uid, "0000000");
  Put(header.gid, "0000000");
  Put(header.size, fmt::format("{:011o}", file.content.size()));
  Put(header.mtime, fmt::format("{:011o}", unix_seconds));
  Put(header.checksum, "        ");  // It counts as blanks.
  header.type = '0';
  Put(header.magic, std::string_view("ustar\0", 6));
  Put(header.version, "00");
  Put(header.user, "root");
  Put(header.group, "root");
  std::string block(kBlock, '\0');
  std::memcpy(block.data(), &header, kBlock);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  Put(header.checksum, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  std::memcpy(block.data(), &header, kBlock);
  return block;
}

absl::StatusOr<std::string> Gzip(std::string_view data) {
  constexpr int kGzipWindow = 15 + 16;  // The largest window; 16 asks for gzip's header.
  constexpr int kMemoryLevel = 8;
  if (data.size() > std::numeric_limits<uInt>::max()) {
    return absl::InternalError("more than 4 GiB cannot be compressed as one piece");
  }
  z_stream stream{};
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::InternalError("zlib cannot start");
  }
  std::string out(::deflateBound(&stream, data.size()), '\0');
  // zlib does not write to its input; the type is from before const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = ::deflate(&stream, Z_FINISH);
  out.erase(out.size() - stream.avail_out);
  ::deflateEnd(&stream);
  if (result != Z_STREAM_END) return absl::InternalError(fmt::format("zlib says {}", result));
  return out;
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
  std::string blocks;
  for (const ArchiveFile& file : files) {
    CHECK(!file.name.empty() && file.name[0] != '/' && file.name.find("..") == std::string::npos,
          "a file of an archive stays below where it is unpacked");
    if (file.name.size() > sizeof(UstarHeader::name) || file.content.size() >= kMostContent) {
      return absl::InternalError(fmt::format("{} does not fit into a tar archive", file.name));
    }
    blocks += HeaderOf(file, unix_seconds);
    blocks += file.content;
    blocks.append((kBlock - file.content.size() % kBlock) % kBlock, '\0');
  }
  blocks.append(2 * kBlock, '\0');  // Two empty blocks end an archive.
  return Gzip(blocks);
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
