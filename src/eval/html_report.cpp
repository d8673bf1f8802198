#include "eval/html_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/check.h"
#include "core/file.h"
#include "core/markup.h"
#include "eval/html_page.h"
#include "eval/summary.h"
#include "viz/error_map.h"

namespace nmrf {
namespace {

constexpr const char* kColors[] = {"#2563eb", "#ea580c", "#16a34a", "#9333ea", "#dc2626", "#0891b2",
                                   "#ca8a04", "#db2777", "#4b5563", "#65a30d", "#0f766e", "#7c2d12",
                                   "#1e3a8a", "#a78bfa", "#f472b6", "#000000"};

const char* color_of(std::size_t method) { return kColors[method % std::size(kColors)]; }

std::string cell(const std::string& text, bool left = false, const char* tag = "td") {
  return fmt::format("<{0}{1}>{2}</{0}>", tag, left ? " class=\"text\"" : "", html_text(text));
}

std::string embedded(const std::filesystem::path& file, const std::string& caption) {
  const std::string type = file.extension() == ".png" ? "png" : "jpeg";
  return fmt::format(
      "<figure><img loading=\"lazy\" alt=\"{0}\" src=\"data:image/{1};base64,{2}\">"
      "<figcaption>{0}</figcaption></figure>\n",
      html_text(caption), type, base64(read_file(file, ErrorKind::kInput, 64u << 20)));
}

std::string method_legend(const SetResults& results) {
  std::string html = "<div class=\"legend\">";
  for (std::size_t m = 0; m < results.methods.size(); ++m)
    html += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", color_of(m),
                        html_text(results.methods[m].method));
  return html + "</div>";
}

// Lines in a frame: one a method, each point (x, y) in 0..1 of the frame.
struct Chart {
  std::string title;
  std::vector<std::vector<std::pair<double, double>>> lines;
  std::vector<std::pair<double, std::string>> ticks;  // x in 0..1
  std::string top;                                    // what y = 1 means
};

std::string svg(const Chart& chart) {
  constexpr double kWidth = 460, kHeight = 200, kLeft = 54, kTop = 16, kBottom = 24, kRight = 10;
  const double w = kWidth - kLeft - kRight, h = kHeight - kTop - kBottom;
  std::string html = fmt::format(
      "<figure><svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "aria-label=\"{2}\">",
      kWidth, kHeight, html_text(chart.title));
  for (const auto& [x, text] : chart.ticks)
    html += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#8884\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>",
        kLeft + x * w, kTop, kTop + h, kTop + h + 15, html_text(text));
  html += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#8888\"/>"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">0</text>",
      kLeft, kTop, w, h, kLeft - 5, kTop + 9, html_text(chart.top), kLeft - 5, kTop + h);
  for (std::size_t m = 0; m < chart.lines.size(); ++m) {
    if (chart.lines[m].empty()) continue;
    html += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" points=\"",
                        color_of(m));
    for (const auto& [x, y] : chart.lines[m])
      html += fmt::format("{:.1f},{:.1f} ", kLeft + x * w, kTop + (1 - y) * h);
    html += "\"/>";
  }
  return html + fmt::format("</svg><figcaption>{}</figcaption></figure>\n", html_text(chart.title));
}

// Steps of a histogram; `shares` of each method over equal bars.
void add_steps(Chart& chart, const std::vector<std::vector<double>>& shares) {
  double most = 0;
  for (const auto& method : shares)
    for (double share : method) most = std::max(most, share);
  chart.top = fmt::format("{:.1f} %", 100 * most);
  for (const auto& method : shares) {
    chart.lines.emplace_back();
    for (std::size_t i = 0; i < method.size() && most > 0; ++i) {
      const double n = static_cast<double>(method.size());
      chart.lines.back().push_back({static_cast<double>(i) / n, method[i] / most});
      chart.lines.back().push_back({static_cast<double>(i + 1) / n, method[i] / most});
    }
  }
}

