"""What the source of the brokers' jar shows without compiling it."""

import re
from pathlib import Path

from sidecar.throttle.limits import LIMIT_TYPES

ROOT = Path(__file__).parents[2]
READER = "deploy/quota-callback/src/main/java/throttlesidecar/reading/DocumentReader.java"


def test_the_jar_knows_every_limit_type() -> None:
    """A document with a type that the jar does not know keeps brokers from using the sidecar."""
    source = (ROOT / READER).read_text(encoding="utf-8")
    known = set(re.findall(r'\btype\.equals\("(\w+)"\)', source))
    assert {each.name for each in LIMIT_TYPES} == known, (
        f"LIMIT_TYPES in sidecar/throttle/limits differs from {READER}: add the type to both"
    )
