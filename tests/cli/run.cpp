#include "cli/run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <thread>

#include "core/file.h"
#include "core/rng.h"

namespace nmrf::test {

namespace {

// Our environment without what would change the command, and with `settings`.
std::vector<std::string> environment_with(const std::vector<std::string>& settings) {
  // The pictures are small: threads would mostly wait for each other on a busy machine.
  std::vector<std::string> result{"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"};
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    bool ours = false;
    for (const char* name :
         {"OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS=", "NMRF_MODEL=", "NMRF_PLAIN=", "NO_COLOR="})
      ours |= text.rfind(name, 0) == 0;
    for (const auto& setting : settings)
      ours |= text.rfind(setting.substr(0, setting.find('=') + 1), 0) == 0;
    if (!ours) result.push_back(text);
  }
  result.insert(result.end(), settings.begin(), settings.end());
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, const RunOptions& options) {
  std::vector<std::string> words{options.program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto environment = environment_with(options.environment);
  const std::string out = folder_ / "stdout";
  std::string err = folder_ / "stderr";
  if (options.terminal) {
    terminal_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal_ < 0 || ::grantpt(terminal_) != 0 || ::unlockpt(terminal_) != 0)
      throw std::runtime_error("no pseudo terminal");
    err = ::ptsname(terminal_);
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT,
                                     0600);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(),
                                     O_RDWR | O_CREAT | O_NOCTTY, 0600);
  if (!options.folder.empty())
    ::posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  const int code = ::posix_spawn(&pid_, options.program.c_str(), &actions, nullptr,
                                 pointers_to(words).data(), pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (code != 0) throw std::runtime_error("the command cannot be started");
}

Process::~Process() {
  if (!ended_ && pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
  if (terminal_ >= 0) ::close(terminal_);
}

void Process::signal(int number) const { ::kill(pid_, number); }

bool Process::running() {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return !ended_;
}

Outcome Process::wait() {
  Outcome outcome;
  if (terminal_ >= 0) {  // read until the other end is closed
    char buffer[4096];
    ssize_t got = 0;
    // The child may not have opened its end yet: EIO before that means nothing.
    while ((got = ::read(terminal_, buffer, sizeof buffer)) > 0 || (got < 0 && running()))
      if (got > 0) outcome.err.append(buffer, static_cast<std::size_t>(got));
  }
  if (!ended_) {
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    ended_ = true;
  }
  outcome.code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  outcome.out = read_file(folder_ / "stdout");
  if (terminal_ < 0) outcome.err = read_file(folder_ / "stderr");
  return outcome;
}

Outcome nmrf(const std::vector<std::string>& arguments, const RunOptions& options) {
  return Process(arguments, options).wait();
}

std::vector<Outcome> nmrf_all(const std::vector<std::vector<std::string>>& runs) {
  std::vector<Outcome> outcomes(runs.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    workers.emplace_back([&] {
      for (std::size_t at = next++; at < runs.size(); at = next++) outcomes[at] = nmrf(runs[at]);
    });
  for (auto& worker : workers) worker.join();
  return outcomes;
}

std::vector<std::string> match_line(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "match");
  auto given = [&](const char* option) {
    return std::find(arguments.begin(), arguments.end(), option) != arguments.end();
  };
  if (!given("--model")) arguments.insert(arguments.end(), {"--model", "formula:fast"});
  if (!given("--max-disp")) arguments.insert(arguments.end(), {"--max-disp", "64"});
  return arguments;
}

Outcome match(std::vector<std::string> arguments, const RunOptions& options) {
  return nmrf(match_line(std::move(arguments)), options);
}

std::pair<Image, Image> made_pair(int seed, int width, int height, int shift) {
  Rng rng(static_cast<std::uint64_t>(seed));
  Image wide(width + shift, height);
  for (std::size_t i = 0; i < wide.row_bytes() * static_cast<std::size_t>(height); ++i)
    wide.data()[i] = static_cast<std::uint8_t>(rng.integer(0, 255));
  return {cut(wide, 0, 0, width, height), cut(wide, shift, 0, width, height)};
}

Image beside(const Image& left, const Image& right) {
  Image both(left.width() + right.width(), left.height());
  for (int y = 0; y < both.height(); ++y) {
    std::copy_n(left.row(y), left.row_bytes(), both.row(y));
    std::copy_n(right.row(y), right.row_bytes(), both.row(y) + left.row_bytes());
  }
  return both;
}

Image cut(const Image& image, int x, int y, int width, int height) {
  Image part(width, height, image.channels());
  for (int row = 0; row < height; ++row)
    std::copy_n(image.row(y + row) + x * image.channels(), part.row_bytes(), part.row(row));
  return part;
}

Image mirrored(const Image& image) {
  Image out(image.width(), image.height(), image.channels());
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      std::copy_n(image.row(y) + (image.width() - 1 - x) * image.channels(), image.channels(),
                  out.row(y) + x * image.channels());
  return out;
}

FloatMap mirrored(const FloatMap& map) {
  FloatMap out = map;
  for (int y = 0; y < out.height(); ++y) std::reverse(out.row(y), out.row(y) + out.width());
  return out;
}

void put_pair(const fs::path& left, const fs::path& right, int seed, int width, int height) {
  auto [left_image, right_image] = made_pair(seed, width, height);
  fs::create_directories(left.parent_path());
  fs::create_directories(right.parent_path());
  write_image(left, left_image);
  write_image(right, right_image);
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    auto value = nlohmann::json::parse(line, nullptr, false);
    EXPECT_FALSE(value.is_discarded()) << line;
    lines.push_back(value);
  }
  return lines;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_good_map(const FloatMap& map, int width, int height) {
  ASSERT_EQ(map.width(), width);
  ASSERT_EQ(map.height(), height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const float d = map.at(y, x);
      ASSERT_TRUE(std::isfinite(d) && d >= 0) << d << " at " << x << ", " << y;
    }
}

double largest_difference(const FloatMap& a, const FloatMap& b) {
  if (!a.same_size(b)) return std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a.data()[i] != b.data()[i])
      most = std::max(most, std::abs(static_cast<double>(a.data()[i]) - b.data()[i]));
  return most;
}

int largest_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.row_bytes(), b.row_bytes());
  EXPECT_EQ(a.height(), b.height());
  int most = 0;
  for (std::size_t i = 0; i < a.row_bytes() * static_cast<std::size_t>(a.height()); ++i)
    most = std::max(most, std::abs(int{a.data()[i]} - int{b.data()[i]}));
  return most;
}

}  // namespace nmrf::test
