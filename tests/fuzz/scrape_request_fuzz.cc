// Requests for metrics, and files of tokens, from any text. The laws: what is found lies within the
// text; a token counts when it is a whole line of the file, and a file without long lines lets
// nobody in.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lib/base/check.h"
#include "lib/telemetry/scrape_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using spoke::telemetry::IsTokenOf;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const spoke::telemetry::ScrapeRequest request = spoke::telemetry::ParseScrapeRequest(text);
  CHECK(request.token.size() <= text.size(), "a token is part of its request");
  if (!request.token.empty()) {
    CHECK(
        !std::less<>()(request.token.data(), text.data()) &&
            !std::less<>()(text.data() + text.size(), request.token.data() + request.token.size()),
        "a token lies within its request");
    const bool is_long = request.token.size() >= spoke::telemetry::kMinTokenBytes;
    const bool one_line = request.token.find('\n') == std::string_view::npos;
    const std::string file = "another line of the file\n" + std::string(request.token) + "\n";
    CHECK(!one_line || IsTokenOf(file, request.token) == is_long, "its own line lets it in");
  }
  if (!request.path.empty()) {
    CHECK(text.substr(4).starts_with(request.path), "the path is what is asked for");
  }
  CHECK(!IsTokenOf(text, ""), "no token is none of any file's");
  CHECK(!IsTokenOf("short\n", text), "a short line lets nobody in");
  return 0;
}
