"""The runner of the documentation's blocks would notice a page that is wrong."""

import pytest
from docs.blocks import Session, agree, blocks, commands

PAGE = """\
# A page

```python
x = 1
x + 1
```
```text
2
```

<!-- not run: it takes a day -->
```console
$ sleep 86400
```

<!-- exit code 3 -->
```bash
exit 3
```
"""


def test_blocks_are_found_with_what_is_said_of_them():
    code, output, skipped, script = blocks(PAGE)
    assert (code.language, code.text, code.line) == ("python", "x = 1\nx + 1", 3)
    assert (output.language, output.text, output.follows) == ("text", "2", True)
    assert skipped.why_not == "it takes a day"
    assert (script.exit_code, script.why_not, script.follows) == (3, None, False)


def test_commands_are_told_from_their_output():
    assert commands("$ a \\\n    -b\none\ntwo\n$ c") == [("a \\\n    -b", "one\ntwo\n"), ("c", "")]


@pytest.mark.parametrize(
    ("shown", "printed", "one_run", "same"),
    [
        ("cost 12.5", "cost 12.5\n", False, True),
        ("cost 12.5", "cost 12.6\n", False, False),
        ("cost 12.5", "cost 1,312.6\n", True, True),
        ("cost 12.5", "price 12.5\n", True, False),
        ("head 0a1b2c3d4e5f", "head 99aa88bb77cc", True, True),
        ("one\n...\nthree", "one\ntwo\nthree", False, True),
        ("one\n...\nthree", "one\ntwo", False, False),
    ],
)
def test_output_is_compared(shown, printed, one_run, same):
    assert agree(shown, printed, one_run=one_run) is same


def test_a_reader_has_names_and_a_shell(tmp_path):
    folder = tmp_path / "reader"
    folder.mkdir()
    reader = Session(folder)
    assert reader.python("x = 2\nprint('so')\nx * 3") == "so\n6\n"
    assert reader.python("x") == "2\n"
    assert reader.shell("gridveil --version").startswith("gridveil ")
    with pytest.raises(AssertionError, match="ended with 1"):
        reader.shell("false")
    with pytest.raises(ZeroDivisionError):
        reader.python("1 / 0")
