"""The recipient's check finds what is wrong, and says it in plain words."""

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.making import FACTS, adjacency, make_release, spend_some

from gridveil.errors import InputError, NotPrivateWarning
from gridveil.privacy.account import study_account
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.statement import STATEMENT_FILE, make_statement
from gridveil.release.bundle import OWNER_MARK
from gridveil.release.plan import Release
from gridveil.release.verification import verify_bundle


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    return make_release(Ledger(folder / "ledger.sqlite")).write(folder / "out")


@pytest.fixture
def folder(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "out")


def failed(folder) -> dict[str, str]:
    return {one.check: one.text for one in verify_bundle(folder) if not one.ok}


def edit(folder, change) -> None:
    path = folder / STATEMENT_FILE
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))


def test_a_sound_bundle_passes(folder):
    assert failed(folder) == {}


def test_it_says_how_strong_the_guarantee_is(folder):
    (found,) = [one for one in verify_bundle(folder) if one.check == "strength"]
    assert found.ok
    assert found.level == "steps"  # a range of 10,000 steps
    assert found.text.startswith("Steps only. Protects steps of up to 0.1 MW of one entry of power")


def test_a_changed_file_is_found(folder):
    with (folder / "numbers.csv").open("a") as stream:
        stream.write("24,1\n")
    assert failed(folder) == {"files": "numbers.csv was changed after the release."}


def test_a_missing_file_is_found(folder):
    (folder / "report.html").unlink()
    assert "report.html is missing" in failed(folder)["files"]


def test_a_file_too_many_is_found(folder):
    (folder / "my Notes.txt").write_text("real data")
    assert failed(folder)["files"] == "my Notes.txt is not in the statement."


def test_a_link_is_no_file(folder, tmp_path):
    (folder / "numbers.csv").rename(tmp_path / "numbers.csv")
    (folder / "numbers.csv").symlink_to(tmp_path / "numbers.csv")
    assert "not a plain file" in failed(folder)["files"]


def test_owners_material_is_found_even_deep_inside(folder):
    (folder / "sub").mkdir()
    text = "x" * (2**20 - 10) + OWNER_MARK  # across the border of two chunks
    (folder / "sub" / "evaluation.html").write_text(text)
    assert "sub/evaluation.html" in failed(folder)["owner"]


@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("epsilon", lambda b: b["mechanisms"][0].update(epsilon="1/2")),
        ("epsilon", lambda b: b.update(epsilon_unspent="1/4")),
        ("noise", lambda b: b["mechanisms"][0].update(scale=0.09)),
        ("noise", lambda b: b["mechanisms"][0]["sensitivity"].update(grid_steps=10)),
        ("groups", lambda b: b["guarantee"]["epsilon_of_k_entries"].update({"2": "1"})),
        ("groups", lambda b: b["guarantee"]["neighbours"][0].update(epsilon_over_whole_range="9")),
        (
            "groups",
            lambda b: b["guarantee"]["neighbours"][0].update(
                groups=[{"name": "one day", "count": 144, "epsilon": "24"}]
            ),
        ),
        ("guarantee", lambda b: b["mechanisms"][0]["sensitivity"].update(proved=False)),
        ("guarantee", lambda b: b.update(dp_valid=False)),
        ("ledger", lambda b: b["ledger"].update(charged="1/2")),
        ("ledger", lambda b: b["ledger"].update(epsilon_so_far_for_alpha="1/2")),
        ("ledger", lambda b: b["ledger"].update(epsilon_so_far_over_whole_range="1")),
        ("ledger", lambda b: b.update(ledger=None)),
        ("files", lambda b: b.update(files=[])),
        ("statement", lambda b: b.pop("mechanisms")),
        ("statement", lambda b: b.update(schema_version=2)),
        ("statement", lambda b: b.update(extra=1)),
        ("statement", lambda b: b["ledger"].update(hash="not a hash")),
        ("statement", lambda b: b["files"][0].update(name="../escape")),
        ("statement", lambda b: b["guarantee"].update(epsilon="0")),
    ],
)
def test_what_does_not_add_up_is_found(folder, check, change):
    edit(folder, change)
    assert check in failed(folder)


