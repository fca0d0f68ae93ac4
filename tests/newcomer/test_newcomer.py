"""A newcomer with real files makes every mistake there is, and is stopped before the charge.

The mistakes are those that owners made with turbines' and networks' files. Each is typed at a
terminal; what is shown must say what is wrong and name the remedy, and the ledger must stay empty.
"""

import sys

import numpy as np
import pandas as pd
import pytest

from gridveil.grid import cases, sample_population
from gridveil.privacy.ledger import Ledger
from gridveil.wind.demo import demo_records

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

from newcomer.terminal import Terminal

ASKED = "Release all the same? [y/N]: "
WIND = (
    "gridveil wind release {} --speed ws --power kw --capacity {} --alpha {} --dataset farm -o out"
)
GRID = (
    "gridveil grid release case.m --method laplace --population models.parquet --dataset grid "
    "-o out"
)


def wind(file="scada.csv", capacity="2000", alpha="15%", more=""):
    return f"{WIND.format(file, capacity, alpha)} --method laplace {more}"


# What is typed, and what must be among the words that are shown.
REFUSED = {
    "a column that is not there": (
        wind(more="--time when").replace("kw", "power"),
        "has no column 'power'. Its columns: 'when', 'turbine_id', 'ws', 'kw'",
    ),
    "a share without its sign": (wind(alpha="15"), "Give alpha as a share of capacity, at most 1"),
    "a missing alpha": (wind().replace("--alpha 15%", ""), 'alpha="15%" (--alpha 15%)'),
    "days before months": (
        wind("texts.csv", more="--time when"),
        'time_format="%d/%m/%Y %H:%M" (--time-format), or write them as 2024-01-31 13:50',
    ),
    "dates as text": (
        wind("texts.csv", more="--key when --turbine turbine_id"),
        "as text they would come in the order of their letters",
    ),
    "missing values": (wind("gaps.csv", more="--time when"), "--missing drop"),
    "a day without times": (wind("bare.csv", more="--protect day"), "(--time)"),
    "a method that is not there": (
        wind(more="--time when").replace("laplace", "best"),
        "There is no method 'best'. Use tuned,",
    ),
    "a parameter that is not there": (
        f"{GRID} --parameter capacities --alpha 30",
        "capacity, load, generator_limit, cost",
    ),
    "an alpha for something else": (
        f"{GRID} --alpha load=30",
        "Give an alpha for each private parameter",
    ),
    "a population for something else": (
        f"{GRID} --parameter load --alpha 10",
        "Make one with the private parameters of this release",
    ),
    "models that can't be served": (
        f"{GRID} --alpha 30 --range 50:1000".replace("models.parquet", "heavy.parquet"),
        "model 0: generators can't cover the load (island of bus 101). Leave the model out",
    ),
    "codes for missing speeds": (
        wind("codes.csv"),
        "Check the speed column and its unit (m/s), or name features",
    ),
    "a row of units": (wind("units.csv"), "Remove rows of units and codes for errors"),
    "lines above the headings": (wind("above.csv"), "remove what is above the headings"),
    "a workbook": (wind("scada.xlsx"), "save a workbook as CSV"),
    "no name for the data": (
        wind("bare.csv").replace("--dataset farm", ""),
        "--dataset",
    ),
    "a key that no file has": ("gridveil release odd.toml", "Did you mean epsilon?"),
    "a file that is not there": ("gridveil release none.toml", "gridveil init"),
    "a file without what is needed": ("gridveil release short.toml", 'Add a line speed = "..."'),
}

