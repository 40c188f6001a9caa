#include "netagent/cni/cni_errors.h"

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

struct Case {
  absl::StatusCode code;
  CniVerb verb;
  uint32_t want;
};

class CniErrorsTest : public testing::TestWithParam<Case> {};

TEST_P(CniErrorsTest, HasACodeAMessageAndARemedy) {
  const CniFailure failure =
      FailureOf(absl::Status(GetParam().code, "what happened"), GetParam().verb);
  EXPECT_EQ(failure.code, GetParam().want);
  EXPECT_EQ(failure.message, "what happened");
  EXPECT_NE(failure.details, "");
}

INSTANTIATE_TEST_SUITE_P(
    Cases, CniErrorsTest,
    testing::Values(Case{absl::StatusCode::kResourceExhausted, CniVerb::kAdd, 11},
                    Case{absl::StatusCode::kPermissionDenied, CniVerb::kAdd, 11},
                    Case{absl::StatusCode::kUnavailable, CniVerb::kDel, 11},
                    Case{absl::StatusCode::kDeadlineExceeded, CniVerb::kAdd, 11},
                    Case{absl::StatusCode::kAborted, CniVerb::kGc, 11},
                    Case{absl::StatusCode::kInvalidArgument, CniVerb::kAdd, 7},
                    Case{absl::StatusCode::kFailedPrecondition, CniVerb::kAdd, 8},
                    Case{absl::StatusCode::kAlreadyExists, CniVerb::kAdd, 101},
                    Case{absl::StatusCode::kDataLoss, CniVerb::kCheck, 102},
                    Case{absl::StatusCode::kInternal, CniVerb::kDel, 100},
                    Case{absl::StatusCode::kUnimplemented, CniVerb::kCheck, 100},
                    Case{absl::StatusCode::kResourceExhausted, CniVerb::kStatus, 50},
                    Case{absl::StatusCode::kUnavailable, CniVerb::kStatus, 50},
                    Case{absl::StatusCode::kDataLoss, CniVerb::kStatus, 51}));

TEST(CniErrors, AnErrorWithoutWordsHasItsCodesName) {
  EXPECT_EQ(FailureOf(absl::Status(absl::StatusCode::kInternal, ""), CniVerb::kAdd).message,
            "INTERNAL");
}

TEST(RefusalOfPlugin, IsForAddsOfAnotherMajorVersionOnly) {
  for (const CniVerb verb :
       {CniVerb::kDel, CniVerb::kCheck, CniVerb::kGc, CniVerb::kStatus, CniVerb::kAdd}) {
    EXPECT_EQ(RefusalOfPlugin("1.9.0", "1.2.0", verb), std::nullopt);
    EXPECT_EQ(RefusalOfPlugin("", "1.2.0", verb), std::nullopt);
    EXPECT_EQ(RefusalOfPlugin("nonsense", "1.2.0", verb), std::nullopt);
    EXPECT_EQ(RefusalOfPlugin("2.0.0", "1.2.0", verb).has_value(), verb == CniVerb::kAdd);
  }
  const auto failure = RefusalOfPlugin("2.0.0", "1.2.0", CniVerb::kAdd);
  EXPECT_EQ(failure->code, kCniVersionSkew);
  EXPECT_EQ(failure->message,
            "the plugin 2.0.0 and spoke-netagent 1.2.0 do not work together, since they are of "
            "different major versions: upgrade spoke-netagent first, to 2.0");
}

}  // namespace
}  // namespace spoke::netagent
