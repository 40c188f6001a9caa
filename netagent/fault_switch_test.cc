#include "netagent/fault_switch.h"

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

TEST(ParseFault, TakesBothKindsWithAndWithoutAPrefix) {
  EXPECT_EQ(ParseFault("fail:attach:3").value(), (Fault{Fault::How::kFail, "attach", 3}));
  EXPECT_EQ(ParseFault("kill::1").value(), (Fault{Fault::How::kKill, "", 1}));
}

TEST(ParseFault, RefusesTheRestAndSaysHowToWriteIt) {
  for (const char* text :
       {"", "fail", "fail:3", "fail:a:", "fail:a:0", "fail:a:-1", "fail:a:x", "die:a:1", ":a:1"}) {
    const auto fault = ParseFault(text);
    ASSERT_FALSE(fault.ok()) << text;
    EXPECT_NE(std::string(fault.status().message()).find("kill:PREFIX:N"), std::string::npos);
  }
}

TEST(FaultPoint, FailsTheNthStepOfItsKindOnce) {
  const auto point = MakeFaultPoint({Fault::How::kFail, "attach", 2});
  EXPECT_TRUE(point("journal.append").ok());
  EXPECT_TRUE(point("attach.pod").ok());
  EXPECT_TRUE(point("detach.cut").ok());
  EXPECT_FALSE(point("attach.node").ok());
  EXPECT_TRUE(point("attach.pod").ok());
}

TEST(FaultPointDeathTest, KillsAtTheStep) {
  const auto point = MakeFaultPoint({Fault::How::kKill, "", 1});
  EXPECT_EXIT(point("attach.pod").IgnoreError(), testing::KilledBySignal(SIGKILL),
              "step=attach.pod");
}

}  // namespace
}  // namespace spoke::netagent
