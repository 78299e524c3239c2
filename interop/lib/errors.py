"""The two ways a run can go wrong: the peer's environment (SetupError) and a scenario's own claim (ScenarioFailure); and
NotAvailable, when a scenario cannot be run."""


class SetupError(Exception):
    """A tool, package, guest or server that a scenario needs could not be brought up; says what to do about it."""


class ScenarioFailure(Exception):
    """A scenario ran and what it asserts does not hold, or a wait for a peer timed out."""


class NotAvailable(Exception):
    """This machine lacks what the scenario needs, and interop/packages does not bring it; says what. The scenario is skipped."""


class BudgetSpent(Exception):
    """The whole run has taken longer than it may. Not a failure of the scenario that happens to run."""


def check(condition: bool, message: str) -> None:
    """Fail the running scenario with `message` unless `condition` holds."""
    if not condition:
        raise ScenarioFailure(message)


def check_equal(what: str, actual: object, expected: object) -> None:
    """Fail the running scenario unless `actual` equals `expected`."""
    check(actual == expected, f"{what}: got {actual!r}, expected {expected!r}")
