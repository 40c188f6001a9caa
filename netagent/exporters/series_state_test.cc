#include "netagent/exporters/series_state.h"

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

TEST(SeriesState, WhatIsWrittenIsReadAgain) {
  SeriesState state{.epoch = absl::FromUnixNanos(1'700'000'000'123'456'789)};
  state.namespaces.slots[{"web"}] = {.base = {{"internet", {1, 2}}}, .shown = {}};
  state.namespaces.departed["cluster"] = {UINT64_MAX, 0};
  state.pods.slots[{"web", "web-0", "uid"}] = {.base = {}, .shown = {{"internet", {3, 4}}}};
  state.pods.other["_other"] = {5, 6};
  const auto read = DecodeSeriesState(EncodeSeriesState(state));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, state);
  EXPECT_EQ(DecodeSeriesState(EncodeSeriesState({})).value(), SeriesState());
}

TEST(SeriesState, OtherTextIsRefused) {
  const std::string whole = EncodeSeriesState({.epoch = absl::UnixEpoch()});
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(DecodeSeriesState(whole.substr(0, length)).ok()) << length;
  }
  for (const char* text :
       {"", "null", "[]", "7", R"({"version":2})", R"({"version":1,"epoch":"x"})",
        R"({"version":1,"epoch":0,"namespaces":{"slots":[7]}})",
        R"({"version":1,"epoch":0,"namespaces":{"slots":[],"departed":{"a":[1]}}})",
        R"({"version":1,"epoch":0,"namespaces":{"slots":[],"departed":{"a":[-1,2]}}})"}) {
    EXPECT_EQ(DecodeSeriesState(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace spoke::netagent
