#include "lib/nft/text.h"

#include "gtest/gtest.h"

namespace spoke::nft {
namespace {

const TableKey kTable{Family::kInet, "spoke"};

TEST(RuleText, ValuesAreWrittenAsWhatTheirRegisterHolds) {
  const Rule rule{
      .chain = "forward",
      .expressions = {LoadMeta{MetaKey::kInterfaceName, 0},
                      Compare{.from = 0, .value = {'s', 'p', 'k'}},
                      LoadPayload{Header::kNetwork, 12, 4, 4},
                      Compare{.from = 4, .value = {10, 0, 0, 1}}, LoadMeta{MetaKey::kMark, 5},
                      Compare{Comparison::kNotEqual, 5, HostOrder(0x20)},
                      LoadPayload{Header::kTransport, 4, 4, 6},
                      Compare{Comparison::kLess, 6, {1, 2, 3, 4}},
                      Verdict{VerdictKind::kJump, "from_pod"}},
      .comment = "pods"};
  EXPECT_EQ(TextOf(rule),
            "r0 = iifname; r0 == \"spk\"*; r4 = ip saddr; r4 == 10.0.0.1; r5 = mark; r5 != 0x20; "
            "r6 = transport[4+4]; r6 < 0x01020304; jump from_pod # pods");
}

struct ExpressionCase {
  std::string name;
  Expression expression;
  std::string want;
};

class ExpressionTextTest : public testing::TestWithParam<ExpressionCase> {};

TEST_P(ExpressionTextTest, SaysAllThereIs) {
  EXPECT_EQ(TextOf(Rule{.chain = "c", .expressions = {GetParam().expression}}), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ExpressionTextTest,
    testing::Values(
        ExpressionCase{"SetMark", SetMeta{MetaKey::kMark, 3}, "mark = r3"},
        ExpressionCase{"SetPriority", SetMeta{MetaKey::kPriority, 3}, "priority = r3"},
        ExpressionCase{"Mask", MaskBits{0, 1, {255, 0}, {0, 1}}, "r1 = r0 & 0xff00 ^ 0x0001"},
        ExpressionCase{"InSet", LookUp{.set = "s"}, "r0 in @s"},
        ExpressionCase{"NotInSet", LookUp{.set = "s", .inverted = true}, "r0 not in @s"},
        ExpressionCase{"Map", LookUp{.set = "m", .from = 1, .to = 2}, "r2 = @m[r1]"},
        ExpressionCase{"VerdictMap", LookUp{.set = "v", .verdict = true}, "verdict @v[r0]"},
        ExpressionCase{"Counter", CountHere{}, "counter"},
        ExpressionCase{"Seeded", CountHere{1, 2}, "counter packets 1 bytes 2"},
        ExpressionCase{"Named", CountIn{"drop/x"}, "counter drop/x"},
        ExpressionCase{"Put",
                       PutInSet{.set = "d",
                                .from = 4,
                                .refresh = true,
                                .timeout = absl::Hours(25),
                                .each = {LimitRate{10, 5, true}, LimitConnections{3, true}}},
                       "update @d r4 timeout 90000s limit rate over 10/second burst 5 "
                       "ct count over 3"},
        ExpressionCase{"Add", PutInSet{.set = "d"}, "add @d r0"},
        ExpressionCase{"Immediate", LoadImmediate{2, {1, 0}}, "r2 = 0x0100"},
        ExpressionCase{"Forward", Forward{1, 2, true}, "fwd ip6 to r2 device r1"},
        ExpressionCase{"Ct", LoadCt{CtKey::kStatus, 1}, "r1 = ct status"},
        ExpressionCase{"CtMark", SetCtMark{1}, "ct mark = r1"},
        ExpressionCase{"NoTrack", NoTrack{}, "notrack"},
        ExpressionCase{"Hash", HashOf{0, 8, 2, 4, 7, 1}, "r2 = jhash r0+8 mod 4 seed 0x7 offset 1"},
        ExpressionCase{"Masquerade", Masquerade{}, "masquerade fully-random"},
        ExpressionCase{"Snat", TranslateSource{.address_from = 1, .address_to = 2},
                       "snat ip to r1-r2 fully-random"},
        ExpressionCase{"Dnat", TranslateDestination{.address = 1, .port = 2},
                       "dnat ip to r1 port r2"},
        ExpressionCase{"Reject", Reject{}, "reject"},
        ExpressionCase{"Reset", Reject{true}, "reject with tcp reset"}),
    [](const auto& test) { return test.param.name; });

TEST(TransactionText, ALineForEachStepAndElement) {
  Transaction transaction;
  transaction.Add(kTable, AddTable{});
  transaction.Add(kTable, AddChain{{.name = "forward", .base = BaseHook{.priority = -150}}});
  transaction.Add(
      kTable,
      AddSet{{.name = "class4", .key = {Field::kIpv4}, .value = Field::kMark, .intervals = true}});
  transaction.Add(
      kTable,
      AddElements{"class4",
                  {{.key = {10, 0, 0, 0}, .last = {10, 255, 255, 255}, .value = HostOrder(3)}}});
  transaction.Add(kTable, DeleteElements{"pods4", {{.key = {1, 2, 3, 4}}}});
  transaction.Add(kTable, AddCounter{"drop/x", {1, 60}});
  transaction.Add(kTable, AddRule{{.chain = "forward", .expressions = {Verdict{}}}});
  transaction.Add({Family::kNetdev, "spoke"},
                  AddDevices{{.name = "pods",
                              .base = BaseHook{.hook = Hook::kIngress, .devices = {"a", "b"}}}});
  EXPECT_EQ(TextOf(transaction),
            "add table inet spoke\n"
            "add chain inet spoke forward type filter hook forward priority -150\n"
            "add set inet spoke class4 type ipv4_addr : mark interval\n"
            "add element inet spoke class4 10.0.0.0-10.255.255.255 : 0x3\n"
            "delete element inet spoke pods4 0x01020304\n"
            "add counter inet spoke drop/x packets 1 bytes 60\n"
            "add rule inet spoke forward: accept\n"
            "add devices netdev spoke pods type filter hook ingress priority 0 devices a, b\n");
}

TEST(TransactionText, KeysOfSeveralPartsAreWrittenInTheirFields) {
  Transaction transaction;
  transaction.Add(
      kTable,
      AddSet{{.name = "pods4", .key = {Field::kInterfaceIndex, Field::kIpv4}, .counts = true}});
  transaction.Add(kTable, AddElements{"pods4", {{.key = Join({HostOrder(7), {10, 0, 0, 9}})}}});
  EXPECT_EQ(TextOf(transaction),
            "add set inet spoke pods4 type iface_index . ipv4_addr counter\n"
            "add element inet spoke pods4 7 . 10.0.0.9\n");
}

TEST(StepTitle, NamesWhatIsDoneAndToWhat) {
  Transaction transaction;
  transaction.Add(kTable, FlushSet{"hops4"});
  transaction.Add(kTable, DeleteTable{});
  EXPECT_EQ(TitleOf(transaction, 0), "step 1 of 2, flush set inet spoke hops4");
  EXPECT_EQ(TitleOf(transaction.steps[1]), "delete table inet spoke");
}

}  // namespace
}  // namespace spoke::nft
