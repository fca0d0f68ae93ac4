"""A small network for the controls: three buses in a triangle, its cheap unit behind a line."""

from functools import cache

import numpy as np

from gridveil.grid import Branches, Buses, Generators, Network, solve_population

PRICE = 500.0  # what a MW over a limit costs: no shadow price is higher
DEAREST = 90.0
ALPHA = 5.0
CAPACITY = (30.0, 40.0, 35.0)


def triangle(capacity=CAPACITY) -> Network:
    three, two = np.zeros(3), np.zeros(2)
    return Network(
        "triangle",
        100.0,
        Buses(
            ("1", "2", "3"),
            load=[0.0, 30.0, 80.0],
            shunt=three,
            reference=[True, False, False],
            in_service=[True] * 3,
        ),
        Generators(
            ("cheap", "dear"),
            bus=[0, 2],
            p_min=two,
            p_max=[200.0, 200.0],
            in_service=[True] * 2,
            quadratic=two,
            linear=[20.0, DEAREST],
            constant=two,
            points=(None, None),
        ),
        Branches(
            ("1-2", "2-3", "1-3"),
            from_bus=[0, 1, 0],
            to_bus=[1, 2, 2],
            resistance=three,
            reactance=[0.1, 0.1, 0.2],
            tap=np.ones(3),
            shift=three,
            capacity=capacity,
            angle_min=np.full(3, -np.inf),
            angle_max=np.full(3, np.inf),
            in_service=[True] * 3,
        ),
    )


@cache
def costs_of_neighbours():
    """Costs with the capacity of the line of the highest shadow price as it is and alpha less.

    Gives also the bound: alpha times the price of a MW over a limit.
    """
    found = solve_population(triangle(), model="relaxed", slack_price=PRICE, keep=["line_price"])
    place = int(np.argmax(found.line_price[0]))
    less = np.array(CAPACITY)
    less[place] -= ALPHA
    moved = solve_population(triangle(less), model="relaxed", slack_price=PRICE)
    return float(found.cost[0]), float(moved.cost[0]), PRICE * ALPHA
