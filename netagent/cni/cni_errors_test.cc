#include "netagent/cni/cni_errors.h"

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

struct Case {
  absl::StatusCode code;
  cni::Verb verb;
  uint32_t want;
};

class CniErrorsTest : public testing::TestWithParam<Case> {};

TEST_P(CniErrorsTest, HasACodeAMessageAndARemedy) {
  const cni::Error error = ErrorOf(absl::Status(GetParam().code, "what happened"), GetParam().verb);
  EXPECT_EQ(error.code, GetParam().want);
  EXPECT_EQ(error.message, "what happened");
  EXPECT_NE(error.details, "");
}

INSTANTIATE_TEST_SUITE_P(
    Cases, CniErrorsTest,
    testing::Values(Case{absl::StatusCode::kResourceExhausted, cni::Verb::kAdd, 11},
                    Case{absl::StatusCode::kPermissionDenied, cni::Verb::kAdd, 11},
                    Case{absl::StatusCode::kUnavailable, cni::Verb::kDel, 11},
                    Case{absl::StatusCode::kDeadlineExceeded, cni::Verb::kAdd, 11},
                    Case{absl::StatusCode::kAborted, cni::Verb::kGc, 11},
                    Case{absl::StatusCode::kInvalidArgument, cni::Verb::kAdd, 7},
                    Case{absl::StatusCode::kFailedPrecondition, cni::Verb::kAdd, 8},
                    Case{absl::StatusCode::kAlreadyExists, cni::Verb::kAdd, 101},
                    Case{absl::StatusCode::kDataLoss, cni::Verb::kCheck, 102},
                    Case{absl::StatusCode::kInternal, cni::Verb::kDel, 100},
                    Case{absl::StatusCode::kUnimplemented, cni::Verb::kCheck, 100},
                    Case{absl::StatusCode::kResourceExhausted, cni::Verb::kStatus, 50},
                    Case{absl::StatusCode::kUnavailable, cni::Verb::kStatus, 50},
                    Case{absl::StatusCode::kDataLoss, cni::Verb::kStatus, 51}));

TEST(CniErrors, AnErrorWithoutWordsHasItsCodesName) {
  EXPECT_EQ(ErrorOf(absl::Status(absl::StatusCode::kInternal, ""), cni::Verb::kAdd).message,
            "INTERNAL");
}

}  // namespace
}  // namespace spoke::netagent
