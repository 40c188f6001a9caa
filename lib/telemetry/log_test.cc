#include "lib/telemetry/log.h"

#include "gtest/gtest.h"

namespace spoke::telemetry {
namespace {

TEST(Log, PlainValuesStandAsTheyAre) {
  EXPECT_EQ(FormatEvent("pool_low", {{"pool", "default"}, {"free", 3}}),
            "pool_low pool=default free=3");
}

TEST(Log, AValueCannotBreakTheLineOrForgeAField) {
  EXPECT_EQ(FormatEvent("e", {{"k", "a b"}, {"l", "x=\"y\"\nlevel=error"}, {"m", ""}}),
            "e k=\"a b\" l=\"x=\\\"y\\\"\\nlevel=error\" m=\"\"");
  EXPECT_EQ(FormatEvent("e", {{"k", std::string("\x1b[0m")}}), "e k=\"\\x1b[0m\"");
}

TEST(Log, AStatusShowsItsCode) {
  EXPECT_EQ(FormatEvent("e", {{"error", absl::NotFoundError("no link")}}),
            "e error=\"NOT_FOUND: no link\"");
}

}  // namespace
}  // namespace spoke::telemetry
