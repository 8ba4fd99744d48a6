"""``run``: what it hands to the daemon, and how it refuses; the daemon itself is in test_app."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import sidecar.daemon.daemon
from sidecar import logs
from sidecar.cli import group
from sidecar.settings import Settings
from tests.support.command import python

ENVIRONMENT = {
    "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "127.0.0.1:1",
    "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO": "0.1",
}

Reload = Callable[[], Settings]


class FakeApp:
    """Stands for the daemon, and remembers how it was started."""

    def __init__(self) -> None:
        self.settings: Settings | None = None
        self.reload: Reload | None = None

    def run(self, settings: Settings, reload: Reload) -> int:
        self.settings, self.reload = settings, reload
        return 0


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApp]:
    fake = FakeApp()
    monkeypatch.setattr(sidecar.daemon.daemon, "run", fake.run)
    monkeypatch.setattr(logs, "set_up", lambda *_, **__: None)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield fake
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_daemon_gets_the_settings_of_environment_and_files(
    app: FakeApp, tmp_path: Path
) -> None:
    """--config and --properties name the files."""
    config, properties = tmp_path / "sidecar.toml", tmp_path / "server.properties"
    config.write_text("[http]\nlisten = '127.0.0.1:7171'\n")
    properties.write_text("client.quota.callback.static.storage.check.interval=PT7S\n")
    args = ["run", "--config", str(config), "--properties", str(properties)]
    result = CliRunner().invoke(group, args, env=ENVIRONMENT)
    assert 0 == result.exit_code
    assert app.settings is not None
    assert (7.0, 7171) == (app.settings.check_interval_s, app.settings.http_listen.port)


def test_reload_reads_the_files_again(app: FakeApp, tmp_path: Path) -> None:
    """SIGHUP calls it."""
    config = tmp_path / "sidecar.toml"
    config.write_text("[log]\nlevel = 'info'\n")
    CliRunner().invoke(group, ["run", "--config", str(config)], env=ENVIRONMENT)
    config.write_text("[log]\nlevel = 'debug'\n")
    assert app.reload is not None
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        assert "debug" == app.reload().log_level


def test_notices_are_logged_once(
    app: FakeApp, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One is about keys of the plugin that are the callback's, say."""
    caplog.set_level("INFO", "sidecar")
    properties = tmp_path / "server.properties"
    properties.write_text("client.quota.callback.static.produce=1000\n")
    CliRunner().invoke(group, ["run", "--properties", str(properties)], env=ENVIRONMENT)
    lines = [record for record in caplog.records if "static.produce" in record.getMessage()]
    assert ["INFO"] == [record.levelname for record in lines]


def test_a_wrong_setting_never_gets_to_the_daemon(app: FakeApp) -> None:
    """The exit code is 2, and the message names the setting."""
    result = CliRunner().invoke(
        group, ["run"], env=ENVIRONMENT | {"SIDECAR_THROTTLE_FACTOR_FALLBACK": "2"}
    )
    assert 2 == result.exit_code
    assert "fallback" in result.stderr.lower()
    assert app.settings is None


@pytest.mark.parametrize("option", ["--config", "--properties"])
def test_a_pipe_is_no_file_of_settings(app: FakeApp, tmp_path: Path, option: str) -> None:
    """The daemon reads its files again, which a pipe can't give twice; bash makes one of <(...)."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = CliRunner().invoke(group, ["run", option, str(pipe)], env=ENVIRONMENT)
    assert (2, True) == (result.exit_code, f"{option} {pipe} is a pipe" in result.stderr)
    assert app.settings is None


STARTING = """
import os, signal, sys
import sidecar.cli.run
from sidecar.cli import group

def load(config, properties):
    os.kill(os.getpid(), signal.SIGHUP)
    print("reads settings", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    sys.exit("goes on")

sidecar.cli.run.load_settings = load
group.main(["run"], "throttle-sidecar")
"""


def test_signals_while_it_starts() -> None:
    """SIGTERM ends it with 0, also as a container's first process; SIGHUP has nothing to reload."""
    assert "reads settings\n" == python("-c", STARTING)


def test_help_needs_none_of_the_daemon() -> None:
    """It imports no FastAPI, no Kafka client and no pydantic."""
    code = (
        "import sys\nfrom sidecar.cli import group\n"
        "group.main(['run', '--help'], 'throttle-sidecar', standalone_mode=False)\n"
        "print({'aiokafka', 'fastapi', 'pydantic', 'rich', 'uvicorn'} & set(sys.modules))"
    )
    assert "set()" == python("-c", code).splitlines()[-1]


@pytest.mark.slow
def test_a_daemon_leaves_out_what_it_does_not_use() -> None:
    """Without old pydantic, Bloom filters of no quota and near misses it needs 3.5 MB less.

    Packages of extras are imported where their login or file is configured.
    """
    code = (
        "import sys\nimport sidecar.daemon.daemon\nfrom sidecar.cli import group\n"
        "from tests.sidecar.api.build import FakeSidecar\n"
        "sidecar.daemon.daemon.run = lambda *_: FakeSidecar() and 0\n"
        "group.main(['run'], 'throttle-sidecar', standalone_mode=False)\n"
        "few = {'boto3', 'cryptography', 'difflib', 'gssapi', 'pydantic.v1.main', 'rbloom'}\n"
        "print(few & set(sys.modules))"
    )
    assert "set()" == python("-c", code, **ENVIRONMENT).splitlines()[-1]
