#include "admin-cli/dashboard/page_files.h"

namespace spoke::ctl {

const PageFile* FindPageFile(std::string_view name) {
  if (name.empty()) name = "index.html";
  for (const PageFile& file : PageFiles()) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

}  // namespace spoke::ctl
