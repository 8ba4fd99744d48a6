"""The command line itself: help, laziness, refusals, completion."""

import errno
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

import click
import pytest
from click.testing import CliRunner

import sidecar
from sidecar.cli import COMMANDS, callback, group, main, quotas
from sidecar.errors import SettingsError
from tests.support.command import python
from tests.support.examples import mostly_slow


def fake_command(monkeypatch: pytest.MonkeyPatch, command: object) -> None:
    """Let ``check`` be this command, without importing the real one."""
    module = type(sys)("sidecar.cli.check")
    module.__dict__["command"] = command
    monkeypatch.setitem(sys.modules, "sidecar.cli.check", module)


def raising(error: BaseException) -> click.Command:
    """A command that raises."""

    def callback() -> None:
        raise error

    return click.Command("check", callback=callback)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "commands"),
    [
        ((), COMMANDS),
        (("callback",), callback.SUBCOMMANDS),
        (("quotas",), quotas.SUBCOMMANDS),
    ],
)
def test_help_lists_every_command_and_imports_none(
    words: tuple[str, ...], commands: Mapping[str, str]
) -> None:
    """Each has its short help; no command's module, no pydantic and no rich is imported.

    The commands of other packages are left out: the help imports those that are installed.
    """
    code = (
        "import sys\nimport sidecar.cli\nfrom sidecar.cli import group\n"
        "sidecar.cli.entry_points = lambda group: ()\n"
        f"group.main({[*words, '--help']}, 'throttle-sidecar', standalone_mode=False)\n"
        "print(*sorted(m for m in sys.modules if m.startswith(('sidecar.', 'pydantic', 'rich'))))"
    )
    *shown, imported = python("-c", code).splitlines()
    for name, summary in commands.items():
        assert f"{name} {summary}" in " ".join(" ".join(shown).split())
    groups = [f"sidecar.cli.{name}" for name in words]
    assert ["sidecar.cli", *groups, "sidecar.errors"] == imported.split()


def subcommands(command: click.Command, *words: str) -> Iterator[tuple[click.Command, str]]:
    """A command and all below it, each with its words."""
    yield command, " ".join(words)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from subcommands(below, *words, name)


def test_every_command_s_help_has_examples() -> None:
    """Examples are lines to copy; those of request-log's off and status are in its own help."""
    for command, words in subcommands(group):
        if words not in {"request-log off", "request-log status"}:
            _, _, examples = command.get_help(click.Context(command)).partition("Examples:")
            assert f"  throttle-sidecar {words}".rstrip() in examples, words


def test_the_version_is_the_packages() -> None:
    """``--version`` names the program and its version."""
    expected = f"throttle-sidecar {sidecar.__version__}\n"
    assert expected == CliRunner().invoke(group, ["--version"]).output


@pytest.mark.slow
def test_the_module_is_the_program() -> None:
    """``python -m sidecar`` is the same program by the same name."""
    assert python("-m", "sidecar", "--help").startswith("Usage: throttle-sidecar ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("nope",), "No such command 'nope'."),
        (("quotas", "nope"), "No such command 'nope'."),
        (("chekc",), "No such command 'chekc'. Did you mean 'check'?"),
    ],
)
def test_an_unknown_command_is_a_usage_error(words: tuple[str, ...], expected: str) -> None:
    """The exit code is 2, as for every wrong use, and a similar command is named."""
    result = CliRunner().invoke(group, words)
    assert 2 == result.exit_code
    assert expected in result.stderr


