// Policy files from any text. The laws: nothing is thrown or read out of bounds; every problem
// names the file and a line it has, and is one line; a text without problems gives objects that can
// be applied or are refused with a reason, and each of them survives the ways it is shown and
// stored.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ipam-server/policy/bundle_message.h"
#include "ipam-server/policy/object_codec.h"
#include "ipam-server/policy/object_text.h"
#include "ipam-server/policy/objects/bundle.h"
#include "ipam-server/policy/objects/object_set.h"
#include "ipam-server/policy/policy_file.h"
#include "lib/base/check.h"

namespace spoke::ipam {
namespace {

constexpr std::string_view kFile = "f.yaml";

void CheckProblems(const ParsedFiles& parsed, std::string_view text) {
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  for (const Problem& problem : parsed.problems) {
    CHECK(problem.file == kFile, "a problem names its file");
    CHECK(problem.line >= 1 && problem.line <= lines, "a problem has a line of the file");
    CHECK(problem.message.find('\n') == std::string::npos, "a problem is one line");
    CHECK(!problem.conflict, "a file alone clashes with nothing");
  }
}

void CheckObject(const PolicyObject& object) {
  const auto stored = DecodeObject(EncodeObject(object));
  CHECK(stored.ok() && stored->key == object.key, "what was accepted can be stored");
  CHECK(stored->spec->ToJson() == object.spec->ToJson(), "the store keeps the spec");
  for (const std::string& shown : {ObjectYaml(object), ObjectJson(object)}) {
    const ParsedFiles again = ParsePolicyFiles(std::vector<PolicyFileText>{{"again", shown}});
    CHECK(again.problems.empty() && again.objects.size() == 1, "what is shown can be applied");
    CHECK(again.objects[0].key == object.key, "what is shown has the name");
    CHECK(again.objects[0].spec->ToJson() == object.spec->ToJson(), "what is shown is the same");
  }
}

void CheckPlan(const ApplyPlan& plan, const ParsedFiles& parsed) {
  for (const auto& [key, object] : plan.next.objects()) CheckObject(*object);
  const auto again = PlanApply(plan.next, parsed, {}, absl::UnixEpoch());
  CHECK(again.ok() && again->next.versions() == plan.next.versions(),
        "what is applied twice changes nothing");
  const Bundle bundle = CompileBundle(plan.next, {});
  CHECK(ToMessage(DeltaFrom(nullptr, bundle)).changed_size() ==
            static_cast<int>(bundle.entries.size()),
        "nodes get every entry");
}

}  // namespace
}  // namespace spoke::ipam

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spoke::ipam;  // NOLINT(google-build-using-namespace)
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::vector<PolicyFileText> files = {{std::string(kFile), text}};
  const ParsedFiles parsed = ParsePolicyFiles(files);
  CheckProblems(parsed, text);
  const auto keys = ParseObjectKeys(files);
  CHECK(keys.ok() || !parsed.problems.empty(), "an object that can be read can be named");
  const auto plan = PlanApply({}, parsed, {}, absl::UnixEpoch());
  if (plan.ok()) {
    CHECK(parsed.problems.empty(), "a file with problems is not applied");
    CheckPlan(*plan, parsed);
  } else {
    CHECK(!plan.status().message().empty(), "a refusal has a reason");
  }
  return 0;
}
