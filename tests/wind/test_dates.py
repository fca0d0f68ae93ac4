"""Dates and CSV files as people have them: read in one way, or refused; never sorted as text."""

from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from gridveil import wind
from gridveil.cli.commands import app
from gridveil.errors import InputError
from gridveil.wind.evaluation import evaluate
from gridveil.wind.io.dates import USUAL_FORMATS, check_format, read_dates

pytestmark = pytest.mark.filterwarnings("ignore::gridveil.privacy.seeded.NotPrivateWarning")

ROWS = 40 * 24


def table():
    """Forty days of hours across New Year, shuffled."""
    draws = np.random.default_rng(4)
    times = pd.date_range("2023-12-20", periods=ROWS, freq="h")
    speed = np.round(draws.uniform(3, 14, ROWS), 2)
    power = np.round(2000 * np.clip((speed / 12) ** 3 + draws.normal(0, 0.03, ROWS), 0, 1), 1)
    frame = pd.DataFrame({"when": times, "v": speed, "p": power})
    return frame.sample(frac=1, random_state=3).reset_index(drop=True)


def records(source, **more):
    call = {"time": "when", "name": "farm", **more}
    return wind.read_records(source, speed="v", power="p", capacity=2000, **call)


def written(frame, style):
    return frame.assign(when=frame["when"].dt.strftime(style))


@pytest.mark.parametrize("style", [*USUAL_FORMATS[::4], "%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M %p"])
def test_a_format_that_alone_fits_is_found(style):
    frame = table()
    found = records(written(frame, style))
    days = "H" not in style and "I" not in style
    expected = frame["when"].dt.floor("D") if days else frame["when"]
    seconds = np.sort(expected.to_numpy().astype("datetime64[s]").astype(np.int64))
    assert np.array_equal(found.groups[0].times(), seconds)
    # The control: as text these are in another order, but for years first.
    text = np.sort(frame["when"].dt.strftime(style).to_numpy())
    if style[1] != "Y":
        assert list(text) != list(written(frame.sort_values("when"), style)["when"])


@pytest.mark.parametrize("column", ["time", "key"])
def test_dates_that_two_formats_fit_are_refused_and_read_by_the_one_named(column):
    days = [pd.date_range(f"2024-0{month}-01", periods=72, freq="h") for month in (2, 3)]
    times = days[0].append(days[1])
    frame = pd.DataFrame({"when": times, "v": np.linspace(3, 14, 144), "p": 5.0})
    text = written(frame, "%d/%m/%Y %H:%M")
    names = {"time": None, column: "when"}
    with pytest.raises(InputError, match=r"%d/%m/%Y %H:%M and as %m/%d/%Y %H:%M.*--time-format"):
        records(text, **names)
    found = records(text, time_format="%d/%m/%Y %H:%M", **names)
    assert list(found.to_table(np.zeros(144))["when"]) == list(text["when"])
    other = records(text, time_format="%m/%d/%Y %H:%M", **names)
    assert list(other.to_table(np.zeros(144))["when"]) != list(text["when"])
    assert found.sketch() != other.sketch()


def test_dates_that_no_format_fits_are_refused():
    frame = written(table(), "%d/%m/%Y %H:%M")
    frame.loc[7, "when"] = "30/02/2024 10:00"  # there is no such day
    for names in ({}, {"time": None, "key": "when"}):
        with pytest.raises(InputError, match="none of the usual ways"):
            records(frame, **names)
    with pytest.raises(InputError, match="is not text in the format"):
        records(frame, time_format="%d/%m/%Y %H:%M")
    with pytest.raises(InputError, match="is not text in the format"):
        records(table(), time_format="%d/%m/%Y %H:%M")  # typed times have no format


@pytest.mark.parametrize(
    ("text", "style", "expected"),
    [
        ("1/31/2024 12:05am", "%m/%d/%Y %I:%M %p", datetime(2024, 1, 31, 0, 5)),
        ("1/31/2024 12:05 PM", "%m/%d/%Y %I:%M %p", datetime(2024, 1, 31, 12, 5)),
        ("1/31/2024 13:05 PM", "%m/%d/%Y %I:%M %p", None),
        ("31-jan-2024", "%d-%b-%Y", datetime(2024, 1, 31)),
        ("31-jum-2024", "%d-%b-%Y", None),
        ("31.12.69", "%d.%m.%y", datetime(1969, 12, 31)),
        ("31.12.68 100%", "%d.%m.%y 100%%", datetime(2068, 12, 31)),
        ("31.12.2024 24:00", "%d.%m.%Y %H:%M", None),
    ],
)
def test_odd_dates(text, style, expected):
    column = pa.array([None, text], pa.large_string())
    found = read_dates(column, check_format(style))
    assert (None if found is None else found.to_pylist()) == (
        None if expected is None else [None, expected]
    )


