"""A quick study that keeps a log of its runs and can be told to fail; and a way to start it."""

import os
import sys
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from gridveil.studies import Plan, Study, run_study
from gridveil.studies.figure_style import panels, style


@dataclass(frozen=True)
class Toy(Study):
    name = "toy"
    measures: ClassVar = {"value": pa.float64(), "several": pa.list_(pa.float64())}

    methods: tuple[str, ...] = ("this", "that")
    alphas: tuple[float, ...] = (0.1, 0.2)
    scale: float = 1.0

    def cells(self):
        return [{"method": m, "alpha": a, "count": 3} for m in self.methods for a in self.alphas]

    def prepare(self):
        return np.arange(5.0)

    def world(self, shared):
        return {"shared": shared, "worker": os.getpid()}

    def run(self, world, cell, seed):
        log(f"start {cell['method']} {cell['alpha']} {seed}")
        rng = np.random.default_rng(seed)
        if cell["method"] == "fail":
            raise ValueError("no such method")
        if cell["method"] == "die":
            os._exit(9)
        time.sleep(float(os.environ.get("TOY_PAUSE", "0")) * rng.uniform(0.5, 1.5))
        value = self.scale * cell["alpha"] * rng.normal() + world["shared"].sum()
        return {"value": value, "several": rng.normal(size=cell["count"])}

    def draw(self, table, shared):
        with style():
            figure, axes = panels(1, 1, width=2, height=1.5)
            axes[0, 0].plot(table.value)
        return figure

    def words(self, table, shared):
        return f"# Toy\n\n{len(table)} runs, mean {table.value.mean():.3f}."


def log(line):
    path = os.environ.get("TOY_LOG")
    if path:
        with open(path, "a") as stream:
            stream.write(line + "\n")


def tell(done, total):
    print(done, total, flush=True)
    if done >= int(os.environ.get("TOY_HALT", total + 1)):
        sys.stdin.read()  # whoever stops it may be slow: it does not end before


if __name__ == "__main__":
    import studies.toy as importable  # workers can't import what is called __main__

    runs, workers = map(int, sys.argv[2:])
    run_study(Plan(importable.Toy(), runs), sys.argv[1], workers=workers, progress=tell)
