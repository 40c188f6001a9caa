#include "lib/nft/firewall_dump.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::nft {
namespace {

using testing::ElementsAre;

// A message as the kernel writes it.
class Written {
 public:
  explicit Written(uint8_t family = NFPROTO_IPV4) {
    header_ = mnl_nlmsg_put_header(buffer_.data());
    auto* fixed = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(header_, sizeof(nfgenmsg)));
    fixed->nfgen_family = family;
  }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  Written& Begin(uint16_t type) {
    nests_.push_back(mnl_attr_nest_start(header_, type));
    return *this;
  }
  Written& End() {
    mnl_attr_nest_end(header_, nests_.back());
    nests_.pop_back();
    return *this;
  }
  Written& Put(uint16_t type, const char* text) {
    mnl_attr_put_strz(header_, type, text);
    return *this;
  }
  Written& Number(uint16_t type, uint32_t number) {
    mnl_attr_put_u32(header_, type, htonl(number));
    return *this;
  }
  Written& Bytes(uint16_t type, const std::string& bytes) {
    mnl_attr_put(header_, type, bytes.size(), bytes.data());
    return *this;
  }
  // One expression; what is put until EndExpression() is its data.
  Written& Expression(const char* name) {
    return Begin(NFTA_LIST_ELEM).Put(NFTA_EXPR_NAME, name).Begin(NFTA_EXPR_DATA);
  }
  Written& EndExpression() { return End().End(); }
  Written& Verdict(int32_t code, const char* chain = nullptr) {
    Expression("immediate").Begin(NFTA_IMMEDIATE_DATA).Begin(NFTA_DATA_VERDICT);
    Number(NFTA_VERDICT_CODE, static_cast<uint32_t>(code));
    if (chain != nullptr) Put(NFTA_VERDICT_CHAIN, chain);
    return End().End().EndExpression();
  }
  Written& Compare(uint32_t operation, const std::string& value) {
    return Expression("cmp")
        .Number(NFTA_CMP_OP, operation)
        .Begin(NFTA_CMP_DATA)
        .Bytes(NFTA_DATA_VALUE, value)
        .End()
        .EndExpression();
  }
  Written& Meta(uint32_t key) {
    return Expression("meta").Number(NFTA_META_KEY, key).Number(NFTA_META_DREG, 8).EndExpression();
  }

  std::span<const uint8_t> payload() const {
    return {static_cast<const uint8_t*>(mnl_nlmsg_get_payload(header_)),
            mnl_nlmsg_get_payload_len(header_)};
  }

 private:
  alignas(nlmsghdr) std::array<uint8_t, 4096> buffer_{};
  nlmsghdr* header_;
  std::vector<nlattr*> nests_;
};

const ChainGist kForward = {"ip", "filter", "FORWARD", true, false, {}};

// A rule of FORWARD with what `put` puts into it.
RuleGist RuleWith(const std::function<void(Written&)>& put) {
  Written message;
  message.Put(NFTA_RULE_TABLE, "filter").Put(NFTA_RULE_CHAIN, "FORWARD");
  message.Begin(NFTA_RULE_EXPRESSIONS);
  put(message);
  message.End();
  const auto rule = ParseRuleGist(message.payload(), kForward);
  EXPECT_TRUE(rule.ok() && rule->has_value()) << rule.status();
  return rule.ok() && rule->has_value() ? **rule : RuleGist();
}

TEST(ParseChainGist, TakesHookAndPolicyOfWhatRoutedPacketsMeet) {
  Written message;
  message.Put(NFTA_CHAIN_TABLE, "filter").Put(NFTA_CHAIN_NAME, "FORWARD");
  message.Begin(NFTA_CHAIN_HOOK).Number(NFTA_HOOK_HOOKNUM, NF_INET_FORWARD).End();
  message.Number(NFTA_CHAIN_POLICY, NF_DROP);
  ChainGist wanted = kForward;
  wanted.drops = true;
  EXPECT_EQ(ParseChainGist(message.payload()).value(), wanted);
  Written bridge(NFPROTO_BRIDGE);
  EXPECT_FALSE(ParseChainGist(bridge.payload()).value().has_value());
  Written nameless;
  EXPECT_FALSE(ParseChainGist(nameless.payload()).ok());
  EXPECT_FALSE(ParseChainGist({}).ok());
}

