// The curves of runs as a sheet of charts. No tensors here.
#pragma once

#include <string>
#include <vector>

#include "plot/chart.h"
#include "plot/run_log.h"

namespace nmrf {

struct RunPlotOptions {
  std::vector<std::string> curves{};      // names in the log; empty: the usual ones; "all"
  std::vector<std::string> log_curves{};  // those with a logarithmic scale; "all"
  double smooth = 0;                      // weight of the moving average, see smoothed()
  double from = 0;                        // updates to show
  double to = 0;                          // 0: to the end
};

// One panel a curve. Training is a line, validation a line with points, both in the colour of
// their run; smoothed lines have the raw ones faintly behind them. Throws Error(kUsage) for a curve
// that no run has and names those there are.
ChartSheet run_sheet(const std::vector<RunLog>& runs, const RunPlotOptions& options);

}  // namespace nmrf
