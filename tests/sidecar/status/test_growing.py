"""The status page tells who fills a volume, and whether a throttle stops that."""

from dataclasses import replace

import pytest

from sidecar.growth.capability import GrowthCapability
from tests.sidecar.api.build import FakeSidecar
from tests.sidecar.growth.build import MB, Scene
from tests.sidecar.status.outline import Outline, outline

ARRIVES: tuple[tuple[int, dict[str, int]], ...] = (
    (95 * MB, {}),
    (95 * MB + 600_000, {"orders": 600_000}),
)


async def _nothing(broker_id: int) -> dict[str, object]:
    raise AssertionError(f"nobody runs what asks broker {broker_id}")


async def page_of(scene: Scene) -> Outline:
    """The page of a sidecar with a reader and these volumes."""
    capability = GrowthCapability(scene.watch, lambda steady_s: steady_s)
    sidecar = FakeSidecar(board=scene.board, ask=_nothing, growth=capability)  # type: ignore[arg-type]
    sidecar.clock.now = scene.clock.now
    sidecar.read_by(1)
    return await outline(sidecar)


async def test_who_fills_it() -> None:
    """Each part has its size and growth; the last row is what they add up to."""
    scene = Scene()
    grown = (95 * MB + 900_000, {"orders": 60 * MB + 600_000})
    await scene.read((95 * MB, {"orders": 60 * MB}), grown)
    page = await page_of(scene)
    assert "What fills /d of broker 1" in page.headings
    for words in (
        "Topic orders (partitions led here) grows by 10.0 kB/s, 67 % of the growth.",
        "topic orders (partitions led here)60.6 MB+10.0 kB/s",
        "files of no partition35.3 MB+5.0 kB/s",
        "All used bytes95.9 MB+15.0 kB/s",
    ):
        assert words in page.words
    assert "Throttling producers does not stop" not in page.words


async def test_before_a_second_reading() -> None:
    """Sizes are shown, and that growth is not known yet."""
    scene = Scene()
    await scene.read(ARRIVES[0])
    assert "What grows is known after a second reading" in (await page_of(scene)).words


async def test_the_headline_says_that_a_throttle_does_not_stop_it() -> None:
    """A reassignment fills the volume; commands slow it or cancel it."""
    scene = Scene(arriving={("orders", 0): (1, 3)})
    await scene.read(*ARRIVES)
    page = await page_of(scene)
    assert page.headings[1].endswith(
        "On /d of broker 1: throttling producers does not stop its growth by 10.0\u00a0kB/s: "
        "100\u00a0% of that is not written by producers, most by replicas of orders that a "
        "reassignment moves here."
    )
    plan = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 3]}]}'
    assert f"echo '{plan}' > arriving.json" in page.words
    assert "--reassignment-json-file arriving.json --cancel" in page.words


async def test_the_headline_names_a_plan_that_overfills_a_volume() -> None:
    """The commands list the partitions that bring most."""
    scene = Scene(
        arriving={(name, 0): (1, 3) for name in ("clicks", "orders")},
        sizes={("clicks", 0): 7 * MB, ("orders", 0): 60 * MB},
    )
    await scene.read((50 * MB, {"clicks": 5 * MB, "orders": 5 * MB}), left=50 * MB)
    page = await page_of(scene)
    text = "Reassignments still bring 57.0\u00a0MB to /d of broker 1, which has 40.0\u00a0MB left"
    assert f"{text} above its limit. The commands below slow that, or cancel it" in page.headings[1]
    assert "That is 17.0 MB more than the volume has left above its limit." in page.words
    first, second = (page.words.index(f'"topic": "{name}"') for name in ("orders", "clicks"))
    assert first < second


@pytest.mark.parametrize(("count", "text"), [(101, "100 of 101 partitions"), (100, "")])
async def test_commands_for_a_part_of_a_plan_say_so(count: int, text: str) -> None:
    """Slowing them leaves the others as fast, and cancelling them has to be repeated."""
    partitions = [(f"t{number}", 0) for number in range(count)]
    sizes = dict.fromkeys(partitions, MB)
    scene = Scene(arriving=dict.fromkeys(partitions, (1, 3)), sizes=sizes)
    await scene.read((50 * MB, {}), left=50 * MB)
    words = (await page_of(scene)).words
    names = f"The file names {text}, those that bring most."
    for more in ("The others stay as fast.", "Repeat this with what the page shows a minute later"):
        assert bool(text) == (f"{names} {more}" in words) == (more in words)


async def test_unknown_reassignments() -> None:
    """The page says so, since their replicas would count as their topic's."""
    scene = Scene()
    await scene.read(*ARRIVES)
    known = scene.contents.known(1)
    assert known is not None
    split = known.splits["/d"]
    unknown = replace(split, placement=replace(split.placement, arriving=None))
    scene.contents._brokers[1].contents = replace(known, splits={"/d": unknown})
    assert "Reassignments could not be read" in (await page_of(scene)).words
