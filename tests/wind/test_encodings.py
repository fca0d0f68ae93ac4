"""CSV files that are not UTF-8."""

import gzip

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gridveil import wind
from gridveil.cli.commands import app
from gridveil.errors import InputError
from gridveil.privacy.sealed import unseal
from gridveil.wind.evaluation import evaluate

ROWS = 30_000  # more text than one block of a reader
NAMED = {"speed": "vind ø", "power": "kraft", "capacity": 2000, "key": "tid", "decimal": ","}


@pytest.fixture(scope="module")
def text():
    rng = np.random.default_rng(1)
    numbers = zip(rng.uniform(3, 25, ROWS).round(2), rng.uniform(0, 2000, ROWS), strict=True)
    rows = [f"{at};Sø{'æ' * (at % 7)};{v};{p}" for at, (v, p) in enumerate(numbers)]
    return "\n".join(["tid;sted;vind ø;kraft", *rows, ""]).replace(".", ",")


def read(path, **options):
    return wind.read_records(path, **NAMED, public=["sted"], **options)


def values(records):
    return np.concatenate(list(unseal(records.power)()))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("encoding", ["latin-1", "Windows-1252", "utf-16", "utf-16-be", "utf-32"])
def test_any_encoding_is_read_as_utf8_is(tmp_path, text, encoding, name, stream):
    plain, other = tmp_path / "plain.csv", tmp_path / name
    plain.write_bytes(text.encode("utf-8-sig"))  # whose mark is left out, as always
    body = text.encode(encoding)
    other.write_bytes(gzip.compress(body, 1) if name.endswith(".gz") else body)
    with pytest.raises(InputError, match="--encoding"):
        read(other)
    one, two = read(plain), read(other, encoding=encoding, stream=stream)
    assert np.array_equal(values(one), values(two))
    shares = np.linspace(0, 1, ROWS)
    for records, file in ((one, "one.csv"), (two, "two.csv")):
        records.write(tmp_path / file, lambda: iter([shares]))
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_a_mark_at_the_start_is_left_out_of_any_encoding(tmp_path):
    body = "v,p\n5,1\n"
    for encoding in ("utf-8", "utf-16-le", "utf-32-be"):
        (tmp_path / "a.csv").write_bytes(f"\ufeff{body}".encode(encoding))
        found = wind.read_records(
            tmp_path / "a.csv", speed="v", power="p", capacity=2, encoding=encoding
        )
        assert found.rows == 1


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
def test_the_statement_says_it_and_the_owner_compares(tmp_path, text):
    path = tmp_path / "scada.csv"
    path.write_bytes("".join(text.splitlines(keepends=True)[:201]).encode("cp1252"))
    planned = wind.plan(read(path, encoding="cp1252"), epsilon=1, alpha="15%", method="laplace")
    made = planned.run(planned.study(1))
    assert made.statement.body["settings"]["source_encoding"] == "cp1252"
    out = made.write(tmp_path / "out")
    back = pd.read_csv(out / "records.csv", sep=";", decimal=",")
    assert back["sted"].str.startswith("Sø").all()
    assert evaluate(out, path).rows == 200


@pytest.mark.parametrize(
    "name",
    ["", "none", "hex", "rot13", "cp037", "utf-7", "unicode_escape", "idna", "a\0b", "é" * 50, 5],
)
def test_encodings_that_can_not_be_used_are_refused(name):
    with pytest.raises(InputError, match=r"is not known.*encoding="):
        read("none.csv", encoding=name)


def test_tables_and_parquet_have_no_encoding(tmp_path):
    table = pd.DataFrame({"v": [1.0], "p": [1.0]})
    table.to_parquet(tmp_path / "a.parquet")
    for source in (table, tmp_path / "a.parquet"):
        with pytest.raises(InputError, match="CSV"):
            wind.read_records(source, speed="v", power="p", capacity=2, encoding="latin-1")


def test_questions_and_commands_take_it(tmp_path, text, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = text.splitlines(keepends=True)[:201]
    (tmp_path / "scada.csv").write_bytes("".join(lines).encode("utf-16"))
    answers = ["wind", "scada.csv", "", "utf-16", "", "vind ø", "kraft", "2000", "tid", ""]
    run = CliRunner().invoke
    asked = run(app, ["init"], input="\n".join([*answers, "15%", "1", "farm", "out", ""]))
    assert asked.exit_code == 0, asked.output
    assert "scada.csv is not CP1252 text" in asked.output  # the first answer, in brackets
    assert "Columns: tid, sted, vind ø, kraft." in asked.output
    file = tmp_path / "release.toml"
    file.write_text(file.read_text("utf-8").replace("\ntime =", "\nkey ="), "utf-8")
    with file.open("a") as stream:
        stream.write('method = "laplace"\n')
    made = run(app, ["release", "release.toml", "--quiet"])
    assert made.exit_code == 0, made.output
    again = run(app, ["init", "b.toml", "--from", "out"], input="scada.csv\nfarm\nnext\n")
    assert again.exit_code == 0, again.output
    repeated = (tmp_path / "b.toml").read_text("utf-8")
    assert 'encoding = "utf-16"' in repeated
    assert 'decimal = ","' in repeated  # which files with semicolons are asked for
