"""Populations: sampled from public knowledge, kept in Parquet, checked on public data only."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grid.making import pglib
from hypothesis import given, settings
from hypothesis import strategies as st

from gridveil.errors import GridveilError, InputError
from gridveil.grid import Population, cases, read_case, sample_population
from gridveil.grid.model.population import KEY, TABLE

NETWORK = cases.rts96()


def test_sampled_around_the_network():
    models = sample_population(NETWORK, 200, spread=0.1, costs=(80, 100))
    assert (models.load.shape, models.p_max.shape, models.cost.shape) == (
        (200, 73),
        (200, 99),
        (200, 99),
    )
    assert models.load.min() >= 0.9
    assert models.load.max() <= 1.1
    assert models.load.std() == pytest.approx(0.2 / np.sqrt(12), rel=0.05)
    np.testing.assert_array_equal(models.p_min, models.p_max)
    assert models.cost.min() >= 80
    assert models.cost.max() <= 100
    assert models.cost_factor is None
    assert models.capacity is None
    assert models.private == ("capacity",)
    assert models.problems(NETWORK) == []


def test_the_seed_decides_and_values_do_not():
    one, two = sample_population(NETWORK, 5, seed=3), sample_population(NETWORK, 5, seed=3)
    np.testing.assert_array_equal(one.load, two.load)
    assert not np.array_equal(one.load, sample_population(NETWORK, 5, seed=4).load)
    other = NETWORK.with_load(NETWORK.buses.load * 3).with_capacity(np.ones(120))
    np.testing.assert_array_equal(one.load, sample_population(other, 5, seed=3).load)
    _, public = NETWORK.split("load", (1, 1000))
    three = sample_population(public, 5, seed=3, private="load")
    np.testing.assert_array_equal(one.load, three.load)


def test_by_default_costs_are_the_networks_own_varied():
    models = sample_population(NETWORK, 50)
    assert models.cost is None
    assert 0.875 <= models.cost_factor.min() < 0.88 < 1.12 < models.cost_factor.max() <= 1.125
    assert sample_population(NETWORK, 5, private="cost").private == ("cost",)


def test_costs_as_multipliers_or_not_at_all():
    factors = sample_population(NETWORK, 50, costs=0.2)
    assert factors.cost is None
    assert 0.8 <= factors.cost_factor.min() < factors.cost_factor.max() <= 1.2
    none = sample_population(NETWORK, 5, costs=None)
    assert none.cost is None
    assert none.cost_factor is None


def test_values_of_a_private_parameter_are_refused():
    with pytest.raises(InputError, match="Costs are private here"):
        sample_population(NETWORK, 5, private="cost", costs=(80, 100))
    assert sample_population(NETWORK, 5, private="cost", costs=0.1).private == ("cost",)
    with pytest.raises(InputError, match="Costs are private here"):
        sample_population(NETWORK, 5, private="cost,capacity", costs=(80, 100))
    with pytest.raises(InputError, match="Costs are private here"):
        Population(1, cost=np.ones((1, 99)), private="cost")
    with pytest.raises(InputError, match="Costs are private here"):
        Population(1, cost=np.ones((1, 99)), private=["load", "cost"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "1 model or more"),
        ({"size": 2.5}, "1 model or more"),
        ({"spread": -0.1}, "spread is a share"),
        ({"spread": float("nan")}, "spread is a share"),
        ({"costs": 3.0}, "costs is a share"),
        ({"costs": (100, 80)}, "lower one first"),
        ({"costs": (1, 2, 3)}, "lower one first"),
        ({"costs": ("a", "b")}, "lower one first"),
        ({"costs": "cheap"}, "costs is a share"),
        ({"seed": -1}, "A seed is a whole number"),
        ({"seed": "now"}, "A seed is a whole number"),
        ({"private": "reactance"}, "not a parameter that can be private"),
        ({"private": "load,load"}, "named twice"),
        ({"private": ""}, "not a parameter that can be private"),
    ],
)
def test_numbers_that_make_no_sense(options, message):
    with pytest.raises(InputError, match=message):
        sample_population(NETWORK, **{"size": 5, **options})


def test_nothing_can_be_changed():
    models = sample_population(NETWORK, 2)
    with pytest.raises(ValueError, match="read-only"):
        models.load[0, 0] = 2


def test_repr():
    models = sample_population(NETWORK, 1000, costs=(80, 100), private="load, capacity")
    assert models.private == ("capacity", "load")
    assert repr(models).splitlines()[0] == "Population of 1,000 models"
    assert "load        73 buses, 0.875 to 1.125" in repr(models)
    assert "cost        99 generators, 80 to 100 $/MWh" in repr(models)
    assert "private     capacity, load" in repr(models)


@given(
    st.sets(st.sampled_from(sorted(TABLE))),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([(), ("capacity",), ("load",), ("capacity", "load", "generator_limit")]),
)
@settings(max_examples=30)
def test_parquet_round_trip(tmp_path_factory, arrays, size, named, private):
    path = tmp_path_factory.mktemp("models") / "models.parquet"
    given_arrays = {
        name: np.linspace(0.1, 3, size * len(getattr(NETWORK, TABLE[name]))).reshape(size, -1)
        for name in arrays
    }
    models = Population(size, private=private, **given_arrays)
    models.write(path, NETWORK if named else None)
    again = Population.read(path, NETWORK)
    assert (again.size, again.private) == (size, private)
    assert again.arrays().keys() == models.arrays().keys()
    for name, array in models.arrays().items():
        np.testing.assert_array_equal(getattr(again, name), array)


def test_a_users_own_scenarios(tmp_path):
    days = pd.DataFrame({"load": [[1.0] * 73, [1.1] * 73], "p_max": [[1] * 99, [1] * 99]})
    days.to_parquet(tmp_path / "days.parquet")
    models = Population.read(tmp_path / "days.parquet", NETWORK)
    assert models.size == 2
    assert models.load[1, 0] == 1.1
    assert models.private == ()


@pytest.mark.parametrize(
    ("stored", "private"),
    [
        (None, ()),
        ("load", ("load",)),
        ([], ()),
        (["load"], ("load",)),
        (["capacity", "load"], ("capacity", "load")),
        ({"load": 1}, None),
        (["voltage"], None),
        (7, None),
    ],
)
def test_what_a_file_says_is_private(tmp_path, stored, private):
    path = tmp_path / "models.parquet"
    Population(2).write(path)
    about = json.dumps({"names": {}, "private": stored}).encode()
    pq.write_table(pq.read_table(path).replace_schema_metadata({KEY: about}), path)
    if private is None:
        with pytest.raises(InputError, match=r"metadata .* is damaged|not a parameter"):
            Population.read(path, NETWORK)
    else:
        assert Population.read(path, NETWORK).private == private


def refused(path, frame, message):
    frame.to_parquet(path)
    with pytest.raises(InputError, match=message):
        Population.read(path, NETWORK)


def test_files_that_do_not_fit(tmp_path):
    path = tmp_path / "models.parquet"
    refused(path, pd.DataFrame({"load": [[1.0] * 72]}), "have 72 numbers, and the network has 73")
    refused(path, pd.DataFrame({"load": [None]}), "not lists of numbers")
    refused(path, pd.DataFrame({"load": [[1.0] * 73, None]}), "have different lengths")
    refused(path, pd.DataFrame({"load": [["a"] * 73]}), "does not hold numbers")
    refused(path, pd.DataFrame({"load": [[None] * 72 + [1.0]]}), "missing, infinite or negative")
    refused(path, pd.DataFrame({"load": [[-1.0] * 73]}), "missing, infinite or negative")
    refused(path, pd.DataFrame({"load": [1.0]}), "not lists of numbers")
    refused(path, pd.DataFrame({"power": [[1.0]]}), "mean nothing here: power")
    with pytest.raises(InputError, match="There is no population at"):
        Population.read(tmp_path / "none.parquet", NETWORK)
    path.write_bytes(b"rubbish")
    with pytest.raises(InputError, match="can't be read"):
        Population.read(path, NETWORK)
    sample_population(NETWORK, 2).write(path, NETWORK)
    renamed = replace(NETWORK.buses, name=tuple(f"b{n}" for n in NETWORK.buses.name))
    with pytest.raises(InputError, match="not those of the network"):
        Population.read(path, replace(NETWORK, buses=renamed))
    with pytest.raises(GridveilError, match="not those of the network"):
        Population.read(path, read_case(pglib("pglib_opf_case14_ieee")))


def test_shapes_and_values_are_checked():
    bad = Population(
        3, load=np.ones((2, 73)), p_max=np.full((3, 99), np.nan), cost=-np.ones((3, 9))
    )
    said = [f"{p.element}: {p.what}" for p in bad.problems(NETWORK)]
    assert said == [
        "load: it does not match 3 models and 73 buses",
        "cost: it does not match 3 models and 99 generators",
        "p_max: it holds numbers that are missing, infinite or negative",
    ]
    with pytest.raises(InputError, match="3 problems"):
        bad.check(NETWORK)
    with pytest.raises(InputError, match="not all numbers"):
        Population(1, load=[["a"]])


def test_models_without_enough_generation_are_named():
    load = np.ones((3, 73))
    load[1] = 2.0
    load[2] = 0.01
    models = Population(3, load=load)
    said = [(p.element, p.what) for p in models.problems(NETWORK)]
    assert said == [
        ("model 1", "generators can't cover the load"),
        ("model 2", "generators can't go down to the load"),
    ]
    assert Population(1, load=load[:1]).problems(NETWORK) == []


def test_every_island_is_asked():
    inside = [len({end[0] for end in name.split("-")}) == 1 for name in NETWORK.branches.name]
    cut = replace(NETWORK, branches=replace(NETWORK.branches, in_service=inside))
    load = np.ones((1, 73))
    load[0, :24] = 1.3
    found = Population(1, load=load).problems(cut)
    assert [(p.element, p.value) for p in found] == [("model 0", "island of bus 101")]
    assert Population(1, load=load).problems(NETWORK) == []


@pytest.mark.parametrize("private", ["load", "generator_limit", "capacity,load", "load,cost"])
def test_nothing_is_checked_against_a_private_parameter(private):
    heavy = np.full((2, 73), 9.0)
    assert Population(2, load=heavy, private=private).problems(NETWORK) == []
    limits = dict.fromkeys(private.split(","), (1, 1000))
    _, public = NETWORK.linearised().split(private, limits)
    assert Population(2, load=heavy).problems(public) == []
    assert Population(2, load=heavy, private="capacity").problems(public) == []
    limits = {"capacity": (1, 1000), "cost": (1, 1000)}
    _, public = NETWORK.linearised().split("capacity,cost", limits)
    assert len(Population(2, load=heavy).problems(public)) == 2


def test_names_of_columns_that_are_no_text(tmp_path):
    path = tmp_path / "models.parquet"
    Population(1, load=np.ones((1, 73))).write(path)
    path.write_bytes(path.read_bytes().replace(b"load", b"l\xffad"))
    with pytest.raises(InputError, match=r"models\.parquet can't be read"):
        Population.read(path, NETWORK)


def test_columns_twice_and_no_models_at_all(tmp_path):
    path = tmp_path / "models.parquet"
    column = pa.array([[1.0] * 73])
    pq.write_table(pa.Table.from_arrays([column, column], ["load", "load"]), path)
    with pytest.raises(InputError, match="several columns called load"):
        Population.read(path, NETWORK)
    pq.write_table(pa.table({"load": column[:0]}), path)
    with pytest.raises(InputError, match="has no models"):
        Population.read(path, NETWORK)
