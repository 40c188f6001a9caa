#include "admin-cli/server/archive.h"

#include <zlib.h>

#include <array>
#include <cstring>
#include <limits>

#include "fmt/core.h"
#include "lib/base/check.h"

namespace spoke::ctl {
namespace {

constexpr size_t kBlock = 512;

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

}  // namespace

std::string TarEntry(std::string_view name, std::string_view content, int64_t unix_seconds) {
  CHECK(!name.empty() && name[0] != '/' && name.find("..") == std::string_view::npos,
        "a tar entry stays below where it is unpacked");
  CHECK(content.size() < (size_t{1} << 33), "a tar entry's size has eleven octal digits");
  UstarHeader header{};
  Put(header.name, name);
  Put(header.mode, "0000600");
  Put(header.uid, "0000000");
  Put(header.gid, "0000000");
  Put(header.size, fmt::format("{:011o}", content.size()));
  Put(header.mtime, fmt::format("{:011o}", unix_seconds));
  Put(header.checksum, "        ");  // Counts as blanks.
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
  block += content;
  block.append((kBlock - content.size() % kBlock) % kBlock, '\0');
  return block;
}

std::string TarEnd() { return std::string(2 * kBlock, '\0'); }

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

}  // namespace spoke::ctl
