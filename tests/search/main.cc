// The program spoke-search: goes through all that can come of a small fleet, and says how many
// states it has seen. Prints JSON; what is broken goes to standard error, as a story.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "tests/search/search.h"

namespace spoke::search {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  Bounds bounds;
  double seconds = 0;
  bool no_symmetry = false;
  std::string defect = "none";
  std::string root;
};

Json ToJson(const Found& found) {
  Json roots = Json::array();
  for (const RootFound& root : found.roots) {
    roots.push_back({{"name", root.name},
                     {"states", root.states},
                     {"depth", root.depth},
                     {"complete", root.complete}});
  }
  Json broken = Json::array();
  for (const Violation& violation : found.violations) {
    broken.push_back(
        {{"what", violation.what}, {"root", violation.root}, {"steps", violation.depth}});
    fmt::print(stderr, "\nBROKEN after {} steps from \"{}\": {}\n{}", violation.depth,
               violation.root, violation.what, violation.story);
  }
  return {{"states", found.states},
          {"worlds", found.worlds},
          {"expanded", found.expanded},
          {"transitions", found.transitions},
          {"overflows", found.overflows},
          {"seconds", absl::ToDoubleSeconds(found.took)},
          {"roots", roots},
          {"violations", broken}};
}

int RunMain(int argc, char** argv) {
  Options options;
  CLI::App app("Goes through all states of three nodes with three addresses.", "spoke-search");
  app.footer("Exits with 1 if something is broken.");
  app.add_option("--states", options.bounds.states, "Ends after so many")->capture_default_str();
  app.add_option("--seconds", options.seconds, "Ends after so long; 0: never")
      ->capture_default_str();
  app.add_option("--depth", options.bounds.depth, "Goes so many steps")->capture_default_str();
  app.add_flag("--no-symmetry", options.no_symmetry,
               "Takes worlds that differ only in which node is which for different ones");
  app.add_option("--defect", options.defect, "Puts in a defect that is to be found")
      ->capture_default_str();
  app.add_option("--root", options.root, "Begins only where this name is part of the beginning's");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.bounds.symmetry = !options.no_symmetry;
  if (options.seconds > 0) options.bounds.time = absl::Seconds(options.seconds);
  bool known = false;
  for (size_t i = 0; i < kDefects; ++i) {
    if (NameOf(static_cast<Defect>(i)) != options.defect) continue;
    options.bounds.defect = static_cast<Defect>(i);
    known = true;
  }
  std::vector<Root> roots = AllRoots();
  std::erase_if(
      roots, [&](const Root& root) { return root.name.find(options.root) == std::string::npos; });
  if (!known || roots.empty()) {
    fmt::print(stderr, "spoke-search: there is no such {}\n", known ? "beginning" : "defect");
    return 2;
  }
  const Found found = SearchFrom(roots, options.bounds);
  fmt::print("{}\n", ToJson(found).dump());
  return found.violations.empty() ? 0 : 1;
}

}  // namespace
}  // namespace spoke::search

int main(int argc, char** argv) {
  try {
    return spoke::search::RunMain(argc, argv);
  } catch (const std::exception& error) {  // Out of memory, or a bug.
    std::fprintf(stderr, "spoke-search: %s\n", error.what());
    return 1;
  }
}
