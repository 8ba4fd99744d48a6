"""The command line: one file per command, imported when the command is called.

``throttle-sidecar --help`` imports no command of the sidecar, and ``throttle-sidecar run`` imports
none of the others. Each command therefore loads only what it needs. The commands are the only code
that reads the command line and the environment. A ``SidecarError`` is printed without a traceback
and ends the process with exit code 2. Ctrl-C ends it with 130. An output that can't be written, and
a bug, end it with 2 too, since 1 is a verdict of some commands.

Example: ``throttle-sidecar settings`` imports ``sidecar.cli.settings`` and calls its ``command``.
"""

import errno
import importlib
import io
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import IO, Any, Final

import click
from click.shell_completion import CompletionItem

from sidecar import __version__
from sidecar.errors import SidecarError

PROGRAM = "throttle-sidecar"

COMMANDS = {
    "run": "Watch the cluster and publish the throttle factor.",
    "check": "Read the cluster once and report whether volumes are within the limit.",
    "budgets": "Check a file of storage budgets: who would be past them.",
    "doctor": "Examine the whole installation, and recommend limits.",
    "settings": "Print every setting, where it came from and what it means.",
    "override": "Set, clear or show an override, on one sidecar or many.",
    "topics": "Create, grow or delete topics, even thousands of them.",
    "unread": "Report what no consumer group has read, and what a shorter retention would free.",
    "replay-decisions": "Report when other settings would have throttled, from the volume history.",
    "history": "Make a volume history of the readings of Prometheus, Grafana, CSV files or df.",
    "forget": "Forget the last reading of a broker that will not come back.",
    "request-log": "Turn the brokers' request log on for a while, off, or show it.",
    "quotas": "Plan, apply, show and compare client quotas; keep tenants' shares equal.",
    "callback": "Copy the quota callback's jar into a broker's folder.",
    "health": "Report whether a sidecar is alive: a container's health check.",
    "completion": "Print the script that completes commands in your shell.",
}
"""Each command and its short help. Its module is ``sidecar.cli.NAME``, with "_" for "-"."""

JOINED: Final = "throttle_sidecar.commands"
"""The entry points by which other packages add commands: the pipeline and the local cluster."""

_COMES_WITH: Final = {
    "pipeline": "./usage_pipeline",
    "demo": "./kafka_lab",
    "demo-pipeline": "./kafka_lab ./usage_pipeline",
}
"""The folders of a checkout to install for the commands of this project's other packages."""

_UNWRITTEN: Final = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""The errors of a write to standard output."""

_EXAMPLES = """\b
Examples:
  throttle-sidecar settings --properties server.properties
  throttle-sidecar check --config sidecar.toml
  throttle-sidecar run --config sidecar.toml
  source <(throttle-sidecar completion bash)
"""


class _Refusal(click.ClickException):
    """A ``SidecarError`` as click shows it: its lines as they are, exit code 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the lines to standard error."""
        click.echo(self.message, file=file or sys.stderr)


class LazyGroup(click.Group):
    """A group that imports a command when it is called, not when it is listed.

    Args:
        package: the package that contains the commands' modules.
        summaries: each command and its short help; a module's name has "_" for each "-".
        joined: the group of entry points that add commands; empty if there is none.
        attributes: click's own.
    """

    def __init__(
        self,
        *,
        package: str,
        summaries: Mapping[str, str],
        joined: str = "",
        **attributes: Any,  # noqa: ANN401 - the base class's signature
    ) -> None:
        super().__init__(**attributes)
        self._package = package
        self._summaries = summaries
        self._joined = joined

    def _joined_commands(self) -> dict[str, EntryPoint]:
        found = entry_points(group=self._joined) if self._joined else ()
        return {each.name: each for each in found}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the base class's signature
        """Return the names of all commands: those of the summaries first, then the joined ones."""
        return [*self._summaries, *self._joined_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; return None if no command has that name while words are completed.

        Raises:
            click.UsageError: the command belongs to a package that is not installed, or no command
                has that name; then the error names similar ones.
        """
        if cmd_name in self._summaries:
            module = f"{self._package}.{cmd_name.replace('-', '_')}"
            command = importlib.import_module(module).command
        elif cmd_name in (joined := self._joined_commands()):
            module = joined[cmd_name].module
            command = joined[cmd_name].load()
        elif ctx.resilient_parsing:
            return None
        elif self._joined and cmd_name in _COMES_WITH:
            raise click.UsageError(
                f"The package with the command '{cmd_name}' is not installed."
                f" In a checkout, run: pip install . {_COMES_WITH[cmd_name]}",
                ctx,
            )
        else:
            raise click.NoSuchCommand(cmd_name, possibilities=self.list_commands(ctx), ctx=ctx)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}.command is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - the base class's signature
        """List the commands. This imports only the commands of other packages."""
        joined = {
            name: entry_point.load().get_short_help_str(100)
            for name, entry_point in self._joined_commands().items()
        }
        with formatter.section("Commands"):
            formatter.write_dl([*self._summaries.items(), *joined.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name without importing any."""
        helps = {name: self._summaries.get(name) for name in self.list_commands(ctx)}
        names = [
            CompletionItem(name, help=help_text)
            for name, help_text in helps.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - the base class's signature
        """Call the command. All but a bug end it without a traceback."""
        try:
            return super().invoke(ctx)
        except SidecarError as error:
            raise _Refusal(str(error)) from error
        except OSError as error:
            if error.filename is not None or error.errno not in _UNWRITTEN:
                raise
            # The end of the process would try to write the rest again, and change the exit code.
            sys.stdout = io.StringIO()
            if error.errno == errno.EPIPE:
                return ctx.exit(2)
            raise _Refusal(f"The output can't be written: {error.strerror}") from error
        except SystemExit as end:
            if isinstance(end.__context__, BrokenPipeError):
                # rich ends the process with 1 if nobody reads its table.
                return ctx.exit(2)
            raise
        except (KeyboardInterrupt, click.Abort):
            # Shells expect this code from a program that SIGINT has ended.
            return ctx.exit(130)


@click.group(
    PROGRAM,
    cls=LazyGroup,
    package="sidecar.cli",
    summaries=COMMANDS,
    joined=JOINED,
    epilog=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
def group() -> None:
    """Keep an Apache Kafka cluster from running out of disk.

    A sidecar beside each broker watches the volumes of the whole cluster and publishes one
    throttle factor for it. Settings come from SIDECAR_* in the environment, from a Java properties
    file and from a TOML file. The first of these that has a setting wins. "throttle-sidecar
    settings" lists all settings.
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code.

    Args:
        argv: the arguments without the program's name; None means those of the process.
    """
    try:
        group.main(args=argv, prog_name=PROGRAM)
    except Exception:  # noqa: BLE001 - Python's own exit code would be 1
        traceback.print_exc()
        sys.exit(2)
