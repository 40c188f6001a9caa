#include "netagent/enroll/trusted_roots.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "lib/base/fnv1a.h"

namespace spoke::netagent {
namespace {

constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
constexpr std::string_view kEnd = "-----END CERTIFICATE-----";

// Returns the certificates in `pem`, each with its lines of begin and end.
std::vector<std::string_view> CertificatesIn(std::string_view pem) {
  std::vector<std::string_view> all;
  while (true) {
    const size_t begin = pem.find(kBegin);
    if (begin == std::string_view::npos) return all;
    const size_t end = pem.find(kEnd, begin);
    if (end == std::string_view::npos) return all;
    all.push_back(pem.substr(begin, end + kEnd.size() - begin));
    pem.remove_prefix(end + kEnd.size());
  }
}

bool HaveOneInCommon(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> others = CertificatesIn(b);
  const std::vector<std::string_view> ones = CertificatesIn(a);
  return std::any_of(ones.begin(), ones.end(), [&](std::string_view one) {
    return std::find(others.begin(), others.end(), one) != others.end();
  });
}

// The first line of what is kept: which configured roots there were.
std::string LineFor(std::string_view configured) {
  std::string all;
  for (const std::string_view certificate : CertificatesIn(configured)) all += certificate;
  return fmt::format("configured {:016x}\n", base::Fnv1a(all));
}

}  // namespace

std::string HandedText(std::string_view configured, std::string_view trusted,
                       std::string_view roots) {
  if (!HaveOneInCommon(trusted, roots)) return "";
  return LineFor(configured) + std::string(roots);
}

std::string TrustedRoots(std::string_view configured, std::string_view handed) {
  std::vector<std::string_view> all = CertificatesIn(configured);
  // Who has put another authority into the file trusts the former one no more.
  if (handed.starts_with(LineFor(configured)) || HaveOneInCommon(configured, handed)) {
    for (const std::string_view one : CertificatesIn(handed)) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
  }
  std::string pem;
  for (const std::string_view certificate : all) {
    pem += certificate;
    pem += '\n';
  }
  return pem;
}

}  // namespace spoke::netagent
