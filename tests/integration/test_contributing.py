"""The example of CONTRIBUTING.md, "Add a test on a real broker", as it stands there."""

from tests.docs.markdown import ROOT

_, _section = (
    (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Add a test on a real broker\n")
)
_EXAMPLE = _section.partition("```python\n")[2].partition("```")[0]

exec(_EXAMPLE)
