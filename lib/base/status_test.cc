#include "lib/base/status.h"

#include <cerrno>

#include "gtest/gtest.h"

namespace spoke::base {
namespace {

TEST(Status, ErrnoKeepsTheReasonAndTellsTheCallerWhatToDo) {
  EXPECT_EQ(ErrnoToStatus(ENODEV, "delete link eth7").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrnoToStatus(EBUSY, "x").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrnoToStatus(ENOSPC, "x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoToStatus(ENODEV, "delete link eth7").message(),
            "delete link eth7: No such device");
}

TEST(Status, AnnotateKeepsTheCodeAndLeavesOkAlone) {
  EXPECT_EQ(Annotate(absl::AbortedError("stale"), "put node/a"),
            absl::AbortedError("put node/a: stale"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "put node/a").ok());
}

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  ASSIGN_OR_RETURN(const int half, Half(n));
  return Half(half);
}

TEST(Status, AssignOrReturnPassesValuesAndErrors) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(7).status(), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(Quarter(6).status(), absl::InvalidArgumentError("odd"));
}

}  // namespace
}  // namespace spoke::base
