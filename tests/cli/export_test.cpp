// nmrf export from outside.
#include <gtest/gtest.h>

#include "cli/run.h"
#include "core/file.h"

namespace nmrf::test {
namespace {

TEST(Export, WritesAFile) {
  TempFolder folder;
  const std::string file = folder / "small.onnx";
  const Outcome run = nmrf({"export", file, "--model", "formula:fast", "--size", "96x64"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "small.onnx: written, "));
  EXPECT_TRUE(contains(run.out, "opset 17, 96x64")) << run.out;
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"small.onnx"});
  const std::string bytes = read_file(file);
  for (const std::string part : {"left", "right", "guide", "disparity", "confidence",
                                 "refinement.layers.0.nmp.qkv.weight", "options"})
    EXPECT_TRUE(contains(bytes, part)) << part;

  const Outcome half =
      nmrf({"export", folder / "half.onnx", "--model", "formula:fast", "--size", "96x64", "--half",
            "--no-guide", "--input", "uint8", "--max-disp", "100"});
  ASSERT_EQ(half.code, 0) << half.err;
  EXPECT_LT(fs::file_size(folder / "half.onnx"), 0.65 * double(fs::file_size(file)));
  EXPECT_FALSE(contains(read_file(folder / "half.onnx"), "guide_nearest"));

  const Outcome free = nmrf({"export", folder / "free.onnx", "--model", "formula:fast", "--dynamic",
                             "--size", "640x480", "--set", "seeds.labels=2"});
  ASSERT_EQ(free.code, 0) << free.err;
  EXPECT_TRUE(contains(free.out, "any size")) << free.out;
}

TEST(Export, Mistakes) {
  TempFolder folder;
  const std::string out = folder / "x.onnx";
  write_file(folder / "not.pth", "no weights at all");
  struct Case {
    std::vector<std::string> arguments;
    int code;
    std::string says;
  };
  const std::vector<Case> cases{
      {{}, 2, "OUT"},
      {{folder / "x.pb"}, 2, "change the extension"},
      {{out, "--size", "640"}, 2, "640"},
      {{out, "--size", "31x64"}, 2, "32"},
      {{out, "--size", "99999x64"}, 2, "16384"},
      {{out, "--opset", "12"}, 2, "13 to 17"},
      {{out, "--opset", "99"}, 2, "13 to 17"},
      {{out, "--input", "double"}, 2, "uint8"},
      {{out, "--model", "formula:swin", "--opset", "14"}, 2, "16 or more"},
      {{out, "--model", "formula:paper", "--no-guide"}, 2, "takes no guide"},
      {{out, "--model", "formula:none"}, 2, "none"},
      {{out, "--model", folder / "absent.pth"}, 4, "absent.pth"},
      {{out, "--model", folder / "not.pth"}, 4, "not.pth"},
      {{out, "--model", "formula:fast", "--set", "seeds.labels=9"}, 4, "seeds.labels"},
      {{out, "--set", "inference.layers=9"}, 4, "needs weights that this model does not have"},
      {{out, "--model", "formula:fast", "--set", "nothing=9"}, 2, "nothing"},
      {{folder / "no/such/x.onnx", "--model", "formula:fast"}, 1, "no/such"},
  };
  for (const auto& item : cases) {
    std::vector<std::string> line{"export"};
    line.insert(line.end(), item.arguments.begin(), item.arguments.end());
    const Outcome run = nmrf(line);
    EXPECT_EQ(run.code, item.code) << item.says << ": " << run.err;
    EXPECT_TRUE(contains(run.err, item.says)) << item.says << ": " << run.err;
  }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"not.pth"});
}

}  // namespace
}  // namespace nmrf::test
