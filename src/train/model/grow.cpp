#include "train/model/grow.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/check.h"
#include "core/fields.h"
#include "network/network.h"
#include "network/parameters.h"

namespace nmrf::train {
namespace {

// Options that may grow without a change of the map. The embeddings are not among them: their layer
// norms average over all channels. Nor are grouped features, whose groups would mix.
constexpr std::array<std::string_view, 13> kGrowing{
    "backbone.stem",      "backbone.stage1",
    "backbone.stage2",    "backbone.stage3",
    "seeds.hidden1",      "seeds.hidden2",
    "propagation.layers", "inference.layers",
    "refinement.layers",  "propagation.context_hidden",
    "gamma1.hidden",      "gamma2.hidden",
    "mlp_ratio"};

void check_growth(const ModelOptions& from, const ModelOptions& to) {
  const auto before = to_json_object(from).flatten(), after = to_json_object(to).flatten();
  for (const auto& [path, value] : after.items()) {
    std::string key = path.substr(1);
    std::ranges::replace(key, '/', '.');
    if (key.starts_with("match.") || key == "seeds.max_disp" || before.at(path) == value) continue;
    check(std::ranges::find(kGrowing, key) != kGrowing.end() &&
              before.at(path).get<int>() < value.get<int>(),
          ErrorKind::kUsage,
          "{} cannot change from {} to {} while the map stays the same; channels of the backbone, "
          "hidden channels and numbers of layers can grow",
          key, before.at(path).dump(), value.dump());
  }
}

// The last linear map of a message: zero, the message is empty.
bool ends_message(const std::string& name) {
  for (const char* end : {".proj.weight", ".proj.bias", ".mlp.fc2.weight", ".mlp.fc2.bias"})
    if (name.ends_with(end)) return true;
  return false;
}

// `grown`: as initialised. Old outputs keep their weights and ignore new inputs.
void insert(torch::Tensor grown, const torch::Tensor& old) {
  if (grown.dim() > 1) grown.narrow(0, 0, old.size(0)).zero_();
  torch::Tensor block = grown;
  for (int64_t axis = 0; axis < old.dim(); ++axis) block = block.narrow(axis, 0, old.size(axis));
  block.copy_(old);
}

}  // namespace

Network grow(const TensorFile& file, const std::string& path, const ModelOptions& from,
             const ModelOptions& to, std::uint64_t seed) {
  check_growth(from, to);
  const LoadReport report = compare(parameters_of(from), file);
  check(report.complete(), ErrorKind::kModel, "{}: does not hold a complete network: {}", path,
        report.summary());
  StoredParameters stored(file, path);
  Network network = make_network(to, seed);
  torch::NoGradGuard no_grad;
  for (auto& item : network->named_parameters()) {
    const StoredTensor* tensor = file.find(item.key());
    if (tensor == nullptr) {
      if (ends_message(item.key())) item.value().zero_();
      continue;
    }
    std::vector<float> values = stored.take(item.key(), tensor->shape);
    insert(item.value(), torch::from_blob(values.data(), tensor->shape, torch::kFloat));
  }
  return network;
}

}  // namespace nmrf::train
