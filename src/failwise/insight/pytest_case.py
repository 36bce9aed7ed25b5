"""A recorded failure as a regression test: the evidence that was kept, and what is to be said of it.

The test needs `failwise` and `pytest`, no journal and no network. Everything in it was redacted when
it was recorded, and is redacted once more.
"""

import keyword
import pprint
import re
from typing import Any, Final, Protocol

from failwise.insight.replaying import Replay, judge
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure

_WIDTH: Final = 88


class Border(Protocol):
    """What everything passes before it leaves."""

    def text(self, text: str) -> str: ...
    def data(self, data: Any) -> Any: ...


def pytest_case(found: Replay, redactor: Border) -> str:
    """The text of a test file. Raises `UsageError` where the record holds nothing to judge by."""
    if found.case is None:
        raise UsageError(
            f"call {found.call_id} has no evidence to judge: its verdict ({found.before.code}) was "
            "not drawn from any, or nothing of it was kept"
        )
    case = redactor.data(dict(found.case))
    tool = redactor.text(found.tool)
    told = {"kind": case["kind"], "input": case["input"]}
    if found.before.provider and _known(found.before.provider):
        told["profile"] = found.before.provider
    failure = judge(case, tool=tool, profile=told.get("profile"))
    lines = [
        '"""A failure that was recorded, and how it is to be judged."""',
        "",
        "from failwise.testing import judged",
        "",
        f"RECORDED = {_literal(told)}",
        "",
        "",
        f"def test_{_name(found)}() -> None:",
        f'    """{_words(redactor.text(found.call_id))}: {_claim(failure)}."""',
    ]
    if failure is None or failure.code != found.before.code:
        lines.append(f"    # When it was recorded: {found.before.code}")
    lines.append("    failure = judged(RECORDED)")
    if failure is None:
        lines.append("    assert failure is None")
    else:
        lines += [
            "    assert failure is not None",
            f"    assert failure.category == {failure.category.value!r}",
            f"    assert failure.code == {failure.code!r}",
            f"    assert failure.effect == {failure.effect.value!r}",
            f"    assert failure.transient is {failure.transient!r}",
            f"    assert failure.fix_by == {failure.fix_by.value!r}",
        ]
        if failure.retry_after is not None:
            lines.append(f"    assert failure.retry_after == {failure.retry_after!r}")
    return "\n".join(lines) + "\n"


def _known(profile: str) -> bool:
    from failwise.profiles.library import Profiles

    return Profiles.default().get(profile) is not None


def _claim(failure: Failure | None) -> str:
    return f"it is {failure.code}" if failure is not None else "it is no failure"


def _name(found: Replay) -> str:
    words = re.sub(r"[^0-9a-z]+", "_", f"{found.tool}_{found.now.code}".lower()).strip("_")[:60]
    return f"{words}_" if keyword.iskeyword(words) or not words else words


def _words(text: str) -> str:
    """Text that may stand in a docstring."""
    return re.sub(r"[^\w .:@/-]", "_", text)[:100] or "a call"


def _literal(data: Any) -> str:
    """Data as Python over several lines."""
    return pprint.pformat(data, width=_WIDTH, sort_dicts=False)
