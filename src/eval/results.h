// Results image by image, and the folder that keeps them between runs and processes.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/metrics.h"
#include "eval/proposals.h"

namespace nmrf {

struct ImageResult {
  std::string name;
  int width = 0, height = 0;
  double seconds = 0;
  RegionStats regions;
  std::optional<ProposalStats> proposals;
  std::optional<WinnerHistogram> winners;
  std::string error;  // not empty: the pair failed, and this is why
  // Files of small pictures by kind: "left", "disparity", "error", "best". Not part of the JSON.
  std::map<std::string, std::filesystem::path> pictures;

  nlohmann::json to_json() const;
  // Throws Error(kInput) naming `what`.
  static ImageResult from_json(const nlohmann::json& json, const std::string& what);
};

// One JSON file an image below `folder`/SET/METHOD-KEY/. A file that was made with other weights,
// options or data is not found.
class ResultStore {
 public:
  // `depends_on` is everything the results depend on; its digest is the key. An empty `folder`
  // keeps nothing.
  ResultStore(const std::filesystem::path& folder, const std::string& set,
              const std::string& method, const std::string& depends_on);

  // The stored result, a failed one included; nothing when there is none, or when it is damaged (a
  // warning says so).
  std::optional<ImageResult> find(const std::string& name) const;
  void put(const ImageResult& result) const;
  // Where a picture of that image goes, for example picture("a/b", "error.png").
  std::filesystem::path picture(const std::string& name, const std::string& kind) const;
  bool keeps() const { return !folder_.empty(); }
  const std::string& key() const { return key_; }

 private:
  std::filesystem::path folder_;
  std::string key_;
};

// A file name for any text: letters, digits, '-', '_' and '.' stay, other bytes become %XX; a
// leading dot too.
std::string file_name_for(const std::string& text);

}  // namespace nmrf
