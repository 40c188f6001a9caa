// Feeds what may come from a DNS server, or from whoever passes for one: never a crash, names that
// can be compared, and a table within its bounds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/base/check.h"
#include "netagent/dns/dns_answer.h"
#include "netagent/dns/learned_names.h"

namespace {

void CheckName(const std::string& name) {
  CHECK(name.size() < 255, "a name is bounded");
  CHECK(std::all_of(name.begin(), name.end(),
                    [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                             c == '_' || c == '.';
                    }),
        "a name is in lower case, and plain");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto answer = spoke::netagent::ParseDnsAnswer({data, size});
  if (!answer.ok()) return 0;
  CheckName(answer->question);
  for (const std::string& alias : answer->aliases) CheckName(alias);
  CHECK(answer->aliases.size() + answer->addresses.size() <= spoke::netagent::kMaxDnsRecords,
        "no more is taken than there may be");
  spoke::netagent::LearnedNames names;
  names.SetNames({{answer->question, 16}, {"*.org", 17}});
  const absl::Time now = absl::UnixEpoch();
  const bool changed = names.OnAnswer(*answer, now);
  CHECK(changed == !answer->addresses.empty(), "what is asked for by its name is learned");
  CHECK(names.At(now).size() == names.size(), "what was learned now has not expired");
  CHECK(names.NextExpiry() > now, "what was learned lives for a while");
  names.Expire(absl::InfiniteFuture());
  CHECK(names.size() == 0 && names.shared() == 0, "all expires");
  return 0;
}
