// YAML text to typed fields, with all mistakes reported at once. Pure: the caller reads the file.
//
//   absl::StatusOr<Settings> ParseSettings(std::string_view text, std::string file) {
//     Settings settings;  // Holds the defaults.
//     ConfigText config = ConfigText::Parse(text, std::move(file));
//     ConfigMap root = config.Root();
//     root.String("listen", &settings.listen, Need::kRequired);
//     root.Duration("cooldown", &settings.cooldown, Need::kOptional, {absl::Seconds(1)});
//     for (ConfigMap& pool : root.MapList("pools", Need::kRequired)) { ... }
//     if (absl::Status status = config.Finish(); !status.ok()) return status;
//     return settings;
//   }
//
// No reader fails or throws: it takes down a mistake and leaves the destination as it was. So read
// every field first and look at Finish() once. A key that no reader asked for is a mistake as well.
//
// A mistake is one line, "FILE:LINE: KEY.PATH: what is wrong and what is allowed". The subset of
// YAML taken is that of yaml_tree.h: no anchors, aliases, tags, duplicate keys or second document.
// A file that may hold several documents is read with ParseAll().
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lib/config/variables.h"
#include "lib/config/yaml_tree.h"

namespace spoke::config {

struct ConfigDocument;
struct YamlNode;
enum class YamlKind;

enum class Need {
  kRequired,  // An absent key is a mistake.
  kOptional   // An absent key leaves the destination, which holds the default, alone.
};

// The values a number or duration may have, both ends included.
template <typename T>
struct Limits {
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
};
struct DurationLimits {
  absl::Duration min = absl::ZeroDuration();
  absl::Duration max = absl::InfiniteDuration();  // An endless duration itself is refused.
};

// One map of the document. A cheap copyable view that borrows from its ConfigText. Not thread-safe.
//
// A map that is absent or broken is not present(): its readers then do nothing, since the mistake
// (if it is one) is on record already. So code that reads a section needs no `if`.
//
// A key with nothing behind it ("port:") and the value null are mistakes for every reader.
class ConfigMap {
 public:
  bool present() const { return node_ != nullptr; }

  // The line of the map's first key, and "pools[1]" (empty for the root), for messages of others.
  int line() const;
  const std::string& path() const { return path_; }
  // Returns the line of `key`, or of the map where it is absent. The second one returns the line of
  // the item with that number in the list behind `key`, or of `key` where there is none.
  int LineOf(std::string_view key) const;
  int LineOf(std::string_view key, size_t item) const;

  // Returns whether the key is there, whatever it holds; the key counts as known.
  bool Has(std::string_view key) const;
  // Returns the name under which a key that was renamed is to be read: `old_key` where only that is
  // there, with a warning that names `key`; else `key`. It is a mistake to have both.
  std::string_view Renamed(std::string_view old_key, std::string_view key) const;
  // Returns whether `[]` stands behind the key: for lists that must not be empty when they are
  // given.
  bool IsEmptyList(std::string_view key) const;
  // All keys in the order of the file, for maps whose keys are data, such as names; they are known
  // once read. Read each with one of the readers below.
  std::vector<std::string> Keys() const;

  // Reads text, in quotes or not. An empty text ("") is a mistake: leave the key out to get the
  // default.
  void String(std::string_view key, std::string* out, Need need) const;
  // Reads true or false and no other word for it: the "no" of YAML 1.1 has been taken for Norway.
  void Bool(std::string_view key, bool* out, Need need) const;
  // Reads a whole decimal number, not in quotes.
  void Uint32(std::string_view key, uint32_t* out, Need need, Limits<uint32_t> limits = {}) const;
  // Reads a finite decimal number, not in quotes.
  void Double(std::string_view key, double* out, Need need, Limits<double> limits = {}) const;
  // Reads a number and a unit of h, m, s, ms, us, ns: "30s", "250ms", "1h30m". The unit is
  // required, even for zero ("0s"). It is finite, and negative only where `limits` allows it.
  void Duration(std::string_view key, absl::Duration* out, Need need,
                DurationLimits limits = {}) const;

  // Returns a map, for its own readers.
  ConfigMap Map(std::string_view key, Need need) const;
  // Returns a list of maps. Items that are not maps are mistakes and left out. An empty list ([])
  // is a list: whether nothing is allowed is the caller's to say.
  std::vector<ConfigMap> MapList(std::string_view key, Need need) const;
  // Reads a list of non-empty texts; `*out` changes only when the whole list is right.
  void StringList(std::string_view key, std::vector<std::string>* out, Need need) const;

  // Reads text that `parse` understands: addresses, CIDR blocks, one of a set of words. Its message
  // becomes the mistake, so it should show the text and what is allowed. On success `parse` has
  // stored the value.
  using ParseText = std::function<absl::Status(std::string_view text)>;
  void Custom(std::string_view key, Need need, const ParseText& parse) const;
  // Does the same for each item of a list, with the item's own line.
  void CustomList(std::string_view key, Need need, const ParseText& parse) const;

  // Takes down a mistake of the caller's finding (two pools overlap) at the line of `key`, or of
  // the map where `key` is empty or absent. Does nothing when the map is not present().
  void Error(std::string_view key, std::string message) const;

 private:
  friend class ConfigText;
  ConfigMap(ConfigDocument* document, const YamlNode* node, std::string path);

  // Returns the value of `key` when it is of `kind`, else nullptr, with the mistake noted.
  const YamlNode* Value(std::string_view key, Need need, YamlKind kind) const;
  // Returns the key's text, or nullptr with the mistake noted; `what` is what the key holds ("true
  // or false").
  const YamlNode* PlainText(std::string_view key, Need need, std::string_view what) const;
  // Returns whether the list is there and `parse` took each of its items.
  bool ReadTexts(std::string_view key, Need need, const ParseText& parse) const;
  void Note(int line, std::string path, std::string message) const;

  ConfigDocument* document_;
  const YamlNode* node_;
  std::string path_;
};

// The document: owns the tree and the mistakes. Movable; views stay valid. Not thread-safe.
class ConfigText {
 public:
  // Always returns an object; what is wrong with `text` is in Finish(). `file` is the name shown.
  // Values may name what `variables` knows (variables.h); without it they stand for themselves.
  static ConfigText Parse(std::string_view text, std::string file,
                          const VariableLookup& variables = {});

  // Does the same for each document of a file that may hold several, divided by "---"; those that
  // hold nothing are left out. Lines are those of the file. There is at least one; one that cannot
  // be read is the last.
  static std::vector<ConfigText> ParseAll(std::string_view text, const std::string& file);

  ConfigText(ConfigText&&) noexcept;
  ConfigText& operator=(ConfigText&&) noexcept;
  ~ConfigText();

  // The outermost map; not present() when the text could not be parsed.
  ConfigMap Root() const;

  // Returns OK, or kInvalidArgument with one line a mistake, by line; at most kMaxMistakes of them,
  // then a count. Call it once everything is read: a key nobody has asked for by now is unknown. A
  // second call gives the same.
  absl::Status Finish() const;

  // Returns the same one by one and without a limit, for callers that have more to add.
  std::vector<Mistake> Mistakes() const;

  // What was read all the same, and should be changed: keys under an old name, in the order in
  // which they were read.
  std::vector<Mistake> Warnings() const;

  static constexpr size_t kMaxMistakes = 50;

 private:
  explicit ConfigText(std::unique_ptr<ConfigDocument> document);

  std::unique_ptr<ConfigDocument> document_;
};

}  // namespace spoke::config
