// Runs over small data sets: results, resuming, sharing, failures.
#include "eval/runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "eval/fakes.h"
#include "eval/summary.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::ConstantMethod;
using test::contains;
using test::TempFolder;

// Sets an environment variable for one test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

double value_of(const SetResults& results, const std::string& method, const std::string& metric) {
  for (const SummaryRow& row : summarise(results))
    if (row.method == method && row.region == "all") return row.values.at(metric);
  return -1;
}

TEST(Runner, EvaluatesEveryMethodOnEveryImage) {
  TempFolder folder;
  EvalSet set = test::list_set(folder.path(), 3);
  ConstantMethod ten("ten", 10), twelve("twelve", 12);
  SetResults results = evaluate(set, {&ten, &twelve}, {});
  ASSERT_EQ(results.methods.size(), 2u);
  EXPECT_EQ(results.methods[0].images.size(), 3u);
  EXPECT_TRUE(results.complete());
  EXPECT_EQ(ten.calls, 3);
  EXPECT_NEAR(value_of(results, "ten", "epe"), 1, 1e-6);     // 0, 1, 2
  EXPECT_NEAR(value_of(results, "twelve", "epe"), 1, 1e-6);  // 2, 1, 0
  EXPECT_NEAR(value_of(results, "ten", "bad1"), 100 / 3.0, 1e-6);
  EXPECT_EQ(results.methods[0].images[1].regions.at("all").pixels, 24 * 16 - 1);
  EXPECT_EQ(results.methods[0].images[2].name, "scene/left2");
}

TEST(Runner, FinishedImagesAreNotRunAgain) {
  TempFolder folder, out;
  EvalSet set = test::list_set(folder.path(), 4);
  RunOptions run;
  run.folder = out.path();
  run.count = 2;
  ConstantMethod method("m", 10);
  SetResults part = evaluate(set, {&method}, run);
  EXPECT_EQ(part.images, 2u);
  EXPECT_EQ(method.calls, 2);
  run.count = SIZE_MAX;
  SetResults all = evaluate(set, {&method}, run);
  EXPECT_EQ(method.calls, 4);
  EXPECT_EQ(all.methods[0].images.size(), 4u);
  SetResults plain = evaluate(set, {&method}, {});
  EXPECT_EQ(method.calls, 8);
  EXPECT_EQ(value_of(all, "m", "epe"), value_of(plain, "m", "epe"));
  EXPECT_EQ(value_of(all, "m", "a90"), value_of(plain, "m", "a90"));
}

TEST(Runner, OtherWeightsOrOptionsStartAnew) {
  TempFolder folder, out;
  EvalSet set = test::list_set(folder.path(), 2);
  RunOptions run;
  run.folder = out.path();
  ConstantMethod one("m", 10), other("m", 11);
  evaluate(set, {&one}, run);
  SetResults results = evaluate(set, {&other}, run);
  EXPECT_EQ(other.calls, 2);
  EXPECT_NEAR(value_of(results, "m", "epe"), 0.5, 1e-6);
  set.protocol.metrics.max_disparity = 10.5;
  results = evaluate(set, {&other}, run);
  EXPECT_EQ(other.calls, 4);
  EXPECT_NEAR(value_of(results, "m", "epe"), 1, 1e-6);
}

TEST(Runner, DamagedResultsAreMadeAgain) {
  TempFolder folder, out;
  EvalSet set = test::list_set(folder.path(), 2);
  RunOptions run;
  run.folder = out.path();
  ConstantMethod method("m", 10);
  evaluate(set, {&method}, run);
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(out.path()))
    if (entry.path().extension() == ".json") {
      std::string text = read_file(entry.path());
      write_file(entry.path(), ++files == 1 ? text.substr(0, text.size() / 2) : "[]");
    }
  EXPECT_EQ(files, 2);
  test::Warnings warnings;
  SetResults results = evaluate(set, {&method}, run);
  EXPECT_EQ(method.calls, 4);
  EXPECT_EQ(warnings.texts().size(), 2u);
  EXPECT_EQ(results.methods[0].images.size(), 2u);
}

TEST(Runner, ProcessesShareTheWork) {
  TempFolder folder, out;
  EvalSet set = test::list_set(folder.path(), 5);
  RunOptions run;
  run.folder = out.path();
  run.shard = {1, 2};
  ConstantMethod first("m", 10), second("m", 10);
  SetResults part = evaluate(set, {&first}, run);
  EXPECT_EQ(first.calls, 2);  // images 1 and 3
  EXPECT_FALSE(part.complete());
  EXPECT_EQ(part.methods[0].missing, 3u);
  run.shard = {0, 2};
  SetResults whole = evaluate(set, {&second}, run);
  EXPECT_EQ(second.calls, 3);
  EXPECT_TRUE(whole.complete());
  ASSERT_EQ(whole.methods[0].images.size(), 5u);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(whole.methods[0].images[static_cast<std::size_t>(i)].name,
              "scene/left" + std::to_string(i));
  EXPECT_EQ(value_of(whole, "m", "epe"), value_of(evaluate(set, {&first}, {}), "m", "epe"));
  run.folder.clear();
  EXPECT_TRUE(contains(test::error_of(ErrorKind::kUsage, [&] { evaluate(set, {&first}, run); }),
                       "--output"));
}

