// The URL of a request to ARM, taken apart. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spoke::azure_sim {

// ASCII only: ids of Azure compare without regard to case.
std::string Lower(std::string_view text);

// "%24expand" is "$expand"; a '+' is a blank, as in forms.
std::string PercentDecode(std::string_view text);
// Everything but letters, digits, '-', '.', '_' and '~' (RFC 3986, section 2.3).
std::string PercentEncode(std::string_view text);

// "a=1&b=2". Keys in lower case. Of a key that is there twice, the first.
std::map<std::string, std::string> ParseQuery(std::string_view query);

struct Target {
  std::string host;                   // With the scheme, as sent: "https://management.azure.com".
  std::string path;                   // As sent.
  std::vector<std::string> segments;  // Of the path, decoded.
  std::vector<std::string> keys;      // The same in lower case.
  std::map<std::string, std::string> query;

  // Of the query; empty: not there.
  std::string Query(const std::string& key) const;
  std::string api_version() const { return Query("api-version"); }
  size_t size() const { return keys.size(); }
  // The segment at `index` in lower case; empty behind the end.
  std::string_view Key(size_t index) const;
  std::string_view Segment(size_t index) const;
  bool has_duplicates = false;  // Of keys in the query.
};

Target ParseTarget(std::string_view url);

}  // namespace spoke::azure_sim
