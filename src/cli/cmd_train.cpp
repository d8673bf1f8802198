// nmrf train: the paper's training and fine-tuning from a config file, in one process or many.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "cli/command.h"
#include "core/check.h"
#include "core/log.h"
#include "io/toml.h"
#include "train/model/device.h"
#include "train/threads.h"
#include "train/trainer.h"

namespace nmrf::cli {
namespace {

// A free port on the loopback interface.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool ok = fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (fd >= 0) ::close(fd);
  check(ok, ErrorKind::kFailure, "no free port on the loopback interface for --nproc");
  return ntohs(address.sin_port);
}

// Starts this program `count` times with RANK 0..count-1 and waits. Signals are passed on; when one
// process fails the others are told to stop. Returns the first exit code that is not 0.
int spawn(int count, int threads, int argc, char** argv) {
  const std::string port = std::to_string(free_port());
  std::vector<pid_t> children;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t child = ::fork();
    check(child >= 0, ErrorKind::kFailure, "process {} of {} cannot be started", rank, count);
    if (child == 0) {
      ::setenv("MASTER_ADDR", "127.0.0.1", 1);
      ::setenv("MASTER_PORT", port.c_str(), 1);
      ::setenv("RANK", std::to_string(rank).c_str(), 1);
      ::setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
      ::setenv("WORLD_SIZE", std::to_string(count).c_str(), 1);
      // The processes share the cores: more threads than cores wait for each other.
      ::setenv("OMP_NUM_THREADS", std::to_string(std::max(1, threads / count)).c_str(), 0);
      std::vector<char*> arguments;
      std::string program = "nmrf-train";
      arguments.push_back(program.data());
      for (int i = 0; i < argc; ++i) arguments.push_back(argv[i]);
      arguments.push_back(nullptr);
      ::execv("/proc/self/exe", arguments.data());
      ::_exit(127);
    }
    children.push_back(child);
  }
  watch_interrupts();
  int code = 0;
  std::size_t running = children.size();
  bool told = false;
  while (running > 0) {
    if (interrupted() && !told) {  // they stop by themselves after saving
      told = true;
      for (pid_t child : children) ::kill(child, SIGTERM);
    }
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended <= 0) {  // waiting without end would not be woken by a signal
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    --running;
    const int its = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (its != 0 && code == 0) code = its;
    if (its != 0 && !told) {
      // A killed process cannot be waited for: the others would sit until their time-out.
      told = true;
      for (pid_t child : children)
        if (child != ended) ::kill(child, SIGTERM);
    }
  }
  return code;
}

}  // namespace

int cmd_train(int argc, char** argv) {
  CLI::App app{
      "Train or fine-tune a network.\n\n"
      "  nmrf train --config configs/sceneflow.toml --set data1.root=/data/SceneFlow -o runs/sf\n"
      "  nmrf train --config configs/sceneflow.toml -o runs/sf --resume\n"
      "  nmrf train --config configs/finetune.toml --set data1.list=my.txt --init "
      "model.safetensors\n"
      "  nmrf train --config configs/fast.toml -o runs/fast --nproc 2\n\n"
      "Across machines: start one process each with MASTER_ADDR, MASTER_PORT, RANK and "
      "WORLD_SIZE.\n",
      "nmrf train"};
  std::string config_file, output = "runs/train", device = "auto", init, cache;
  std::vector<std::string> set, freeze;
  bool resume = false, show = false, list_settings = false;
  int processes = 1;
  double minutes = 0;
  CommonOptions common;
  app.add_option("-c,--config", config_file, "TOML file, see configs/ and docs/training.md");
  app.add_option("-s,--set", set, "Change a setting: stage1.lr=1e-4 (repeatable)");
  app.add_option("-o,--output", output, "Run folder")->capture_default_str();
  app.add_flag("--resume", resume, "Continue from the newest checkpoint in the run folder");
  app.add_option("--init", init, "Weights to start from (.safetensors or .pth)");
  app.add_option("--freeze", freeze, "Parameter name prefixes to freeze, e.g. backbone");
  app.add_option("--cache", cache, "Cache folder for superpixels");
  app.add_option("--nproc", processes, "Processes on this machine")->check(CLI::Range(1, 256));
  add_device(app, device);
  app.add_option("--max-minutes", minutes, "Save and stop after this many minutes");
  app.add_flag("--show-config", show, "Print the effective settings and stop");
  app.add_flag("--list-settings", list_settings, "Print all settings for --set and their defaults");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();

  if (list_settings) {
    print_settings(train::TrainConfig());
    return 0;
  }
  if (!init.empty()) set.push_back("model.init=" + nlohmann::json(init).dump());
  if (!cache.empty()) set.push_back("data.cache=" + nlohmann::json(cache).dump());
  if (!freeze.empty())
    for (int i = 1; i <= train::TrainConfig::kStages; ++i)
      set.push_back(fmt::format("stage{}.freeze={}", i, nlohmann::json(freeze).dump()));
  if (resume && config_file.empty() && std::filesystem::exists(output + "/config.toml"))
    config_file = output + "/config.toml";
  check(!config_file.empty() || !resume, ErrorKind::kUsage,
        "{}: is not the folder of a run: it has no config.toml to resume with. Name the run's "
        "folder with -o, or the settings with --config FILE.",
        output);
  check(!config_file.empty(), ErrorKind::kUsage,
        "nmrf train needs --config FILE (see configs/), or --resume -o FOLDER");
  train::TrainConfig config = train::read_config(config_file, set);
  if (show) {
    print(to_toml(to_json_object(config)));
    return 0;
  }
  if (processes > 1 && !std::getenv("WORLD_SIZE"))
    return spawn(processes, common.thread_count(), argc, argv);

  train::set_threads(common.thread_count());
  train::warn_of_slow_blas();
  train::TrainRun run;
  run.folder = output;
  run.resume = resume;
  run.max_minutes = minutes;
  run.device = train::choose_device(device).str();
  auto group = train::ProcessGroup::from_environment(config.timeout, run.device != "cpu");
  watch_interrupts();
  run.stop = [] { return interrupted(); };
  const bool chief = group->rank() == 0;
  run.progress = [&](const std::string& line) {
    if (chief && !common.quiet) log_info("{}", line);
  };
  train::TrainResult result = train::run_training(config, run, group);
  if (chief)
    print(
        fmt::format("{} after {} of {} updates, {}, {} skipped, {:.2f} samples/s, {:.0f} % "
                    "of the time waiting for data; {}",
                    result.finished ? "finished" : "stopped", result.step, config.total_steps(),
                    result.loss ? fmt::format("loss {:.4f}", *result.loss) : "no new update",
                    result.skipped, result.samples_per_second, 100 * result.wait_share, output));
  return interrupted() ? kExitInterrupted : 0;
}

}  // namespace nmrf::cli
