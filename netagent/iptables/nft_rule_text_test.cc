// What the kernel really sends is read in tests/netns; here is what it never should.
#include "netagent/iptables/nft_rule_text.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <cstring>

#include "gtest/gtest.h"

namespace spoke::netagent {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Attribute(uint16_t type, const Bytes& payload) {
  const auto length = static_cast<uint16_t>(4 + payload.size());
  Bytes out(4);
  std::memcpy(out.data(), &length, 2);
  std::memcpy(out.data() + 2, &type, 2);
  out.insert(out.end(), payload.begin(), payload.end());
  out.resize((out.size() + 3) / 4 * 4);
  return out;
}

Bytes Text(std::string_view text) {
  Bytes out(text.begin(), text.end());
  out.push_back(0);
  return out;
}

Bytes Join(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const Bytes& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

Bytes Rule(const Bytes& more) {
  return Join({Bytes{AF_INET, 0, 0, 0}, Attribute(NFTA_RULE_TABLE, Text("mangle")),
               Attribute(NFTA_RULE_CHAIN, Text("INPUT")), more});
}

Bytes Expression(std::string_view name, const Bytes& data) {
  return Attribute(NFTA_LIST_ELEM,
                   Join({Attribute(NFTA_EXPR_NAME, Text(name)), Attribute(NFTA_EXPR_DATA, data)}));
}

TEST(ReadNftRule, ARuleWithoutExpressionsMatchesAll) {
  const auto read = ReadNftRule(Rule({}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->table, "mangle");
  EXPECT_EQ(read->rule, (IptablesRule{.chain = "INPUT"}));
}

TEST(ReadNftRule, WhatItDoesNotKnowMakesItAbridged) {
  const auto read = ReadNftRule(
      Rule(Attribute(NFTA_RULE_EXPRESSIONS,
                     Join({Expression("lookup", {}),
                           Expression("match", Attribute(NFTA_MATCH_NAME, Text("conntrack"))),
                           Expression("target", Attribute(NFTA_TARGET_NAME, Text("MARK")))}))));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->rule.abridged);
  EXPECT_EQ(read->rule.text, "-m conntrack -j MARK");
}

TEST(ReadNftRule, EachCutIsReadOrRefused) {
  const Bytes whole = Rule(Attribute(
      NFTA_RULE_EXPRESSIONS,
      Join({Expression("payload", Attribute(NFTA_PAYLOAD_DREG, {0, 0, 0, 1})),
            Expression("cmp", Attribute(NFTA_CMP_DATA, Attribute(NFTA_DATA_VALUE, {10})))})));
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto read = ReadNftRule(std::span(whole).first(length));
    EXPECT_TRUE(!read.ok() || read->rule.chain == "INPUT") << length;
  }
  EXPECT_FALSE(ReadNftRule(Bytes{}).ok());
  EXPECT_FALSE(ReadNftRule(Bytes{AF_INET, 0, 0, 0}).ok());
}

TEST(ReadNftChain, AChainAtNoHookHasNoPolicy) {
  const auto read =
      ReadNftChain(Join({Bytes{AF_INET, 0, 0, 0}, Attribute(NFTA_CHAIN_TABLE, Text("nat")),
                         Attribute(NFTA_CHAIN_NAME, Text("KUBE-SERVICES"))}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->table, "nat");
  EXPECT_EQ(read->chain, (IptablesChain{"KUBE-SERVICES", "-"}));
}

}  // namespace
}  // namespace spoke::netagent