def test_formats_with_a_zone_are_read_by_utc():
    text = table().assign(when=lambda f: f["when"].dt.strftime("%d/%m/%Y %H:%M +0200"))
    found = records(text, time_format="%d/%m/%Y %H:%M %z")
    assert found.clock == "UTC"
    plain = records(table())
    assert (plain.groups[0].times() - found.groups[0].times() == 7200).all()


@pytest.mark.parametrize("bad", ["", "%d/%m", "%d/%m/%Y %q", "%d/%m/%Y %I", "%d/%d/%m/%Y", 5])
def test_formats_that_say_no_day_are_refused(bad):
    with pytest.raises(InputError, match="--time-format"):
        records(table(), time_format=bad)
    with pytest.raises(InputError, match="no column of times"):
        records(table(), time=None, time_format="%d/%m/%Y")


# -- CSV ------------------------------------------------------------------------------------------


def german(frame, path):
    text = frame.assign(note="a 1.5, b", when=frame["when"].dt.strftime("%d.%m.%Y %H:%M"))
    text.to_csv(path, sep=";", decimal=",", index=False)
    return path


def test_decimal_commas_come_back_as_they_were(tmp_path):
    frame = table()
    path = german(frame, tmp_path / "scada.csv")
    with pytest.raises(InputError, match="--decimal ,"):
        records(path)
    found = records(path, decimal=",", public=["note"])
    planned = wind.plan(found, epsilon=1, alpha="15%", method="laplace")
    made = planned.run(planned.study(1))
    plain = wind.plan(records(frame), epsilon=1, alpha="15%", method="laplace")
    assert np.array_equal(made.data["p"], plain.run(plain.study(1)).data["p"])
    out = made.write(tmp_path / "out")
    back = pd.read_csv(out / "records.csv", sep=";", decimal=",")
    assert np.allclose(back["p"], made.data["p"])
    ordered = frame.sort_values("when")
    assert np.array_equal(back["v"], ordered["v"])
    assert list(back["when"]) == list(ordered["when"].dt.strftime("%d.%m.%Y %H:%M"))
    assert set(back["note"]) == {"a 1.5, b"}
    settings = made.statement.body["settings"]
    assert (settings["decimal"], settings["sep"]) == (",", None)
    assert evaluate(out, path).rows == ROWS


def test_a_point_in_a_file_of_commas_is_not_read_as_one(tmp_path):
    path = tmp_path / "scada.csv"
    path.write_text("when;v;p\n2024-01-01 10:00;5,5;1.234\n")
    with pytest.raises(InputError, match="row 1"):
        records(path, decimal=",")


def test_a_sign_between_fields_can_be_named(tmp_path):
    path = tmp_path / "scada.csv"
    path.write_text("when~v,x~p\n2024-01-01 10:00~5~100\n")
    found = wind.read_records(path, speed="v,x", power="p", capacity=2000, time="when", sep="~")
    found.write(tmp_path / "out.csv", lambda: iter([np.array([0.5])]))
    assert (tmp_path / "out.csv").read_text() == "when~v,x~p\n2024-01-01 10:00~5~1000\n"
    with pytest.raises(InputError, match="has no column"):
        wind.read_records(path, speed="v,x", power="p", capacity=2000, time="when")


@pytest.mark.parametrize(
    "style",
    [{"sep": ";;"}, {"sep": '"'}, {"sep": "a"}, {"decimal": ";"}, {"sep": ",", "decimal": ","}],
)
def test_signs_that_can_not_be_used_are_refused(style):
    with pytest.raises(InputError, match=r"sep=|decimal="):
        records("none.csv", **style)


def test_tables_and_parquet_have_no_signs(tmp_path):
    table().to_parquet(tmp_path / "scada.parquet")
    for source in (table(), tmp_path / "scada.parquet"):
        with pytest.raises(InputError, match="CSV"):
            records(source, decimal=",")


def test_the_command_takes_all_of_it(tmp_path):
    path = german(table(), tmp_path / "scada.csv")
    words = f"wind release {path} --speed v --power p --capacity 2000 --alpha 15% --time when"
    words += f" --decimal , --sep ; --time-format '%d.%m.%Y %H:%M' -o {tmp_path / 'out'}"
    done = CliRunner().invoke(app, words + " --dry-run --dataset farm")
    assert done.exit_code == 0, done.output
    assert "by the time 'when', as written, without a zone" in done.output