TEST(ParseRuleGist, ADeviceByItsWholeNameOrItsBeginning) {
  const RuleGist rule = RuleWith([](Written& message) {
    message.Meta(NFT_META_IIFNAME)
        .Compare(NFT_CMP_EQ, std::string("docker0\0\0\0\0\0\0\0\0\0", 16));
    message.Meta(NFT_META_OIFNAME).Compare(NFT_CMP_EQ, "cali");
    message.Meta(NFT_META_OIFNAME)
        .Compare(NFT_CMP_NEQ, std::string("eth0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
    message.Meta(NFT_META_IIF).Compare(NFT_CMP_EQ, std::string("\7\0\0\0", 4));
    message.Verdict(NF_ACCEPT);
  });
  EXPECT_THAT(rule.devices, ElementsAre("docker0", "cali*", "#7"));
  EXPECT_EQ(rule.fate, Fate::kAccept);
  EXPECT_TRUE(rule.conditional);
  EXPECT_FALSE(rule.on_state);
}

TEST(ParseRuleGist, AnUnconditionalVerdictIsOne) {
  const RuleGist drop = RuleWith([](Written& message) {
    message.Expression("counter").EndExpression();
    message.Expression("match").Put(NFTA_MATCH_NAME, "comment").EndExpression();
    message.Verdict(NF_DROP);
  });
  EXPECT_EQ(drop, RuleGist{.fate = Fate::kDrop});
  const RuleGist jump = RuleWith([](Written& message) { message.Verdict(NFT_JUMP, "MINE"); });
  EXPECT_EQ(jump, (RuleGist{.fate = Fate::kJump, .target = "MINE"}));
}

TEST(ParseRuleGist, StatesAndMarksAreTold) {
  const RuleGist native = RuleWith([](Written& message) {
    message.Expression("ct").EndExpression();
    message.Compare(NFT_CMP_NEQ, std::string(4, '\0')).Verdict(NF_ACCEPT);
  });
  EXPECT_TRUE(native.on_state);
  const RuleGist of_iptables = RuleWith([](Written& message) {
    message.Expression("match").Put(NFTA_MATCH_NAME, "conntrack").EndExpression();
    message.Verdict(NF_ACCEPT);
  });
  EXPECT_TRUE(of_iptables.on_state && of_iptables.conditional);
  const RuleGist map = RuleWith([](Written& message) {
    message.Expression("ct").EndExpression();
    message.Expression("lookup").Number(NFTA_LOOKUP_DREG, NFT_REG_VERDICT).EndExpression();
  });
  EXPECT_EQ(map.fate, Fate::kMap);
  EXPECT_TRUE(map.on_state);
}

TEST(ParseRuleGist, RejectIsNativeOrOfIptables) {
  EXPECT_EQ(RuleWith([](Written& m) { m.Expression("reject").EndExpression(); }).fate,
            Fate::kReject);
  EXPECT_EQ(RuleWith([](Written& m) {
              m.Expression("target").Put(NFTA_TARGET_NAME, "REJECT").EndExpression();
            }).fate,
            Fate::kReject);
}

TEST(ParseRuleGist, WhatIsCutShortIsRefused) {
  Written message;
  message.Put(NFTA_RULE_TABLE, "filter").Put(NFTA_RULE_CHAIN, "FORWARD");
  message.Begin(NFTA_RULE_EXPRESSIONS).Verdict(NF_DROP).End();
  const auto whole = message.payload();
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto rule = ParseRuleGist(whole.first(size), kForward);
    // Cut at the border of two attributes it is whole, but another chain's, or has no verdict.
    const bool is_rule = rule.ok() && rule->has_value();
    EXPECT_TRUE(!is_rule || (*rule)->fate == Fate::kNone) << size;
  }
  ChainGist other = kForward;
  other.name = "OTHER";
  EXPECT_FALSE(ParseRuleGist(whole, other).value().has_value());
}

}  // namespace
}  // namespace spoke::nft
