#include "admin-cli/server/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

TEST(TarGz, UnpacksToTheSame) {
  std::string large;
  for (int i = 0; i < 100'000; ++i) large += std::to_string(i);
  const std::vector<ArchiveFile> files = {
      {"folder/file.txt", "hello"}, {"empty", ""}, {"block", std::string(512, 'x')}, {"b", large}};
  const std::string packed = TarGz(files, 1'700'000'000).value();
  EXPECT_LT(packed.size(), large.size());
  EXPECT_EQ(packed, TarGz(files, 1'700'000'000).value()) << "equal input, equal output";

  const std::unique_ptr<archive, int (*)(archive*)> in(::archive_read_new(), &::archive_read_free);
  ASSERT_EQ(::archive_read_support_filter_gzip(in.get()), ARCHIVE_OK);
  ASSERT_EQ(::archive_read_support_format_tar(in.get()), ARCHIVE_OK);
  ASSERT_EQ(::archive_read_open_memory(in.get(), packed.data(), packed.size()), ARCHIVE_OK);
  archive_entry* entry = nullptr;
  for (const ArchiveFile& file : files) {
    ASSERT_EQ(::archive_read_next_header(in.get(), &entry), ARCHIVE_OK) << file.name;
    EXPECT_EQ(::archive_entry_pathname(entry), file.name);
    EXPECT_EQ(::archive_entry_mode(entry), AE_IFREG | 0600U);
    EXPECT_EQ(::archive_entry_mtime(entry), 1'700'000'000);
    EXPECT_STREQ(::archive_entry_uname(entry), "root");
    std::string content(static_cast<size_t>(::archive_entry_size(entry)), '\0');
    ASSERT_EQ(::archive_read_data(in.get(), content.data(), content.size()),
              static_cast<la_ssize_t>(content.size()));
    EXPECT_EQ(content, file.content);
  }
  EXPECT_EQ(::archive_read_next_header(in.get(), &entry), ARCHIVE_EOF);
  EXPECT_EQ(::archive_format(in.get()), ARCHIVE_FORMAT_TAR_USTAR);
}

TEST(TarGz, ANameThatIsTooLongIsRefused) {
  EXPECT_EQ(TarGz({{std::string(300, 'a'), ""}}, 0).status().code(), absl::StatusCode::kInternal);
}

TEST(TarGzDeathTest, ANameCannotLeaveTheFolder) {
  EXPECT_DEATH(static_cast<void>(TarGz({{"../passwd", ""}}, 0)), "stays below");
  EXPECT_DEATH(static_cast<void>(TarGz({{"/passwd", ""}}, 0)), "stays below");
}

}  // namespace
}  // namespace spoke::ctl
