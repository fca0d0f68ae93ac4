"""Networks of other packages with odd entries in their tables, and what may come of them."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from fuzz.mutations import Choose, mutate, mutate_json, mutate_tree

from gridveil.errors import InputError
from gridveil.grid.model.checks import readable
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.release_problem import check_writable

ODD: list[Any] = [
    np.nan, None, pd.NA, np.inf, -np.inf, 0, -0.0, -1, 1, 2.5, 7, 99, 1e308, -1e308, 5e-324, 1e20,
    10**20, True, False, "", "text", "2.5", "nan", "b", b"x", 1j, [], [1.5], {}, (1, 2),
    np.datetime64("NaT"),
]  # fmt: skip
NAMES: list[Any] = [-1, 0, 99, 10**19, 1.5, "x", "", None]
RANGE = (1e-6, 1e9)


def mutate_table(tables: Mapping[str, pd.DataFrame], choose: Choose) -> tuple[str, pd.DataFrame]:
    """The name of one of the tables, and that table with something odd about it."""
    name = list(tables)[choose(len(tables))]
    frame = tables[name].copy()
    row, column = choose(len(frame)), frame.columns[choose(len(frame.columns))]
    match choose(10):
        case 0:
            return name, frame.drop(columns=column)
        case 1:
            return name, frame.drop(index=frame.index[row])
        case 2:
            return name, pd.concat([frame, frame.iloc[[row]]])
        case 3:
            labels = list(frame.index)
            labels[row] = NAMES[choose(len(NAMES))]
            frame.index = pd.Index(labels, dtype=object if choose(2) else None)
        case 4:
            frame[column] = _column([ODD[choose(len(ODD))]] * len(frame), frame.index, choose)
        case _:
            entries = list(frame[column])
            entries[row] = ODD[choose(len(ODD))]
            frame[column] = _column(entries, frame.index, choose)
    return name, frame


def mutate_file(text: bytes, choose: Choose) -> bytes:
    """A pandapower file with something odd in it: most often in one of its tables."""
    match choose(4):
        case 0:
            return mutate(text, choose, [text])
        case 1:
            return mutate_json(text, choose)
    net = json.loads(text)
    tables = [one for one in net["_object"].values() if isinstance(one, dict) and "orient" in one]
    chosen = tables[choose(len(tables))]
    tree = json.loads(chosen["_object"])
    mutate_tree(tree, choose)
    chosen["_object"] = json.dumps(tree)
    return json.dumps(net).encode()


def _column(entries: list[Any], index: pd.Index, choose: Choose) -> pd.Series:
    """Entries of many types, or of what pandas makes of them."""
    typed = pd.Series(entries, index=index, dtype=object)
    return typed.infer_objects() if choose(2) else typed


def check_source(module: Any, source: Any, choose: Choose) -> bool:
    """Read a network; what is taken can be split, and what passes the rehearsal be released."""
    try:
        network = module.read(source)
    except InputError:
        return False
    readable(network, "a network with problems")  # values wait for what is private
    module.write(network)
    parameter = list(PARAMETERS)[choose(len(PARAMETERS))]
    try:
        whole = PARAMETERS[parameter].beside
        names = [parameter] if whole is None else [whole, parameter]
        _, public = network.split(names, dict.fromkeys(names, RANGE))
        check_writable(public)
    except InputError:
        return True
    private = [
        getattr(getattr(network, PARAMETERS[one].table), name)[public.support[name]]
        for one in names
        for name in PARAMETERS[one].columns
    ]
    # Nothing may go wrong from here on: a release would have been charged for.
    values = np.nan_to_num(np.concatenate(private), posinf=RANGE[1], neginf=RANGE[0])
    module.write_release(public.with_values(values), None, names)
    return True
