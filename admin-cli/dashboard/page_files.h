// The files of the dashboard's page, which the build turns into arrays (cmake/EmbedFiles.cmake).
// Thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace spoke::ctl {

struct PageFile {
  std::string_view name;  // The path below the page: "page.css".
  std::string_view type;  // The value of Content-Type.
  std::string_view text;
};

// Returns all files. They live as long as the program.
std::span<const PageFile> PageFiles();

// Returns the file of that name, or nullptr. The page itself is "index.html", and also "".
const PageFile* FindPageFile(std::string_view name);

}  // namespace spoke::ctl
