"""Jars and settings for Spark."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sidecar.errors import SettingsError
from usage_pipeline.cli.spark_options import CONF, JARS, spark_settings


@click.command()
@JARS
@CONF
def session(jars: tuple[str, ...], conf: tuple[tuple[str, str], ...]) -> None:
    """Prints the settings that a session gets."""
    click.echo(spark_settings(jars, conf))


def test_settings_of_a_session(tmp_path: Path) -> None:
    """It gets all jars of all folders, and settings whose values may have a "=" in them."""
    for name in ("a/1.jar", "a/2.jar", "a/x.txt", "b/3.jar"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    jars = ["--jars", str(tmp_path / "a"), "--jars", str(tmp_path / "b")]
    done = CliRunner().invoke(session, [*jars, "--conf", "spark.x=-Da=b"])
    paths = ",".join(str(tmp_path / name) for name in ("a/1.jar", "a/2.jar", "b/3.jar"))
    assert f"{ {'spark.x': '-Da=b', 'spark.jars': paths} }\n" == done.output
    assert "{}\n" == CliRunner().invoke(session, []).output


def test_what_is_refused(tmp_path: Path) -> None:
    """A folder without jars and what is no setting are refused; its value is not repeated."""
    done = CliRunner().invoke(session, ["--jars", str(tmp_path)])
    assert (2, True) == (done.exit_code, "no jars found in" in done.output)
    for setting in ("fs.s3a.secret.key=hidden", "spark.x"):
        done = CliRunner().invoke(session, ["--conf", setting])
        assert (2, True) == (done.exit_code, "write a setting as spark.name=value" in done.output)
        assert "hidden" not in done.output
    with pytest.raises(SettingsError, match="but not both"):
        spark_settings(["a.jar"], [("spark.jars", "b.jar")])
