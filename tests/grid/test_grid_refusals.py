"""What a grid release refuses: bad public input, before anything is charged or written.

Private values never decide it, however strange they are.
"""

import contextlib
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grid.making import tables, write_case
from grid.releasing import (
    METHODS,
    SETS,
    entries_of,
    models_for,
    possible,
    request,
    tiny,
    tiny_case,
    with_values,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sizes import FULL
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.commands import app
from gridveil.errors import BudgetRefused, GridveilError, InputError, NotPrivateWarning
from gridveil.grid import Population, read_case
from gridveil.privacy.ledger import Ledger

NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("case"))


LOAD = {"parameter": "load"}
PAPER = {"method": "paper"}
LAPLACE = {"method": "laplace"}
BOTH = {"parameter": "capacity,cost"}

WRONG = [  # the settings, and words of what is said
    ({"epsilon": 0}, "epsilon must be a positive number"),
    ({"epsilon": -1}, "epsilon must be a positive number"),
    ({"epsilon": NAN}, "epsilon must be a positive number"),
    ({"epsilon": "much"}, "'much' is not"),
    ({"epsilon": "1e-14"}, "epsilon is too small"),
    ({"alpha": 0}, "alpha must be a positive number"),
    ({"alpha": -5}, "alpha must be a positive number"),
    ({"alpha": INF}, "alpha must be a positive number"),
    ({"alpha": "lots"}, "'lots' is not"),
    ({"alpha": 500}, r"more than the whole range \[1, 500\]"),
    ({"alpha": "1e-15"}, "more steps"),
    ({"alpha": "0.01%"}, "0.01% of each value"),
    ({**BOTH, "alpha": {"capacity": 5, "cost": "5%"}}, "can.t be a share of each value"),
    ({"dataset": ""}, "name of 1 to 200"),
    ({"alpha": {}}, "names no class"),
    ({"alpha": {"load": 5}}, "an alpha for each"),
    ({"alpha": {"capacity": 5, "load": 5}}, "an alpha for each"),
    ({**BOTH, "alpha": 5}, "different units"),
    ({"parameter": "voltage"}, "'voltage' is not a parameter"),
    ({"parameter": ""}, "not a parameter"),
    ({"parameter": "load,load"}, "named twice"),
    ({"parameter": ["capacity", 3]}, "type int"),
    ({"method": "best"}, "certified, paper, laplace"),
    ({"range": (0, 500)}, "positive lower end"),
    ({"range": (500, 1)}, "lower one first"),
    ({"range": (1, INF)}, "finite ends"),
    ({"range": (NAN, 500)}, "finite ends"),
    ({"range": (1, 2, 3)}, "pair of numbers"),
    ({"range": {"load": (0, 9)}}, "and no other"),
    ({**BOTH, "alpha": {"capacity": 5, "cost": 1}, "range": (1, 500)}, "one for each"),
    ({"margin": -0.1}, "margin is -0.1"),
    ({"margin": 0.7}, "between 0 and 0.5"),
    ({"margin": NAN}, "margin is nan"),
    ({"margin": "4%"}, "margin is '4%'"),
    ({"margin": True}, "margin is True"),
    ({"catalogue": []}, "list of ratings"),
    ({"catalogue": [80, 0]}, "all above 0"),
    ({"catalogue": [80, INF]}, "all above 0"),
    ({"catalogue": ["big"]}, "list of ratings"),
    ({**LOAD, "total_share": 1}, "below 1"),
    ({**LOAD, "total_share": -1}, "total_share must be a positive number"),
    ({**LOAD, "published_total": NAN}, "published_total is nan"),
    ({**LOAD, "published_total": INF}, "published_total is inf"),
    ({**LOAD, "published_total": 1e6}, "add up to the published total of 1e"),
    ({**LOAD, "published_total": -500}, "add up to the published total of -500"),
    ({**LOAD, "published_total": 150, "total_share": "1/2"}, "need not be bought"),
    ({**PAPER, "rounds": 0}, "rounds is 0"),
    ({**PAPER, "rounds": 2.5}, "whole number"),
    ({**PAPER, "rounds": True}, "rounds is True"),
    ({**PAPER, "rounds": 1001}, "between 1 and 1000"),
    ({**PAPER, "rounds": 1000, "epsilon": "1e-10"}, "epsilon is too small"),
    ({**PAPER, "price": 0}, "price must be a positive number"),
    ({**PAPER, "price": NAN}, "price must be a positive number"),
    ({**PAPER, "penalty": 5}, "above the price of"),
    ({**PAPER, "penalty": -5}, "penalty is -5"),
    ({**PAPER, "penalty": NAN}, "penalty is nan"),
    ({**PAPER, "penalty": INF}, "penalty is inf"),
    ({**PAPER, "penalty": "high"}, "penalty is 'high'"),
    ({**PAPER, "restoration": "magic"}, "steps or exact"),
    ({**PAPER, "restoration": "exact", "time_limit": -1}, "time_limit is -1"),
    ({**PAPER, "restoration": "exact", **LOAD}, "capacities alone"),
    ({**PAPER, **BOTH, "alpha": {"capacity": 5, "cost": 1}}, "can't release costs together"),
    # settings that mean nothing here
    ({"rounds": 10}, "rounds has no meaning"),
    ({"price": 100}, "price has no meaning"),
    ({"penalty": 3000}, "penalty has no meaning"),
    ({"time_limit": 5}, "time_limit has no meaning"),
    ({"restoration": "exact"}, "restoration has no meaning for method certified"),
    ({"published_total": 150}, "published_total has no meaning"),
    ({"total_share": "1/2"}, "total_share has no meaning"),
    ({**LOAD, "catalogue": [80]}, "catalogue has no meaning"),
    ({**LAPLACE, "catalogue": [80]}, "catalogue has no meaning"),
    ({**LAPLACE, "margin": 0.04}, "margin has no meaning"),
    ({**LAPLACE, **LOAD, "published_total": 150}, "published_total has no meaning"),
    ({**PAPER, "margin": 0.04}, "margin has no meaning"),
    ({**PAPER, "time_limit": 5}, "time_limit has no meaning"),
    # not what was meant
    ({"dataset": "\x00"}, "dataset"),
    ({"population": "models.parquet"}, "Population.read"),
    ({"seed": -1}, "0 or more"),
    ({"seed": "one"}, "'one'"),
]


