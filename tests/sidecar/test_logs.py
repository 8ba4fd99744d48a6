"""Log lines: their two forms, one line each whatever they say, and UTC."""

import io
import json
import logging
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Literal

import pytest

from sidecar import logs
from sidecar.logs import JsonFormatter, TextFormatter, flush, set_up

PATIENCE_S = 10.0

AT = 1_795_230_750.1234
"""2026-11-21T03:12:30.123Z."""


def record(message: str, *args: object, level: int = logging.INFO) -> logging.LogRecord:
    made = logging.LogRecord("sidecar.control.journal", level, "journal.py", 1, message, args, None)
    made.created, made.msecs = AT, 123.4
    return made


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine is in a time zone that shows."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


Format = Literal["text", "json"]


def written(log: Callable[[], None], form: Format = "text", level: str = "info") -> str:
    """Sets logging up, calls ``log`` and returns what was written."""
    stream = io.StringIO()
    set_up(form, level, stream)
    log()
    return stream.getvalue()


@pytest.mark.usefixtures("far_from_utc")
class TestText:
    def test_a_line_has_time_in_utc_level_and_message(self) -> None:
        """The time has milliseconds and a Z; levels have one width."""
        lines = [
            TextFormatter().format(record("factor %s", 1.0)),
            TextFormatter().format(record("broken", level=logging.WARNING)),
        ]
        assert [
            "2026-11-21T03:12:30.123Z INFO    factor 1.0",
            "2026-11-21T03:12:30.123Z WARNING broken",
        ] == lines

    @pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
    def test_what_somebody_said_can_not_begin_another_line(self, end: str) -> None:
        """An override's reason that looks like a log line stays in its own."""
        forged = f"x{end}2026-11-21T03:12:31.000Z INFO    throttle factor 1.0"
        line = TextFormatter().format(record("set by hand: %s", forged))
        assert 1 == len(line.splitlines())
        assert end not in line

    @pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x1b[2K", "\x85", "\u2028", "\x00", "\x9b"])
    def test_nor_hide_or_break_one_with_a_control_character(self, odd: str) -> None:
        """A terminal would obey an escape, and some readers end a line at U+2028."""
        line = TextFormatter().format(record("set by hand: %s", f"a{odd}b"))
        assert 1 == len(line.splitlines())
        assert line.isprintable()

    def test_text_in_any_script_stays_as_it_is(self) -> None:
        """Only what can't be printed is escaped."""
        line = TextFormatter().format(record("Umzug für größere Platten, 移行"))
        assert line.endswith(" Umzug für größere Platten, 移行")

    def test_a_bug_has_its_traceback_below(self) -> None:
        """Nothing else takes more than a line."""
        line = TextFormatter().format(with_traceback())
        head, *below = line.splitlines()
        assert head.endswith("a poll failed")
        assert "Traceback (most recent call last):" == below[0]
        assert "ZeroDivisionError: division by zero" == below[-1]


def with_traceback() -> logging.LogRecord:
    made = record("a poll failed", level=logging.ERROR)
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        made.exc_info = sys.exc_info()
    return made


@pytest.mark.usefixtures("far_from_utc")
class TestJson:
    def test_a_line_is_an_object_with_the_calls_own_fields(self) -> None:
        """What ``extra`` has is beside what every line has."""
        made = record("throttle factor %s", 0.0)
        made.factor, made.source = 0.0, "observation"
        expected = {
            "time": "2026-11-21T03:12:30.123Z",
            "level": "info",
            "logger": "sidecar.control.journal",
            "message": "throttle factor 0.0",
            "factor": 0.0,
            "source": "observation",
        }
        assert expected == json.loads(JsonFormatter().format(made))

    @pytest.mark.parametrize("odd", ["\n", "\r", "\x1b", "\u2028", "\x85", "\x00"])
    def test_one_line_whatever_it_says(self, odd: str) -> None:
        """Its text can be read back."""
        line = JsonFormatter().format(record("set by hand: %s", f"a{odd}b"))
        assert 1 == len(line.splitlines())
        assert f"set by hand: a{odd}b" == json.loads(line)["message"]

    def test_a_bug_has_its_traceback_in_a_field(self) -> None:
        """It is one line all the same."""
        line = JsonFormatter().format(with_traceback())
        assert 1 == len(line.splitlines())
        assert json.loads(line)["exception"].endswith("ZeroDivisionError: division by zero")

    def test_what_json_can_not_say_is_said_as_text(self) -> None:
        """A path among the fields loses no line."""
        made = record("x")
        made.where = 1j
        assert "1j" == json.loads(JsonFormatter().format(made))["where"]


def hello() -> None:
    logging.getLogger("sidecar.control.journal").info("hello")


class TestSetUp:
    def test_text_by_default_of_the_settings(self) -> None:
        """A line comes once."""
        reported = written(hello)
        assert reported.endswith(" INFO    hello\n")
        assert 1 == reported.count("hello")

    def test_json_on_request(self) -> None:
        """A line is for machines then."""
        assert "hello" == json.loads(written(hello, "json"))["message"]

    def test_the_level_is_the_sidecars_own(self) -> None:
        """At debug, libraries are no louder than before."""

        def log() -> None:
            logging.getLogger("sidecar.control.journal").debug("ours")
            logging.getLogger("asyncio").debug("theirs")

        assert "ours" not in written(log)
        assert "ours" in written(log, level="debug")
        assert "theirs" not in written(log, level="debug")
        assert "ours" not in written(log, level="warning")

    def test_no_library_logs_who_logs_in_with_what(self) -> None:
        """``aiokafka`` would: it logs SASL's user at INFO and repeats failures at ERROR."""

        def log() -> None:
            logging.getLogger("aiokafka.conn").error("Authenticated as alice via PLAIN")
            logging.getLogger("uvicorn.error").warning("Started server process")

        assert "" == written(log, level="debug")

    def test_set_up_twice_it_says_everything_once(self) -> None:
        """No second handler is left."""
        written(lambda: None)
        reported = written(hello)
        assert 1 == reported.count("hello")

    def test_a_warning_of_python_is_a_log_line(self) -> None:
        """No line has another form in the middle of JSON."""

        def log() -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                logging.captureWarnings(capture=True)
                warnings.warn("old", UserWarning, stacklevel=1)

        assert "warning" == json.loads(written(log, "json"))["level"]


def test_a_pipe_that_nobody_reads_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is read, the lines that waited come, and how many were lost."""
    monkeypatch.setattr(logs, "_MOST_LINES", 3)
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as reader, os.fdopen(write_end, "w") as writer:
        set_up("text", "info", writer, in_thread=True)
        log = logging.getLogger("sidecar.control.journal")
        log.info("%s", "x" * 1_000_000)
        for number in range(10):
            log.info("line %d of 100%%", number)
        assert not flush(0.05)
        lines = []
        while "lost" not in (line := reader.readline()):
            lines.append(line)
        assert flush(PATIENCE_S)
        log.info("the next one")
        assert reader.readline().endswith(" INFO    the next one\n")
        assert flush(PATIENCE_S)
    written = [f" INFO    line {number} of 100%\n" for number in range(len(lines) - 1)]
    assert written == [line[24:] for line in lines[1:]]
    lost = f" WARNING {11 - len(lines)} log lines were lost: standard error was not read\n"
    assert lost == line[24:]


def test_without_a_file_left_a_line_is_still_logged() -> None:
    """The line may say that there is none: nothing is imported when it is logged."""
    program = (
        "import resource, sidecar.logs\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))\n"
        "print(sidecar.logs.printable('1\\x1b2'))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ("1\\x1b2\n", "") == (ended.stdout, ended.stderr)
