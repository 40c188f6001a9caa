// Any bytes as what the kernel answers about nf_tables.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/nft/dump.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> input(data, size);
  std::vector<spoke::nft::ElementReading> elements;
  std::vector<spoke::nft::Bytes> ends;
  const absl::Status status = spoke::nft::AppendElements(input, elements, ends);
  if (status.ok()) {
    for (const spoke::nft::ElementReading& reading : elements) {
      CHECK(!reading.element.key.empty(), "each element has a key");
      CHECK(reading.element.last.empty(), "where an interval ends is found out later");
    }
    const size_t read = elements.size();
    spoke::nft::CloseIntervals(elements, ends);
    CHECK(elements.size() == read, "each interval is one element");
    for (size_t i = 0; i < elements.size(); ++i) {
      CHECK(!elements[i].element.last.empty(), "each interval has an end");
      CHECK(i == 0 || elements[i - 1].element.key <= elements[i].element.key, "they are sorted");
    }
    spoke::nft::DropRepeated(elements);
    CHECK(elements.size() <= read, "none is made up");
    for (size_t i = 1; i < elements.size(); ++i) {
      CHECK(elements[i - 1].element.key != elements[i].element.key, "no key is there twice");
    }
  }
  const std::string table = "spoke";
  const auto counter = spoke::nft::ParseCounter(input, table);
  CHECK(!counter.ok() || !counter->has_value() || !(*counter)->name.empty(), "a counter's name");
  const auto rule = spoke::nft::ParseRule(input, table);
  CHECK(!rule.ok() || !rule->has_value() || !(*rule)->chain.empty(), "a rule's chain");
  static_cast<void>(spoke::nft::ParseSetFlags(input));
  static_cast<void>(spoke::nft::ParseGeneration(input));
  return 0;
}
