// nmrf plot: the curves of training runs as a picture.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "cli/validators.h"
#include "core/check.h"
#include "core/file.h"
#include "plot/run_plot.h"

namespace nmrf::cli {

int cmd_plot(int argc, char** argv) {
  CLI::App app{
      "Plot training runs: losses, validation and learning rate over the updates.\n\n"
      "  nmrf plot runs/fast\n"
      "  nmrf plot runs/a runs/b -o compare.svg --smooth 0.9\n"
      "  nmrf plot runs/fast --curves loss,epe,lr --log loss,lr --from 1000\n",
      "nmrf plot"};
  std::vector<std::string> folders;
  std::string output, size;
  RunPlotOptions options;
  CommonOptions common;
  app.add_option("RUN", folders, "Run folders or their log.jsonl; several are overlaid")
      ->required();
  app.add_option("-o,--output", output, "PNG or SVG file to write [curves.png in the first run]");
  app.add_option("--curves", options.curves,
                 "Quantities to plot, separated by commas, e.g. loss,epe,lr; or all")
      ->delimiter(',');
  app.add_option("--log", options.log_curves,
                 "Quantities on a logarithmic scale, separated by commas; or all")
      ->delimiter(',');
  app.add_option("--smooth", options.smooth,
                 "Moving-average weight, 0 to below 1; the raw curve is drawn faintly")
      ->check(CLI::Range(0.0, 0.9999))
      ->capture_default_str();
  app.add_option("--from", options.from, "First update shown")->check(non_negative());
  app.add_option("--to", options.to, "Last update shown (0: the last)")->check(non_negative());
  app.add_option("--size", size, "Picture size WxH, pixels [1280 wide]");
  common.add_to(app);
  if (int code = parse(app, argc, argv); code >= 0) return code;
  common.apply();

  std::vector<RunLog> runs;
  for (const auto& folder : folders) runs.push_back(read_run_log(folder));
  if (output.empty()) {
    const std::filesystem::path first = folders[0];
    output = (std::filesystem::is_directory(first) ? first : first.parent_path()) / "curves.png";
  }
  const ChartSheet sheet = run_sheet(runs, options);
  cv::Size paper(1280, 0);
  if (size.empty()) {
    paper.height = sheet_height(sheet, paper.width);
  } else {
    const auto [width, height] = parse_size(size, 1);
    paper = {width, height};
  }
  auto canvas = make_canvas(output, paper);
  draw_sheet(*canvas, paper, sheet);
  write_file(output, canvas->bytes());
  print(output);
  return 0;
}

}  // namespace nmrf::cli
