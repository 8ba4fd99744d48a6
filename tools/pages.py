"""Writes the tables of docs/ that are made of the code.

They are of settings, metrics, routes, forms and the pipeline's tables. A page has its own words,
and between two comments a table that nobody edits: ``<!-- made by "make docs": settings -->`` to
``<!-- end -->``. A test sees to it that the tables are current. What the code does not tell of a
metric stays as it stands in the table: the unit of one whose name ends in none, and the proposal's
JMX name.

Example: ``make docs`` after a new setting adds its row to docs/settings.md.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from sidecar.api.docs_page import fields, form_of
from sidecar.api.readiness import Polling
from sidecar.budgets.file import BudgetsForm
from sidecar.control.board import Board
from sidecar.control.capability import Capability, Services
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.metric_source import MetricSource
from sidecar.control.persistence import Persistence
from sidecar.control.tokens import Tokens
from sidecar.daemon.application import build_app
from sidecar.daemon.capabilities import CAPABILITIES, build_all, prepare_all
from sidecar.metrics.board_collector import build_registry
from sidecar.metrics.broker_metrics import broker_metrics
from sidecar.metrics.credential_metrics import credential_metrics
from sidecar.metrics.observer_metrics import observer_metrics
from sidecar.metrics.request_throttle_metrics import request_throttle_metrics
from sidecar.peers.observations import ObservationLog
from sidecar.settings import describe, load
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.readers import Report
from sidecar.throttle.rules import Rules
from sidecar.volumes import FailureKind, Membership, Observation, Reading, Volume
from usage_pipeline.tables import schemas

DOCS: Final = Path(__file__).parents[1] / "docs"
BUDGETS_SCHEMA: Final = DOCS.parent / "sidecar/budgets/budgets.schema.json"

_BLOCK: Final = re.compile(r'(<!-- made by "make docs": (\w+) -->\n)(.*?)(<!-- end -->)', re.DOTALL)
_VALIDITY_S: Final = 300.0
_LIMIT: Final = MinAvailableBytes(2)
_STOP_LINE: Final = MinAvailableBytes(1)
OWN_ROUTES: Final = (
    ("GET /openapi.json", "This API's own document"),
    ("GET /docs", "The same as a page, which loads nothing from elsewhere"),
    ("GET /", "The [status page](status-page.md), for people, with `/volumes` and `/override`"),
)
"""Those that are not in the document."""

EXCHANGED: Final = {
    "AllocatedIdDocument": "Only sidecars read it.",
    "AllocatedIdsDocument": "Only sidecars read it.",
    "BudgetFactorDocument": "Only the quota callback reads it.",
    "LeakDocument": "Only the quota callback reads it.",
}
"""Forms between sidecars, or with the jar: their fields are in /openapi.json alone."""

REPEATED: Final = {
    "QuotaFactorsDocument": "FactorDocument",
    "IdQuotaSet": "IdQuotaCleared",
    "BrokerForgotten": "OverrideCleared",
    "ShadowDocument": "FactorDocument",
    "ScopedClientDocument": "RefusedClientDocument",
    "ViolationDocument": "VolumeDocument",
    "ChangeDocument": "FactorDocument",
    "UserIdsDocument": "IdQuotaDocument",
    "RefusedPerSecond": "RefusedByReason",
}
"""A form, and the one that has the same fields with the same meaning."""

_BOUNDS: Final = re.compile(r", [≥≤] [^ ,]+")
"""The bounds of a number, which matter in a body, but not in an answer."""


def written(text: str) -> str:
    """A page with each of its tables made anew."""

    def made(match: re.Match[str]) -> str:
        head, name, before, end = match.groups()
        return f"{head}\n{TABLES[name](before)}\n{end}"

    return _BLOCK.sub(made, text)


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    head = [*header]
    lines = [_row(head), "|---" * len(head) + "|", *map(_row, rows)]
    return "\n".join(lines) + "\n"


def settings(_before: str) -> str:
    """Every setting."""
    return table(
        ("environment, after `SIDECAR_`", "TOML", "default", "unit", "meaning", "property"),
        (
            (
                row.environment.removeprefix("SIDECAR_"),
                row.toml,
                row.default,
                row.unit,
                row.meaning,
                "yes" if row.property else "",
            )
            for row in describe()
        ),
    )


def metrics(before: str) -> str:
    """Every metric of ours, with the cells that only the table before has."""
    kept = {
        cells[1].strip("` "): (cells[4].strip(), cells[6].strip())
        for cells in (line.split("|") for line in before.splitlines())
        if len(cells) > 6
    }
    header = ("metric", "type", "labels", "unit", "meaning", "proposal's JMX name")
    rows = []
    for metric in _served():
        name = metric.name + ("_total" if metric.type == "counter" else "")
        unit, jmx = kept.get(name, ("", ""))
        labels = ", ".join(f"`{each}`" for each in sorted(_labels(metric)))
        meaning = metric.documentation.removesuffix(".")
        rows.append((f"`{name}`", metric.type, labels, metric.unit or unit, meaning, jmx))
    return table(header, rows)


def routes(_before: str) -> str:
    """Every route of the API."""
    rows = [
        (
            f"`{request}`",
            said["summary"] + _answered_with(said),
            ", ".join(said["responses"]),
            "token" if said.get("security") else "",
        )
        for request, said in _operations(_document())
    ]
    rows += [(f"`{request}`", meaning, "200", "") for request, meaning in OWN_ROUTES]
    return table(("request", "answers", "statuses", "needs"), rows)


def forms(_before: str) -> str:
    """Every form of a body or an answer; a field that two documents share stands once."""
    document = _document()
    answers = dict(sorted(document["components"]["schemas"].items()))
    sections = []
    for schema, requests in _bodies(document):
        sections += [_form(f"Body of {requests[0]}", schema, _also(requests[1:]))]
        items = (field.get("items", {}) for field in schema["properties"].values())
        sections += [_form(item["title"], item, "") for item in items if "properties" in item]
    for name, schema in answers.items():
        if name in EXCHANGED:
            sections += [_form(name, {**schema, "properties": {}}, EXCHANGED[name])]
        else:
            sections += [_without_shared(name, schema, answers)]
    return "\n".join(sections)


def _bodies(document: dict[str, Any]) -> list[tuple[dict[str, Any], list[str]]]:
    """Each body, with the requests that have it."""
    found: list[tuple[dict[str, Any], list[str]]] = []
    for request, said in _operations(document):
        body = said.get("requestBody", {}).get("content", {}).get("application/json")
        if body:
            requests = next((known for schema, known in found if schema == body["schema"]), None)
            if requests is None:
                found.append((body["schema"], [request]))
            else:
                requests.append(request)
    return found


def _also(requests: Sequence[str]) -> str:
    return " ".join(f"`{request}` has the same body." for request in requests)


def _without_shared(name: str, schema: dict[str, Any], answers: dict[str, Any]) -> str:
    """A form, in which fields of the document that it repeats are only named."""
    other = REPEATED.get(name)
    shared = answers[other]["properties"].keys() & schema["properties"].keys() if other else ()
    own = {field: each for field, each in schema["properties"].items() if field not in shared}
    names = ", ".join(f"`{field}`" for field in schema["properties"] if field in shared)
    named = f"As in [{other}](#{other.lower()}): {names}." if other else ""
    return _form(name, {**schema, "properties": own}, named, has_bounds=False)


def _form(name: str, schema: dict[str, Any], more: str, *, has_bounds: bool = True) -> str:
    text = " ".join([*schema.get("description", "").split(), *more.split()])
    rows = [
        (f"`{field}`", form if has_bounds else _answered(form, meaning), " ".join(meaning.split()))
        for field, form, meaning in fields(schema)
    ]
    lines = table(("field", "form", "meaning"), rows) if rows else ""
    return f"### {name}\n\n{text}\n" + (f"\n{lines}" if lines else "")


def _answered(form: str, meaning: str) -> str:
    """The form of an answer's field, without bounds or a null that its meaning explains."""
    plain = _BOUNDS.sub("", form)
    return plain.removesuffix(" or null") if "null" in meaning.lower() else plain


