"""The page around the sections: one file that loads nothing, light or dark by the user's setting.

Its content security policy forbids loading, so that a name from a log could not load anything even
if it were not escaped.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import Final

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1f2328;--dim:#59636e;--paper:#fff;--line:#d1d9e0;
--soft:#f6f8fa}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9198a1;--paper:#0d1117;--line:#3d444d;
--soft:#151b23}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1240px;
margin:0 auto;padding:.75rem 1.5rem 1.5rem}
.title{display:flex;flex-wrap:wrap;align-items:baseline;justify-content:space-between;gap:0 1rem}
h1{font-size:1.4rem;margin:0}h2{font-size:1.25rem;margin:2.5rem 0 .5rem;border-bottom:1px solid
var(--line)}h3{font-size:1rem;margin:1rem 0 .25rem}p{margin:.4rem 0;max-width:65rem}
.dim,.none{color:var(--dim)}
dl{display:flex;flex-wrap:wrap;gap:0 1.75rem;margin:.1rem 0 .6rem}dl div{display:flex;
gap:.4rem}dt{color:var(--dim)}dd{margin:0}
figure{margin:.75rem 0;max-width:1080px}.few figure{max-width:none}
.few{display:grid;grid-template-columns:repeat(auto-fill,minmax(440px,1fr));
gap:0 1.5rem}@media(max-width:560px){.few{grid-template-columns:1fr}}
svg{width:100%;height:auto;display:block;overflow:visible}
svg text{font:11px system-ui,sans-serif;fill:var(--dim);paint-order:stroke;stroke:var(--paper);
stroke-width:3px;stroke-linejoin:round}
.few svg text{font-size:14px}@media(max-width:560px){svg text,.few svg text{font-size:18px}}
code{font:.9em ui-monospace,monospace;background:var(--soft);padding:.1em .3em;border-radius:3px}
.grid{stroke:var(--line);fill:none}.mark{stroke:var(--dim);stroke-dasharray:4 3;fill:none}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
.band{fill:#56b4e9;fill-opacity:.25}
.s0{--c:#0072b2}.s1{--c:#d55e00}.s2{--c:#009e73}.s3{--c:#cc79a7}.s4{--c:#b37c00}.s5{--c:#56b4e9}
@media(prefers-color-scheme:dark){.s0{--c:#4aa3df}.s4{--c:#e69f00}}
.line{stroke:var(--c)}.bar,.dot{fill:var(--c)}
.s1.line{stroke-dasharray:7 3}.s2.line{stroke-dasharray:2 3}.s3.line{stroke-dasharray:9 3 2 3}
.s4.line{stroke-dasharray:4 2}.s5.line{stroke-dasharray:1 3}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1.2rem;list-style:none;margin:0;padding:0;
font-size:.85rem}.legend svg{display:inline-block;width:28px;height:8px;margin-right:.4rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:.6rem}
.card{border:1px solid var(--line);border-radius:6px;padding:.4rem .9rem .5rem}
.card h2{margin:0;font-size:1.05rem;border:0}.card h3{margin:.25rem 0 0;line-height:1.4;
font-size:.85rem;color:var(--dim);font-weight:600}.card p{margin:.2rem 0 0;font-size:.85rem}
.bars{list-style:none;margin:0;padding:0;font-size:.85rem;line-height:1.35}.bars li{display:flex;
flex-wrap:wrap;justify-content:space-between;gap:0 .75rem;padding:.1rem 0;overflow-wrap:anywhere}
.track{position:relative;flex:0 0 100%;height:6px;background:var(--soft);border-radius:3px}
.track i{position:absolute;top:0;bottom:0;background:#0072b2;border-radius:3px}
.track b{position:absolute;top:-2px;bottom:-2px;width:3px;background:var(--ink)}
details{margin:.5rem 0;border-top:1px solid var(--line)}summary{cursor:pointer;padding:.5rem 0}
summary h2{display:inline;margin:0;border:0;font-size:1.1rem}
.search{margin:1.25rem 0 .5rem}input{font:inherit;color:inherit;background:var(--paper);
border:1px solid var(--dim);border-radius:4px;padding:.25rem .5rem;max-width:100%}
#left-out{font-size:.85rem;color:var(--dim)}#left-out ul{margin:0;padding-left:1.25rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;margin:.5rem 0;width:100%}
caption{text-align:left;color:var(--dim);padding:.25rem 0}
th,td{padding:.25rem .35rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.n.long{white-space:normal}td:last-child:not(.n):not(:empty){min-width:7rem}
th{background:var(--soft)}th.n{white-space:normal}
th button{all:unset;cursor:pointer;font-weight:600}
th button:focus-visible{outline:2px solid #0072b2}
th[aria-sort=ascending] button::after{content:" \\25b2"}
th[aria-sort=descending] button::after{content:" \\25bc"}
"""

