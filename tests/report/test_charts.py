"""Charts: every point is where its numbers say."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridveil.report.charts import WIDTH, Chart, histogram, log_range, scatter, ticks
from gridveil.report.page import shown


def points(svg, kind):
    paths = re.findall(rf'<path class="{kind} c1"[^>]*d="([^"]*)"', svg)
    numbers = [
        [float(n) for n in re.findall(r"-?[\d.]+", path.replace("h0", ""))] for path in paths
    ]
    return np.array([pair for path in numbers for pair in zip(path[::2], path[1::2], strict=True)])


def test_a_line_goes_from_corner_to_corner():
    chart = Chart("x", "y", x_range=(0, 10), y_range=(0, 5))
    chart.line([0, 5, 10], [0, 2.5, 5], "c1")
    (x0, y0), (x1, y1), (x2, y2) = points(chart.svg(), "line")
    assert x0 < x1 < x2 <= WIDTH
    assert y0 > y1 > y2 >= 0  # up is down in SVG
    assert (x0 + x2) / 2 == pytest.approx(x1, abs=0.11)


def test_every_dot_is_drawn_once():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 1, (2, 100))
    chart = Chart("x", "y", x_range=(0, 1), y_range=(0, 1))
    chart.dots(x, y, "c1")
    drawn = points(chart.svg(), "dots")
    assert len(drawn) == 100
    slope = np.polyfit(np.sort(x), np.sort(drawn[:, 0]), 1)
    np.testing.assert_allclose(np.polyval(slope, np.sort(x)), np.sort(drawn[:, 0]), atol=0.1)


def test_what_is_outside_stays_at_the_edge():
    chart = Chart("x", "y", x_range=(0, 1), y_range=(0, 1))
    chart.line([-5, 5], [9, -9], "c1")
    drawn = points(chart.svg(), "line")
    assert (drawn >= 0).all()
    assert (drawn[:, 0] <= WIDTH).all()


def test_a_logarithmic_axis():
    chart = Chart("x", "y", x_range=(0.1, 10), y_range=(0, 1), log_x=True)
    chart.line([0.1, 1, 10], [0, 0, 0], "c1")
    x = points(chart.svg(), "line")[:, 0]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)
    assert all(f">{value}</text>" in chart.svg() for value in ("0.1", "0.5", "1", "10"))


@pytest.mark.parametrize("ends", [(0, 0), (3, 3), (1, 0)])
def test_a_range_without_width_is_no_error(ends):
    assert Chart("x", "y", x_range=ends, y_range=ends).svg().startswith("<svg")


@given(low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside(low, width):
    found = ticks(low, low + width)
    assert 2 <= len(found) <= 7
    slack = 1e-6 * max(abs(low), width)
    assert low - slack <= found[0]
    assert found[-1] <= low + width + slack


RATINGS = np.geomspace(10, 5000, 200).round(1)  # MW, as in a network of many voltages


def bars(picture):
    """The heights of a histogram's classes, above the axis."""
    path = re.search(r'class="steps[^"]*" d="M(.*?)"', picture)[1]
    levels = [float(pair.split()[1]) for pair in path.split("L")]
    return [max(levels) - level for level in levels[1:-1:2]]


def labels(picture, anchor="middle"):
    return re.findall(rf'class="tick"[^>]*anchor="{anchor}"[^>]*>([^<]*)', picture)


def test_ratings_that_span_decades_fill_many_classes():
    picture = histogram(RATINGS, "capacity (MW)", "lines", "c1")
    assert sum(height > 0 for height in bars(picture)) == 25
    assert labels(picture) == ["10", "20", "50", "100", "200", "500", "1,000", "2,000", "5,000"]


def test_ratings_of_one_size_keep_a_linear_axis():
    picture = histogram([100, 120, 150, 180, 200], "capacity (MW)", "lines", "c1")
    assert labels(picture) == ["100", "120", "140", "160", "180", "200"]
    assert log_range([100, 200]) is None


def test_zeros_and_tiny_values_stay_in_the_picture():
    values = [0.0, 1e-9, 1.0, 10.0, 5000.0]
    assert log_range(values) == (0.5, 5000.0)
    heights = bars(histogram(values, "x", "y", "c1"))
    assert heights[0] > heights[-1] > 0  # both at the lower end, one at the upper
    assert histogram([0.0, 0.0], "x", "y", "c1").startswith("<svg")


def test_a_scatter_of_ratings_uses_the_whole_picture():
    picture = scatter(RATINGS, RATINGS, "real (MW)", "released (MW)")
    dots = re.findall(r"M([\d.]+) [\d.]+h0", picture)
    across = sorted(float(one) for one in dots)
    middle = across[len(across) // 2]
    assert middle == pytest.approx((across[0] + across[-1]) / 2, rel=0.05)
    assert labels(picture, "end") == labels(picture)


SIZES = st.just(0.0) | st.floats(1e-6, 1e9).map(lambda value: float(f"{value:.4g}"))


@given(st.lists(SIZES, min_size=1, max_size=20))
def test_any_values_can_be_drawn(values):
    for picture in (histogram(values, "x", "y", "c1"), scatter(values, values[::-1], "x", "y")):
        assert "nan" not in picture
        assert "inf" not in picture
        assert len(labels(picture)) <= 9


@pytest.mark.parametrize("scale", [1e-5, 1e-3, 1, 1e5])
def test_numbers_of_any_size_have_digits(scale):
    text = shown(3.14159 * scale).replace(",", "")
    assert float(text) == pytest.approx(3.14159 * scale, rel=1e-3)
