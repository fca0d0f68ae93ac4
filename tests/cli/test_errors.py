"""Every mistake a user can make on the command line is met with what, where and what to do."""

import os
import socket

import pytest
from pyarrow import csv
from typer.testing import CliRunner

from gridveil.cli.commands import app
from gridveil.privacy.ledger import Ledger
from gridveil.wind.demo import demo_records

W = "--speed wind_speed --power power --capacity 2750 --alpha 15% --dataset t"
C = "--speed wind_speed --power power --alpha 15% -o out"
A = "--speed wind_speed --power power --capacity 2750 -o out"

# The command, its exit code, and words that must be in what it says.
LONG = "x" * 300
TABLE = [
    # files that are not there, not readable, not what they should be
    (f"wind release nowhere.csv {W} -o out", 2, "There is no file nowhere.csv"),
    (f"wind release t.csv {W.replace('wind_speed', 'wind')} -o out", 2, "'wind'"),
    (f"wind release t.csv {W.replace('--power power', '--power kw')} -o out", 2, "'kw'"),
    (f"wind release t.csv {W.replace('--power power', '--power wind_speed')} -o out", 2, None),
    (f"wind release gap.csv {W} -o out", 2, "--missing drop"),
    (f"wind release text.csv {W} -o out", 2, "holds text"),
    (f"wind release rows.csv {W} -o out", 2, "has no rows"),
    (f"wind release empty.csv {W} -o out", 2, "is empty"),
    (f"wind release bad.parquet {W} -o out", 2, "damaged or cut short"),
    (f"wind release sheet.xlsx {W} -o out", 2, ".parquet"),
    (f"wind release calm.csv {W} -o out", 2, "name features"),
    (f"wind release bare {W} -o out", 2, None),
    # settings
    (f"wind release t.csv {C} --capacity big", 2, "'big' is not a number"),
    (f"wind release t.csv {C} --capacity 0", 2, "capacity"),
    (f"wind release t.csv {C} --capacity T1=5", 2, "turbine"),
    (f"wind release t.csv {A} --alpha 0", 2, "Write alpha as 1, 0.1, 1/3 or 15%"),
    (f"wind release t.csv {A} --alpha lots", 2, "'lots' is not"),
    (f"wind release t.csv {A} --alpha 200%", 2, "at most 1"),
    (f"wind release t.csv {W} -o out --epsilon 0", 2, "epsilon must be a positive number"),
    (f"wind release t.csv {W} -o out --epsilon=-1", 2, "epsilon must be a positive number"),
    (f"wind release t.csv {W} -o out --method magic", 2, "tuned, synthetic, wpo, laplace"),
    (f"wind release t.csv {W} -o out --features waves(3)", 2, "'waves(3)' is not a feature map"),
    (f"wind release t.csv {W} -o out --split 1,2", 2, "three shares that add up to 1"),
    (f"wind release t.csv {W} -o out --split a,b,c", 2, "positive number"),
    (f"wind release t.csv {W} -o out --nominal 5", 2, "share of capacity"),
    (f"wind release t.csv {W} -o out --ridge=-1", 2, "between 0 and 1e+06"),
    (f"wind release t.csv {W} -o out --missing maybe", 2, "refuse"),
    (f"wind release t.csv {W} -o out --key when", 2, "'when'"),
    (f"wind release t.csv {W} -o out --public hub", 2, "'hub'"),
    (f"wind release t.csv {W} -o out --public power", 2, "power"),
    (f"wind release t.csv {W} -o out --turbine wind_speed", 2, "column of its own"),
    # where to write
    (f"wind release t.csv {W} -o full", 2, "--force replaces bundles only"),
    (f"wind release t.csv {W} -o made", 2, "replace it with --force"),
    (f"wind release t.csv {W} -o file", 2, "is a file or a link"),
    (f"wind release t.csv {W} -o file/out", 2, "file is a file"),
    (f"wind release t.csv {W} -o /proc/out", 2, "may write"),
    ("demo -o file", 2, "file is a file"),
    # the ledger
    (f"wind release t.csv {W} -o out --ledger /proc/ledger", 2, "--ledger FILE"),
    (f"wind release t.csv {W} -o out --ledger .", 2, "is a folder"),
    (f"wind release t.csv {W} -o out --ledger text.csv", 2, "newest backup"),
    (f"wind release t.csv {W} -o out --dataset capped --distinct x", 3, "short by 0.5"),
    (f"wind release t.csv {W} -o out --dataset other", 3, "--distinct"),
    (f"wind release t.csv {W} -o out --dataset=", 2, "1 to 200 printable"),
    (f"wind release t.csv {W} -o out --distinct=", 2, "1 to 500 printable"),
    (f"wind release t.csv {W.replace('15%', '1%')} -o out --dataset demo", 3, "counts 15 times"),
    ("ledger show nobody", 2, "lists those that it has"),
    ("ledger show --ledger nowhere", 2, "The first release or cap makes it"),
    ("ledger cap demo", 2, "--remove"),
    ("ledger cap demo lots", 2, "'lots' is not"),
    ("ledger cap demo 0", 2, "positive number"),
    ("ledger cap bare 1", 2, "needs the alpha that it is about"),
    ("ledger cap demo 1 --alpha 0.1", 2, "may be a share or an amount"),
    ("ledger cap demo 1 --alpha lots", 2, "must be a positive number"),
    ("ledger cap demo 1 --alpha 30", 2, "is in another unit"),
    ("ledger reference demo --alpha 5%", 2, "would lower it"),
    ("ledger reference demo --alpha Power=5%", 2, "can't be a key"),
    ("ledger verify --bundle nowhere", 2, "no bundle at nowhere"),
    ("ledger verify --ledger text.csv", 2, "newest backup"),
    # bundles
    ("verify nowhere", 2, "Name the folder of a bundle"),
    ("wind evaluate nowhere --against t.csv", 2, "no bundle at nowhere"),
    ("wind evaluate made --against nowhere.csv", 2, "There is no file nowhere.csv"),
    ("wind evaluate made --against calm.csv", 2, "Give the file that the release was made from"),
    ("wind evaluate made --against t.csv --report made/owner.html", 2, "is inside the bundle"),
    ("wind evaluate made --against t.csv --report no/owner.html", 2, "folder that is there"),
    # the page
    ("plan --no-browser --public calm.csv", 2, "--capacity NUMBER"),
    ("plan --no-browser --public sheet.xlsx", 2, ".m, .json, .nc"),
    ("plan --no-browser --public nowhere.csv --capacity 5", 2, "There is no file nowhere.csv"),
    ("plan --no-browser --port 99999", 2, "65535"),
    ("plan --no-browser --port TAKEN", 2, "Name another port"),
    # networks
    ("grid info nowhere.m", 2, "nowhere.m"),
    ("grid info sheet.xlsx", 2, ".m, .json, .nc"),
    ("grid info empty.m", 2, "empty.m"),
    ("grid solve rts96 --model magic", 2, "strict, relaxed, shed, limits"),
    ("grid solve rts96 --model relaxed", 2, "--slack-price"),
    ("grid solve rts96 --population nowhere.parquet", 2, "There is no population at"),
    ("grid solve rts96 --population bad.parquet", 2, "Check the file"),
    ("grid solve rts96 --workers 0", 2, "from 1"),
    ("grid solve rts96 -o no/costs.parquet", 2, "folder that is there"),
    ("grid solve rts96 --plot no/picture.png", 2, "folder that is there"),
    ("grid solve rts96 --plot picture.doc", 2, ".png or .svg"),
    ("grid population rts96 -o no/models.parquet", 2, "folder that is there"),
    ("grid population rts96 -o models.parquet --size 0", 2, "from 1"),
    ("grid population rts96 -o models.parquet --spread 3", 2, "between 0 and 1"),
    ("grid population rts96 -o models.parquet --private wind", 2, "capacity, load"),
    ("grid population rts96 -o models.parquet --costs cheap", 2, "--costs 80:100"),
    ("grid population rts96 -o models.parquet --costs 5", 2, "--costs 12.5%"),
    ("grid population rts96 -o models.parquet --costs 100:80", 2, "--costs 80:100"),
    ("grid population rts96 -o m.parquet --private cost --costs 80:100", 2, "--costs none"),
    # releases of networks
    ("grid release nowhere.m --alpha 30 -o out", 2, "nowhere.m"),
    ("grid release rts96 --alpha 0 -o out", 2, "alpha must be a positive number"),
    ("grid release rts96 --alpha 30 --parameter wind -o out", 2, "capacity, load"),
    ("grid release rts96 --alpha 30 --parameter load,cost -o out", 2, "--alpha load=...,cost=..."),
    ("grid release rts96 --alpha load=3 -o out", 2, "alpha for each private parameter"),
    ("grid release rts96 --alpha 30 --epsilon=-1 -o out", 2, "epsilon must be a positive number"),
    ("grid release rts96 --alpha 30 --method magic -o out", 2, "certified, paper, laplace"),
    ("grid release rts96 --alpha 30 --range high -o out", 2, "Write --range 1:5000"),
    ("grid release rts96 --alpha 30 --range 1:2:3 -o out", 2, "Write --range 1:5000"),
    ("grid release rts96 --alpha 30 --range 0:500 -o out", 2, "positive lower end"),
    ("grid release rts96 --alpha 30 --range 900:50 -o out", 2, "got 900 and 50. Write the lower"),
    ("grid release rts96 --alpha 30 --only voltage>=900 -o out", 2, "none fits voltage>=900"),
    ("grid release rts96 --alpha 30 --unlimited-above 1 -o out", 2, "none fits below 1 MW"),
    ("grid release rts96 --alpha 30MW -o out", 2, "30, 0.5 or 1/3, in MW"),
    ("grid release rts96 --alpha 30 --margin 80% -o out", 2, "between 0 and 0.5"),
    ("grid release rts96 --alpha 30 --total-share 50% -o out", 2, "Leave total_share out"),
    ("grid release rts96 --alpha 30 --catalogue many -o out", 2, "Write it as 105,240,300"),
    ("grid release rts96 --alpha 30 --rounds 0 --method paper -o out", 2, "between 1 and 1000"),
    ("grid release rts96 --alpha 30 --population bad.parquet -o out", 2, "Check the file"),
    ("grid release rts96 --alpha 30 -o made", 2, "replace it with --force"),
    ("grid release rts96 --alpha 30 --method laplace -o out", 2, "--dataset NAME"),
    ("grid release rts96 --alpha 30 --method laplace -o out --ledger new", 2, "--dataset NAME"),
    ("grid release rts96 --alpha 30 --method laplace --dataset capped -o out", 3, "short by 0.5"),
    ("grid evaluate nowhere --against rts96", 2, "no bundle at nowhere"),
    ("grid evaluate made --against rts96", 2, "holds no network"),
    ("grid evaluate made --against rts96 --report made/owner.html", 2, "is inside the bundle"),
    # audits and studies
    ("audit --only magic", 2, None),
    ("audit --fast --json no/verdicts.json", 2, None),
    ("study fig2 --runs 0 -o study", 2, None),
    ("study fig2 --epsilon lots -o study", 2, None),
    ("study fig2 -o file", 2, None),
    ("study fig2 --alpha 5 -o study", 2, "at most 1"),
    ("study fig3 --alpha 5%,150% -o study", 2, "at most 1"),
    ("study frontier --alpha 3 -o study", 2, "at most 1"),
    # names that are too long for the file system
    (f"wind release {LONG}.csv {W} -o out", 2, "There is no file"),
    (f"wind evaluate made --against {LONG}.csv", 2, "There is no file"),
    (f"grid release {LONG}.m --alpha 30 -o out", 2, "File name too long"),
    (f"grid release {LONG}.raw --alpha 30 -o out", 2, "File name too long"),
    (f"grid release {LONG}.xiidm --alpha 30 -o out", 2, "There is no file"),
    (f"grid release rts96 --parameter load --alpha 5 --series {LONG}.csv -o out", 2, "no file"),
    (f"grid release rts96 --alpha 30 --population {LONG}.parquet -o out", 2, "no population"),
    (f"grid release rts96 --alpha 30 --contingencies {LONG}.txt -o out", 2, "File name too long"),
    (f"grid release rts96 --alpha 30 -o {LONG}", 2, "File name too long"),
    (f"grid release rts96 --alpha 30 --dataset x --ledger {LONG} -o out", 2, "File name too long"),
    (f"ledger show --ledger {LONG}", 2, "no ledger"),
    (f"verify {LONG}", 2, "File name too long"),
    (f"release {LONG}.toml", 2, "File name too long"),
    # words that the command line does not know
    ("wnid", 2, "Did you mean 'wind'?"),
    ("wind relaese", 2, "Did you mean 'release'?"),
    ("--colour", 2, "No such option"),
    ("wind release t.csv", 2, "Missing option"),
    ("wind release", 2, "Missing argument"),
    ("verify", 2, "Missing argument"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Everything that the commands of the table stumble over."""
    made = tmp_path_factory.mktemp("errors")
    csv.write_csv(demo_records(60), made / "t.csv")
    texts = {
        "gap.csv": "wind_speed,power\n1,2\n,3\n",
        "text.csv": "wind_speed,power\n1,secret\n2,3\n",
        "rows.csv": "wind_speed,power\n",
        "empty.csv": "",
        "calm.csv": "wind_speed,power\n5,2\n5,3\n",
        "bad.parquet": "x",
        "sheet.xlsx": "x",
        "empty.m": "",
        "file": "x",
    }
    for name, text in texts.items():
        (made / name).write_text(text)
    for name in ("full", "bare"):
        (made / name).mkdir()
    (made / "full" / "x").write_text("x")
    book = Ledger(made / "ledger.sqlite")
    book.set_cap("capped", "0.5", alpha="15%")
    book.set_cap("demo", 10, alpha="15%")
    arguments = f"wind release t.csv {W} -o made --method laplace --dataset demo"
    result = _run(made, arguments)
    assert result.exit_code == 0, result.output
    return made


def _run(folder, command):
    here = os.getcwd()
    os.chdir(folder)
    try:
        environment = {"GRIDVEIL_LEDGER": str(folder / "ledger.sqlite")}
        return CliRunner().invoke(app, command.split(), env=environment, prog_name="gridveil")
    finally:
        os.chdir(here)


@pytest.mark.parametrize(("command", "code", "words"), TABLE, ids=[row[0] for row in TABLE])
def test_a_mistake_is_told_with_its_remedy(folder, command, code, words):
    if "/proc" in command and not os.path.isdir("/proc"):
        pytest.skip("there is no folder that nobody may write")
    before = sorted(path.name for path in folder.iterdir())
    entries = len(Ledger(folder / "ledger.sqlite").entries())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = _run(folder, command.replace("TAKEN", str(taken.getsockname()[1])))
    said = " ".join(result.stderr.replace("│", " ").split())
    assert result.exit_code == code, result.output
    assert words is None or words in said
    assert "Traceback" not in result.output
    assert "internal error" not in result.output
    assert "secret" not in result.output
    told = result.stderr.startswith("error: ") and "\n       " in result.stderr
    assert told or "Try 'gridveil" in said, said
    assert sorted(path.name for path in folder.iterdir()) == before
    assert len(Ledger(folder / "ledger.sqlite").entries()) == entries
