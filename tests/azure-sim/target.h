// The URL of a request to ARM, taken apart. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spoke::azure_sim {

// Returns lower case, for ASCII only: ids of Azure compare without regard to case.
std::string Lower(std::string_view text);

// Decodes "%24expand" to "$expand"; a '+' is a blank, as in forms.
std::string PercentDecode(std::string_view text);
// Encodes everything except letters, digits, '-', '.', '_' and '~' (RFC 3986, section 2.3).
std::string PercentEncode(std::string_view text);

// Reads "a=1&b=2". Keys are in lower case. The first of a key that is there twice counts.
std::map<std::string, std::string> ParseQuery(std::string_view query);

struct Target {
  std::string host;  // The host with the scheme, as sent: "https://management.azure.com".
  std::string path;  // The path as sent.
  std::vector<std::string> segments;  // The segments of the path, decoded.
  std::vector<std::string> keys;      // The same in lower case.
  std::map<std::string, std::string> query;

  // Returns the value in the query; empty: not there.
  std::string Query(const std::string& key) const;
  std::string api_version() const { return Query("api-version"); }
  size_t size() const { return keys.size(); }
  // Returns the segment at `index` in lower case; empty behind the end.
  std::string_view Key(size_t index) const;
  std::string_view Segment(size_t index) const;
  bool has_duplicates = false;  // Whether keys in the query have duplicates.
};

Target ParseTarget(std::string_view url);

}  // namespace spoke::azure_sim
