"""The page around the sections: one file that loads nothing, light or dark as its reader has it.

Its content policy lets it load nothing, so that a name from a log could not either, if one ever
came through unescaped.
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
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1080px;
margin:0 auto;padding:1.5rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.25rem;margin:2.5rem 0 .5rem;border-bottom:1px solid
var(--line)}h3{font-size:1rem;margin:1rem 0 .25rem}p{margin:.4rem 0}.dim,.none{color:var(--dim)}
dl{display:flex;flex-wrap:wrap;gap:.75rem 2rem;margin:1rem 0}dt{color:var(--dim);font-size:.85rem}
dd{margin:0;font-size:1.15rem}
figure{margin:.75rem 0}.few{display:grid;grid-template-columns:repeat(auto-fill,minmax(440px,1fr));
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
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;margin:.5rem 0;width:100%}
caption{text-align:left;color:var(--dim);padding:.25rem 0}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
td:last-child:not(.n):not(:empty){min-width:18rem}
th{background:var(--soft)}th button{all:unset;cursor:pointer;font-weight:600}
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
"""

_TYPED: Final = re.compile("`([^`]*)`")
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(title: str, made: str, sections: Sequence[str]) -> str:
    """The document; title and ``made`` (when, and of what) are text, sections HTML."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>"
        f'<main><h1>{escape(title)}</h1><p class="dim">{escape(made)}</p>\n'
        + "\n".join(sections)
        + f"\n</main><script>{_SCRIPT}</script></body></html>\n"
    )


def section(heading: str, *parts: str) -> str:
    """A section of the page; its heading is text, its parts are HTML."""
    return f"<section><h2>{escape(heading)}</h2>{''.join(parts)}</section>"


def said(text: str) -> str:
    """A paragraph of text; what is between backticks is to be typed."""
    marked = _TYPED.sub(r"<code>\1</code>", escape(text))
    return f"<p>{marked}</p>"


def figure(caption: str, drawn: str) -> str:
    """A plot under its caption, which is text."""
    return f"<figure><figcaption><h3>{escape(caption)}</h3></figcaption>{drawn}</figure>"


def few(figures: Sequence[str]) -> str:
    """Figures side by side where there is room."""
    return f'<div class="few">{"".join(figures)}</div>' if figures else ""
