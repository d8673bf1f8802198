#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "core/log.h"
#include "weights/safetensors.h"
#include "weights/tensor_file.h"

namespace nmrf::train {
namespace fs = std::filesystem;

namespace {

// Checkpoints of a folder, oldest first.
std::vector<fs::path> checkpoints(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("step-", 0) == 0 && entry.path().extension() == ".safetensors")
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

void write_checkpoint(const fs::path& path, const Checkpoint& checkpoint) {
  std::vector<torch::Tensor> kept;
  std::vector<StoredTensor> tensors;
  for (const auto& [name, value] : checkpoint.tensors) {
    kept.push_back(value.detach().to(torch::kCPU).contiguous());
    const auto& tensor = kept.back();
    check(tensor.scalar_type() == torch::kFloat || tensor.scalar_type() == torch::kLong,
          ErrorKind::kFailure, "checkpoint entry '{}' has a type that cannot be stored", name);
    StoredTensor stored;
    stored.name = name;
    stored.dtype = tensor.scalar_type() == torch::kLong ? DType::kI64 : DType::kF32;
    stored.shape = tensor.sizes().vec();
    stored.data = {static_cast<const std::uint8_t*>(tensor.data_ptr()), tensor.nbytes()};
    tensors.push_back(stored);
  }
  write_safetensors(path, tensors,
                    {{"format", "nmrf-checkpoint"}, {"state", checkpoint.state.dump()}});
}

Checkpoint read_checkpoint(const fs::path& path) {
  TensorFile file = read_tensor_file(path);
  auto state = file.metadata.find("state");
  check(state != file.metadata.end(), ErrorKind::kModel,
        "{}: is no checkpoint of a run (a model, perhaps: use it with model.init)", path.string());
  Checkpoint checkpoint;
  checkpoint.state = nlohmann::json::parse(state->second, nullptr, false);
  check(checkpoint.state.is_object(), ErrorKind::kModel, "{}: its state is not readable",
        path.string());
  for (const auto& stored : file.tensors) {
    check(stored.dtype == DType::kF32 || stored.dtype == DType::kI64, ErrorKind::kModel,
          "{}: '{}' has an unexpected type", path.string(), stored.name);
    auto tensor =
        torch::empty(stored.shape, stored.dtype == DType::kI64 ? torch::kLong : torch::kFloat);
    if (!stored.data.empty())
      std::memcpy(tensor.data_ptr(), stored.data.data(), stored.data.size());
    check(tensor.scalar_type() == torch::kLong || torch::isfinite(tensor).all().item<bool>(),
          ErrorKind::kModel, "{}: '{}' holds numbers that are not finite", path.string(),
          stored.name);
    checkpoint.tensors[stored.name] = tensor;
  }
  return checkpoint;
}

fs::path checkpoint_path(const fs::path& folder, std::int64_t step) {
  return folder / fmt::format("step-{:08}.safetensors", step);
}

std::optional<fs::path> newest_checkpoint(const fs::path& folder) {
  auto all = checkpoints(folder);
  if (all.empty()) return std::nullopt;
  return all.back();
}

std::optional<FoundCheckpoint> newest_sound_checkpoint(const fs::path& folder, bool set_aside) {
  auto all = checkpoints(folder);
  if (all.empty()) return std::nullopt;
  std::vector<fs::path> damaged;
  for (auto path = all.rbegin(); path != all.rend(); ++path) {
    try {
      FoundCheckpoint found{*path, read_checkpoint(*path)};
      // Kept apart, or they would count among the newest that are kept.
      std::error_code ignored;
      if (set_aside)
        for (const auto& bad : damaged) fs::rename(bad, bad.string() + ".damaged", ignored);
      return found;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kModel) throw;
      log_warning("{} Trying the checkpoint before it.", error.what());
      damaged.push_back(*path);
    }
  }
  fail(ErrorKind::kModel,
       "{}: none of its {} checkpoints can be read. Start again in another folder, with --init {} "
       "if that model is sound.",
       folder.string(), all.size(), (folder / "best.safetensors").string());
}

void prune_checkpoints(const fs::path& folder, int keep) {
  std::error_code ignored;
  auto all = checkpoints(folder);
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < all.size(); ++i)
    fs::remove(all[i], ignored);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().find(".safetensors.tmp-") != std::string::npos)
      fs::remove(entry.path(), ignored);
}

}  // namespace nmrf::train
