// Style and script of the HTML report, kept apart from what fills it.
#pragma once

namespace nmrf {

inline constexpr const char* kReportStyle = R"css(
:root { color-scheme: light dark; --line: #8885; --soft: #8881; --accent: #2563eb; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1500px; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .3rem; padding-top: .8rem; border-top: 2px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p.note { margin: .2rem 0 .8rem; opacity: .8; max-width: 60rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .55rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { background: var(--soft); text-align: right; vertical-align: bottom; position: relative; }
th small { display: block; font-weight: normal; opacity: .7; }
th.text, td.text { text-align: left; }
table.sortable th { cursor: pointer; user-select: none; }
table.sortable th:hover { color: var(--accent); }
th[aria-sort]::after { position: absolute; top: 0; right: .1rem; font-size: .75em; color: var(--accent); }
th[aria-sort=ascending]::after { content: "\2191"; }
th[aria-sort=descending]::after { content: "\2193"; }
tbody tr:hover { background: var(--soft); }
a { color: var(--accent); text-decoration: none; }
dl.about { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .6rem 0; }
dl.about dt { opacity: .7; }
dl.about dd { margin: 0; overflow-wrap: anywhere; }
.charts { display: flex; flex-wrap: wrap; gap: 1.5rem; }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .85rem; margin: .2rem 0; }
.legend i { display: inline-block; width: 1rem; height: .7rem; margin-right: .35rem; border: 1px solid #0003; }
section.image { margin: 1.1rem 0; padding: .7rem .8rem; border: 1px solid var(--line); border-radius: .4rem; }
section.image h4 { margin: 0 0 .4rem; font-size: .95rem; }
.pictures { display: grid; grid-template-columns: calc(25% - .45rem) 1fr; gap: .6rem; align-items: start; }
.views, .maps { display: grid; gap: .6rem; }
.maps { grid-template-columns: repeat(3, 1fr); }
@media (max-width: 60rem) { .pictures { grid-template-columns: 1fr; } .views { grid-template-columns: 1fr 1fr; } }
figure { margin: 0; }
figure img { display: block; width: 100%; background: #000; }
figcaption { font-size: .8rem; opacity: .8; }
pre { white-space: pre-wrap; }
.failed { color: #b91c1c; }
)css";

inline constexpr const char* kReportScript = R"js(
document.querySelectorAll("table.sortable").forEach(table => {
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, i) => {
    const text = row.cells[i].dataset.value ?? row.cells[i].textContent;
    const number = parseFloat(text);
    return heads[i].classList.contains("text") ? text : (isNaN(number) ? -Infinity : number);
  };
  heads.forEach((head, i) => head.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") === "descending";
    heads.forEach(h => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const x = value(a, i), y = value(b, i);
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
    });
    rows.forEach(row => table.tBodies[0].appendChild(row));
  }));
});
)js";

}  // namespace nmrf
