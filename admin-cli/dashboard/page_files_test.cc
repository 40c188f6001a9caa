// Tests of the page's files: they are all there, small, and take no name for HTML.
#include "admin-cli/dashboard/page_files.h"

#include <cstddef>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr size_t kMostBytes = size_t{300} << 10U;

TEST(PageFilesTest, AreTheBytesOfTheTree) {
  ASSERT_FALSE(PageFiles().empty());
  for (const PageFile& file : PageFiles()) {
    std::ifstream stream(
        std::string(SPOKE_SOURCE_DIR "/admin-cli/dashboard/page/") + std::string(file.name),
        std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_FALSE(bytes.empty()) << file.name;
    EXPECT_EQ(file.text, bytes) << file.name;
  }
}

TEST(PageFilesTest, ThePageIsFoundByNoName) {
  ASSERT_NE(FindPageFile(""), nullptr);
  EXPECT_EQ(FindPageFile("")->name, "index.html");
  EXPECT_EQ(FindPageFile("page.js")->type, "text/javascript; charset=utf-8");
  EXPECT_EQ(FindPageFile("page"), nullptr);
  EXPECT_EQ(FindPageFile("../page.js"), nullptr);
}

TEST(PageFilesTest, AreAtMost300KiBTogether) {
  size_t bytes = 0;
  for (const PageFile& file : PageFiles()) bytes += file.text.size();
  EXPECT_LE(bytes, kMostBytes);
}

TEST(PageFilesTest, NothingTakesATextForHtmlOrForAScript) {
  for (const PageFile& file : PageFiles()) {
    const std::string text(file.text);
    for (const char* door :
         {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "setHTML", "srcdoc",
          "eval(", "Function(", "DOMParser", "createContextualFragment", "javascript:"}) {
      EXPECT_THAT(text, Not(HasSubstr(door))) << file.name;
    }
  }
}

TEST(PageFilesTest, NothingIsInlineOrComesFromElsewhere) {
  const std::string page(FindPageFile("")->text);
  EXPECT_FALSE(std::regex_search(page, std::regex(R"(<script(?![^>]*\ssrc=))"))) << page;
  EXPECT_FALSE(std::regex_search(page, std::regex(R"(<style|\sstyle=|\son[a-z]+=)"))) << page;
  for (const PageFile& file : PageFiles()) {
    const std::string text =
        std::regex_replace(std::string(file.text), std::regex("http://www.w3.org/2000/svg"), "");
    EXPECT_FALSE(std::regex_search(text, std::regex(R"((https?:)?//[a-z0-9-]+\.[a-z])")))
        << file.name;
  }
}

}  // namespace
}  // namespace spoke::ctl
