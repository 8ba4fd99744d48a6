"""A real Prometheus that scrapes sidecars, with the project's own configuration and rules."""

import json
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from tests.support.daemon import Beside, Daemon
from tests.support.waiting import SEEN_S, seen

CONFIGURATION = Path(__file__).parents[2] / "deploy" / "prometheus" / "prometheus.yaml"

Result = list[dict[str, Any]]
"""Series of a query's answer."""

_LISTENS = re.compile(r'msg="Listening on" address=127\.0\.0\.1:(\d+)')


class Prometheus:
    """A Prometheus that runs.

    Attributes:
        url: where it listens.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    async def is_ready(self) -> bool:
        """Whether it answers: it listens before."""
        async with httpx.AsyncClient(base_url=self.url, timeout=SEEN_S) as client:
            return (await client.get("/-/ready")).is_success

    async def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API, which must be a good one."""
        async with httpx.AsyncClient(base_url=self.url, timeout=SEEN_S) as client:
            answer = await client.get(f"/api/v1/{path}", params=parameters)
        document = answer.json()
        assert "success" == document["status"], (parameters, document)
        return document["data"]

    async def instant(self, expr: str) -> Result:
        """The series of a query, now."""
        result: Result = (await self.get("query", query=expr))["result"]
        return result

    async def range(self, expr: str, over_s: float = 10.0) -> Result:
        """The series of a query over the last seconds."""
        now = float((await self.get("query", query="time()"))["result"][0])
        data = await self.get(
            "query_range", query=expr, start=str(now - over_s), end=str(now), step="1"
        )
        result: Result = data["result"]
        return result

    async def alerts(self, name: str) -> Result:
        """The alerts of a name that are pending or fire."""
        alerts: Result = (await self.get("alerts"))["alerts"]
        return [each for each in alerts if name == each["labels"]["alertname"]]

    async def rules(self) -> Result:
        """Every rule, with what came of it."""
        groups = (await self.get("rules"))["groups"]
        return [rule for group in groups for rule in group["rules"]]


def configuration(
    sidecars: Sequence[Daemon], folder: Path, certificates: Path | None
) -> dict[str, Any]:
    """The committed configuration, for these sidecars, and quick.

    An alert that keeps firing after its trouble does so for 5 s, not for minutes.
    """
    text = CONFIGURATION.read_text(encoding="utf-8")
    if certificates is not None:
        (lines,) = re.findall(r"^ +# scheme: https\n(?: +# .*:.*\n){4}", text, re.MULTILINE)
        text = text.replace(lines, lines.replace("# ", ""))
        text = text.replace("/etc/prometheus/throttle-sidecar", str(certificates))
    document: dict[str, Any] = yaml.safe_load(text)
    document["global"] = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
    rules = folder / "rules"
    rules.mkdir()
    for pattern in document["rule_files"]:
        for file in CONFIGURATION.parent.glob(pattern):
            text = file.read_text(encoding="utf-8")
            quick = re.sub("keep_firing_for: .*", "keep_firing_for: 5s", text)
            (rules / file.name).write_text(quick, encoding="utf-8")
    document["rule_files"] = [str(rules / "*.yaml")]
    (job,) = document["scrape_configs"]
    (targets,) = job["static_configs"]
    targets["targets"] = [each.url.partition("://")[2] for each in sidecars]
    return document


@asynccontextmanager
async def prometheus(
    beside: Beside, sidecars: Sequence[Daemon], folder: Path, certificates: Path | None = None
) -> AsyncIterator[Prometheus]:
    """A Prometheus that scrapes these sidecars as cluster blue, and has evaluated all rules.

    Args:
        beside: what it ends with.
        sidecars: that listen.
        folder: for its configuration, its data and its log.
        certificates: a folder with ca.crt, tls.crt and tls.key, for sidecars with mutual TLS.
    """
    program = shutil.which("prometheus")
    assert program, "prometheus is missing: apt-get install -y prometheus"
    file, log, name = folder / "prometheus.json", folder / "prometheus.log", f"{folder} prometheus"
    # JSON is YAML.
    file.write_text(json.dumps(configuration(sidecars, folder, certificates)), encoding="utf-8")
    data = f"--storage.tsdb.path={folder / 'prometheus'}"
    listen = "--web.listen-address=127.0.0.1:0"
    pid = await beside.run_beside(name, [program, f"--config.file={file}", data, listen], log)

    def output() -> str:
        text = log.read_text() if log.exists() else ""
        assert beside.ended(name) is None, text
        return text

    try:
        found = await seen("Prometheus listens", lambda: _LISTENS.search(output()))
        assert found is not None
        started = Prometheus(f"http://127.0.0.1:{found[1]}")
        await seen("Prometheus is ready", started.is_ready)
        await seen(
            "all rules were evaluated",
            started.rules,
            lambda rules: bool(rules) and all(rule["health"] == "ok" for rule in rules),
        )
        yield started
    finally:
        if beside.ended(name) is None:
            os.kill(pid, signal.SIGKILL)
            await seen("Prometheus' end", lambda: beside.ended(name) is not None)