@pytest.mark.parametrize(
    ("name", "folders"),
    [
        ("pipeline", "./usage_pipeline"),
        ("demo", "./kafka_lab"),
        ("demo-pipeline", "./kafka_lab ./usage_pipeline"),
    ],
)
def test_a_command_of_a_package_that_is_not_installed_says_how_to_install_it(
    name: str, folders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a usage error with the line for a checkout."""
    monkeypatch.setattr("sidecar.cli.entry_points", lambda group: ())
    result = CliRunner().invoke(group, [name])
    assert (2, True) == (result.exit_code, f"pip install . {folders}\n" in result.stderr)


def test_the_help_lists_the_commands_of_other_packages_that_are_installed() -> None:
    """Each has its short help."""
    shown = " ".join(CliRunner().invoke(group, ["--help"]).output.split())
    assert "demo Start a real Kafka cluster" in shown
    assert "pipeline Analyze request logs and volume history" in shown


def test_a_command_that_is_not_installed_is_completed_as_any_other_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TAB prints no traceback into the command line."""
    monkeypatch.setattr("sidecar.cli.entry_points", lambda group: ())
    environ = {"COMP_WORDS": "throttle-sidecar pipeline ", "COMP_CWORD": "2"}
    environ["_THROTTLE_SIDECAR_COMPLETE"] = "bash_complete"
    result = CliRunner().invoke(group, prog_name="throttle-sidecar", env=environ)
    assert (0, "") == (result.exit_code, result.stderr)


def test_a_refusal_is_its_lines_and_exit_code_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error has the lines exactly as they are, without a traceback."""
    fake_command(monkeypatch, raising(SettingsError(("first problem", "second problem"))))
    result = CliRunner().invoke(group, ["check"])
    expected = (2, "", "first problem\nsecond problem\n")
    assert expected == (result.exit_code, result.stdout, result.stderr)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """A shell expects this of a program that SIGINT has ended; there is no traceback."""
    fake_command(monkeypatch, raising(error))
    result = CliRunner().invoke(group, ["check"])
    assert (130, "") == (result.exit_code, result.output)


def test_an_output_that_cannot_be_written_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full, say. It is no verdict, which some commands give by exit code 1."""
    fake_command(monkeypatch, raising(OSError(errno.ENOSPC, "No space left on device")))
    result = CliRunner().invoke(group, ["check"])
    expected = (2, "The output can't be written: No space left on device\n")
    assert expected == (result.exit_code, result.stderr)


def test_an_output_that_nobody_reads_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed pipe ends a command as quietly as others, with another code than 1."""
    fake_command(monkeypatch, raising(BrokenPipeError(errno.EPIPE, "Broken pipe")))
    result = CliRunner().invoke(group, ["check"])
    assert (2, "") == (result.exit_code, result.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), pytest.param(("--json",), marks=pytest.mark.rare)])
@pytest.mark.parametrize(
    ("is_pipe", "message"),
    [(False, "The output can't be written: No space left on device\n"), (True, "")],
)
def test_the_program_ends_with_2_when_its_output_cannot_be_written(
    options: tuple[str, ...], is_pipe: bool, message: str
) -> None:
    """A table or JSON: what is still to be written at the end does not change the code."""
    settings = [sys.executable, "-m", "sidecar", "settings", *options]
    if is_pipe:
        unread, output = os.pipe()
        os.close(unread)
    else:
        output = os.open("/dev/full", os.O_WRONLY)
    done = subprocess.run(settings, stdout=output, stderr=subprocess.PIPE, check=False, text=True)
    os.close(output)
    assert (2, message) == (done.returncode, done.stderr)


def test_a_bug_ends_with_2_and_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no verdict either, and no refusal."""
    fake_command(monkeypatch, raising(RuntimeError("a bug")))
    with pytest.raises(SystemExit) as ended:
        main(["check"])
    assert 2 == ended.value.code
    assert "RuntimeError: a bug\n" in capsys.readouterr().err


def test_a_module_without_a_command_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found when it is called, and is not an odd error of click's."""
    fake_command(monkeypatch, "not a command")
    assert isinstance(CliRunner().invoke(group, ["check"]).exception, TypeError)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_calls_the_program_back(shell: str) -> None:
    """The script names the program and the variable that the program answers to."""
    result = CliRunner().invoke(group, ["completion", shell])
    assert f"_THROTTLE_SIDECAR_COMPLETE={shell}_complete" in result.stdout
    assert "throttle-sidecar" in result.stdout


def test_an_unknown_shell_is_a_usage_error() -> None:
    """The shells are listed."""
    result = CliRunner().invoke(group, ["completion", "tcsh"])
    assert "'bash', 'zsh', 'fish'" in result.stderr


@pytest.mark.parametrize(
    ("words", "position", "completed"),
    mostly_slow(
        [
            ("throttle-sidecar demo --kafka-version 4", "3", ["4.3.1", "4.4.0"]),
            ("throttle-sidecar se", "1", ["settings"]),
            ("throttle-sidecar --ver", "1", ["--version"]),
            ("throttle-sidecar settings --js", "2", ["--json"]),
        ]
    ),
)
def test_commands_and_options_are_completed(
    words: str, position: str, completed: list[str]
) -> None:
    """Bash gets this answer when TAB is pressed."""
    environ = {
        "_THROTTLE_SIDECAR_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": position,
    }
    lines = python("-m", "sidecar", **environ).splitlines()
    assert completed == [line.partition(",")[2] for line in lines]


def test_completing_a_command_imports_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """TAB is answered at once, whatever the commands need."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} was imported")

    monkeypatch.setattr(importlib, "import_module", refuse)
    items = group.shell_complete(click.Context(group, info_name="throttle-sidecar"), "")
    assert set(COMMANDS) <= {item.value for item in items}
