#include "train/runs.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "core/file.h"
#include "weights/tensor_file.h"

namespace nmrf::test {
namespace fs = std::filesystem;

const char* const kShort = R"(
[loss]
modals = "dense"
[augment]
eraser = 0.0
[train]
log_every = 1
checkpoint_every = 3
ema = 0.9
[stage1]
steps = 4
scope = "seeds"
lr = 1e-3
batch = 2
crop_height = 64
crop_width = 64
[stage2]
steps = 8
scope = "all"
lr = 5e-4
batch = 2
crop_height = 64
crop_width = 64
)";

void write_config(const fs::path& path, const fs::path& list, const std::string& more) {
  write_file(path, R"([model]
preset = "fast"
backbone = {stem = 12, stage1 = 12, stage2 = 16, stage3 = 16, features = 24}
seeds = {max_disp = 48, labels = 2, groups = 2}
propagation = {layers = 1, channels = 16, heads = 2, context_hidden = 8, context = 8}
gamma1 = {hidden = 12, channels = 8}
gamma2 = {hidden = 12, channels = 16, groups = 4}
inference = {layers = 2, channels = 24, heads = 2, window = 4}
refinement = {layers = 2, channels = 24, heads = 2}

[data1]
name = "list"
list = ")" + list.string() +
                       "\"\n" + more);
}

pid_t start(const std::vector<std::string>& arguments, const Launch& launch) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setenv("OMP_NUM_THREADS", "1", 1);
  ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
  std::vector<std::string> words = launch.before;
  words.emplace_back(NMRF_COMMAND);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (!std::getenv("NMRF_TEST_VERBOSE") || !launch.output.empty()) {
    const std::string where = launch.output.empty() ? "/dev/null" : launch.output.string();
    if (!std::freopen(where.c_str(), "w", stdout) || !std::freopen(where.c_str(), "a", stderr))
      ::_exit(126);
  }
  if (launch.in_child) launch.in_child();
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

int finish(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run(const std::vector<std::string>& arguments, const Launch& launch) {
  return finish(start(arguments, launch));
}

std::map<std::string, std::vector<float>> weights(const fs::path& path) {
  std::map<std::string, std::vector<float>> all;
  TensorFile file = read_tensor_file(path);
  for (const auto& tensor : file.tensors) all[tensor.name] = to_floats(tensor);
  return all;
}

std::vector<nlohmann::json> log_of(const fs::path& folder) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(folder / "log.jsonl");
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace nmrf::test
