"""``throttle-sidecar run``: the daemon.

The command imports the daemon when it is called, so that its help is quick.
"""

import logging
import os
import signal
import sys
from pathlib import Path

import click

from sidecar.cli.options import load_settings, settings_options
from sidecar.errors import SettingsError


@click.command(
    "run",
    epilog="""\b
Examples:
  SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS=localhost:9092 \\
  SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO=0.1 throttle-sidecar run
  throttle-sidecar run --properties /opt/kafka/config/server.properties
  throttle-sidecar run --config sidecar.toml
  curl -s http://127.0.0.1:7070/v1/throttle-factor

SIGTERM and SIGINT stop it within 2 s; a second signal stops it at once. SIGHUP
reloads TLS material, credentials and the token.
""",
)
@settings_options
@click.pass_context
def command(context: click.Context, config: Path | None, properties: Path | None) -> None:
    """Watch the cluster and publish the throttle factor over HTTP.

    Logs go to standard error. The exit code is 0 after a signal. It is 2 if the daemon can't start:
    a setting is wrong, a file can't be read or an address is in use.
    """
    # The imports take up to a second, and longer on a busy machine. Without a handler, SIGTERM has
    # no effect on the first process of a container, and SIGHUP ends the process.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _refuse_pipe("--config", config)
    _refuse_pipe("--properties", properties)
    loaded = load_settings(config, properties)

    from sidecar import logs  # noqa: PLC0415 - see the module's docstring

    logs.set_up(loaded.settings.log_format, loaded.settings.log_level, in_thread=True)
    for notice in loaded.notices:
        logging.getLogger(__name__).info("%s", notice)

    _leave_out_pydantic_v1()
    from sidecar.daemon.daemon import run  # noqa: PLC0415 - see the module's docstring

    context.exit(run(loaded.settings, lambda: load_settings(config, properties).settings))


def _refuse_pipe(option: str, file: Path | None) -> None:
    try:
        is_pipe = file is not None and file.is_fifo()
    except OSError:
        # Whoever reads the file says why it can't be read.
        return
    if is_pipe:
        problem = (
            f"{option} {file} is a pipe, but the daemon reads its files of settings more than once:"
            " write the settings to a file, and secrets to files that they name, such as"
            " SIDECAR_KAFKA_ADMIN_SASL_PASSWORD_FILE"
        )
        raise SettingsError((problem,))


def _leave_out_pydantic_v1() -> None:
    """Make the import of ``pydantic.v1`` fail, which takes 1.4 MB and which nothing here uses.

    FastAPI imports it to reject its models, and works without it.
    """
    sys.modules.setdefault("pydantic.v1", None)  # type: ignore[arg-type]  # None: it can't be imported
