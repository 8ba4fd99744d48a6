"""The sources of docs/how-much-and-whom.md, run as they stand there."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sidecar.daemon.sources import factor_source, quota_source
from sidecar.quotas.entities import Entity
from sidecar.quotas.quota_file import quota_documents
from tests.docs.markdown import page

(EXAMPLE,) = re.findall(r"```python\n(.*?)```", page("how-much-and-whom"), re.DOTALL)


class Decider(BaseHTTPRequestHandler):
    """A sidecar whose factor is 0.25."""

    def do_GET(self) -> None:
        assert self.path == "/v1/throttle-factor"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"factor": 0.25}')

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def decider() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Decider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def test_the_example_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decider: str
) -> None:
    """Both functions are imported by the names of the page, and what they return is valid."""
    assert len(EXAMPLE.splitlines()) <= 20
    (tmp_path / "my_sources.py").write_text(EXAMPLE)
    monkeypatch.syspath_prepend(tmp_path)
    names = re.findall(r"SIDECAR_(\w+)_SOURCE=(\S+?)`", page("how-much-and-whom"))
    paths = dict(names)
    bob = {Entity(user="bob"): {"producer_byte_rate": 1e6}}
    (tmp_path / "quotas.json").write_text(json.dumps({"quotas": quota_documents(bob)}))
    monkeypatch.setenv("DECIDER", decider)
    monkeypatch.setenv("QUOTAS", str(tmp_path / "quotas.json"))
    assert 0.25 == await factor_source("S", paths["FACTOR"]).ask(10.0)
    assert bob == await quota_source("S", paths["QUOTA"]).ask(10.0)
