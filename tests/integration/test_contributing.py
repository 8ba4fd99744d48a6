"""The example of CONTRIBUTING.md, "Add a test on a real broker", as it stands there."""

from tests.docs.markdown import ROOT

_PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_SECTION = _PAGE.partition("## Add a test on a real broker\n")[2]
_EXAMPLE = _SECTION.partition("```python\n")[2].partition("```")[0]

exec(_EXAMPLE)