std::string error_chart(const SetResults& results, const std::string& region) {
  constexpr int kJoined = 4, kBars = 54;  // up to 64 px; what lies beyond joins the last bar
  Chart chart;
  chart.title = "Errors of region " + region + ", px: share of the pixels";
  std::vector<std::vector<double>> shares;
  for (const auto& method : results.methods) {
    ErrorHistogram all;
    for (const auto& image : method.images)
      if (const auto found = image.regions.find(region); found != image.regions.end())
        all.merge(found->second.histogram);
    std::vector<double> bars(kBars, 0);
    const auto total = static_cast<double>(std::max<std::int64_t>(1, all.total()));
    for (std::size_t bin = 0; bin < all.counts().size(); ++bin)
      bars[std::min<std::size_t>(bin / kJoined, kBars - 1)] +=
          static_cast<double>(all.counts()[bin]) / total;
    shares.push_back(std::move(bars));
  }
  add_steps(chart, shares);
  for (double error : {0.125, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0})
    chart.ticks.push_back(
        {24 * std::log2(1 + 8 * error) / (kJoined * kBars), fmt::format("{:g}", error)});
  return svg(chart);
}

std::string winner_chart(const SetResults& results) {
  Chart chart;
  chart.title = "Probability of the chosen label: share of the pixels";
  std::vector<std::vector<double>> shares;
  bool any = false;
  for (const MethodSummary& method : summarise_methods(results)) {
    const std::int64_t total = method.winners.total();
    shares.emplace_back();  // stays empty, without a line, where there are no probabilities
    if (total == 0) continue;
    any = true;
    for (std::int64_t count : method.winners.counts)
      shares.back().push_back(static_cast<double>(count) / static_cast<double>(total));
  }
  if (!any) return "";
  add_steps(chart, shares);
  for (double p : {0.0, 0.25, 0.5, 0.75, 1.0}) chart.ticks.push_back({p, fmt::format("{:g}", p)});
  return svg(chart);
}

std::string summary_table(const SetResults& results) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>" + cell("region", true, "th") +
                     cell("method", true, "th") + cell("images", false, "th");
  for (const auto& name : results.set.protocol.columns) {
    const Metric& metric = find_metric(name);
    html += fmt::format("<th title=\"{}\">{}<small>{}</small></th>", html_text(metric.definition),
                        html_text(metric.name), metric.unit);
  }
  html += "</tr></thead><tbody>\n";
  for (const SummaryRow& row : summarise(results)) {
    html +=
        "<tr>" + cell(row.region, true) + cell(row.method, true) + cell(std::to_string(row.images));
    for (const auto& name : results.set.protocol.columns)
      html += cell(number_text(row.values.at(name), find_metric(name).unit));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string side_by_side(const SetResults& results) {
  const auto methods = summarise_methods(results);
  bool labels = false;
  for (const auto& method : methods) labels = labels || method.proposals.modals > 0;
  std::string html = "<div class=\"scroll\"><table><thead><tr>" + cell("method", true, "th") +
                     cell("time, median [s]", false, "th");
  if (labels)
    for (const char* title : {"labels < 3 px [%]", "labels < 8 px [%]", "best label EPE [px]",
                              "seeds < 8 px [%]", "seeds < 16 px [%]"})
      html += cell(title, false, "th");
  html += "</tr></thead><tbody>\n";
  for (const auto& method : methods) {
    const ProposalStats& p = method.proposals;
    html += "<tr>" + cell(method.method, true) + cell(fmt::format("{:.3f}", method.median_seconds));
    if (labels)
      html += cell(number_text(p.label_recall(0), "%")) +
              cell(number_text(p.label_recall(1), "%")) +
              cell(number_text(p.best_label_epe(), "px")) +
              cell(number_text(p.seed_recall(0), "%")) + cell(number_text(p.seed_recall(1), "%"));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

// One image of the set as seen by all methods.
struct ImageRow {
  std::string name;
  std::vector<const ImageResult*> methods;  // null: not there
  double worst = 0;                         // headline value of the first method that has it
};

std::vector<ImageRow> rows_of(const SetResults& results, const std::string& region) {
  const Metric& metric = find_metric(results.set.protocol.headline);
  std::map<std::string, std::size_t> index;
  std::vector<ImageRow> rows;
  for (std::size_t m = 0; m < results.methods.size(); ++m)
    for (const auto& image : results.methods[m].images) {
      auto [place, added] = index.emplace(image.name, rows.size());
      if (added) {
        rows.push_back({image.name, std::vector<const ImageResult*>(results.methods.size()), 0});
        if (const auto found = image.regions.find(region); found != image.regions.end())
          rows.back().worst = metric.value(found->second);
        if (std::isnan(rows.back().worst)) rows.back().worst = -1;
      }
      rows[place->second].methods[m] = &image;
    }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ImageRow& a, const ImageRow& b) { return a.worst > b.worst; });
  return rows;
}

std::string anchor(const SetResults& results, const std::string& name) {
  return html_text(file_name_for(results.set.label) + "--" + file_name_for(name));
}

std::string image_table(const SetResults& results, const std::vector<ImageRow>& rows,
                        const std::string& region, std::size_t shown) {
  std::string html = "<div class=\"scroll\"><table class=\"sortable\"><thead><tr>" +
                     cell("image", true, "th") + cell("method", true, "th");
  for (const auto& name : results.set.protocol.columns) {
    const Metric& metric = find_metric(name);
    const bool sorted = name == results.set.protocol.headline;
    html +=
        fmt::format("<th title=\"{}\"{}>{}<small>{}</small></th>", html_text(metric.definition),
                    sorted ? " aria-sort=\"descending\"" : "", html_text(metric.name), metric.unit);
  }
  html += cell("time [s]", false, "th") + "</tr></thead><tbody>\n";
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t m = 0; m < rows[r].methods.size(); ++m) {
      const ImageResult* image = rows[r].methods[m];
      if (!image) continue;
      const std::string name = html_text(image->name);
      html += r < shown ? fmt::format("<tr><td class=\"text\"><a href=\"#{}\">{}</a></td>",
                                      anchor(results, image->name), name)
                        : fmt::format("<tr><td class=\"text\">{}</td>", name);
      html += cell(results.methods[m].method, true);
      const auto found = image->regions.find(region);
      for (const auto& column : results.set.protocol.columns) {
        const Metric& metric = find_metric(column);
        html += cell(found == image->regions.end()
                         ? "n/a"
                         : number_text(metric.value(found->second), metric.unit));
      }
      html += cell(fmt::format("{:.3f}", image->seconds)) + "</tr>\n";
    }
  return html + "</tbody></table></div>\n";
}