def test_a_newer_statement_asks_for_an_update(folder):
    edit(folder, lambda body: body.update(schema_version=99))
    assert "newer" in failed(folder)["statement"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 10_000, '"x"'])
def test_what_is_no_statement_is_said_to_be_none(folder, text):
    (folder / STATEMENT_FILE).write_text(text)
    assert list(failed(folder)) == ["statement"]


def test_a_folder_without_a_statement_is_no_bundle(tmp_path):
    assert "not a bundle" in failed(tmp_path)["statement"]


def test_no_folder_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        verify_bundle(tmp_path / "nowhere")


def test_a_study_fails(tmp_path):
    with pytest.warns(NotPrivateWarning):
        account = study_account(1, adjacency=[adjacency()], seed=1)
    spend_some(account)
    files = {"a.csv": lambda path: path.write_bytes(b"a")}
    placed = Release(make_statement(account, FACTS), account, files).write(tmp_path / "out")
    found = failed(placed)
    assert found.keys() == {"guarantee", "ledger"}
    assert "NO privacy guarantee" in found["guarantee"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
)


@settings(max_examples=200)
@given(data=st.data())
def test_no_mutation_of_a_statement_breaks_the_check(sound, data, tmp_path_factory):
    body = json.loads((sound / STATEMENT_FILE).read_text())
    place, keys = body, []
    while isinstance(place, dict | list) and place:
        keys.append(
            data.draw(
                st.sampled_from(list(place) if isinstance(place, dict) else range(len(place)))
            )
        )
        if data.draw(st.booleans()) or not isinstance(place[keys[-1]], dict | list):
            place[keys[-1]] = data.draw(json_values)
            break
        place = place[keys[-1]]
    folder = tmp_path_factory.mktemp("mutated")
    for path in sound.iterdir():
        shutil.copy(path, folder)
    (folder / STATEMENT_FILE).write_text(json.dumps(body))
    findings = verify_bundle(folder)
    assert findings  # it answered, whatever was written there


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("guarantee", "neighbours", 0, "range"), [10**400, 1]),
        (("guarantee", "neighbours", 0, "range"), [0, float("inf")]),
        (("mechanisms", 0, "scale"), float("nan")),
        (("mechanisms", 0, "sensitivity", "value"), float("inf")),
        (("mechanisms", 0, "sensitivity", "grid_steps"), 10**300),
        (("mechanisms", 0, "epsilon"), "1/1" + "0" * 190),
        (("restoration", "gap"), float("inf")),
    ],
)
def test_numbers_that_no_computer_can_hold_are_no_traceback(folder, where, value):
    def change(body):
        *path, last = where
        for key in path:
            body = body[key]
        body[last] = value

    edit(folder, change)
    assert failed(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Ten made-up", b"Six made-up"),
        (b'"kind": "test"', b'"kind":  "test"'),
        (b'"dp_valid": true', b'"dp_valid": true, "dp_valid": true'),
        (b"\n}\n", b"\n}\n\n"),
        (b'"size": 10', b'"size": 10.0'),
    ],
)
def test_any_changed_byte_of_the_statement_is_found(folder, old, new):
    path = folder / STATEMENT_FILE
    text = path.read_bytes()
    assert text.count(old) == 1
    path.write_bytes(text.replace(old, new))
    assert failed(folder)["statement"] == "The statement was changed after the release."


def test_a_file_that_is_listed_twice_is_found(folder):
    edit(folder, lambda body: body["files"].append(body["files"][0]))
    assert "is listed twice" in failed(folder)["files"].lower()


def test_a_statement_that_is_a_link_is_none(folder, tmp_path):
    (folder / STATEMENT_FILE).rename(tmp_path / "elsewhere.json")
    (folder / STATEMENT_FILE).symlink_to(tmp_path / "elsewhere.json")
    assert "not a bundle" in failed(folder)["statement"]
