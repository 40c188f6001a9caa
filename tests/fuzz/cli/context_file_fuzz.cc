// The file of contexts from any text. The laws: what is taken prints as text that is read as the
// same, names no file by a name of a context that leads elsewhere, and has a current one only among
// those that are there.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "admin-cli/context/context_file.h"
#include "lib/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spoke::ctl;  // NOLINT(google-build-using-namespace): the target's own.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = ParseContexts(text, "f.yaml");
  if (!file.ok()) {
    CHECK(file.status().code() == absl::StatusCode::kInvalidArgument, "mistakes have one code");
    return 0;
  }
  CHECK(file->current.empty() || file->contexts.contains(file->current), "the current one exists");
  for (const auto& [name, context] : file->contexts) {
    CHECK(name.find('/') == std::string::npos && name.front() != '.', "a name is no path");
    CHECK(!context.servers.empty(), "a context has a server");
  }
  const auto again = ParseContexts(PrintContexts(*file), "f.yaml");
  CHECK(again.ok() && *again == *file, "what is printed is read as the same");
  return 0;
}
