"""Pictures of networks: buses where the file has them, congested lines that can be seen."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from grid.releasing import tiny
from matplotlib.colors import to_hex

from gridveil.grid import cases
from gridveil.grid.evaluation import ParameterError
from gridveil.grid.io import Source
from gridveil.grid.owner_report import value_row, values_picture
from gridveil.grid.picture import (
    CONGESTED,
    bus_positions,
    draw_network,
    map_svg,
    mapped_positions,
    paint_network,
)
from gridveil.grid.report import _places
from gridveil.report.picture_style import ORANGE, new_figure


def point(x, y):
    return json.dumps({"type": "Point", "coordinates": [x, y]})


def on_pandapower(network, texts):
    net = SimpleNamespace(bus=pd.DataFrame({"geo": texts}))
    return replace(network, source=Source("pandapower", net))


def on_pypsa(network, x, y):
    static = pd.DataFrame({"x": x, "y": y})
    data = SimpleNamespace(network=SimpleNamespace(c={"Bus": SimpleNamespace(static=static)}))
    return replace(network, source=Source("pypsa", data))


@pytest.fixture
def network(tmp_path):
    """Three buses in a triangle."""
    return replace(tiny(tmp_path), source=None)


PLACES = [(0.0, 0.1), (3.0, 0.1), (3.0, 4.1)]
INSIDE = [(0.0, 0.0), (0.75, 0.0), (0.75, 1.0)]


def test_coordinates_of_the_file_are_used(network):
    for given in (
        on_pandapower(network, [point(*place) for place in PLACES]),
        on_pypsa(network, *np.array(PLACES).T),
    ):
        assert bus_positions(given) == pytest.approx(np.array(INSIDE), abs=2e-3)
        assert _places(given) == "Places are the coordinates of the file."
    assert "from the topology" in _places(network)


def test_degrees_are_drawn_as_on_a_map(network):
    place = bus_positions(on_pypsa(network, [5.0, 15.0, 5.0], [55.0, 55.0, 65.0]))
    assert place[1, 0] / place[2, 1] == pytest.approx(np.cos(np.radians(175 / 3)))


def test_a_bus_without_a_place_is_among_its_neighbours(network):
    given = on_pandapower(network, [point(0, 100), point(400, 100), None])
    assert bus_positions(given) == pytest.approx(np.array([(0, 0), (1, 0), (0.5, 0)]))


@pytest.mark.parametrize(
    "texts",
    [
        [None, None, None],
        [point(1, 1), None, None],
        [point(1, 1)] * 3,
        ["no json", point(1, 1), "{}"],
        [point("x", "y"), point(None, 1), '{"coordinates": 5}'],
        ["[" * 10_000, point(float("nan"), 1), point(1, float("inf"))],
        [1.5, float("nan"), "[]"],
    ],
)
def test_without_enough_places_the_topology_decides(network, texts):
    given = on_pandapower(network, texts)
    assert mapped_positions(given) is None
    assert (bus_positions(given) == bus_positions(network)).all()


def test_pypsas_zeros_are_no_places(network):
    assert mapped_positions(on_pypsa(network, [0.0] * 3, [0.0] * 3)) is None
    static = SimpleNamespace(static=pd.DataFrame({"v_nom": [1.0] * 3}))
    bare = SimpleNamespace(network=SimpleNamespace(c={"Bus": static}))
    assert mapped_positions(replace(network, source=Source("pypsa", bare))) is None
    assert mapped_positions(replace(network, source=Source("matpower", None))) is None


def test_congested_lines_stand_out():
    network = cases.rts96(variant="paper")
    loading = np.linspace(0, 1, len(network.branches))
    figure, axes = new_figure()
    paint_network(figure, axes, network, loading)
    figure.canvas.draw()
    free, full = axes.collections[:2]
    assert len(full.get_segments()) == int((loading > CONGESTED).sum()) == 11
    assert len(free.get_segments()) == len(loading) - 11
    assert {to_hex(one) for one in full.get_colors()} == {ORANGE.lower()}
    assert min(full.get_linewidths()) > max(free.get_linewidths())
    assert full.get_zorder() > free.get_zorder()
    shades = free.to_rgba(free.get_array())[:, :3]
    assert np.ptp(shades, axis=1).max() < 0.12  # greys: no colour but that of congested lines
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "line above 90%" in words


def strokes(svg, joint="L"):
    """Colour, width, opacity and number of segments of every path, in the order of drawing."""
    look = r'class="stroke (\w+)" stroke-width="([\d.]+)" stroke-opacity="([\d.]+)" d="([^"]*)"'
    return [
        (colour, float(width), float(opacity), path.count(joint))
        for colour, width, opacity, path in re.findall(look, svg)
        if joint in path
    ]


def test_the_map_of_a_page_has_every_line_and_congested_ones_stand_out():
    network = cases.rts96(variant="paper")
    loading = np.linspace(0, 1, len(network.branches))
    svg = map_svg(network, loading, width=np.zeros(len(loading)))
    drawn = strokes(svg)
    assert sum(count for *_, count in drawn) == len(loading)
    full = [one for one in drawn if one[0] == "c2"]
    free = [one for one in drawn if one[0] == "c0"]
    assert sum(count for *_, count in full) == 11
    assert drawn == free + full  # those that stand out lie on top
    assert min(width for _, width, _, _ in full) > 2.5 * max(width for _, width, _, _ in free)
    opacities = [opacity for _, _, opacity, _ in free]
    assert opacities == sorted(set(opacities))  # the fuller, the darker
    assert len(opacities) > 4
    buses = strokes(svg, "h0")
    assert [colour for colour, *_ in buses] == ["c0", "c1", "c3"]
    assert sum(count for *_, count in buses) == len(network.buses)
    assert "loading of other lines" in svg


def test_the_map_of_a_page_shows_capacity_where_nothing_is_known_of_loading():
    network = cases.rts96(variant="paper")
    svg = map_svg(network, None, width=np.linspace(0, 1, len(network.branches)))
    drawn = strokes(svg)
    assert {colour for colour, *_ in drawn} == {"c0"}
    assert {opacity for _, _, opacity, _ in drawn} == {1.0}
    widths = [width for _, width, _, _ in drawn]
    assert widths == sorted(set(widths))
    assert len(widths) > 4
    assert "loading" not in svg


def test_the_map_of_a_page_keeps_shape_and_stays_inside(network):
    given = on_pypsa(network, [1000.0, 1300.0, 1300.0], [1000.0, 1000.0, 1400.0])
    svg = map_svg(given, None, width=np.ones(3))
    across, down = np.array(re.findall(r"M([\d.]+) ([\d.]+)h0", svg), float).T
    wide, tall = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())
    assert (across > 0).all()
    assert (down > 0).all()
    assert across.max() < wide
    assert down.max() < tall
    assert np.ptp(across) / np.ptp(down) == pytest.approx(300 / 400, abs=0.01)
    assert "nan" not in map_svg(on_pypsa(network, [1, 2, 3], [5, 5, 5]), None, width=np.ones(3))


def test_a_picture_without_congestion(tmp_path):
    network = cases.rts96(variant="paper")
    draw_network(network, np.zeros(len(network.branches)), tmp_path / "a.png", title="Idle")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_the_owners_scatter_of_ratings_over_decades():
    real = np.geomspace(10, 5000, 50)
    picture = values_picture("capacity", real, real * 1.1)
    assert ">10<" in picture.source
    assert ">1,000<" in picture.source


def test_small_errors_are_shown_with_their_digits():
    one = ParameterError("load", "MW", 5, 0.000432, 0.00091, 0.1, 0.0987, None, None)
    assert value_row(one) == ("load", "5", "0.000432 MW", "0.00091 MW", "0.0987", "0.1")