def pipeline(_before: str) -> str:
    """Every table of the pipeline, each under its heading; a shared column stands once."""
    cluster = schemas.CLUSTER_ID
    first = f"Every table starts with `{cluster.name}` (`{cluster.type}`). {cluster.meaning}.\n\n"
    sections = []
    known: dict[schemas.Column, str] = {}
    for each in schemas.TABLES:
        own = [column for column in each.columns if column not in known]
        shared: dict[str, list[str]] = {}
        for column in each.columns:
            if column in known:
                shared.setdefault(known[column], []).append(column.name)
        known.update(dict.fromkeys(own, each.name))
        named = "".join(f" As in {of}: {', '.join(names)}." for of, names in shared.items())
        rows = [(column.name, f"`{column.type}`", column.meaning) for column in own]
        if each is schemas.SILVER_CHANGE:
            named = " It has the same columns."
        lines = table(("column", "type", "meaning"), rows) if rows else ""
        sections += [
            f"## {each.name}\n\n{_sentence(each)}{named}\n" + (f"\n{lines}" if lines else "")
        ]
    return first + "\n".join(sections)


def kinds(_before: str) -> str:
    """Every kind of failure, as a sentence."""
    *first, last = (f"`{kind}`" for kind in FailureKind)
    return fill(f"The label `kind` of failures is {', '.join(first)} or {last}.", 110) + "\n"