# What is typed, and the words of the plan that the newcomer then says no to.
DOUBTED = {
    "no time and no key": (
        wind(),
        "which came first is lost. Name the column of times with --time (time=), or another key "
        "with --key (key=). Columns that were not named: 'when', 'turbine_id'",
    ),
    "several turbines as one": (wind(more="--time when"), "add --turbine turbine_id"),
    "every key twice": (
        wind("pooled.csv", more="--key step"),
        "are these several turbines? Name their column with --turbine",
    ),
    "keys that repeat": (
        wind("again.csv", more="--key step"),
        "2 of 50 rows have the key 'step' of another row of their turbine. Check for duplicates",
    ),
    "a clock that is set back": (
        wind("back.csv", more="--time when"),
        "If a clock was set back, write times with their zone, as 2024-10-27 02:30+01:00",
    ),
    "a file for each turbine": (
        wind("one.csv two.csv", more="--time when"),
        "are these several turbines? Name their column with --turbine",
    ),
    "power in other units": (
        wind("mega.csv").replace("--power kw", "--power power_mw"),
        "names MW, and values and --capacity are taken as kW. Give the capacity in MW",
    ),
    "speeds in km/h": (wind("kilometres.csv"), "no site is so windy. Convert other units"),
    "a capacity in other units": (
        wind("bare.csv", capacity="2.0"),
        "A capacity of 2 kW is small for wind power",
    ),
    "speeds in other units": (
        wind("feet.csv"),
        "Wind speeds go from 8 to 75, and m/s are expected. Convert other units",
    ),
    "a step far below the range": (
        wind("bare.csv", alpha="0.15%"),
        "alpha is 0.15% of capacity",
    ),
    "an epsilon that protects nothing": (
        wind("bare.csv", more="--epsilon 50"),
        "Epsilon 50 is next to no protection",
    ),
    "a unit that drowns the curve": (
        wind(more="--time when --turbine turbine_id --protect day"),
        "the release will tell next to nothing. What would work: the method synthetic",
    ),
    "too few days to draw records from": (
        wind(alpha="100%", more="--time when --turbine turbine_id --protect day").replace(
            "laplace", "synthetic"
        ),
        "There are 4 days of one turbine, too few for the method synthetic",
    ),
    "features that miss the speeds": (
        wind("bare.csv", more="--features 'polynomial(2, 5, 9)'"),
        "Give features that cover the speeds (--features)",
    ),
    "a step that drowns most lines": (
        f"{GRID} --alpha 400 --range 50:1000",
        "drowns most values of capacity, which are about 230 MW by their voltages",
    ),
    "a step in other units": (
        f"{GRID} --alpha 0.03",
        "such small steps hide next to nothing. Give a larger --alpha",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files as owners have them."""
    here = tmp_path_factory.mktemp("newcomer")
    table = demo_records(400, seed=1).to_pandas().round(2)
    table.columns = ["ws", "kw"]
    farm = pd.DataFrame(
        {
            "when": np.tile(pd.date_range("2024-01-01", periods=200, freq="10min"), 2),
            "turbine_id": np.repeat(["A", "B"], 200),
            "ws": table.ws,
            "kw": table.kw.clip(upper=2000),
        }
    )
    farm.to_csv(here / "scada.csv", index=False)
    farm.assign(when=farm.when.dt.strftime("%d/%m/%Y %H:%M")).to_csv(
        here / "texts.csv", index=False
    )
    farm.assign(kw=farm.kw.where(farm.index != 7)).to_csv(here / "gaps.csv", index=False)
    bare = farm[["ws", "kw"]][:50]
    bare.to_csv(here / "bare.csv", index=False)
    bare.assign(ws=bare.ws.where(bare.index != 3, -999.0)).to_csv(here / "codes.csv", index=False)
    bare.assign(ws=np.linspace(8, 75, 50)).to_csv(here / "feet.csv", index=False)
    units = pd.DataFrame([{"ws": "m/s", "kw": "kW"}])
    pd.concat([units, bare.astype(object)]).to_csv(here / "units.csv", index=False)
    (here / "above.csv").write_text("Farm North\n" + (here / "bare.csv").read_text())
    (here / "scada.xlsx").write_bytes(b"PK")
    times = farm.when[:50]
    bare.assign(when=[*times[:49], times[48]]).to_csv(here / "back.csv", index=False)
    for name in ("one.csv", "two.csv"):
        bare.assign(when=times).to_csv(here / name, index=False)
    bare.assign(kw=bare.kw / 1000).rename(columns={"kw": "power_mw"}).to_csv(
        here / "mega.csv", index=False
    )
    bare.assign(ws=np.linspace(9, 45, 50)).to_csv(here / "kilometres.csv", index=False)
    bare.assign(step=np.arange(50) // 2).to_csv(here / "pooled.csv", index=False)
    bare.assign(step=np.minimum(np.arange(50), 47)).to_csv(here / "again.csv", index=False)
    network = cases.rts96()
    network.write(here / "case.m")
    models = sample_population(network, 5)
    models.write(here / "models.parquet", network)
    heavy = models.load.copy()
    heavy[:2] *= 3
    type(models)(**{**vars(models), "load": heavy}).write(here / "heavy.parquet", network)
    (here / "odd.toml").write_text('kind = "wind"\nepsilonn = 1\n')
    (here / "short.toml").write_text('kind = "wind"\ndata = "scada.csv"\noutput = "out"\n')
    return here


@pytest.fixture(scope="module")
def terminal(folder):
    opened = Terminal(folder)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _nothing_is_left(folder):
    """Whatever was typed: no charge, no bundle."""
    yield
    assert not (folder / "out").exists()
    ledger = folder / "ledger.sqlite"
    assert not ledger.exists() or Ledger(ledger).entries() == []


@pytest.mark.parametrize(("typed", "words"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_refused_with_its_remedy(terminal, typed, words):
    shown, code = terminal.run(typed)
    assert "error:" in shown
    assert words in shown
    assert code == 2


@pytest.mark.parametrize(("typed", "words"), DOUBTED.values(), ids=DOUBTED)
def test_what_is_unusual_is_asked_about(terminal, typed, words):
    shown, code = terminal.run(typed, (ASKED, "n"))
    assert "Takes for granted:" in shown
    assert words in shown
    assert "Stopped: nothing was opened, charged or written." in shown
    assert code == 2


def test_a_dry_run_asks_nothing(terminal):
    shown, code = terminal.run(wind(more="--dry-run"))
    assert "which came first is lost" in shown
    assert "Nothing was opened, charged or written." in shown
    assert code == 0
