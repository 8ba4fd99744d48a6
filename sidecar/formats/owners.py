"""Who owns users, client-ids and topics.

A name that ends in ``*`` is a prefix. The first rule that matches decides: users before client-ids,
exact names before prefixes, and longer prefixes before shorter ones.

Example::

    [payments]
    users = ["payments"]
    client_ids = ["etl-*"]
    topics = ["payments.*"]
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

NOBODY: Final = "(nobody)"
"""The owner of what no rule matches."""
USER: Final = "user"
CLIENT_ID: Final = "client_id"
TOPIC: Final = "topic"
_LISTS: Final = {"users": USER, "client_ids": CLIENT_ID, "topics": TOPIC}
_ORDER: Final = tuple(_LISTS.values())


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of an owner.

    Attributes:
        column: what is named: USER, CLIENT_ID or TOPIC.
        text: the name, or the prefix.
        is_prefix: whether it is a prefix.
        owner: the owner.
    """

    column: str
    text: str
    is_prefix: bool
    owner: str

    def matches(self, name: str) -> bool:
        """Return whether the rule matches a name of its column."""
        return name.startswith(self.text) if self.is_prefix else name == self.text


@dataclass(frozen=True, slots=True)
class Owners:
    """The rules, in the order in which they decide."""

    rules: tuple[Rule, ...]

    def of_topic(self, topic: str) -> str:
        """Return the owner of a topic."""
        of_topics = (rule for rule in self.rules if rule.column == TOPIC)
        return next((rule.owner for rule in of_topics if rule.matches(topic)), NOBODY)


def in_order(rules: Iterable[Rule]) -> Owners:
    """Return the rules in the order in which they decide."""
    return Owners(
        tuple(
            sorted(
                rules,
                key=lambda rule: (
                    _ORDER.index(rule.column),
                    rule.is_prefix,
                    -len(rule.text),
                    rule.text,
                ),
            )
        )
    )


def owners_in(document: Mapping[str, object], source: str) -> Owners:
    """Read the owners in a document.

    Args:
        document: owner -> list -> names.
        source: what messages call it, such as its file.

    Raises:
        ValueError: it can't be used; the message names the owner and the list.
    """
    rules: dict[tuple[str, str, bool], Rule] = {}
    for owner, lists in document.items():
        if not isinstance(lists, dict) or not owner or owner == NOBODY:
            raise ValueError(f"{source}: {owner} must be a table of an owner, such as [payments]")
        for name, texts in lists.items():
            where = f"{source}: {owner}.{name}"
            if name not in _LISTS:
                raise ValueError(f"{where} is not a key here; use {', '.join(_LISTS)}")
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise ValueError(f'{where} must be a list of names, such as ["etl", "etl-*"]')
            for text in texts:
                if _LISTS[name] == TOPIC and "*" in text[:-1]:
                    raise ValueError(f'{where}: "{text}" has a * before its end; use a prefix')
                rule = Rule(_LISTS[name], text.removesuffix("*"), text.endswith("*"), owner)
                first = rules.setdefault((rule.column, rule.text, rule.is_prefix), rule)
                if first.owner != owner:
                    raise ValueError(f'{where}: "{text}" belongs to {first.owner} too; remove one')
    return in_order(rules.values())
