#include "admin-cli/server/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include "fmt/core.h"
#include "lib/base/check.h"

namespace spoke::ctl {
namespace {

la_ssize_t Append(archive* /*unused*/, void* to, const void* data, size_t size) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
  return static_cast<la_ssize_t>(size);
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

}  // namespace spoke::ctl
