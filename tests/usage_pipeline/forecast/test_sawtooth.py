"""The fit of a saw: its floor and growth, whatever its teeth; and when it is refused."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.usage_pipeline.saws import GB, every_5_minutes, saw
from usage_pipeline.forecast.growth import Floats
from usage_pipeline.forecast.sawtooth import FEWEST_READINGS, Refused, Saw, fit, teeth

WEEK = every_5_minutes(168)


def fitted(hours: Floats, used: Floats) -> Saw:
    found = fit(hours, used)
    assert isinstance(found, Saw), found
    return found


class TestTeeth:
    def test_each_deletion_is_a_peak_and_a_valley(self) -> None:
        """24 hours of teeth of 6 are cut at -18, -12, -6 and 0, of which the last is not over."""
        hours = every_5_minutes(23.5)
        found = teeth(hours, saw(hours))
        assert [-18.0, -12.0, -6.0] == hours[found.valleys].tolist()
        assert [-18 - 1 / 12, -12 - 1 / 12, -6 - 1 / 12] == pytest.approx(
            hours[found.peaks].tolist()
        )

    def test_a_deletion_of_several_readings_is_one(self) -> None:
        """Segments are deleted one by one while others are written; a rise takes several, too."""
        used = np.array([10, 20, 30, 24, 24.5, 18, 12, 22, 21.5, 32, 12, 22, 32]) * GB
        found = teeth(np.arange(13.0), used)
        assert ([2, 9], [6, 10]) == (found.peaks.tolist(), found.valleys.tolist())

    def test_what_log_cleaning_does_is_no_tooth(self) -> None:
        """Its dents are a two-thousandth of what is used."""
        used = 500 * GB + WEEK * GB - 0.2 * GB * (np.arange(len(WEEK)) % 7 == 0)
        assert 0 == len(teeth(WEEK, used).valleys)


class TestFit:
    def test_the_teeth_do_not_move_it(self) -> None:
        """The module's example has 0.50 GB an hour, where lines through all say 0.39 to 0.68."""
        hours = every_5_minutes(23.5)
        lines = []
        for shift_h in np.arange(0, 6, 0.5):
            used = saw(hours, shift_h=shift_h)
            lines.append(np.polyfit(hours, used, 1)[0] / GB)
            found = fitted(hours, used)
            assert 0.5 * GB == pytest.approx(found.growth, rel=0.02)
            assert 60 * GB == pytest.approx(found.floor_bytes, rel=0.01)
            assert 20 * GB == pytest.approx(float(np.median(found.heights)), rel=0.03)
        assert (0.39, 0.68) == (round(min(lines), 2), round(max(lines), 2))

    @given(
        growth=st.floats(-2, 2),
        rise=st.floats(8, 80),
        period_h=st.floats(1.5, 20),
        shift_h=st.floats(0, 20),
    )
    def test_any_regular_saw_is_found(
        self, growth: float, rise: float, period_h: float, shift_h: float
    ) -> None:
        """It grows, shrinks or neither, within a five hundredth of a tooth an hour."""
        # A floor that falls takes from the rise.
        tooth = rise - min(0.0, growth * period_h)
        # A rise of less than a fifth of the spread, which is most of a tooth, is no turn.
        assume(4 * rise >= tooth)
        used = saw(
            WEEK,
            floor=900 * GB,
            growth=growth * GB,
            tooth=tooth * GB,
            period_h=period_h,
            shift_h=shift_h,
        )
        found = fitted(WEEK, used)
        assert growth * GB == pytest.approx(found.growth, abs=tooth * GB / 500)
        assert 168 / period_h - 3 <= found.teeth <= 168 / period_h + 1

    def test_readings_that_beat_with_the_teeth_are_no_change(self) -> None:
        """Teeth are a second under two hours: the valleys that are read rise and fall for days."""
        found = fitted(WEEK, saw(WEEK, growth=0.0, period_h=1.99962, shift_h=1.0))
        assert 0.0 == pytest.approx(found.growth, abs=0.02 * GB)
        assert 60 < found.points

    def test_a_reassignment_does_not_bend_it(self) -> None:
        """300 GB came on the last but one of seven days, and left again half a day later."""
        used = saw(WEEK) + 300 * GB * ((WEEK > -36) & (WEEK < -24))
        assert 0.5 * GB == pytest.approx(fitted(WEEK, used).growth, rel=0.05)

    @pytest.mark.parametrize("size", [300, -300])
    def test_a_step_is_not_growth(self, size: int) -> None:
        """300 GB came two days ago and stayed, or a topic of 300 GB was deleted."""
        used = saw(WEEK, floor=900 * GB) + size * GB * (WEEK > -48)
        found = fitted(WEEK, used)
        assert 0.5 * GB == pytest.approx(found.growth, rel=0.02)
        assert (900 + size) * GB == pytest.approx(found.floor_bytes, rel=0.01)

    @pytest.mark.parametrize("period_h", [3, 6, 12])
    @pytest.mark.parametrize("size", [300, -300])
    def test_a_step_is_not_growth_from_the_second_deletion_after_it(
        self, period_h: float, size: int
    ) -> None:
        """A month of teeth has more deletions than points of a line, and the last two count."""
        month = every_5_minutes(28 * 24)
        used = saw(month, floor=500 * GB, growth=0.0, period_h=period_h, shift_h=period_h / 2)
        found = fitted(month, used + size * GB * (month > -2 * period_h))
        assert 0.0 == pytest.approx(found.growth, abs=0.05 * GB)
        assert (500 + size) * GB == pytest.approx(found.floor_bytes, rel=0.01)

    def test_a_disk_that_retention_has_not_cut_has_no_teeth(self) -> None:
        """The line leads through all readings."""
        found = fitted(WEEK, 200 * GB + 2 * GB * WEEK * 0.5)
        assert (0, 0) == (found.teeth, len(found.rises))
        assert 1 * GB == pytest.approx(found.growth)
        assert 200 * GB == pytest.approx(found.floor_bytes)

    def test_a_dip_or_two_are_no_retention(self) -> None:
        """It grows for ten days, then not, and is 3 GB less for some hours: 1 % of its growth."""
        used = 500 * GB + np.minimum(WEEK + 100, 0) * 4 * GB
        found = fitted(WEEK, used - 3 * GB * ((WEEK > -50) & (WEEK < -45)))
        assert 0 == found.teeth
        assert 0.0 == pytest.approx(found.growth, abs=0.01 * GB)

    def test_a_disk_that_stands_still_grows_by_nothing(self) -> None:
        """There is neither a tooth nor a division by 0."""
        found = fitted(WEEK, np.full(len(WEEK), 7 * GB))
        assert (0.0, 0) == (found.growth, found.teeth)

    @pytest.mark.parametrize("growth", [0.0, 0.25, 1.5])
    def test_growth_is_that_of_the_time_since_it_changed(self, growth: float) -> None:
        """It went from 0.5 GB an hour to none, half and thrice, two days ago: 8 deletions."""
        used = saw(WEEK) + np.where(WEEK > -48, (growth - 0.5) * GB * (WEEK + 48), 0.0)
        found = fitted(WEEK, used)
        assert growth * GB == pytest.approx(found.growth, abs=0.01 * GB)
        assert 7 <= found.points <= 9
        assert 24 <= found.teeth

    def test_the_newest_quarter_tells_of_a_change_first(self) -> None:
        """0.3 GB an hour for 36 hours is under days of 20 GB: two lines are not far better."""
        used = saw(WEEK, growth=0.0, floor=300 * GB) + 10 * GB * np.sin(WEEK * np.pi / 12)
        found = fitted(WEEK, used + np.where(WEEK > -36, 0.3 * GB * (WEEK + 36), 0.0))
        assert 27 == found.points
        assert 0.2 * GB < found.newest_growth
        assert abs(found.growth) < 0.1 * GB

    def test_surprises_are_those_of_their_time(self) -> None:
        """A change is none: regular teeth have no surprises before it or after it."""
        used = saw(WEEK) + np.where(WEEK > -48, GB * (WEEK + 48), 0.0)
        assert np.abs(fitted(WEEK, used).surprises).max() < 0.02 * GB

    def test_rises_are_those_of_the_teeth(self) -> None:
        """They are 20 GB in 6 hours, and the floor besides."""
        found = fitted(WEEK, saw(WEEK))
        assert [20 / 6 + 0.5] * (found.teeth - 1) == pytest.approx((found.rises / GB).tolist())

    def test_the_deletion_of_a_topic_does_not_hide_teeth(self) -> None:
        """500 GB are deleted at once, and teeth of 20 GB are small beside that: all 27 are seen."""
        found = fitted(WEEK, saw(WEEK, floor=900 * GB) + 500 * GB * (WEEK < -60))
        assert 0.5 * GB == pytest.approx(found.growth, rel=0.02)
        assert (27, 10) == (found.teeth, found.points)


class TestRefused:
    def test_one_or_two_deletions_tell_no_growth(self) -> None:
        """The message has the number that is needed, and what to do."""
        hours = every_5_minutes(17)
        assert Refused(
            "the history has 2 deletions; a forecast needs 3 to separate growth from retention;"
            " if usage falls at weekends, wait for the third one; if a topic was deleted, exclude"
            " that time with --history-days"
        ) == fit(hours, saw(hours))

    def test_few_readings(self) -> None:
        """Eleven are too few, and twelve are enough."""
        hours = np.arange(-11.0, 1.0)
        used = 5 * GB + hours
        assert Refused(f"there are 11 readings; a forecast needs {FEWEST_READINGS}") == fit(
            hours[1:], used[1:]
        )
        assert isinstance(fit(hours, used), Saw)

    def test_two_periods_far_apart(self) -> None:
        """Thinned by time, three hours and a day of readings are two points, of no slope."""
        hours = np.concatenate([every_5_minutes(3) - 2000, every_5_minutes(24)])
        assert Refused(
            "the history has 2 short periods far apart; exclude the earlier one with --history-days"
        ) == fit(hours, 600 * GB + 0.2 * GB * hours)
