"""Small accounts, releases and statements of made-up numbers."""

from fractions import Fraction

from gridveil.errors import BudgetRefused
from gridveil.privacy.account import Account, open_account
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.ledger import Ledger, Terms
from gridveil.privacy.mechanisms import laplace
from gridveil.privacy.sealed import Range, seal
from gridveil.privacy.sensitivity import Sensitivity
from gridveil.privacy.statement import Facts, Restoration, make_statement
from gridveil.release.plan import Release

FACTS = Facts(
    kind="test",
    method="laplace",
    summary="Ten made-up numbers",
    settings={"alpha": "0.1"},
    public_inputs=["nothing"],
    published_in_clear=["hour"],
    restoration=Restoration("none", 0.0, {"gamma": 1e-5}),
    limitations=["It is made up."],
)


def make_account(ledger: Ledger, epsilon: object = 1000, dataset: str = "test") -> Account:
    return open_account(
        ledger,
        Terms(
            dataset=dataset,
            epsilon=epsilon,
            adjacency=[adjacency()],
            purpose="a test",
        ),
    )


def adjacency(
    parameter: str = "power", alpha: object = "0.1", unit: str = "MW", **of: object
) -> Adjacency:
    return Adjacency.of(
        parameter, alpha=Fraction(alpha), unit=unit, range=Range(0.0, 1000.0), entries=10, **of
    )


def make_release(ledger: Ledger) -> Release:
    """A small release of made-up numbers, without wind or grid."""
    account = make_account(ledger, epsilon=1, dataset="numbers")
    spend_some(account)
    files = {"numbers.csv": lambda path: path.write_bytes(b"number\n1\n2\n")}
    return Release(make_statement(account, FACTS), account, files)


def spend_some(account: Account, epsilon: object = 1) -> None:
    """One Laplace answer on ten made-up numbers."""
    data = seal(range(10), name="power", unit="MW", range=Range(0, 1000))
    laplace(
        account,
        data,
        name="power",
        sensitivity=Sensitivity(Fraction(1, 10), "one entry moves by at most alpha"),
        epsilon=epsilon,
    )


def charge(
    ledger, epsilon=1, dataset="farm", *, alpha="0.1", parameter="power", clear=(), unit="MW"
):
    """Charge a release of made-up numbers."""
    return ledger.charge(
        Terms(
            dataset,
            epsilon=epsilon,
            adjacency=[adjacency(parameter, alpha, unit)],
            clear=clear,
            purpose="a test",
        )
    )


def race(place, results, times=50) -> None:
    """Charge 1 to a dataset many times, and tell how often it was allowed."""
    ledger = Ledger(place)
    accepted = 0
    for _ in range(times):
        try:
            charge(ledger, 1, "raced")
            accepted += 1
        except BudgetRefused:
            pass
    results.put(accepted)
