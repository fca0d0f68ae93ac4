"""What a check can say against a reader."""


class WrongSuccess(AssertionError):
    """A reader took a file that it should have refused, or made something else of it."""


def wrong_unless(holds: object, what: str) -> None:
    """Raise `WrongSuccess` unless something holds."""
    if not holds:
        raise WrongSuccess(what)
