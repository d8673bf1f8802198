// The manners of the command: help, usage errors, exit codes, untouched files.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run.h"
#include "core/file.h"
#include "nmrf/version.h"
#include "support/sanitized.h"

namespace nmrf::test {
namespace {

TEST(Command, HelpAndVersion) {
  Outcome run = nmrf({"--help"});
  EXPECT_EQ(run.code, 0);
  for (const std::string word : {"match", "convert", "info", "Exit codes", "130"})
    EXPECT_TRUE(contains(run.out, word)) << word;
  EXPECT_EQ(run.err, "");
  run = nmrf({"--version"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, "nmrf " NMRF_VERSION "\n");
  for (const std::string command : {"match", "convert", "info"}) {
    run = nmrf({command, "--help"});
    EXPECT_EQ(run.code, 0);
    // An example comes before the options.
    EXPECT_LT(run.out.find("  nmrf " + command), run.out.find("Options:")) << run.out;
  }
}

TEST(Command, DoctorFindsTheModelAndTriesIt) {
  Outcome run = nmrf({"doctor"});
  EXPECT_EQ(run.code, 0) << run.err;
  for (const std::string word : {"nmrf-train", "model", "self-test", "Everything works"})
    EXPECT_TRUE(contains(run.out, word)) << run.out;
  run = nmrf({"doctor", "--json"});
  const auto report = json_lines(run.out).at(0);
  EXPECT_LT(report["self_test"]["median_error_px"].get<double>(), 0.2);
  EXPECT_EQ(report["model_sha256"].get<std::string>().size(), 64u);
  // Untrained weights do not pass.
  run = nmrf({"doctor", "--model", "formula:fast"});
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(contains(run.err, "self-test is off")) << run.err;
  run = nmrf({"doctor", "--model", "nowhere.safetensors"});
  EXPECT_EQ(run.code, 4);
}

TEST(Command, ListsForCompletion) {
  Outcome run = nmrf({"--list-commands"});
  EXPECT_EQ(run.code, 0);
  EXPECT_TRUE(contains(run.out, "match\tdisparity, depth and point clouds")) << run.out;
  run = nmrf({"match", "--list-options"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
  // Name, what it takes, description: a flag, a choice, a value.
  EXPECT_TRUE(contains(run.out, "\n--lr-check\t\t")) << run.out;
  EXPECT_TRUE(contains(run.out, "\n--view\tleft|right|both\t"));
  EXPECT_TRUE(contains(run.out, "\n--scale\tFACTOR\t"));
  EXPECT_TRUE(contains(run.out, "\n-o\tTEXT\t"));
  EXPECT_EQ(nmrf({"match", "--list-options", "left.png"}).code, 2);
}

TEST(Command, UsageErrors) {
  TempFolder folder;
  put_pair(folder / "l.png", folder / "r.png");
  put_pair(folder / "many/l.png", folder / "many/r.png");
  const std::string l = folder / "l.png", r = folder / "r.png", o = folder / "out/";
  struct Mistake {
    std::vector<std::string> arguments;
    std::string part;
  };
  const std::vector<Mistake> mistakes{
      {{}, "Commands"},
      {{"mach"}, "unknown command 'mach'; did you mean 'match'?"},
      {{"match", l, r, "--outptu", "x"}, "unknown option --outptu; did you mean --output?"},
      {{"match", l, r, "--ouput=x"}, "unknown option --ouput; did you mean --output?"},
      {{"match"}, "Try: nmrf match left.png right.png -o out/"},
      {{"match", "-o", o}, "Try: nmrf match left.png right.png -o out/"},
      {{l, r, "-o", o}, "Did you mean: nmrf match"},
      {{"match", l}, "needs a right image"},
      {{"match", l, r, r}, ""},
      {{"match", l, r, "--colour"}, "--colour"},
      {{"match", l, r, "--view", "up"}, "--view"},
      {{"match", l, r, "--format", "jpg"}, "--format"},
      {{"match", l, r, "-o", folder / "d.jpg"}, "'.jpg'"},
      {{"match", l, r, "-o", folder / "d.pfm", "--format", "png"}, "contradicts"},
      {{"match", l, r, "-o", ""}, "-o is empty"},
      {{"match", l, r, "--range", "9,3"}, "--range 9,3"},
      {{"match", l, r, "--range", "0,inf"}, "--range 0,inf"},
      {{"match", l, r, "--range", "some"}, "--range some"},
      {{"match", l, r, "--lr-threshold", "-1"}, "--lr-threshold"},
      {{"match", l, r, "--lr-threshold", "nan"}, "--lr-threshold"},
      {{"match", l, r, "--scale", "0"}, "--scale"},
      {{"match", l, r, "--scale", "nan"}, "--scale"},
      {{"match", l, r, "--max-disp", "-8"}, "--max-disp"},
      {{"match", l, r, "--max-disp", "100000"}, "--max-disp"},
      {{"match", l, r, "-o", o, "--max-disp", "8", "--model", "formula:fast"}, "at least 32"},
      {{"match", l, r, "-o", o, "--device", "tpu", "--model", "formula:fast"}, "device 'tpu'"},
      {{"match", l, r, "-o", o, "--model", "formula:huge"}, "paper, swin, fast and base"},
      {{"match", "--set", "match.medium=0", l, r, "-o", o, "--model", "formula:fast"},
       "Did you mean 'match.median'"},
      {{"match", l, r, "--side-by-side"}, "one image holds both views"},
      {{"match", l, r, "--list", "x.txt"}, "not both"},
      {{"match", l, folder / "many"}, "the other input is a folder or pattern"},
      {{"match", folder / "many/l*", folder / "many/r*", "--list", "x"}, "not both"},
      {{"info"}, "needs a model file"},
      {{"info", "--preset", "huge"}, "paper, swin, fast and base"},
      {{"info", "--preset", "fast", "--size", "10x10"}, "--size 10x10"},
      {{"info", "--preset", "fast", "--set", "seeds.label=2"}, "Did you mean 'seeds.labels'"},
      {{"convert", l}, "OUT"},
      {{"convert", l, folder / "model.pth"}, ".safetensors"},
  };
  std::vector<std::vector<std::string>> lines;
  for (const auto& mistake : mistakes) lines.push_back(mistake.arguments);
  const auto runs = nmrf_all(lines);
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    const Mistake& mistake = mistakes[i];
    const Outcome& run = runs[i];
    std::string line;
    for (const auto& word : mistake.arguments) line += " " + word;
    SCOPED_TRACE(line);
    EXPECT_EQ(run.code, 2);
    EXPECT_TRUE(contains(run.out + run.err, mistake.part)) << run.out << run.err;
    if (!mistake.arguments.empty()) {
      EXPECT_EQ(run.out, "") << "mistakes are told on stderr";
    }
  }
}

TEST(Command, SeveralPairsNeedAFolder) {
  TempFolder folder;
  put_pair(folder / "l/1.png", folder / "r/1.png", 1);
  put_pair(folder / "l/2.png", folder / "r/2.png", 2);
  const Outcome run = match({folder / "l", folder / "r", "-o", folder / "d.pfm"});
  EXPECT_EQ(run.code, 2);
  EXPECT_TRUE(contains(run.err, "several pairs need a folder")) << run.err;
}

TEST(Command, BadPictures) {
  TempFolder folder;
  put_pair(folder / "l.png", folder / "r.png");
  put_pair(folder / "wide_l.png", folder / "wide_r.png", 2, 128, 64);
  put_pair(folder / "small_l.png", folder / "small_r.png", 2, 96, 31);
  write_file(folder / "empty.png", "");
  write_file(folder / "text.png", "P6 is not for you");
  const std::string whole = read_file(folder / "l.png");
  write_file(folder / "cut.png", whole.substr(0, whole.size() / 2));
  write_file(folder / "video.avi", "RIFF nothing");
  struct Case {
    std::string left, right, part;
  };
  const std::vector<Case> cases{
      {"missing.png", "r.png", "missing.png"},
      {"l.png", "missing.png", "missing.png"},
      {"empty.png", "r.png", "empty.png"},
      {"text.png", "r.png", "text.png"},
      {"l.png", "cut.png", "cut.png"},
      {"l.png", "wide_r.png", "wide_r.png is 128 x 64"},
      {"small_l.png", "small_r.png", "small_l.png: the images to match are 96x31"},
      {"video.avi", "video.avi", "video.avi"},
      {"no*.png", "r*.png", "no file matches"},
  };
  std::vector<std::vector<std::string>> lines;
  for (const auto& item : cases)
    lines.push_back(match_line({folder / item.left, folder / item.right, "-o", folder / "d.pfm"}));
  const auto runs = nmrf_all(lines);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& item = cases[i];
    const Outcome& run = runs[i];
    SCOPED_TRACE(item.left + " " + item.right);
    EXPECT_EQ(run.code, 3);
    EXPECT_TRUE(contains(run.err, item.part)) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_FALSE(fs::exists(folder / "d.pfm"));
  }
  const Outcome scaled =
      match({folder / "l.png", folder / "r.png", "--scale", "0.3", "-o", folder / "d.pfm"});
  EXPECT_EQ(scaled.code, 3);
  EXPECT_TRUE(contains(scaled.err, "29x19")) << scaled.err;
  EXPECT_EQ(match({"--list", folder / "none.txt"}).code, 3);
}

TEST(Command, BadModels) {
  TempFolder folder;
  put_pair(folder / "l.png", folder / "r.png");
  write_file(folder / "text.safetensors", "not a model at all");
  auto with = [&](const std::string& model) {
    return match({folder / "l.png", folder / "r.png", "-o", folder / "d.pfm", "--model", model});
  };
  for (const std::string model : {"none.safetensors", "none.pth", "text.safetensors", "l.png"}) {
    const Outcome run = with(folder / model);
    EXPECT_EQ(run.code, 4) << model;
    EXPECT_TRUE(contains(run.err, model)) << run.err;
    EXPECT_FALSE(fs::exists(folder / "d.pfm"));
  }
  // By the environment, when none is named.
  const Outcome run = nmrf({"match", folder / "l.png", folder / "r.png", "-o", folder / "d.pfm"},
                           {.environment = {"NMRF_MODEL=" + (folder / "gone.pth").string()}});
  EXPECT_EQ(run.code, 4);
  EXPECT_TRUE(contains(run.err, "gone.pth")) << run.err;
}

// nmrf alone in a folder: what it does not hold itself is told with what to install.
TEST(Command, ProgramsThatAreNotInstalled) {
  TempFolder folder;
  put_pair(folder / "l.png", folder / "r.png");
  fs::copy_file(NMRF_COMMAND, folder / "bin");
  fs::create_directory(folder / "alone");
  fs::rename(folder / "bin", folder / "alone/nmrf");
  const RunOptions alone{.environment = {"PATH=/nowhere"}, .program = folder / "alone/nmrf"};
  const std::string l = folder / "l.png", r = folder / "r.png", d = folder / "d.pfm";
  struct Case {
    std::vector<std::string> arguments;
    std::string program, remedy;
  };
  const std::vector<Case> cases{
      {{"eval", "--list", "x"}, "nmrf-tools", "NMRF_BUILD_EVAL"},
      {{"plot", "runs/a"}, "nmrf-tools", "NMRF_BUILD_EVAL"},
      {{"export", "x.onnx"}, "nmrf-export", "NMRF_BUILD_EXPORT"},
      {{"train", "--help"}, "nmrf-train", "NMRF_BUILD_TRAIN"},
      {{"match", l, r, "-o", d, "--device", "cuda"}, "nmrf-train", "NMRF_BUILD_TRAIN"},
      {{"bench", "--preset", "fast", "--compare"}, "nmrf-train", "NMRF_BUILD_TRAIN"},
      {{"bench", "--preset", "fast", "--train"}, "nmrf-train", "NMRF_BUILD_TRAIN"},
  };
  for (const auto& item : cases) {
    const Outcome run = nmrf(item.arguments, alone);
    EXPECT_EQ(run.code, 2) << run.err;
    EXPECT_TRUE(contains(run.err, item.program)) << run.err;
    EXPECT_TRUE(contains(run.err, item.remedy)) << run.err;
  }
  EXPECT_TRUE(contains(nmrf({"--help"}, alone).out, "needs nmrf-train, not installed"));
  // Nor does it find the model of the tree that it was built in.
  const Outcome no_model = nmrf({"match", l, r, "-o", d}, alone);
  EXPECT_EQ(no_model.code, 4) << no_model.err;
  EXPECT_TRUE(contains(no_model.err, "--model FILE")) << no_model.err;
  EXPECT_EQ(nmrf(match_line({l, r, "-o", d}), alone).code, 0) << "matching needs no other program";
}

// Beside nmrf, below its prefix, or in PATH; the arguments arrive as they were, the exit code too.
TEST(Command, StartsTheProgramThatHoldsACommand) {
  TempFolder folder;
  fs::create_directories(folder / "bin");
  fs::copy_file(NMRF_COMMAND, folder / "bin/nmrf");
  for (const std::string place : {"bin", "libexec/nmrf", "lib/nmrf", "elsewhere"}) {
    SCOPED_TRACE(place);
    const fs::path program = folder / (place + "/nmrf-tools");
    fs::create_directories(program.parent_path());
    write_file(program, "#!/bin/sh\nfor word; do echo \"[$word]\"; done\nexit 7\n");
    ::chmod(program.c_str(), 0755);
    const Outcome run = nmrf({"eval", "--list", "a b", ""},
                             {.environment = {"PATH=/bin:" + (folder / "elsewhere").string()},
                              .program = folder / "bin/nmrf"});
    EXPECT_EQ(run.code, 7) << run.err;
    EXPECT_EQ(run.out, "[eval]\n[--list]\n[a b]\n[]\n");
    fs::remove(program);
  }
}

TEST(Command, OutputsThatCannotBe) {
  TempFolder folder;
  put_pair(folder / "l.png", folder / "r.png");
  write_file(folder / "file", "kept");
  auto to = [&](const std::string& output) {
    return match({folder / "l.png", folder / "r.png", "-o", output});
  };
  Outcome run = to(folder / "file/");
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(contains(run.err, "file")) << run.err;
  EXPECT_EQ(to(folder / "file/below/d.pfm").code, 1);
  EXPECT_EQ(read_file(folder / "file"), "kept");
  if (::geteuid() != 0) {  // root may write anywhere
    fs::create_directory(folder / "locked");
    ::chmod((folder / "locked").c_str(), 0555);
    run = to(folder / "locked/d.pfm");
    EXPECT_EQ(run.code, 1);
    EXPECT_TRUE(contains(run.err, "no permission to write")) << run.err;
  }
  run = to("/proc/nmrf/d.pfm");
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(contains(run.err, "/proc/nmrf")) << run.err;
}

TEST(Command, FailureKeepsWhatWasThere) {
  TempFolder folder;
  put_pair(folder / "l.png", folder / "r.png");
  write_file(folder / "bad.png", "no picture");
  write_file(folder / "d.pfm", "an older result");
  EXPECT_EQ(match({folder / "l.png", folder / "bad.png", "-o", folder / "d.pfm"}).code, 3);
  EXPECT_EQ(match({folder / "l.png", folder / "r.png", "-o", folder / "d.pfm", "--model",
                   folder / "bad.png"})
                .code,
            4);
  EXPECT_EQ(read_file(folder / "d.pfm"), "an older result");
  // Inputs are never written over.
  const std::string before = read_file(folder / "l.png");
  const Outcome run = match({folder / "l.png", folder / "r.png", "-o", folder / "l.png"});
  EXPECT_EQ(run.code, 2);
  EXPECT_TRUE(contains(run.err, "is an input")) << run.err;
  EXPECT_EQ(read_file(folder / "l.png"), before);
  EXPECT_EQ(names_in(folder.path()),
            (std::vector<std::string>{"bad.png", "d.pfm", "l.png", "r.png"}));
}

// The process ends after the message; it used to hang in the exit handlers of a BLAS.
TEST(Command, OutOfMemory) {
  if (kSanitized)
    GTEST_SKIP() << "skipped: sanitizers need more address space than is allowed here";
  TempFolder folder;
  write_image(folder / "l.png", Image(4000, 3000).view());
  write_image(folder / "r.png", Image(4000, 3000).view());
  const std::string line = fmt::format(
      "ulimit -v 700000; exec timeout 300 {} match {} {} -o {} --model formula:fast --scale 1 -j 1",
      NMRF_COMMAND, (folder / "l.png").string(), (folder / "r.png").string(),
      (folder / "d.pfm").string());
  const Outcome run = nmrf({"-c", line}, {.program = "/bin/sh"});
  EXPECT_EQ(run.code, 5) << run.err;
  EXPECT_TRUE(contains(run.err, "not enough memory")) << run.err;
  EXPECT_FALSE(fs::exists(folder / "d.pfm"));
}

TEST(Command, AFullStdoutIsAFailure) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "skipped: no /dev/full";
  TempFolder folder;
  write_file(folder / "go.sh", "exec '" NMRF_COMMAND "' info --preset fast > /dev/full\n");
  const int status = std::system(("sh " + (folder / "go.sh").string() + " 2>/dev/null").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace nmrf::test
