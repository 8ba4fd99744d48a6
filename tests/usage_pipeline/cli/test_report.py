"""``pipeline report``: the page on the command line."""

from pathlib import Path

from click.testing import CliRunner, Result

from sidecar.cli import group
from tests.usage_pipeline.build import committed
from usage_pipeline.tables.schemas import QUARANTINE, UNNAMED


def run(*words: str) -> Result:
    return CliRunner().invoke(group, ["pipeline", "report", *words])


def write_quarantine(out: Path, cluster: str = UNNAMED) -> None:
    line = {"src_file": f"{cluster}/broker-1.log", "kind": "torn", "reason": "it is torn off"}
    committed(out, QUARANTINE, line, cluster=cluster)


def test_the_page_is_beside_the_tables(tmp_path: Path) -> None:
    """An option names another place."""
    write_quarantine(tmp_path)
    result = run("--out", str(tmp_path))
    assert (0, "") == (result.exit_code, result.stderr)
    beside = tmp_path / "report.html"
    assert f"{beside}: {beside.stat().st_size / 1000:,.0f} kB\n" == result.stdout
    assert "it is torn off" in beside.read_text()
    page = tmp_path / "page.html"
    run("--out", str(tmp_path), "--html", str(page))
    assert "it is torn off" in page.read_text()


def test_each_cluster_has_a_page(tmp_path: Path) -> None:
    """One of a named cluster is headed by it; of several, report.html leads to them."""
    write_quarantine(tmp_path, "eu")
    run("--out", str(tmp_path))
    assert "<h1>Kafka quotas and disks of eu</h1>" in (tmp_path / "report.html").read_text()
    write_quarantine(tmp_path, "us")
    assert 0 == run("--out", str(tmp_path)).exit_code
    for own, other in (("eu", "us"), ("us", "eu")):
        text = (tmp_path / f"report-{own}.html").read_text()
        assert f"{own}/broker-1.log" in text
        assert f"{other}/broker-1.log" not in text
        assert f'<a href="report-{own}.html">{own}</a>' in (tmp_path / "report.html").read_text()
    page = tmp_path / "us.html"
    run("--out", str(tmp_path), "--html", str(page), "--cluster-id", "us")
    assert "us/broker-1.log" in page.read_text()
    assert (
        "can't be the name of a cluster"
        in run("--out", str(tmp_path), "--cluster-id", "a b").stderr
    )


def test_a_page_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """It prints no traceback."""
    write_quarantine(tmp_path)
    result = run("--out", str(tmp_path), "--html", str(tmp_path / "www" / "page.html"))
    assert 2 == result.exit_code
    assert str(tmp_path / "www") in result.stderr


def test_no_tables_are_refused(tmp_path: Path) -> None:
    """It prints no traceback, and writes no page."""
    result = run("--out", str(tmp_path))
    assert 2 == result.exit_code
    assert "pipeline run" in result.stderr
    assert [] == list(tmp_path.iterdir())
