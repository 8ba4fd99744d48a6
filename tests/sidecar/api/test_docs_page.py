"""The documentation page has all operations, and loads nothing from anywhere."""

import base64
import hashlib
import re

import pytest

from sidecar.api.docs_page import docs_page, form_of
from tests.sidecar.api.build import FakeSidecar


@pytest.mark.slow
async def test_the_page_names_every_operation() -> None:
    """Each method and path of the OpenAPI document has its section."""
    sidecar = FakeSidecar()
    document = (await sidecar.get("/openapi.json")).json()
    page = (await sidecar.get("/docs")).text
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in page
    assert {"/v1/throttle-factor", "/v1/override", "/readyz"} <= set(document["paths"])


@pytest.mark.slow
async def test_the_page_loads_nothing() -> None:
    """It has no script and no address; its policy refuses both and allows its style by hash."""
    response = await FakeSidecar().get("/docs")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert re.findall(r"<script|<link|<img|<iframe|src=|url\(|@import|https?:", response.text) == []
    style = re.findall(r"<style>(.*?)</style>", response.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style[0].encode()).digest()).decode()
    policy = response.headers["content-security-policy"]
    assert f"style-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_text_in_the_document_is_only_text() -> None:
    """What looks like markup in a description is shown, not interpreted."""
    operation = {"summary": "<b>", "description": "<script>alert(1)</script>"}
    document = {"info": {"title": "<i>", "version": "1"}, "paths": {"/<x>": {"get": operation}}}
    page = docs_page(document)
    assert "<script" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;x&gt;" in page


def test_a_word_among_numbers_is_reported() -> None:
    """A field that may be a number or one word says which word."""
    schema = {"anyOf": [{"type": "number", "minimum": 1}, {"const": "unlimited"}]}
    assert 'number, ≥ 1 or "unlimited"' == form_of(schema)