def test_what_can_not_be_written_is_not_charged(network, ledger, monkeypatch):
    """The released file is made once beforehand, with public numbers in the private places."""
    seen = []

    def fails(released, path, parameters):
        seen.append((released.branches.capacity, path, parameters))
        raise InputError("It has no place in the format.")

    monkeypatch.setattr("gridveil.grid.io.matpower.write_release", fails)
    with pytest.raises(InputError, match="no place in the format"):
        grid.release(network, **request(("capacity",), ledger=ledger))
    [(capacity, path, parameters)] = seen
    assert (path, parameters) == (None, ("capacity",))
    assert not np.isin(capacity[:2], network.branches.capacity).any()
    assert ledger.entries() == []


@pytest.mark.parametrize(("wrong", "words"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_bad_public_input_charges_nothing(network, ledger, wrong, words):
    names = ("capacity",)
    call = {
        "epsilon": 1,
        "alpha": 5,
        "dataset": "tiny",
        "ledger": ledger,
        "population": models_for(network, names),
    }
    if "range" not in wrong and "parameter" not in wrong:
        call["range"] = (1, 500)
    if "parameter" in wrong:
        with contextlib.suppress(InputError):
            call["population"] = models_for(network, wrong["parameter"])
    with pytest.raises(InputError, match=words):
        grid.release(network, **{**call, **wrong})
    assert ledger.entries() == []


def test_an_object_that_is_no_network_is_refused(ledger):
    with pytest.raises(InputError, match="read_case"):
        grid.release("case.m", epsilon=1, alpha=5, dataset="tiny", ledger=ledger)


def test_nothing_to_release_is_refused(network, ledger):
    free = network.with_capacity(np.full(3, INF))
    with pytest.raises(InputError, match="no values of capacity to release: no line"):
        grid.release(free, epsilon=1, alpha=5, dataset="tiny", ledger=ledger)
    idle = network.with_load(np.zeros(3))
    with pytest.raises(InputError, match="no values of load to release: all are 0"):
        grid.release(
            idle,
            models_for(idle, "load"),
            parameter="load",
            epsilon=1,
            alpha=5,
            dataset="tiny",
            ledger=ledger,
        )
    assert ledger.entries() == []


def test_the_exact_restoration_is_refused_for_quadratic_costs(tmp_path, ledger):
    curved = read_case(write_case(tmp_path, tables()))
    call = {"epsilon": 1, "alpha": 5, "dataset": "tiny", "ledger": ledger, "range": (1, 500)}
    with pytest.raises(InputError, match="needs linear costs"):
        grid.release(
            curved, models_for(curved, "capacity"), method="paper", restoration="exact", **call
        )
    assert ledger.entries() == []


def test_a_cap_is_not_passed(network, ledger):
    ledger.set_cap("tiny", "1.5", alpha=5)
    models = models_for(network, "capacity")
    call = {"epsilon": 1, "alpha": 5, "method": "laplace", "dataset": "tiny", "ledger": ledger}
    grid.release(network, models, **call)
    with pytest.raises(BudgetRefused, match=r"requested 1, remaining 0\.5"):
        grid.release(network, models, **call)
    assert ledger.totals("tiny").spent == 1


# -- populations -----------------------------------------------------------------------------------


def other_populations(network):
    """Populations that do not fit a release of costs and capacities, and what is said of each."""
    wide = grid.cases.rts96()
    short = models_for(network, "capacity,cost")
    yield models_for(wide, "capacity,cost"), "does not match 4 models and 3 buses"
    yield Population(4, load=np.ones((3, 3))), "does not match 4 models"
    yield Population(4, load=np.full((4, 3), NAN)), "missing, infinite or negative"
    yield Population(4, load=np.full((4, 3), -1.0)), "missing, infinite or negative"
    yield Population(4, cost=np.full((4, 3), 30.0)), "the population holds costs"
    yield models_for(network, "capacity"), "made for private capacity, and capacity, cost"
    yield models_for(network, "load"), "made for private load"
    yield Population(4, load=np.full((4, 3), 50.0)), "generators can't cover the load"
    yield Population(4, p_max=np.full((4, 3), 0.1)), "can't cover"
    assert short.check(network) is short


def test_populations_that_do_not_fit_are_refused(network, ledger):
    names = ("capacity", "cost")
    for population, words in other_populations(network):
        with pytest.raises(InputError, match=words):
            grid.release(network, population, **request(names, ledger=ledger))
    assert ledger.entries() == []


def test_a_population_that_nobody_marked_is_taken(network, ledger, tmp_path):
    """Multipliers say nothing of what they multiply, whoever made them."""
    models = models_for(network, "capacity")
    unmarked = Population(4, load=models.load, p_min=models.p_min, p_max=models.p_max)
    assert unmarked.private == ()
    made = grid.release(
        network, unmarked, epsilon=1, alpha=5, method="laplace", dataset="tiny", ledger=ledger
    )
    assert made.population.size == 4
    path = tmp_path / "theirs.parquet"
    pq.write_table(pa.table({"load": models.load.tolist()}), path)
    theirs = Population.read(path, network)
    made = grid.release(
        network, theirs, epsilon=1, alpha=5, method="laplace", dataset="tiny", ledger=ledger
    )
    assert made.population.size == 4


def test_adequacy_is_not_asked_where_it_would_tell(network, ledger):
    """Ten times the load can't be covered; with loads private nobody may say so."""
    names = ("load",)
    models = Population(2, load=np.full((2, 3), 10.0))
    made = grid.release(network, models, **request(names, ledger=ledger))
    assert made.statement.body["settings"]["models"] == 2


def test_a_range_that_serves_no_model_is_refused(network, ledger):
    """Loads in kW: two units at the top of their range can't cover them."""
    names = ("generator_limit",)
    kilowatts = network.with_load(network.buses.load * 1000)
    with pytest.raises(InputError, match="No model can be served"):
        grid.release(kilowatts, models_for(kilowatts, names), **request(names, ledger=ledger))
    assert ledger.entries() == []
    wide = {"generator_limit": (-50, 500_000)}
    options = request(names, ledger=ledger, range=wide, method="laplace")
    assert grid.release(kilowatts, models_for(kilowatts, names), **options).statement.dp_valid


def test_a_range_of_loads_above_all_generation_is_refused(network, ledger):
    options = request(("load",), ledger=ledger, range={"load": (5000, 9000)})
    with pytest.raises(InputError, match="No model can be served"):
        grid.release(network, models_for(network, ("load",)), **options)


def test_one_model_that_can_be_served_is_enough(network, ledger):
    names = ("load",)
    models = Population(2, load=np.array([[1000.0] * 3, [1.0] * 3]))
    options = request(names, ledger=ledger, range={"load": (1, 300)}, method="laplace")
    assert grid.release(network, models, **options).population.size == 2


# -- the command line ------------------------------------------------------------------------------

COMMANDS = [  # options, exit code, words
    (["--alpha", "0"], 2, "alpha must be a positive number"),
    (["--alpha", "500", "--range", "1:400"], 2, "Give alpha in MW, at most 399"),
    (["--epsilon=-1"], 2, "epsilon must be a positive number"),
    (["--parameter", "voltage"], 2, "capacity, load, generator_limit, cost"),
    (["--method", "best"], 2, "certified, paper, laplace"),
    (["--range", "5"], 2, "--range 1:5000"),
    (["--range", "a:b"], 2, "where numbers are needed"),
    (["--range", "1:nan"], 2, "two finite ends"),
    (["--range", "1:9", "--range", "2:9"], 2, "--range capacity=1:5000 --range load=0:500"),
    (["--range", "=1:9"], 2, "can't be used"),
    (["--range", "capacity=1:9", "--range", "capacity=2:9"], 2, "can't be used"),
    (["--range", "load=1:9"], 2, "and no other"),
    (["--alpha", "capacity=5,load"], 2, "--alpha capacity=30,cost=1"),
    (["--alpha", "capacity=5,capacity=6"], 2, "one alpha for each"),
    (["--alpha", "=5"], 2, "one alpha for each"),
    (["--alpha", "load=5"], 2, "an alpha for each private parameter"),
    (["--parameter", "capacity,cost"], 2, "different units"),
    (["--margin", "1,2"], 2, "Write it as 4%"),
    (["--margin", "lots"], 2, "Write it as 4%"),
    (["--margin", "60%"], 2, "between 0 and 0.5"),
    (["--catalogue", "80,x"], 2, "Write it as 105,240,300"),
    (["--catalogue", "80,-1"], 2, "all above 0"),
    (["--published-total", "nan", "--parameter", "load"], 2, "published_total is nan"),
    (["--published-total", "150"], 2, "Leave published_total out"),
    (["--rounds", "5"], 2, "Leave rounds out"),
    (["--price", "90"], 2, "Leave price out"),
    (["--method", "paper", "--rounds", "0"], 2, "between 1 and 1000"),
    (["--method", "paper", "--penalty", "-5"], 2, "penalty is -5"),
    (["--method", "paper", "--restoration", "magic"], 2, "steps or exact"),
    (["--time-limit", "5"], 2, "Leave time_limit out"),
    (["--population", "nowhere.parquet"], 2, "nowhere.parquet"),
    (["--population", "other.parquet"], 2, "Use the network that the population was made for"),
    (["--population", "bare.parquet"], 2, "numbers, and the network has 3"),
    (["--population", "costs.parquet", "--parameter", "cost"], 2, "Make one with multipliers"),
    (["-o", "taken"], 2, "is not empty and is not a bundle"),
    (["--dataset", "capped"], 3, "remaining 0.5"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A case, and everything that the commands stumble over."""
    made = tmp_path_factory.mktemp("refusals")
    tiny_case(made)
    network, wide = read_case(made / "tiny.m"), grid.cases.rts96()
    models_for(wide, "capacity").write(made / "other.parquet", wide)
    models_for(wide, "capacity").write(made / "bare.parquet")
    Population(2, cost=np.full((2, 3), 30.0)).write(made / "costs.parquet", network)
    (made / "taken").mkdir()
    (made / "taken" / "mine").write_text("mine")
    Ledger(made / "ledger.sqlite").set_cap("capped", "1/2", alpha=5)
    return made


@pytest.mark.parametrize(
    ("options", "code", "words"), COMMANDS, ids=[" ".join(row[0]) for row in COMMANDS]
)
def test_a_command_with_bad_input_writes_and_charges_nothing(
    folder, monkeypatch, options, code, words
):
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    given = {"--alpha": "5", "-o": "out", "--dataset": "tiny", "--ledger": "ledger.sqlite"}
    flat = [part for pair in given.items() for part in pair]
    result = CliRunner().invoke(app, ["grid", "release", "tiny.m", *flat, *options])
    said = " ".join(result.stderr.split())
    assert result.exit_code == code, result.output
    assert words in said
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.output
    assert sorted(path.name for path in folder.iterdir()) == before
    assert [entry.kind for entry in Ledger("ledger.sqlite").entries()] == ["reference", "cap"]


# -- private values decide nothing -----------------------------------------------------------------

SIZES = st.sampled_from([1e-300, 1e-9, 1.0, 77.7, 1e5, 1e300])
OUTCOMES = [(names, method) for names in SETS for method in METHODS if possible(names, method)]
OUTCOMES = OUTCOMES if FULL else [pair for pair in OUTCOMES if len(pair[0]) in (1, 4)]
# Values that a network may hold though no file may: it can be made by hand.
ENDLESS = {"capacity": SIZES, "load": st.one_of(SIZES, st.just(INF))}


def outcome(network, models, call):
    """What a caller can tell without looking at the result."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)
            made = grid.release(network, models, **call)
    except GridveilError as error:
        return type(error), str(error)
    return GridRelease, sorted(made.statement.body["settings"])


GridRelease = "released"


def strange(data, network, names):
    """The network with other private values of the same public side: signs and support."""
    for name in names:
        real = entries_of(network, name)
        sizes = ENDLESS.get(name, SIZES)
        drawn = data.draw(st.lists(sizes, min_size=len(real), max_size=len(real)))
        signs = np.sign(real)
        if name == "capacity":
            signs = np.array(
                data.draw(
                    st.lists(
                        st.sampled_from([-1.0, 0.0, 1.0]), min_size=len(real), max_size=len(real)
                    )
                )
            )
        network = with_values(network, name, signs * np.array(drawn))
    return network


@pytest.mark.parametrize(("names", "method"), OUTCOMES)
def test_private_values_never_decide_an_outcome(network, names, method):
    models = models_for(network, names, 3)
    call = request(names, method=method, seed=1, **({"rounds": 1} if method == "paper" else {}))
    expected = outcome(network, models, call)
    assert expected[0] == "released"

    @settings(max_examples=60 if FULL else 6)
    @given(st.data())
    def check(data):
        assert outcome(strange(data, network, names), models, call) == expected

    check()


@settings(max_examples=60 if FULL else 10)
@given(st.data(), st.sampled_from([row[0] for row in WRONG if "parameter" not in row[0]]))
def test_a_refusal_says_the_same_whatever_the_private_values_are(data, wrong):
    network = NETWORK[0]
    call = {"epsilon": 1, "alpha": 5, "range": (1, 500), "seed": 1, **wrong}
    models = call.pop("population", models_for(network, "capacity"))
    assert outcome(network, models, call) == outcome(
        strange(data, network, ("capacity",)), models, call
    )


NETWORK = []


@pytest.fixture(scope="module", autouse=True)
def _keep(network):
    NETWORK.append(network)