_SCRIPT: Final = """
document.querySelectorAll("th button").forEach(button => button.addEventListener("click", () => {
  const head = button.parentNode, at = head.cellIndex, body = head.closest("table").tBodies[0];
  const down = head.getAttribute("aria-sort") !== "descending";
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = row => {
    const data = row.cells[at].dataset;
    return data.v !== undefined ? data.v : data.n === undefined ? null : Number(data.n);
  };
  [...body.rows].sort((one, other) => {
    const a = value(one), b = value(other);
    if (a === null || b === null) return (a === null) - (b === null);
    const order = typeof a === "string" ? a.localeCompare(b) : a - b;
    return down ? -order : order;
  }).forEach(row => body.append(row));
}));
const search = document.querySelector(".search"), input = search.querySelector("input");
const parts = [...document.querySelectorAll("details")];
const where = document.getElementById("left-out") ? " in this page" : "";
search.addEventListener("submit", event => event.preventDefault());
input.addEventListener("input", () => {
  const query = input.value.trim().toLowerCase();
  let all = 0;
  for (const part of parts) {
    let found = 0;
    for (const row of part.querySelectorAll("tbody tr")) {
      const text = [...row.cells].map(cell => cell.textContent + " " + (cell.dataset.also || ""));
      row.hidden = !text.join(" ").toLowerCase().includes(query);
      found += !row.hidden;
    }
    all += found;
    part.open = query !== "" && found > 0;
  }
  search.querySelector("output").value = query && `${all} ${all === 1 ? "row" : "rows"}${where}`;
});
"""

_TYPED: Final = re.compile("`([^`]*)`")
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(title: str, made: str, sections: Sequence[str]) -> str:
    """Return the document; title and ``made`` are text, and sections are HTML."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>"
        f'<main><div class="title"><h1>{escape(title)}</h1>'
        f'<p class="dim">{escape(made)}</p></div>\n'
        + "\n".join(sections)
        + f"\n</main><script>{_SCRIPT}</script></body></html>\n"
    )


def section(heading: str, *parts: str) -> str:
    """Return a section below the first screen; its heading is text, and its parts are HTML."""
    return (
        f"<details><summary><h2>{escape(heading)}</h2></summary>"
        f"<section>{''.join(parts)}</section></details>"
    )


def searched(sections: Sequence[str], note: str = "") -> str:
    """Return sections below a search field; the note, in HTML, states what search can't find."""
    described = ' aria-describedby="left-out"' if note else ""
    field = (
        '<form class="search" role="search"><label>Find a tenant, a broker, a log dir '
        f'<input type="search" autocomplete="off"{described}></label> <output></output>'
        + (f'<div id="left-out">{note}</div>' if note else "")
        + "</form>"
    )
    return field + "".join(sections)


def card(question: str, *parts: str) -> str:
    """Return a card of the first screen; its question is text, and its parts are HTML."""
    return f'<section class="card"><h2>{escape(question)}</h2>{"".join(parts)}</section>'


def cards(items: Sequence[str]) -> str:
    """Return cards, two side by side if there is room."""
    return f'<div class="cards">{"".join(items)}</div>'


def paragraph(text: str) -> str:
    """Return a paragraph of text; words between backticks become code."""
    marked = _TYPED.sub(r"<code>\1</code>", escape(text))
    return f"<p>{marked}</p>"


def figure(caption: str, drawn: str) -> str:
    """Return a plot with a caption, which is text."""
    return f"<figure><figcaption><h3>{escape(caption)}</h3></figcaption>{drawn}</figure>"


def few(figures: Sequence[str]) -> str:
    """Return figures, side by side if there is room."""
    return f'<div class="few">{"".join(figures)}</div>' if figures else ""