std::string image_sections(const SetResults& results, const std::vector<ImageRow>& rows,
                           const std::string& region, std::size_t shown) {
  const Metric& metric = find_metric(results.set.protocol.headline);
  std::string html;
  for (std::size_t r = 0; r < std::min(shown, rows.size()); ++r) {
    html += fmt::format("<section class=\"image\" id=\"{}\"><h4>{}</h4>\n",
                        anchor(results, rows[r].name), html_text(rows[r].name));
    html += "<div class=\"pictures\"><div class=\"views\">";
    const auto first = std::find_if(rows[r].methods.begin(), rows[r].methods.end(),
                                    [](const ImageResult* image) { return image != nullptr; });
    // The picture, or an empty place that keeps the columns in line.
    auto show = [&](const ImageResult& image, const char* kind, const std::string& caption) {
      const auto found = image.pictures.find(kind);
      html += found == image.pictures.end() ? "<span></span>" : embedded(found->second, caption);
    };
    show(**first, "left", "left view");
    show(**first, "truth", "true disparity");
    html += "</div><div class=\"maps\">";
    for (std::size_t m = 0; m < rows[r].methods.size(); ++m) {
      const ImageResult* image = rows[r].methods[m];
      if (!image) continue;
      const std::string& method = results.methods[m].method;
      std::string value;
      if (const auto found = image->regions.find(region); found != image->regions.end())
        value = fmt::format(", {} {} {}", metric.name,
                            number_text(metric.value(found->second), metric.unit), metric.unit);
      show(*image, "disparity", method + ": disparity");
      show(*image, "error", method + ": error" + value);
      show(*image, "best", method + ": error of the best candidate label");
    }
    html += "</div></div>\n";
    html += "</section>\n";
  }
  return html;
}

