#include "admin-cli/server/archive.h"

#include <zlib.h>

#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

TEST(TarEntry, IsAHeaderAndWholeBlocks) {
  const std::string entry = TarEntry("folder/file.txt", "hello", 1'700'000'000);
  ASSERT_EQ(entry.size(), 1024U);
  EXPECT_STREQ(entry.c_str(), "folder/file.txt");
  EXPECT_EQ(entry.substr(124, 11), "00000000005") << "size, octal";
  EXPECT_EQ(entry.substr(136, 11), "14524770400") << "time, octal";
  EXPECT_EQ(entry.substr(257, 8), std::string("ustar\0"
                                              "00",
                                              8));
  EXPECT_EQ(entry.substr(512, 6), std::string("hello\0", 6));
  // The sum of all bytes, its own field as blanks.
  unsigned sum = 8 * ' ';
  for (size_t i = 0; i < 512; ++i) {
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(entry[i]);
  }
  EXPECT_EQ(std::stoul(entry.substr(148, 6), nullptr, 8), sum);
}

TEST(TarEntry, ContentOfWholeBlocksHasNoPadding) {
  EXPECT_EQ(TarEntry("a", "", 0).size(), 512U);
  EXPECT_EQ(TarEntry("a", std::string(512, 'x'), 0).size(), 1024U);
  EXPECT_EQ(TarEnd(), std::string(1024, '\0'));
}

TEST(TarEntryDeathTest, ANameCannotLeaveTheFolder) {
  EXPECT_DEATH(TarEntry("../passwd", "", 0), "stays below");
  EXPECT_DEATH(TarEntry("/passwd", "", 0), "stays below");
  EXPECT_DEATH(TarEntry(std::string(101, 'a'), "", 0), "long enough");
}

TEST(Gzip, UnpacksToTheSame) {
  std::string data;
  for (int i = 0; i < 100'000; ++i) data += std::to_string(i);
  const std::string packed = Gzip(data).value();
  EXPECT_LT(packed.size(), data.size());
  EXPECT_EQ(packed, Gzip(data).value()) << "equal input, equal output";
  z_stream stream{};
  ASSERT_EQ(::inflateInit2(&stream, 15 + 16), Z_OK);
  std::string unpacked(data.size() + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
  stream.avail_out = static_cast<uInt>(unpacked.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  unpacked.resize(stream.total_out);
  ::inflateEnd(&stream);
  EXPECT_EQ(unpacked, data);
}

}  // namespace
}  // namespace spoke::ctl
