"""Functions of an operator: how they are imported, called and checked."""

import logging
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.daemon.sources import Source, factor_source, quota_source, read_factor, read_quotas
from sidecar.errors import SettingsError
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.volumes import Failure, FailureKind

MODULE = """
import secrets

def factor():
    return 0.25

async def later():
    return 0.25

def with_argument(board):
    return 0.25

class Class:
    def __call__(self):
        return 0.5

    def method(self):
        return 0.75

    async def later(self):
        return 0.75

instance = Class()
number = 0.25
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that can be imported."""
    name = f"source_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_broken.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    return name


class TestImport:
    @pytest.mark.parametrize(
        ("attribute", "expected"), [("factor", 0.25), ("instance", 0.5), ("instance.method", 0.75)]
    )
    async def test_a_function_or_a_callable_object(
        self, module: str, attribute: str, expected: float
    ) -> None:
        """It is called without arguments."""
        assert expected == await factor_source("S", f"{module}:{attribute}").ask(10.0)

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("no_such_module:factor", "no_such_module can't be imported (ModuleNotFoundError: "),
            ("{}_broken:factor", "{}_broken can't be imported (ZeroDivisionError: division by "),
            ("{}:nothing", "{} has no nothing"),
            ("{}:instance.nothing", "{} has no instance.nothing"),
            ("{}:number", "{}:number is a float, not a function or a callable object"),
            ("{}:Class", "{}:Class is a type, not a function or a callable object"),
            ("{}:later", "{}:later is async; "),
            ("{}:instance.later", "{}:instance.later is async; "),
            ("{}:with_argument", "{}:with_argument must be callable without arguments: missing "),
        ],
    )
    def test_anything_else_stops_the_start(self, module: str, path: str, expected: str) -> None:
        """The line names the setting, the module and the mistake."""
        for load in (factor_source, quota_source):
            with pytest.raises(SettingsError) as refused:
                load("SIDECAR_X_SOURCE", path.format(module))
            assert str(refused.value).startswith("SIDECAR_X_SOURCE: " + expected.format(module))

    async def test_a_function_that_does_not_show_its_arguments(self) -> None:
        """As some compiled ones: the call shows whether it needs any."""
        text = "the factor source builtins:max raised TypeError; the log has the traceback"
        answer = await factor_source("S", "builtins:max").ask(10.0)
        assert Failure(FailureKind.SOURCE, text) == answer


class TestCall:
    async def ask(self, call: Callable[[], Any], timeout_s: float = 10.0) -> float | Failure:
        return await Source("the factor source a:b", call, read_factor).ask(timeout_s)

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (2.0, "2.0, which is not a factor from 0.0 to 1.0"),
            (-0.1, "-0.1, which is not a factor from 0.0 to 1.0"),
            (math.nan, "nan, which is not a factor from 0.0 to 1.0"),
            (None, "None, which is not a factor from 0.0 to 1.0"),
            (True, "True, which is not a factor from 0.0 to 1.0"),
            ("0.5", "'0.5', which is not a factor from 0.0 to 1.0"),
            ("x" * 99, f"'{76 * 'x'}..., which is not a factor from 0.0 to 1.0"),
        ],
    )
    async def test_what_is_no_factor_is_a_failure(self, value: object, expected: str) -> None:
        """It names the source and the value."""
        text = f"the factor source a:b returned {expected}"
        assert Failure(FailureKind.SOURCE, text) == await self.ask(lambda: value)

    @pytest.mark.parametrize("value", [0, 0.0, 0.5, 1, 1.0])
    async def test_the_bounds_are_factors(self, value: float) -> None:
        """Also as whole numbers."""
        assert value == await self.ask(lambda: value)

    @pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt, StopIteration])
    async def test_an_exception_is_a_failure_without_its_text(
        self, error: type[BaseException], caplog: pytest.LogCaptureFixture
    ) -> None:
        """The text may contain secrets: the log alone has it, once for each class."""

        def fails() -> float:
            raise error("s3cret")

        source = Source("the factor source a:b", fails, read_factor)
        text = f"the factor source a:b raised {error.__name__}; the log has the traceback"
        for _ in range(3):
            assert Failure(FailureKind.SOURCE, text) == await source.ask(10.0)
        assert 1 == caplog.text.count(f"{error.__name__}: s3cret")
        assert [logging.WARNING] == [record.levelno for record in caplog.records]

    async def test_one_that_hangs_is_not_called_again(self) -> None:
        """The loop goes on, and what it returns too late is not used."""
        go, calls = threading.Event(), []

        def hangs() -> float:
            calls.append(1)
            go.wait(60)
            return 0.25

        source = Source("the factor source a:b", hangs, read_factor)
        began = time.monotonic()
        late = "the factor source a:b did not return within 0.05 s"
        assert Failure(FailureKind.SOURCE, late) == await source.ask(0.05)
        again = "the factor source a:b has not returned from its last call"
        assert Failure(FailureKind.SOURCE, again) == await source.ask(0.05)
        assert time.monotonic() - began < 30.0
        assert [1] == calls
        go.set()
        assert source._calling is not None
        await source._calling
        assert 0.25 == await source.ask(10.0)
        assert [1, 1] == calls


class TestQuotas:
    def test_they_are_in_the_form_of_quotas_show(self) -> None:
        """Null removes a quota, and a part's null is the default."""
        value = [
            {"entity": {"user": "bob"}, "quotas": {"producer_byte_rate": 1000}},
            {"entity": {"user": None}, "quotas": {"consumer_byte_rate": None}},
        ]
        assert {
            Entity(user="bob"): {"producer_byte_rate": 1000.0},
            Entity(user=DEFAULT): {"consumer_byte_rate": None},
        } == read_quotas(value)
        assert {} == read_quotas([])

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (None, "None, which is no list of quotas"),
            ([1], "1, which is no quota: TypeError"),
            ([{}], "{}, which is no quota: KeyError 'entity'"),
            ([{"entity": {"user": "b"}}], "KeyError 'quotas'"),
            ([{"entity": {}, "quotas": {}}], "ValueError an entity is a user"),
            ([{"entity": {"user": "b"}, "quotas": {"rate": 1}}], "'rate' is not a valid QuotaKey"),
            (2 * [{"entity": {"user": "b"}, "quotas": {}}], "the entity is listed twice"),
            *(
                ([{"entity": {"user": "b"}, "quotas": {"producer_byte_rate": number}}], "not > 0")
                for number in (0, -1, math.nan, math.inf, "1", True)
            ),
        ],
    )
    def test_anything_else_is_nonsense(self, value: object, expected: str) -> None:
        """One wrong entry is enough: none is set."""
        with pytest.raises(ValueError, match="which is no") as refused:
            read_quotas(value)
        assert expected in str(refused.value)
