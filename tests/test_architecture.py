"""The import rules, who may open a seal, and who may draw random numbers."""

import ast
from functools import cache
from pathlib import Path

import pytest

import gridveil

ROOT = Path(gridveil.__file__).parent
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))

MAY_UNSEAL = {
    "privacy/sealed.py",
    "privacy/mechanisms.py",
    "wind/evaluation.py",  # the owner's comparison, which is never published
}
MAY_DRAW = {
    "privacy/seeded.py",
    "wind/demo.py",
    "wind/methods/tuned_time_order.py",  # records from noisy ones, seeded by them: no noise
    "wind/synthetic/generate.py",  # records from noisy answers, seeded by them: no noise
    "grid/model/sampling.py",
    "grid/series/rebuild.py",  # residuals of released loads, seeded by them: no noise
    "grid/congestion.py",  # about released values, by a seed that hides nothing
    "grid/restoration/congestion_relief.py",  # about estimates, the same
    "studies/published_noise_grid.py",  # what the published code draws, on public data only
    "studies/published_noise_wind.py",
}

# Data walks one way. A package may import itself, and what is listed for it.
MAY_IMPORT = {
    "errors": set(),
    "privacy": {"errors"},
    "report": {"errors", "privacy"},
    "release": {"errors", "privacy", "report"},
    "wind": {"errors", "privacy", "report", "release"},
    "grid": {"errors", "privacy", "report", "release"},
}
# Inside a package too: a module may import those above it. A folder stands for all in it, and its
# own modules are listed in their order below.
WIND_ORDER = {
    "": (
        "clock",
        "features",
        "row_blocks",
        "restoration",
        "io",
        "records",
        "regression",
        "queries",
        "curve_prior",
        "synthetic",
        "methods",
        "report",
        "demo",
        "disclosures",
        "release",
        "downstream",
        "downstream_report",
        "evaluation",
        "__init__",
    ),
    "restoration": (
        "__init__",
        "passes",
        "small_problem",
        "small_problem_newton",
        "solver",
        "projection",
        "restore",
    ),
    "io": (
        "__init__",
        "dates",
        "columns",
        "read_options",
        "files",
        "sources",
        "layout",
        "source_rows",
        "growing_columns",
        "sealed_records",
        "in_memory",
        "streamed",
        "sketch",
        "writers",
    ),
    "synthetic": (
        "__init__",
        "public_farm",
        "block_queries",
        "knots",
        "choose_queries",
        "autocorrelation",
        "residual_shape",
        "ask_queries",
        "learn_means",
        "learn_scatter",
        "generate",
    ),
    "methods": (
        "base",
        "laplace",
        "wpo",
        "tuned_estimate",
        "tuned_weight_mix",
        "tuned_budget",
        "tuned_distribution",
        "tuned_time_order",
        "tuned_sums",
        "tuned",
        "synthetic",
        "__init__",
    ),
}
ORDERS = {"wind": WIND_ORDER}
# Inside the grid package a module imports from its own part and from earlier ones. One pair goes
# both ways: a network keeps the file that it came from, and readers make networks.
GRID = (
    "model", "io", "cases", "opf", "restoration", "methods", "congestion", "picture",
    "report", "model_comparison", "owner_report", "file_facts", "owner_preview", "disclosures",
    "release", "series", "evaluation",
)  # fmt: skip
BOTH_WAYS = {("model", "io")}
EVERYTHING = {"auditing", "cli", "planning", "studies", "__init__", "__main__"}


def tree(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text(encoding="utf-8"))


def package(module: str) -> str:
    return module.removesuffix(".py").split("/")[0]


@cache
def imported(module: str) -> set[str]:
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} uses a relative import"
            if node.module == "gridveil":
                found |= {alias.name for alias in node.names}
            elif (node.module or "").startswith("gridveil."):
                found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("gridveil.")}
    return found - {"__version__"}


@cache
def names(module: str) -> set[str]:
    nodes = list(ast.walk(tree(module)))
    return {n.id for n in nodes if isinstance(n, ast.Name)} | {
        n.attr for n in nodes if isinstance(n, ast.Attribute)
    }


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module):
    here = package(module)
    if here not in EVERYTHING:
        assert imported(module) - {here} <= MAY_IMPORT[here]


@cache
def inside(module: str) -> list[str]:
    """The modules of its own package that a module imports, from the package's root."""
    here = package(module)
    found = []
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"gridveil.{here}"):
            found.append((node.module or "").removeprefix(f"gridveil.{here}").removeprefix("."))
    return found


def too_early(module: str, order: dict[str, tuple[str, ...]]) -> list[str]:
    """The imports of a module that stand below it in the order of its package."""
    parts = module.removesuffix(".py").split("/")[1:]
    wrong = []
    for other in inside(module):
        names = other.split(".") if other else ["__init__"]
        folder = parts[0] if parts[0] == names[0] and len(parts) > 1 else ""
        ours, theirs = (parts[1], [*names, "__init__"][1]) if folder else (parts[0], names[0])
        if order[folder].index(theirs) >= order[folder].index(ours):
            wrong.append(other)
    return wrong


@pytest.mark.parametrize("module", [m for m in MODULES if package(m) in ORDERS])
def test_imports_inside_a_package_go_one_way(module):
    assert too_early(module, ORDERS[package(module)]) == []


def test_an_import_against_the_order_is_found():
    """The control: with the order reversed, almost every module of the package is at fault."""
    wrong = {folder: names[::-1] for folder, names in WIND_ORDER.items()}
    modules = [m for m in MODULES if package(m) == "wind" and inside(m)]
    assert all(too_early(m, wrong) for m in modules)


def grid_parts(module: str) -> set[str]:
    """The parts of the grid package that a module imports; what only type checkers see is not."""
    nodes = list(ast.walk(tree(module)))
    blocks = (n for n in nodes if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test))
    typed = {id(inner) for block in blocks for inner in ast.walk(block)}
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and id(node) not in typed:
            if node.module == "gridveil.grid":
                found |= {alias.name for alias in node.names}
            elif (node.module or "").startswith("gridveil.grid."):
                found.add(node.module.split(".")[2])
    return found


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("grid/")])
def test_imports_inside_the_grid_package_go_one_way(module):
    here = module.removesuffix(".py").split("/")[1]
    if here != "__init__":
        allowed = {*GRID[: GRID.index(here) + 1], *(b for a, b in BOTH_WAYS if a == here)}
        assert grid_parts(module) <= allowed


def test_only_mechanisms_open_a_seal():
    opening = {m for m in MODULES if names(m) & {"unseal", "_Sealed__contents"}}
    assert opening == MAY_UNSEAL


def test_only_the_seeded_source_draws_random_numbers():
    drawing = {m for m in MODULES if names(m) & {"default_rng", "random", "RandomState"}}
    assert drawing <= MAY_DRAW


def test_only_the_study_command_reaches_studies():
    """The published code's noise is repeated there: no release may come near it."""
    reaching = {m for m in MODULES if "studies" in imported(m) and package(m) != "studies"}
    # The package itself names it, and loads it for whoever asks for it.
    assert reaching == {"__init__.py", "cli/study.py", "cli/frontier_studies.py"}


def test_modules_fit_on_a_few_screens():
    long = {m for m in MODULES if len((ROOT / m).read_text().splitlines()) > 400}
    assert long == set()


@pytest.mark.parametrize("module", MODULES)
def test_nothing_that_ships_is_patched(module):
    """Noise and accounts are passed in: what an audit hears is the code that releases."""
    assert "unittest" not in (ROOT / module).read_text(encoding="utf-8")