TEST(Runner, ShardFromTheEnvironment) {
  EXPECT_EQ(Shard::from_environment().world, 1);
  Environment world("WORLD_SIZE", "3");
  {
    Environment rank("RANK", "2");
    EXPECT_EQ(Shard::from_environment().rank, 2);
  }
  Environment rank("RANK", "3");
  EXPECT_TRUE(
      contains(test::error_of(ErrorKind::kUsage, [] { Shard::from_environment(); }), "RANK is 3"));
  Environment wrong("RANK", "two");
  EXPECT_TRUE(
      contains(test::error_of(ErrorKind::kUsage, [] { Shard::from_environment(); }), "'two'"));
}

TEST(Runner, AFailedPairIsListedAndTriedAgain) {
  TempFolder folder, out;
  EvalSet set = test::list_set(folder.path(), 3);
  write_file(folder / "right1.png", "no picture");
  RunOptions run;
  run.folder = out.path();
  ConstantMethod a("a", 10), b("b", 11);
  test::Warnings warnings;
  SetResults results = evaluate(set, {&a, &b}, run);
  EXPECT_EQ(results.failures(), 2u);
  EXPECT_TRUE(results.complete());
  ASSERT_EQ(results.methods[0].failed.size(), 1u);
  EXPECT_EQ(results.methods[0].failed[0].name, "scene/left1");
  EXPECT_TRUE(contains(results.methods[0].failed[0].error, "right1.png"));
  EXPECT_EQ(results.methods[0].images.size(), 2u);
  EXPECT_TRUE(contains(text_report(results), "FAILED scene/left1"));
  test::put_image(folder / "right1.png", 7, 24, 16);
  results = evaluate(set, {&a, &b}, run);
  EXPECT_EQ(results.failures(), 0u);
  EXPECT_EQ(a.calls, 3);
  EXPECT_EQ(results.methods[1].images.size(), 3u);
}

TEST(Runner, AWrongModelEndsTheRun) {
  class Wrong : public ConstantMethod {
   public:
    Wrong() : ConstantMethod("wrong", 1) {}
    Prediction predict(const cv::Mat&, const cv::Mat&) const override {
      throw Error(ErrorKind::kModel, "no such weights");
    }
  };
  TempFolder folder;
  EvalSet set = test::list_set(folder.path(), 1);
  Wrong wrong;
  test::error_of(ErrorKind::kModel, [&] { evaluate(set, {&wrong}, {}); });
}

TEST(Runner, StopsWhenAsked) {
  TempFolder folder, out;
  EvalSet set = test::list_set(folder.path(), 4);
  RunOptions run;
  run.folder = out.path();
  int asked = 0;
  run.stop = [&] { return ++asked > 2; };
  ConstantMethod method("m", 10);
  SetResults results = evaluate(set, {&method}, run);
  EXPECT_EQ(method.calls, 2);
  EXPECT_EQ(results.methods[0].missing, 2u);
}

TEST(Runner, ProposalsAndWinners) {
  TempFolder folder;
  EvalSet set = test::list_set(folder.path(), 2);
  RunOptions run;
  run.modals = [](const Sample& sample) {
    cv::Mat modals(2, 3, CV_32FC4, cv::Scalar::all(std::nan("")));
    for (int i = 0; i < 6; ++i)
      modals.at<cv::Vec4f>(i / 3, i % 3)[0] = sample.disparity.at<float>(5, 5);
    return modals;
  };
  ConstantMethod method("m", 6);
  auto summary = summarise_methods(evaluate(set, {&method}, run));
  ASSERT_EQ(summary.size(), 1u);
  EXPECT_EQ(summary[0].proposals.modals, 12);
  EXPECT_EQ(summary[0].proposals.label_recall(0), 0);  // 4 and 5 px away
  EXPECT_EQ(summary[0].proposals.label_recall(1), 100);
  EXPECT_NEAR(summary[0].proposals.best_label_epe(), 4.5, 1e-6);
  EXPECT_EQ(summary[0].proposals.seed_recall(0), 100);  // seeds at 16: 6 and 5 px away
  EXPECT_EQ(summary[0].winners.total(), 2 * 24 * 16);
  EXPECT_EQ(summary[0].median_seconds, 0.25);
}

