"""The page at /docs: the OpenAPI document as plain HTML that loads nothing, not even a script.

Example: each operation is a section with its method, path, parameters, body and answers.
"""

import base64
import hashlib
from html import escape
from typing import Any, Final

_STYLE: Final = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h2{border-top:1px solid #8886;padding-top:1rem}
code{font-family:ui-monospace,monospace}
table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid #8884;padding:.3rem .6rem .3rem 0;text-align:left;vertical-align:top}
:root{color-scheme:light dark}
"""

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "style-src 'sha256-" + base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode() + "'"
)


def docs_page(document: dict[str, Any]) -> str:
    """The page for an OpenAPI 3.1 document."""
    info = document["info"]
    schemas = document.get("components", {}).get("schemas", {})
    operations = [
        _operation(method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    shapes = [_schema(name, schema) for name, schema in sorted(schemas.items())]
    title = escape(f"{info['title']} {info['version']}")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{escape(info.get('description', ''))}</p>"
        '<p>For machines: <a href="/openapi.json">/openapi.json</a>. Every error is '
        "<code>application/problem+json</code>.</p>"
        f"{''.join(operations)}<h2>Documents</h2>{''.join(shapes)}</body></html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    token = " Needs the token." if operation.get("security") else ""
    text = " ".join(operation.get("description", "").split())
    rows = [
        (
            f"{parameter['name']} ({parameter['in']})",
            form_of(parameter["schema"]),
            parameter.get("description", ""),
        )
        for parameter in operation.get("parameters", [])
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        rows += fields(body["schema"], "body")
    for status, response in operation.get("responses", {}).items():
        shapes = [
            f"{media_type}: {form_of(content.get('schema', {}))}"
            for media_type, content in response.get("content", {}).items()
        ]
        rows.append((f"answers {status}", "; ".join(shapes), response.get("description", "")))
    return (
        f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
        f"<p><strong>{escape(operation.get('summary', ''))}.</strong> {escape(text + token)}</p>"
        f"{_table(rows)}"
    )


def _schema(name: str, schema: dict[str, Any]) -> str:
    rows = fields(schema)
    text = escape(schema.get("description", ""))
    return f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{text}</p>{_table(rows)}'


def fields(schema: dict[str, Any], prefix: str = "") -> list[tuple[str, str, str]]:
    """List name, form and meaning of each field of a schema; ``prefix`` precedes each name."""
    required = schema.get("required", ())
    return [
        (
            f"{prefix} {name}".strip() + ("" if name in required else " (optional)"),
            form_of(field),
            field.get("description", ""),
        )
        for name, field in schema.get("properties", {}).items()
    ]


def form_of(schema: dict[str, Any]) -> str:
    """Describe a value's type and bounds, such as "number, ≥ 0.0, ≤ 1.0"."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(form_of(each) for each in schema["anyOf"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {form_of(schema.get('items', {}))}"
    kind = str(schema.get("title") if schema.get("type") == "object" else schema.get("type", ""))
    bounds = [
        f"{sign} {schema[key]}"
        for key, sign in (("minimum", "≥"), ("maximum", "≤"))
        if key in schema
    ]
    form = [str(schema["format"])] if "format" in schema else []
    return ", ".join([kind, *form, *bounds])


def _table(rows: list[tuple[str, str, str]]) -> str:
    if not rows:
        return ""
    lines = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(kind)}</td>"
        f"<td>{escape(' '.join(text.split()))}</td></tr>"
        for name, kind, text in rows
    )
    return f"<table><tr><th>name</th><th>type</th><th>meaning</th></tr>{lines}</table>"