std::string error_legend() {
  std::string html =
      "<div class=\"legend\"><span>errors in px (beyond 60 px of truth, 3 px "
      "stand for 5 % of it):</span>";
  double n = 0.0625;
  std::string from = "0";
  for (int step = 0; step < 10; ++step, n *= 2) {
    const auto c = kitti_error_color(static_cast<float>(n * 0.75));
    const std::string to = fmt::format("{:g}", 3 * n);
    html += fmt::format("<span><i style=\"background:rgb({},{},{})\"></i>{}</span>", c[0], c[1],
                        c[2], step < 9 ? from + "–" + to : from + " or more");
    from = to;
  }
  return html + "<span>half as bright: occluded; black: no truth</span></div>\n";
}

std::string set_html(const SetResults& results, const HtmlReportOptions& options) {
  std::string region = results.set.protocol.headline_region;
  const auto summary = summarise(results, true);
  if (std::none_of(summary.begin(), summary.end(),
                   [&](const SummaryRow& row) { return row.region == region; }))
    region = "all";
  std::string html =
      fmt::format("<h2 id=\"{0}\">{0}</h2>\n<p class=\"note\">{1} image{3}. {2}</p>\n",
                  html_text(results.set.label), results.images, html_text(describe(results)),
                  results.images == 1 ? "" : "s");
  html += summary_table(results);
  for (const auto& method : results.methods) {
    if (method.missing > 0)
      html += fmt::format("<p class=\"failed\">{}: {} images are not there yet</p>\n",
                          html_text(method.method), method.missing);
    for (const auto& image : method.failed)
      html += fmt::format("<p class=\"failed\">{}: {} failed: {}</p>\n", html_text(method.method),
                          html_text(image.name), html_text(image.error));
  }
  html += "<h3>Time and proposals</h3>\n" + side_by_side(results);
  html += "<h3>Histograms</h3>\n" + method_legend(results) + "<div class=\"charts\">" +
          error_chart(results, region) + winner_chart(results) + "</div>\n";
  const auto rows = rows_of(results, region);
  bool pictures = false;
  for (const auto& row : rows)
    for (const ImageResult* image : row.methods) pictures |= image && !image->pictures.empty();
  const std::size_t shown = pictures ? options.pictures : 0;
  html += fmt::format("<h3>Image by image, region {} (click a heading to sort)</h3>\n",
                      html_text(region));
  html += image_table(results, rows, region, shown);
  if (shown > 0) {
    html += fmt::format("<h3>Pictures{}</h3>\n",
                        shown < rows.size() ? fmt::format(" of the worst {}", shown) : "");
    html += error_legend() + image_sections(results, rows, region, shown);
  }
  return html;
}

std::string about_html(const nlohmann::json& about) {
  auto text = [](const nlohmann::json& value) {
    const auto replace = nlohmann::json::error_handler_t::replace;
    return html_text(value.is_string() ? value.get<std::string>()
                                       : value.dump(-1, ' ', false, replace));
  };
  std::string html = "<dl class=\"about\">\n";
  for (const auto& [key, value] : about.items()) {
    html += fmt::format("<dt>{}</dt><dd>", html_text(key));
    if (!value.is_object()) html += text(value);
    for (auto item = value.begin(); value.is_object() && item != value.end(); ++item) {
      html += html_text(item.key()) + ": ";
      if (!item->is_object()) html += text(*item);
      for (auto part = item->begin(); item->is_object() && part != item->end(); ++part)
        html += fmt::format("{}{} {}", part == item->begin() ? "" : ", ", html_text(part.key()),
                            text(part.value()));
      html += "<br>";
    }
    html += "</dd>\n";
  }
  return html + "</dl>\n";
}

}  // namespace

std::string html_report(const std::vector<SetResults>& results, const nlohmann::json& about,
                        const HtmlReportOptions& options) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<title>{0}</title><style>{1}</style></head><body>\n<h1>{0}</h1>\n",
      html_text(options.title), kReportStyle);
  html += about_html(about);
  html += "<p>";
  for (const auto& set : results)
    html += fmt::format("<a href=\"#{0}\">{0}</a> &nbsp; ", html_text(set.set.label));
  html += "<a href=\"#definitions\">definitions</a></p>\n";
  for (const auto& set : results) html += set_html(set, options);
  html += "<h2 id=\"definitions\">Definitions</h2>\n<pre>" + html_text(definitions(results)) +
          "</pre>\n";
  return html + "<script>" + kReportScript + "</script>\n</body></html>\n";
}

}  // namespace nmrf