TEST(Runner, PicturesAreKept) {
  TempFolder folder, out;
  EvalSet set = test::list_set(folder.path(), 1);
  RunOptions run;
  run.folder = out.path();
  ConstantMethod method("m", 10);
  evaluate(set, {&method}, run);
  run.pictures = true;
  run.picture_width = 12;
  SetResults results = evaluate(set, {&method}, run);  // again, for the pictures
  EXPECT_EQ(method.calls, 2);
  const auto& pictures = results.methods[0].images[0].pictures;
  for (const char* kind : {"left", "truth", "disparity", "error", "best"}) {
    ASSERT_TRUE(pictures.contains(kind)) << kind;
    EXPECT_EQ(read_bgr(pictures.at(kind)).size(), cv::Size(12, 8));
  }
  evaluate(set, {&method}, run);
  EXPECT_EQ(method.calls, 2);
}

TEST(Results, FileNames) {
  EXPECT_EQ(file_name_for("a/b c.d"), "a%2Fb%20c.d");
  EXPECT_EQ(file_name_for("../x"), "%2E.%2Fx");
  EXPECT_NE(file_name_for("a%2Fb"), file_name_for("a/b"));
}

TEST(Protocol, FollowsTheBenchmarks) {
  EXPECT_EQ(default_protocol("sceneflow").metrics.max_disparity, 192);
  EXPECT_EQ(default_protocol("kitti2012").metrics.aggregation, Aggregation::kImages);
  EXPECT_EQ(default_protocol("kitti2015").metrics.aggregation, Aggregation::kPixels);
  EXPECT_EQ(default_protocol("kitti2015").metrics.holes, Holes::kFill);
  EXPECT_EQ(default_protocol("middlebury-h").metrics.aggregation, Aggregation::kWeighted);
  EXPECT_EQ(default_protocol("eth3d").metrics.holes, Holes::kExclude);
  for (const auto& name : dataset_names())
    for (const auto& column : default_protocol(name).columns) find_metric(column);
  EXPECT_EQ(scene_weight("middlebury-q", "PianoL"), 0.5);
  EXPECT_EQ(scene_weight("middlebury-q", "Piano"), 1);
  EXPECT_EQ(scene_weight("eth3d", "PianoL"), 1);
}

TEST(Protocol, Specifications) {
  TempFolder folder;
  test::put_image(folder / "Middlebury/2005/FullSize/Dolls/view1.png", 1, 40, 20);
  test::put_image(folder / "Middlebury/2005/FullSize/Dolls/view5.png", 2, 40, 20);
  test::put_integers(folder / "Middlebury/2005/FullSize/Dolls/disp1.png", 9, CV_8UC1, 40, 20);
  EvalSet set = open_eval_set("middlebury-2005:size=full", folder.path().string());
  EXPECT_EQ(set.label, "middlebury-2005-full");
  EXPECT_EQ(set.dataset->size(), 1u);
  EXPECT_TRUE(contains(
      test::error_of(ErrorKind::kUsage, [&] { open_eval_set("middlebury-2005:sise=full", "."); }),
      "sise"));
  test::error_of(ErrorKind::kUsage, [&] { open_eval_set("kitti2016", "."); });
}

TEST(Protocol, ZeroShotTakesWhatIsThere) {
  TempFolder folder;
  const auto kitti = folder / "KITTI/KITTI_2015/training";
  test::put_image(kitti / "image_2/000000_10.png", 1, 40, 20);
  test::put_image(kitti / "image_3/000000_10.png", 2, 40, 20);
  test::put_integers(kitti / "disp_occ_0/000000_10.png", 256 * 20, CV_16UC1, 40, 20);
  test::put_integers(kitti / "disp_noc_0/000000_10.png", 256 * 20, CV_16UC1, 40, 20);
  const auto middlebury = folder / "Middlebury/MiddEval3/trainingQ/Teddy";
  test::put_image(middlebury / "im0.png", 1, 40, 20);
  test::put_image(middlebury / "im1.png", 2, 40, 20);
  test::put_pfm(middlebury / "disp0GT.pfm", 20, 40, 20);
  test::put_integers(middlebury / "mask0nocc.png", 255, CV_8UC1, 40, 20);
  write_file(middlebury / "calib.txt", "ndisp=21\n");
  test::Warnings warnings;
  auto sets = open_zero_shot(folder.path().string());
  ASSERT_EQ(sets.size(), 4u);
  EXPECT_FALSE(sets[0].dataset);
  ASSERT_TRUE(sets[1].dataset && sets[2].dataset);
  EXPECT_EQ(sets[2].options.name, "middlebury-q");
  EXPECT_EQ(warnings.texts().size(), 2u);
  ConstantMethod method("m", 23.5f);
  std::vector<SetResults> results;
  for (const auto& set : sets)
    if (set.dataset) results.push_back(evaluate(set, {&method}, {}));
  const std::string report = zero_shot_report(results);
  EXPECT_TRUE(contains(report, "no data")) << report;
  EXPECT_TRUE(contains(report, "100.00"));  // 3.5 px at 20 px
  EXPECT_TRUE(contains(report, "0.00"));    // clipped to ndisp: 1 px
  EXPECT_TRUE(contains(report, "region noc"));
  TempFolder empty;
  test::error_of(ErrorKind::kInput, [&] { open_zero_shot(empty.path().string()); });
}

}  // namespace
}  // namespace nmrf
