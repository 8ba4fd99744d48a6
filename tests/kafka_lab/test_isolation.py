"""The isolation that the machine allows is tried, and what it refuses is reported."""

import os
from pathlib import Path

import pytest

from kafka_lab.isolation import probe


def _refuse(monkeypatch: pytest.MonkeyPatch, path: Path, *, user: bool) -> None:
    """An ``unshare`` that refuses mount namespaces, or all but user namespaces."""
    script = "for a; do [ $a = --user ] && shift $# && exit 0; done; " if user else ""
    for name, body in (
        ("setpriv", "while [ $1 != -- ]; do shift; done; shift; exec $@"),
        ("unshare", f"{script}echo 'unshare: Operation not permitted' >&2; exit 1"),
        ("mount", "exit 0"),
        ("true", "exit 0"),
    ):
        (path / name).write_text(f"#!/bin/sh\n{body}\n")
        (path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(path))


def test_root_gets_a_namespace_and_others_one_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An ordinary user does not try what only root may; root falls back where it may not."""
    _refuse(monkeypatch, tmp_path, user=True)
    assert "user namespace" == probe().name
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = probe()
    assert "user namespace" == found.name
    assert {"--user", "--map-root-user", "--kill-child=KILL"} <= set(found.prefix)
    assert found.has_mounts


def test_plain_folders_say_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If namespaces are refused, each reason is reported; the parent's death still ends brokers."""
    _refuse(monkeypatch, tmp_path, user=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found = probe()
    assert "plain folders" == found.name
    assert not found.has_mounts
    assert (
        "namespace: unshare: Operation not permitted; "
        "user namespace: unshare: Operation not permitted" == found.why_not
    )
    assert ("setpriv", "--pdeathsig", "KILL", "--") == found.prefix


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message has the line that installs them; brokers run without."""
    monkeypatch.setenv("PATH", str(tmp_path))
    found = probe()
    assert "setpriv and unshare and mount not found (apt-get install -y" in found.why_not
    assert () == found.prefix
