#include "lib/nft/text.h"

#include <array>
#include <string_view>
#include <variant>

#include "fmt/core.h"

namespace spoke::nft {
namespace {

std::string NameOf(const TableKey& table) {
  constexpr std::array<std::string_view, 4> kFamilies = {"inet", "netdev", "ip", "ip6"};
  return fmt::format("{} {}", kFamilies[static_cast<size_t>(table.family)], table.name);
}

// The words for what a step does, and to what: "add rule" and "forward".
struct StepTitle {
  std::string_view verb;
  std::string_view object;
};

StepTitle TitleParts(const Change& change) {
  struct Namer {
    StepTitle operator()(const AddTable& /*none*/) { return {"add table", {}}; }
    StepTitle operator()(const DeleteTable& /*none*/) { return {"delete table", {}}; }
    StepTitle operator()(const AddChain& c) { return {"add chain", c.chain.name}; }
    StepTitle operator()(const FlushChain& c) { return {"flush chain", c.chain}; }
    StepTitle operator()(const DeleteChain& c) { return {"delete chain", c.chain}; }
    StepTitle operator()(const AddRule& c) { return {"add rule", c.rule.chain}; }
    StepTitle operator()(const DeleteRule& c) { return {"delete rule of", c.chain}; }
    StepTitle operator()(const AddSet& c) { return {"add set", c.set.name}; }
    StepTitle operator()(const DeleteSet& c) { return {"delete set", c.set}; }
    StepTitle operator()(const AddElements& c) { return {"add element", c.set}; }
    StepTitle operator()(const DeleteElements& c) { return {"delete element", c.set}; }
    StepTitle operator()(const FlushSet& c) { return {"flush set", c.set}; }
    StepTitle operator()(const AddCounter& c) { return {"add counter", c.name}; }
    StepTitle operator()(const DeleteCounter& c) { return {"delete counter", c.name}; }
  };
  return std::visit(Namer{}, change);
}

}  // namespace

std::string TitleOf(const Step& step) {
  const StepTitle title = TitleParts(step.change);
  std::string text = fmt::format("{} {}", title.verb, NameOf(step.table));
  if (!title.object.empty()) text += fmt::format(" {}", title.object);
  return text;
}

std::string TitleOf(const Transaction& transaction, size_t index) {
  return fmt::format("step {} of {}, {}", index + 1, transaction.steps.size(),
                     TitleOf(transaction.steps[index]));
}

}  // namespace spoke::nft
