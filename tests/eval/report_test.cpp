// Tables, JSON, CSV and the HTML page.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/markup.h"
#include "eval/fakes.h"
#include "eval/html_report.h"
#include "eval/summary.h"
#include "support/support.h"

namespace nmrf {
namespace {

using test::ConstantMethod;
using test::contains;
using test::TempFolder;

class Report : public ::testing::Test {
 protected:
  Report() : set_(test::list_set(folder_.path(), 3)), ten_("ten", 10), odd_("<odd & \"x\">", 14) {
    RunOptions run;
    run.folder = out_.path();
    run.pictures = true;
    results_ = {evaluate(set_, {&ten_, &odd_}, run)};
  }
  TempFolder folder_, out_;
  EvalSet set_;
  ConstantMethod ten_, odd_;
  std::vector<SetResults> results_;
};

TEST_F(Report, TextSaysWhatWasCounted) {
  const std::string text = text_report(results_[0]);
  EXPECT_TRUE(contains(text, "mean of the images' own values"));
  EXPECT_TRUE(contains(text, "epe [px]"));
  EXPECT_TRUE(contains(text, "1.000"));
  const std::string meaning = definitions(results_);
  EXPECT_TRUE(contains(meaning, "error > 3 px and > 5 % of the truth"));
  EXPECT_TRUE(contains(meaning, "every pixel with known truth"));
  const std::string beside = ablation_report(results_[0]);
  EXPECT_TRUE(contains(beside, "0.250"));
  EXPECT_TRUE(contains(beside, "█"));
}

TEST_F(Report, JsonHoldsEverything) {
  auto json = nlohmann::json::parse(json_report(results_, {{"command", "x"}}).dump());
  EXPECT_EQ(json["run"]["command"], "x");
  const auto& set = json["sets"][0];
  EXPECT_NEAR(set["summary"]["ten"]["all"]["epe"].get<double>(), 1, 1e-6);
  EXPECT_EQ(set["per_image"]["ten"].size(), 3u);
  EXPECT_NEAR(set["per_image"]["ten"][2]["regions"]["all"]["epe"].get<double>(), 2, 1e-6);
  EXPECT_EQ(set["methods"]["ten"]["images"], 3);
  EXPECT_TRUE(json["definitions"].contains("d1"));
}

TEST_F(Report, CsvHasALineAnImage) {
  const std::string csv = csv_report(results_);
  std::vector<std::string> lines;
  std::size_t at = 0;
  while (at < csv.size()) {
    const auto end = csv.find('\n', at);
    lines.push_back(csv.substr(at, end - at));
    at = end + 1;
  }
  ASSERT_EQ(lines.size(), 1u + 2 + 6);
  EXPECT_TRUE(lines[0].starts_with("set,method,image,region,pixels,seconds,epe,rms"));
  EXPECT_TRUE(contains(csv, "\"<odd & \"\"x\"\">\""));
  for (const auto& line : lines) EXPECT_EQ(std::count(line.begin(), line.end(), ','), 24) << line;
}

TEST_F(Report, HtmlStandsAlone) {
  const std::string html = html_report(results_, {{"model", "a<b"}}, {});
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  // Nothing is fetched: every source is embedded, there are no links outwards.
  for (const char* outside : {"http:", "https:", "src=\"/", "url(", "<link", "@import"})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  int count = 0;
  for (auto at = html.find("<img"); at != std::string::npos; at = html.find("<img", at + 1)) {
    const std::string tag = html.substr(at, html.find('>', at) - at);
    count += contains(tag, "src=\"data:image/png;base64,") ||
             contains(tag, "src=\"data:image/jpeg;base64,");
  }
  EXPECT_EQ(count, 3 * (2 + 2 * 3));  // left and truth, then disparity, error, best of both methods
  EXPECT_EQ(html.find("<odd"), std::string::npos);
  EXPECT_TRUE(contains(html, "&lt;odd &amp; &quot;x&quot;&gt;"));
  EXPECT_TRUE(contains(html, "a&lt;b"));
  // Worst first: the first method is off by 2 px in the last image.
  EXPECT_LT(html.find("<h4>scene/left2"), html.find("<h4>scene/left1"));
  EXPECT_LT(html.find("<h4>scene/left1"), html.find("<h4>scene/left0"));
  EXPECT_EQ(html.find("nan"), std::string::npos);
}

TEST_F(Report, FewerPicturesWhenAsked) {
  HtmlReportOptions options;
  options.pictures = 1;
  const std::string html = html_report(results_, {}, options);
  EXPECT_TRUE(contains(html, "<h4>scene/left2"));
  EXPECT_EQ(html.find("<h4>scene/left1"), std::string::npos);
  EXPECT_TRUE(contains(html, "scene/left1"));  // still in the table
}

TEST(ReportParts, Base64) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64(std::string("\xff\x00\xfe\x80", 4)), "/wD+gA==");
}

TEST(ReportParts, Numbers) {
  EXPECT_EQ(number_text(std::nan(""), "px"), "n/a");
  EXPECT_EQ(number_text(INFINITY, "%"), "inf");
  EXPECT_EQ(number_text(1.23456, "px"), "1.235");
  EXPECT_EQ(number_text(1.23456, "%"), "1.23");
}

TEST(ReportParts, Table) {
  EXPECT_EQ(text_table({{"name", "x"}, {"a", "10"}}, 1), "name   x\na     10\n");
}

}  // namespace
}  // namespace nmrf
