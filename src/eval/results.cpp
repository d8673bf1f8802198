#include "eval/results.h"

#include <cctype>
#include <cmath>

#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "core/sha256.h"

namespace nmrf {
namespace fs = std::filesystem;

std::string file_name_for(const std::string& text) {
  std::string name;
  for (unsigned char c : text) {
    const bool plain = std::isalnum(c) || c == '-' || c == '_' || (c == '.' && !name.empty());
    name += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return name;
}

nlohmann::json ImageResult::to_json() const {
  nlohmann::json json{{"name", name}};
  if (!error.empty()) {
    json["error"] = error;
    return json;
  }
  json["size"] = {width, height};
  json["seconds"] = seconds;
  json["regions"] = nmrf::to_json(regions);
  if (proposals) json["proposals"] = proposals->to_json();
  if (winners) json["winners"] = winners->to_json();
  return json;
}

ImageResult ImageResult::from_json(const nlohmann::json& json, const std::string& what) {
  ImageResult result;
  try {
    json.at("name").get_to(result.name);
    if (json.contains("error")) {
      json.at("error").get_to(result.error);
      check(!result.error.empty(), ErrorKind::kInput, "{}: an error without a text", what);
      return result;
    }
    json.at("size").at(0).get_to(result.width);
    json.at("size").at(1).get_to(result.height);
    json.at("seconds").get_to(result.seconds);
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::kInput, "{}: is no result of an evaluation ({})", what, error.what());
  }
  result.regions = regions_from_json(json.value("regions", nlohmann::json()), what);
  if (json.contains("proposals"))
    result.proposals = ProposalStats::from_json(json["proposals"], what);
  if (json.contains("winners")) result.winners = WinnerHistogram::from_json(json["winners"], what);
  return result;
}

ResultStore::ResultStore(const fs::path& folder, const std::string& set, const std::string& method,
                         const std::string& depends_on) {
  Sha256 digest;
  digest.update(depends_on);
  key_ = digest.hex();
  if (folder.empty()) return;
  folder_ = folder / file_name_for(set) / (file_name_for(method) + "-" + key_.substr(0, 12));
  make_folder(folder_);
}

std::optional<ImageResult> ResultStore::find(const std::string& name) const {
  if (folder_.empty()) return std::nullopt;
  const fs::path path = folder_ / (file_name_for(name) + ".json");
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    auto json =
        nlohmann::json::parse(read_file(path, ErrorKind::kInput, 64u << 20), nullptr, false);
    check(json.is_object(), ErrorKind::kInput, "{}: is not valid JSON", path.string());
    if (json.value("key", "") != key_) return std::nullopt;
    ImageResult result = ImageResult::from_json(json, path.string());
    if (result.name != name) return std::nullopt;
    return result;
  } catch (const Error& error) {
    log_warning("{}; this image is evaluated again", error.what());
  } catch (const nlohmann::json::exception& error) {
    log_warning("{}: {}; this image is evaluated again", path.string(), error.what());
  }
  return std::nullopt;
}

void ResultStore::put(const ImageResult& result) const {
  if (folder_.empty()) return;
  nlohmann::json json = result.to_json();
  json["key"] = key_;
  // File names may hold bytes that are no UTF-8; a replaced byte only means "run again".
  write_file(folder_ / (file_name_for(result.name) + ".json"),
             json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

fs::path ResultStore::picture(const std::string& name, const std::string& kind) const {
  return folder_ / (file_name_for(name) + "." + kind);
}

}  // namespace nmrf
