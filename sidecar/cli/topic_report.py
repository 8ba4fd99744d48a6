"""Reports the results for topics: a progress bar, then a table or JSON.

Example: 4,988 of 5,000 topics were created and 12 were throttled. The output is a table of the 12,
and "4,988 of 5,000 topics created; 12 throttled, to be sent again in 2.4 s".
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sidecar.cli.tables import print_rows
from sidecar.kafka.mutation_batches import ResultCallback
from sidecar.kafka.topic_results import Outcome, TopicResult

MOST_ROWS = 20
"""A person cannot use a table of thousands of rows; --json prints them all."""


class Results:
    """Results as they come.

    Args:
        done: the participle of the command, such as "created".
        names: all topics of the command.
    """

    def __init__(self, done: str, names: Sequence[str]) -> None:
        self.done = done
        self.total = len(names)
        self._names = names
        self._known: dict[str, TopicResult] = {}

    def add(self, result: TopicResult) -> None:
        """One more."""
        self._known[result.topic] = result

    def take(self, results: Sequence[TopicResult]) -> None:
        """All results, in the order in which the topics were named."""
        self._known = {result.topic: result for result in results}

    @property
    def exit_code(self) -> int:
        """0 if all topics were done, 1 if some were not, 2 if no request was sent."""
        outcomes = {result.outcome for result in self._known.values()}
        if outcomes == {Outcome.DONE}:
            return 0
        return 2 if outcomes == {Outcome.NOT_SENT} else 1

    def print(self, *, as_json: bool) -> None:
        """Print JSON with each topic, or a table of the topics that were not done and a summary."""
        if as_json:
            # After Ctrl-C some topics have no result.
            results = [self._known.get(name, _interrupted(name)) for name in self._names]
            click.echo(json.dumps([asdict(result) for result in results], indent=2))
            return
        left = [result for result in self._known.values() if result.outcome is not Outcome.DONE]
        if left:
            rows = [(result.topic, result.outcome, result.message) for result in left[:MOST_ROWS]]
            print_rows(("Topic", "Outcome", "Why"), rows, ())
        if len(left) > MOST_ROWS:
            click.echo(f"... and {len(left) - MOST_ROWS:,} more; --json prints them all")
        click.echo(self._sentence())

    def _sentence(self) -> str:
        counts = Counter(result.outcome for result in self._known.values())
        result_text = [f"{counts[Outcome.DONE]:,} of {self.total:,} topics {self.done}"]
        throttled = [r for r in self._known.values() if r.outcome is Outcome.THROTTLED]
        if throttled:
            wait_s = min(result.throttle_time_ms for result in throttled) / 1000
            result_text.append(f"{len(throttled):,} throttled, to be sent again in {wait_s:,.1f} s")
        others = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.NOT_SENT)
        result_text += [f"{counts[outcome]:,} {outcome}" for outcome in others if counts[outcome]]
        if unknown := self.total - len(self._known):
            result_text.append(f"{unknown:,} {Outcome.INTERRUPTED}")
        return "; ".join(result_text)


def _interrupted(topic: str) -> TopicResult:
    return TopicResult(
        topic,
        Outcome.INTERRUPTED,
        "unknown: the request may not have been sent, or it may have succeeded",
    )


@contextmanager
def bar(results: Results) -> Iterator[ResultCallback]:
    """Show a progress bar on standard error if that is a terminal.

    Yields:
        A function to call with each result.
    """
    progress = Progress(
        TextColumn(results.done),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    progress.disable = not progress.console.is_terminal
    task = progress.add_task("", total=results.total)

    def result_text(result: TopicResult) -> None:
        results.add(result)
        progress.advance(task)

    with progress:
        yield result_text