TABLES: Final[dict[str, Callable[[str], str]]] = {
    "pipeline": pipeline,
    "settings": settings,
    "metrics": metrics,
    "routes": routes,
    "forms": forms,
    "kinds": kinds,
}


def _sentence(of: schemas.Table) -> str:
    """A description of a row, and the partition columns."""
    *first, last = of.folders
    partitions = f"{', '.join(first)} and {last}" if first else last
    return f"A row is {of.meaning}. Partitioned by {partitions}."


def _row(cells: Iterable[str]) -> str:
    texts = (cell.replace("|", "\\|") for cell in cells)
    return "|" + "".join(f" {text} |" if text else " |" for text in texts)


def _served() -> Iterator[Metric]:
    """The metrics of a sidecar that has seen a volume twice."""
    board = _board()
    services = _services(board)
    registry = build_registry(board, lambda steady_s: steady_s)
    for capability in _capabilities(services):
        registry.register(MetricSource(capability.metrics))
    former_uses = {"broker": False, "token": False}
    for metrics in (
        partial(broker_metrics, board),
        partial(credential_metrics, {}, former_uses),
        partial(observer_metrics, None),
        partial(request_throttle_metrics, 0.0),
    ):
        registry.register(MetricSource(metrics))
    registry.register(services.failures)
    for metric in registry.collect():
        if metric.name.startswith("kafka_throttle_"):
            yield metric


def _labels(metric: Metric) -> set[str]:
    # A family without a sample knows its labels only there.
    names = set(getattr(metric, "_labelnames", ()))
    return names | {name for sample in metric.samples for name in sample.labels} - {"le"}


def _board() -> Board:
    factors = VolumeLimit(Rules(_LIMIT, _VALIDITY_S, _STOP_LINE), 1.0)
    board = Board(factors, lambda: 1.0)
    membership = Membership("cluster", {1: "kafka-1:9092"}, {})
    for at in (0.0, 1.0):
        reading = Reading(1, at, (Volume(1, "/data", 100, 50),))
        seen = Observation(at, "poll", membership, {1: reading})
        board.observe(seen)
    board.readers.record(Report(1, emergency=False, throttled_clients=0), 1, 1.0)
    return board


async def _persist() -> Persistence:
    return Persistence.NONE


def _services(board: Board) -> Services:
    failures = CapabilityFailures(CAPABILITIES)
    return Services(
        board, lambda steady_s: steady_s, Tokens(None, board.now), _persist, None, failures
    )


def _capabilities(services: Services) -> Sequence[Capability]:
    """All capabilities of a disabled sidecar, which have the same metrics and routes."""
    settings = load(environ={"SIDECAR_STORAGE_CHECK_INTERVAL": "PT0S"}).settings
    return build_all(prepare_all(settings), services)


def _document() -> dict[str, Any]:
    board = _board()
    services = _services(board)
    app: FastAPI = build_app(
        services,
        Polling(enabled=False, stuck_after_s=1.0, reaction_s=1.0),
        capabilities=_capabilities(services),
        observations=ObservationLog("", board.now),
        registry=CollectorRegistry(),
    )
    return app.openapi()


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        plain = re.sub(r"\{(\w+):\w+\}", r"{\1}", path).replace("{broker_id}", "{id}")
        for method, said in methods.items():
            yield f"{method.upper()} {plain}", said


def _answered_with(said: dict[str, Any]) -> str:
    content = said["responses"]["200"].get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    if "$ref" not in schema:
        return ""
    name = form_of(schema)
    return f": [{name}](#{name.lower()})"


def budgets_schema() -> str:
    """The JSON schema of the file of storage budgets, as text."""
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(dialect | BudgetsForm.model_json_schema(), indent=2) + "\n"


def main() -> None:
    """Writes every page that has such a table, and the JSON schema of budgets."""
    BUDGETS_SCHEMA.write_text(budgets_schema(), encoding="utf-8")
    for path in sorted(DOCS.glob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = written(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"{path.relative_to(DOCS.parent)} is written anew")


if __name__ == "__main__":
    main()
