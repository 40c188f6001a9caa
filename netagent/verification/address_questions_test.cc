#include "netagent/verification/address_questions.h"

#include <algorithm>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(24);
constexpr ip::MacAddress kTheirs{{0, 0x0D, 0x3A, 1, 2, 3}};
constexpr ip::MacAddress kOthers{{0, 0x0D, 0x3A, 1, 2, 4}};

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }
const ip::Address kControl = A("10.1.0.255");

NeighbourClaim Has(const ip::Address& address, const ip::MacAddress& mac) {
  return {.address = address, .mac = mac, .source = mac};
}
NeighbourClaim Asks(const ip::Address& address, const ip::MacAddress& mac) {
  return {.kind = NeighbourClaim::Kind::kAsks, .address = address, .mac = mac, .source = mac};
}

// A network of machines that answer at once.
class AddressQuestionsTest : public testing::Test {
 protected:
  void Own(const std::vector<std::string>& addresses, bool in_conflict = false) {
    own_.clear();
    for (const std::string& address : addresses) {
      own_.push_back({.address = A(address), .control = kControl, .in_conflict = in_conflict});
    }
    questions_.SetOwn(own_, now_);
  }
  // Does what is due now.
  void Step() {
    for (const ConflictNoted& conflict : questions_.TakeConflicts(now_)) told_.push_back(conflict);
    for (const ip::Address& address : questions_.TakeOver(now_)) over_.push_back(address);
    const std::vector<Question> questions = questions_.TakeQuestions(now_);
    most_at_once_ = std::max(most_at_once_, questions.size());
    for (const Question& question : questions) {
      asked_.push_back(question.address);
      const auto holder = holders_.find(question.address);
      if (holder != holders_.end()) {
        questions_.OnHeard(Has(question.address, holder->second), now_);
      }
      if (proxy_) questions_.OnHeard(Has(question.address, *proxy_), now_);
    }
  }
  // Does everything that becomes due within `time`.
  void Pass(absl::Duration time) {
    const absl::Time end = now_ + time;
    int steps = 0;
    while (true) {
      Step();
      const auto wake = questions_.NextWake();
      if (!wake || *wake > end) break;
      ASSERT_LT(++steps, 10'000) << "it does not get on";
      now_ = std::max(*wake, now_);
    }
    now_ = end;
    Step();
  }
  size_t TimesAsked(const ip::Address& address) const {
    return static_cast<size_t>(std::count(asked_.begin(), asked_.end(), address));
  }

  AddressQuestions questions_;
  absl::Time now_ = kStart;
  std::vector<OwnAddress> own_;
  std::map<ip::Address, ip::MacAddress> holders_;
  std::optional<ip::MacAddress> proxy_;
  std::vector<ip::Address> asked_;
  size_t most_at_once_ = 0;
  std::vector<ConflictNoted> told_;
  std::vector<ip::Address> over_;
};

TEST_F(AddressQuestionsTest, ANewAddressIsAskedAboutThreeTimesInASecondAndThenGood) {
  Own({"10.1.0.5"});
  EXPECT_THAT(questions_.Open(), ElementsAre(A("10.1.0.5")));
  Pass(absl::Milliseconds(999));
  EXPECT_THAT(questions_.Open(), SizeIs(1));
  EXPECT_TRUE(questions_.IsAsking());
  Pass(absl::Milliseconds(1));
  EXPECT_THAT(questions_.Open(), IsEmpty());
  EXPECT_FALSE(questions_.IsAsking());
  EXPECT_EQ(TimesAsked(A("10.1.0.5")), 3U);
  EXPECT_EQ(TimesAsked(kControl), 3U);
  EXPECT_EQ(questions_.NextWake(), std::nullopt);
  Own({"10.1.0.5"});
  Pass(absl::Hours(1));
  EXPECT_EQ(TimesAsked(A("10.1.0.5")), 3U) << "once is enough";
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(AddressQuestionsTest, AnAnswerIsAConflict) {
  holders_[A("10.1.0.5")] = kTheirs;
  Own({"10.1.0.5", "10.1.0.6"});
  Pass(absl::Seconds(1));
  EXPECT_THAT(told_, ElementsAre(ConflictNoted{A("10.1.0.5"), kTheirs}));
}

TEST_F(AddressQuestionsTest, SoIsAnotherMachinesQuestionDuringOursAndAfterwards) {
  Own({"10.1.0.5"});
  Step();
  questions_.OnHeard(Asks(A("10.1.0.5"), kTheirs), now_);
  Pass(absl::Seconds(1));
  EXPECT_THAT(told_, ElementsAre(ConflictNoted{A("10.1.0.5"), kTheirs}));
  Own({"10.1.0.6"});
  Pass(absl::Seconds(1));
  told_.clear();
  questions_.OnHeard(Asks(A("10.1.0.6"), kTheirs), now_);
  questions_.OnHeard(Asks(A("10.1.0.9"), kTheirs), now_);
  Step();
  EXPECT_THAT(told_, ElementsAre(ConflictNoted{A("10.1.0.6"), kTheirs})) << "ours alone";
}

TEST_F(AddressQuestionsTest, ManyAddressesAreAskedAboutAtAPace) {
  std::vector<std::string> many;
  for (int i = 4; i < 132; ++i) many.push_back("10.1.0." + std::to_string(i));
  Own(many);
  holders_[A("10.1.0.131")] = kTheirs;
  Pass(absl::Seconds(5));
  EXPECT_LE(most_at_once_, kFramesATurn);
  EXPECT_EQ(asked_.size(), 129U * 3);
  EXPECT_THAT(questions_.Open(), IsEmpty());
  EXPECT_THAT(told_, ElementsAre(ConflictNoted{A("10.1.0.131"), kTheirs}));
}

TEST_F(AddressQuestionsTest, WhoeverAnswersForWhatNobodyHasIsNotBelieved) {
  proxy_ = kTheirs;
  holders_[A("10.1.0.6")] = kOthers;
  Own({"10.1.0.5", "10.1.0.6"});
  Pass(absl::Seconds(1));
  EXPECT_THAT(told_, ElementsAre(ConflictNoted{A("10.1.0.6"), kOthers})) << "another one is";
  EXPECT_THAT(questions_.TakeProxies(), ElementsAre(kTheirs));
  EXPECT_THAT(questions_.TakeProxies(), IsEmpty()) << "said once";
  questions_.OnHeard(Has(A("10.1.0.5"), kTheirs), now_);
  EXPECT_THAT(questions_.TakeConflicts(now_), IsEmpty());
  now_ += kProxyLasts;
  questions_.OnHeard(Has(A("10.1.0.5"), kTheirs), now_);
  EXPECT_THAT(questions_.TakeConflicts(now_), SizeIs(1)) << "it was one long ago";
}

TEST_F(AddressQuestionsTest, AzuresFabricIsNobody) {
  proxy_ = kAzureFabricMac;
  Own({"10.1.0.5"});
  Pass(absl::Seconds(1));
  questions_.OnHeard(Has(A("10.1.0.5"), kAzureFabricMac), now_);
  EXPECT_THAT(questions_.TakeConflicts(now_), IsEmpty());
}

TEST_F(AddressQuestionsTest, WithoutAControlNothingIsAskedButHeard) {
  questions_.SetOwn({{.address = A("10.1.0.5")}}, now_);
  EXPECT_THAT(questions_.Open(), IsEmpty());
  Pass(absl::Hours(1));
  EXPECT_THAT(asked_, IsEmpty());
  questions_.OnHeard(Has(A("10.1.0.5"), kTheirs), now_);
  Step();
  EXPECT_THAT(told_, ElementsAre(ConflictNoted{A("10.1.0.5"), kTheirs}));
  Own({"10.1.0.5"});
  Pass(absl::Seconds(1));
  EXPECT_EQ(TimesAsked(A("10.1.0.5")), 3U) << "now it can be";
}

TEST_F(AddressQuestionsTest, AFloodIsToldOnceAMinuteWhateverItsMacs) {
  Own({"10.1.0.5"});
  Pass(absl::Seconds(1));
  for (uint8_t i = 0; i < 120; ++i) {
    questions_.OnHeard(Has(A("10.1.0.5"), {{2, 0, 0, 0, 1, i}}), now_);
    Step();
    now_ += absl::Seconds(1);
  }
  EXPECT_THAT(told_, SizeIs(2));
}

TEST_F(AddressQuestionsTest, AConflictGoesOnAsLongAsItIsAnsweredAndThenIsOver) {
  holders_[A("10.1.0.5")] = kTheirs;
  Own({"10.1.0.5"});
  Pass(absl::Minutes(21));
  EXPECT_THAT(told_, AllOf(SizeIs(11), Each(ConflictNoted{A("10.1.0.5"), kTheirs})))
      << "at once, and every two minutes";
  EXPECT_THAT(over_, IsEmpty());
  holders_.clear();
  told_.clear();
  Pass(absl::Minutes(8));
  EXPECT_THAT(over_, IsEmpty());
  Pass(absl::Minutes(3));
  EXPECT_THAT(over_, ElementsAre(A("10.1.0.5")));
  EXPECT_THAT(told_, IsEmpty());
  asked_.clear();
  Pass(absl::Hours(1));
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_EQ(questions_.NextWake(), std::nullopt);
}

TEST_F(AddressQuestionsTest, AConflictOfTheAgentBeforeIsOverOnlyWhenItWasAskedAbout) {
  questions_.SetOwn({{.address = A("10.1.0.5"), .in_conflict = true}}, now_);
  Pass(absl::Hours(1));
  EXPECT_THAT(over_, IsEmpty()) << "nobody could be asked";
  Own({"10.1.0.5"});
  Pass(absl::Seconds(1));
  EXPECT_THAT(over_, ElementsAre(A("10.1.0.5")));
}

TEST_F(AddressQuestionsTest, WhatCannotBeSentIsAskedAnewLater) {
  Own({"10.1.0.5"});
  EXPECT_THAT(questions_.TakeQuestions(now_), SizeIs(2));
  questions_.OnNotSent(now_);
  EXPECT_THAT(questions_.TakeQuestions(now_ + absl::Seconds(9)), IsEmpty());
  EXPECT_THAT(questions_.Open(), SizeIs(1));
  now_ += kNotSentPause;
  Pass(absl::Seconds(1));
  EXPECT_EQ(TimesAsked(A("10.1.0.5")), 3U);
  EXPECT_EQ(TimesAsked(kControl), 3U);
  EXPECT_THAT(questions_.Open(), IsEmpty());
}

TEST_F(AddressQuestionsTest, WhatIsGoneIsForgottenAndWhatMovesIsAskedAboutAnew) {
  holders_[A("10.1.0.5")] = kTheirs;
  Own({"10.1.0.5"});
  Pass(absl::Seconds(1));
  Own({});
  EXPECT_EQ(questions_.NextWake(), std::nullopt);
  questions_.OnHeard(Has(A("10.1.0.5"), kTheirs), now_);
  EXPECT_THAT(questions_.TakeConflicts(now_), IsEmpty());
  told_.clear();
  Own({"10.1.0.5"});
  Pass(absl::Seconds(1));
  EXPECT_THAT(told_, SizeIs(1)) << "it is new again";

  // The address moves to another NIC: its question begins anew there, with a control of its own.
  Own({"10.1.0.7"});
  Pass(absl::Milliseconds(500));
  own_[0].nic = kOthers;
  questions_.SetOwn(own_, now_);
  asked_.clear();
  Pass(absl::Seconds(2));
  EXPECT_EQ(TimesAsked(A("10.1.0.7")), 3U);
  EXPECT_EQ(TimesAsked(kControl), 3U);
  EXPECT_THAT(questions_.Open(), IsEmpty());
}

TEST_F(AddressQuestionsTest, ManyProxiesAreBounded) {
  Own({"10.1.0.5"});
  Step();
  for (size_t i = 0; i < kMaxProxies + 10; ++i) {
    questions_.OnHeard(Has(kControl, {{2, 0, 0, 0, 1, static_cast<uint8_t>(i)}}), now_);
  }
  EXPECT_THAT(questions_.TakeProxies(), SizeIs(kMaxProxies));
}

}  // namespace
}  // namespace spoke::netagent
