"""Renders views as HTML. Templates escape all values, and load nothing from other sites.

Style, script and icon are separate files, so that the content policy can forbid inline code. Their
addresses contain a digest. So a browser may cache them without an end, and an open page notices
that the sidecar was replaced by another version.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

MEDIA_TYPES: Final[Mapping[str, str]] = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}

_UNIT: Final = re.compile(r"(?<=\d) (?=[kMGT]?B\b|%|s\b|min\b|h\b|days\b)")
"""Finds the blank between a number and its unit, which have to stay on one line."""

_HERE: Final = files("sidecar.status")


@cache
def file(name: str) -> bytes:
    """One of ``MEDIA_TYPES``."""
    return _HERE.joinpath("files", name).read_bytes()


def page(template: str, **values: object) -> str:
    """Render a template with values."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    """Create the environment for the first page; most sidecars are read by machines alone."""
    environment = Environment(
        loader=PackageLoader("sidecar.status"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Nothing here changes while the sidecar runs.
        auto_reload=False,
    )
    environment.globals["version"] = _version()
    environment.filters["capitalize_first"] = lambda text: text[:1].upper() + text[1:]
    environment.filters["path"] = _path
    environment.filters["together"] = lambda text: _UNIT.sub("\u00a0", text)
    return environment


def _path(text: str) -> Markup:
    """Return a path that a narrow column may break after its slashes."""
    return Markup("/<wbr>").join(text.split("/"))


def _version() -> str:
    digest = hashlib.sha256()
    for folder in ("files", "templates"):
        for each in sorted(_HERE.joinpath(folder).iterdir(), key=lambda each: each.name):
            digest.update(each.read_bytes())
    return digest.hexdigest()[:12]
