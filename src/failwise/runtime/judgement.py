"""What the machine consults: reading arguments, classifying answers, correcting, deciding.

Each room is imported when the first call, or the first failure, needs it.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from failwise.policy.decide import TablePolicy
from failwise.runtime.call import Logic, Reading
from failwise.runtime.discretion import discreet, without_echoes
from failwise.runtime.glance import plainly_good
from failwise.runtime.meanings import as_tool_error
from failwise.runtime.readings import AsGiven, as_it_is, renamed, unrepaired
from failwise.runtime.state import CallState
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category, Effect, FixBy
from failwise.vocabulary.ports import Policy
from failwise.vocabulary.records import Unset
from failwise.vocabulary.result import Repair, ToolResult
from failwise.vocabulary.spec import Arguments, ToolSpec
from failwise.vocabulary.steps import Answer, Call

if TYPE_CHECKING:
    from concurrent.futures import Future

    from failwise.arguments import ArgumentReader
    from failwise.classify import Classifier
    from failwise.classify.advisor import Advisor
    from failwise.evidence.facts import Evidence
    from failwise.journal.advice import AdviceBook
    from failwise.runtime.runtime import Runtime

logger = logging.getLogger("failwise")

_DEBRIS = re.compile(r"functions\.([\w.-]{1,128})|(?:functions\.)?([\w.-]{1,128})\s?<[|｜].{0,200}")
"""Names as open models write them: ``functions.search``, ``search<|channel|>commentary``."""

_BUGS = ("tool.exception", "unknown.unclassified")
"""What a developer must see with its traceback: it may be a slip in the tool."""


class Judgement:
    """The pure rooms, wired for one runtime. Raises `ConfigurationError` for a bad policy at once."""

    def __init__(
        self,
        runtime: "Runtime",
        policy: Any,
        profiles: Sequence[Any],
        jitter: float | None,
        advisor: "Callable[[Failure], Any] | Advisor | None" = None,
        rules: Sequence[Any] = (),
    ) -> None:
        self._runtime = runtime
        if advisor is not None and not callable(advisor) and not hasattr(advisor, "advised"):
            raise UsageError(f"advisor={advisor!r}: give a function that takes a failure")
        self._advisor = advisor
        self._asker: Advisor | None = None
        self._rules = tuple(rules)
        self._profiles = tuple(profiles)
        self.glances = not (self._profiles or self._rules)
        """A glance is enough for data: no rule or profile of the user's may tell a failure by it."""
        self._readers: dict[str, ArgumentReader] = {}
        self._classifier: Classifier | None = None
        self.policy: Policy = (
            policy if hasattr(policy, "decide") else TablePolicy(policy, jitter=jitter)
        )
        self.logic = Logic(
            self.read, self.classify, self.fix, _fingerprint, self.policy, accept=self.accept
        )
        if self._profiles or self._rules:
            self.classifier()

    # Arguments

    def read(self, call: Call) -> Reading:
        """The call's arguments as its tool wants them, or why there are none."""
        tool = call.tool
        reading: Reading
        if tool.call is None and tool.call_async is None:
            reading = self._unknown(call)
        elif call.observe:
            reading = as_it_is(self.reader(tool), call)
        else:
            reading = self.reader(tool).read(call.raw, truncated=call.truncated)
            if call.written_name is not None and reading.failure is None:
                reading = renamed(reading, call)
            if reading.repairs and call.repair == "off":
                reading = unrepaired(reading)
        return reading

    def reader(self, tool: ToolSpec) -> "ArgumentReader | AsGiven":
        """What reads the arguments of a tool."""
        if tool.kind == "client":
            return AsGiven()
        reader = self._readers.get(tool.name)
        if reader is None or reader.schema is not tool.schema:
            from failwise.arguments import ArgumentReader

            reader = ArgumentReader(tool.schema, tool.name, redact=discreet)
            if tool.name in self._runtime._tools:
                self._readers[tool.name] = reader
        return reader

    def forget(self, name: str) -> None:
        """A tool was taken away, or another one has its name now."""
        self._readers.pop(name, None)

    def unknown(self, name: str) -> ToolSpec:
        """A stand-in for a tool that is not there: its calls end as ``model_output.unknown_tool``."""
        return ToolSpec(name)

    def without_debris(self, name: str) -> ToolSpec | None:
        """The tool whose very name this is, but for what a chat template left on it."""
        match = _DEBRIS.fullmatch(name)
        return self._runtime._tools.get(match[1] or match[2]) if match else None

    def _unknown(self, call: Call) -> Reading:
        from failwise.arguments import ArgumentReader
        from failwise.arguments import Reading as Read
        from failwise.arguments.failures import unknown_tool

        known = {name: tool.schema for name, tool in self._runtime._tools.items()}
        sent = ArgumentReader(None).read(call.raw).arguments
        return Read(None, (), unknown_tool(call.tool.name, known, sent))

    def fix(
        self, call: Call, arguments: Arguments, failure: Failure
    ) -> tuple[Arguments, tuple[Repair, ...]] | None:
        """Arguments corrected as the upstream's refusal demands, where one correction fits."""
        violations = failure.detail("violations")
        if not violations or call.tool.schema is None or call.repair == "off":
            return None
        from failwise.arguments.hints import fix_from_violations

        return fix_from_violations(call.tool.schema, arguments, violations)

    def accept(
        self, call: Call, sent: Arguments, given: Arguments
    ) -> tuple[Arguments, tuple[Repair, ...]] | None:
        """What a fixer gave, where it fits the schema and is not what was refused."""
        from failwise.arguments.hints import differences

        reading = self.reader(call.tool).read(given)
        if reading.arguments is None:
            logger.warning(
                "what the fixer of %s gave does not fit the schema, and is not sent", call.tool.name
            )
            return None
        repairs = differences(sent, reading.arguments)
        return (reading.arguments, repairs) if repairs else None

    # Answers

    def classifier(self) -> "Classifier":
        """The classifier, made at the first need."""
        made = self._classifier
        if made is None:
            from failwise.classify import Classifier

            library = None
            if self._profiles:
                from failwise.profiles import Profiles

                library = Profiles()
                for path in self._profiles:
                    library.add(path)
            rules = None
            if self._rules:
                from failwise.classify.own import OwnRules

                rules = OwnRules.load(self._rules)
            made = self._classifier = Classifier(
                library, now=self._runtime.clock.time, advisor=self._asked(), rules=rules
            )
        return made

    def learn(self, profile: Mapping[str, Any]) -> None:
        """Know one more profile from now on; one of the same id takes its place."""
        kept = [
            one
            for one in self._profiles
            if not (isinstance(one, Mapping) and one["id"] == profile["id"])
        ]
        self._profiles = (*kept, profile)
        self.glances = False
        self._classifier = None

    def recall(self) -> "Future[None] | None":
        """Kept advice on its way to the advisor; None where nobody advises."""
        if self._advisor is None or self._runtime.mode == "off":
            return None
        asked = self._asked()
        return None if asked is None else asked.recall()

    def _asked(self) -> "Advisor | None":
        """The advisor, whose answers the journal keeps."""
        given = self._advisor
        if given is not None and self._asker is None:
            from failwise.classify.advisor import Advisor

            with self._runtime._lock:
                if self._asker is None:
                    made = given if isinstance(given, Advisor) else Advisor(given)
                    self._asker = made.remembering(self._advice_book)
        return self._asker

    def _advice_book(self) -> "AdviceBook":
        from failwise.journal.advice import AdviceBook

        return AdviceBook(self._runtime.journal)

    def classify(self, answer: Answer, call: Call, state: CallState) -> Failure | None:
        """What went wrong, or None. On success the answer's value becomes what its body holds."""
        try:
            if answer.error is None and not answer.expired:
                value = answer.value
                known = call.tool.success is None and call.tool.profile is None and self.glances
                if known and plainly_good(value):
                    return None
                return self._judge_value(answer, call, state)
            return self._judge(self._evidence(answer, call), answer.error, call, state)
        except Exception:
            # Whatever an upstream sends, a call does not raise: a rule of ours that breaks is our bug.
            logger.exception("classifying the answer of %s failed", call.tool.name)
            if answer.error is None and not answer.expired:
                return None
            return Failure(
                Category.UNKNOWN,
                "unknown.unclassified",
                type(answer.error).__name__,
                rule="classifier.failed",
                confidence=0.0,
                exception=answer.error,
            )

    def classify_late(self, answer: Answer, call: Call) -> Failure | None:
        """`classify` for work that ended after its time limit."""
        return self.classify(answer, call, CallState(call))

    def _judge_value(self, answer: Answer, call: Call, state: CallState) -> Failure | None:
        from failwise.evidence import from_response, from_value, is_response

        value = answer.value
        if isinstance(value, ToolResult):
            if value.success:
                answer.value = value.value
                return None
            return _already_retried(value.failure)
        held = value.value if hasattr(value, "expects_json") and hasattr(value, "value") else value
        if call.tool.success is not None:
            verdict = self._own_test(call.tool, held)
            if verdict is True:
                answer.value = held
                return None
        else:
            verdict = None
        evidence = from_response(value) if is_response(value) else from_value(value)
        evidence.profile = evidence.profile or call.tool.profile
        failure = self._judge(evidence, None, call, state)
        if failure is None and verdict is False:
            failure = Failure(
                Category.BUSINESS,
                "business.refused",
                "the tool's own success test says no",
                Effect.UNKNOWN,
                False,
                FixBy.MODEL,
                rule="tool.success",
                confidence=1.0,
            )
        if failure is None:
            answer.value = held
        return failure

    def _own_test(self, tool: ToolSpec, value: Any) -> bool | None:
        """The tool's own success test; one that raises means "don't know"."""
        try:
            assert tool.success is not None
            return bool(tool.success(value))
        except Exception as error:
            logger.warning("the success test of %s failed: %s", tool.name, type(error).__name__)
            return None

    def _evidence(self, answer: Answer, call: Call) -> "Evidence":
        from failwise.evidence import from_exception, from_response, is_response
        from failwise.evidence.facts import Evidence

        if answer.expired:
            text = (
                f"no answer within {answer.limit:g} s" if answer.limit is not None else "no answer"
            )
            return Evidence("expired", phase="any", limit=answer.limit, text=text)
        error = answer.error
        assert error is not None
        for mapping in (call.tool.errors, self._runtime._errors):
            for kind, meaning in (mapping or {}).items():
                if isinstance(error, kind):
                    mapped = as_tool_error(meaning, error)
                    mapped.__cause__ = error
                    return from_exception(mapped)
        part = getattr(error, "answer", None)
        if part is not None and is_response(part):
            # The answer broke off while its body was read: its beginning says more than the break.
            evidence = from_response(part)
            if evidence.problem != "truncated":
                evidence.problem = "truncated"
            evidence.same = None
            evidence.exception = error
        else:
            evidence = from_exception(error)
        evidence.profile = evidence.profile or call.tool.profile
        return evidence

    def _judge(
        self, evidence: "Evidence", error: BaseException | None, call: Call, state: CallState
    ) -> Failure | None:
        failure = self.classifier().classify(
            evidence,
            tool=call.tool.name,
            profile=evidence.profile,
            read_only=state.read_only,
        )
        if failure is None:
            if error is None and evidence.source != "expired":
                return None
            failure = Failure(Category.UNKNOWN, "unknown.unclassified", "it failed", rule="none")
        if evidence.inner is not None:
            failure = _already_retried(failure)
        elif failure.effect.safe and not state.read_only and _only_said(evidence):
            said = {**(failure.details or {}), "effect_said": failure.effect.value}
            failure = replace(failure, effect=Effect.UNKNOWN, details=said)
        failure = without_echoes(failure, state.arguments)
        if error is not None:
            if failure.exception is not error:
                failure = replace(failure, exception=error)
            if failure.code in _BUGS and evidence.tool_error is None and evidence.inner is None:
                logger.error("tool %s failed\n%s", call.tool.name, _redacted_traceback(error))
        if self._runtime.journal.raw and evidence.text:
            failure = replace(failure, raw=evidence.text)
        return failure


def _fingerprint(tool: str, arguments: Mapping[str, Any]) -> str:
    from failwise.effects.identity import arguments_fingerprint

    return arguments_fingerprint(tool, arguments)


def _only_said(evidence: "Evidence") -> bool:
    """Nothing but words speaks of this failure: no typed exception, no status or code of its own.

    What the words of a generic exception say of the effect is not enough to send a write again:
    the tool may have acted before it came to what failed.
    """
    if evidence.tool_error is not None:
        return False
    if evidence.source == "exception":
        return not any(fact.kind or fact.attributes for fact in evidence.exceptions)
    return evidence.source == "value" and isinstance(evidence.body, Unset | str)


def _redacted_traceback(error: BaseException) -> str:
    """The traceback as text without secrets: messages and lines of code may hold some."""
    import traceback

    from failwise.redaction import default

    return default().text("".join(traceback.format_exception(error, limit=-30))[-20_000:])


def _already_retried(failure: Failure | None) -> Failure:
    """A failure of a nested call: it was retried there, and is not multiplied here."""
    assert failure is not None
    return replace(failure, details={**(failure.details or {}), "already_retried": True})
