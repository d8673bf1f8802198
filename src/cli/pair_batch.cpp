#include "cli/pair_batch.h"

#include <fmt/ranges.h>

#include "core/check.h"
#include "core/log.h"

namespace nmrf::cli {

void PairBatch::process(const InputPair& pair, const std::string& line, const Work& work,
                        const Print& print_report) {
  progress_.show(line);
  nlohmann::json report;
  try {
    if (pair.error) throw Error(*pair.error);
    report = work();
    ++done_;
  } catch (const Error& error) {
    if (!many_ || error.kind() != ErrorKind::kInput) throw;
    progress_.clear();
    log_warning("{}", error.what());
    failed_.push_back(pair.left_name);
    report = {{"left", pair.left_name}, {"right", pair.right_name}, {"error", error.what()}};
  }
  progress_.clear();
  if (json_)
    print_json(report);
  else if (!report.contains("error"))
    print_report(pair, report);
}

void PairBatch::check_all_done() const {
  check(failed_.empty(), ErrorKind::kInput, "{} of {} pairs failed:\n  {}", failed_.size(),
        done_ + static_cast<std::int64_t>(failed_.size()), fmt::join(failed_, "\n  "));
}

}  // namespace nmrf::cli
