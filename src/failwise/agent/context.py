"""Keeping the history small: results are bounded, what is old is folded, the rest stays within a limit.

What was cut off can be read with a built-in tool, by its handle.
"""

import copy
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from failwise.agent.messages import ToolCall
from failwise.agent.transcript import Answered, Entry, Said, Transcript, Turn, answers
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.plain import as_text
from failwise.vocabulary.result import Language, ToolResult
from failwise.vocabulary.sentences import say

READ = "read_result"
"""The built-in tool that reads on."""
RECENT = 2
"""The last turns, which stay as they are."""
_SHORT = 240
"""Characters that stay of an old result."""
_LOW = 0.75
"""Down to this share of the limit, so that not every turn changes what came before."""
_KEPT = 40_000_000
"""Characters kept for reading on."""


class Store:
    """Texts to be read on, by handle; the oldest go when there are too many."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._size = self._made = 0

    def keep(self, text: str) -> str:
        """A handle for the text."""
        self._made += 1
        handle = f"r{self._made}"
        self._texts[handle] = text
        self._size += len(text)
        while self._size > _KEPT and len(self._texts) > 1:
            _, gone = self._texts.popitem(last=False)
            self._size -= len(gone)
        return handle

    def read(self, handle: str) -> str | None:
        return self._texts.get(handle)

    def __bool__(self) -> bool:
        return bool(self._texts)


class Context:
    """The bounds of one task's history. `result_limit` in characters, `tokens` for the whole."""

    def __init__(self, result_limit: int, tokens: int, lang: Language) -> None:
        self.result_limit, self.tokens, self.lang = result_limit, tokens, lang
        self.store = Store()
        self._left_out = [0, 0, 0]
        """Turns left out; calls of theirs that succeeded; that failed."""
        self._open: list[str] = []
        """Tools left out whose effect is not known."""

    # Results

    def text(self, result: ToolResult[Any]) -> str:
        """A result as the model reads it: bounded, with a handle where it was cut."""
        value = as_text(result.value) if result.success and result.value is not None else ""
        if len(value) <= self.result_limit:
            return result.for_model(self.lang)
        shown = copy.copy(result)
        shown.value = self._ends(value)
        return shown.for_model(self.lang)

    def _ends(self, text: str) -> str:
        """Head and tail, and how to read what is between."""
        handle = self.store.keep(text)
        head, tail = self.result_limit * 6 // 10, self.result_limit * 2 // 10
        note = self._note(len(text) - head - tail, len(text), handle, head)
        return f"{text[:head]}\n{note}\n{text[-tail:]}"

    def _note(self, left: int, size: int, handle: str, offset: int) -> str:
        facts = {"left": left, "size": size, "tool": READ, "handle": handle, "offset": offset}
        return say(self.lang, "agent_cut", **facts)

    def read_on(self, handle: str, offset: int, length: int) -> str | None:
        """A piece of a result that was cut; None for a handle that is not known."""
        text = self.store.read(handle)
        if text is None:
            return None
        start = max(0, min(offset, len(text)))
        end = min(len(text), start + max(1, min(length, self.result_limit - 200)))
        facts = {"start": start, "end": end, "size": len(text)}
        return f"{say(self.lang, 'agent_piece', **facts)}\n{text[start:end]}"

    def folded(self, call: ToolCall, result: ToolResult[Any]) -> str:
        """The one line that stands for a failure once it is old."""
        failure = result.failure
        if failure is None:
            return ""
        effect = result.effect or failure.effect
        line = say(self.lang, "agent_folded", tool=result.tool_name, code=failure.code)
        if failure.detail("read_only") is not True and not effect.safe:
            line += say(self.lang, f"agent_folded_{effect.value}")
        return line

    # The history as a whole

    def tidy(self, transcript: Transcript) -> None:
        """Fold old failures into a line each; and, over the limit, shorten or leave out what is old.

        Calls keep their answers; the task and the last turns stay.
        """
        old = self._old(transcript)
        for answer in answers(old):
            if answer.failed and answer.folded and len(answer.folded) < len(answer.text):
                answer.text = answer.folded
        if transcript.tokens > self.tokens:
            self._shrink(transcript, int(self.tokens * _LOW))

    def narrow(self, transcript: Transcript) -> None:
        """The provider says that it is too long for it: keep within half of what it is."""
        self.tokens = max(500, min(self.tokens, transcript.tokens) // 2)
        self._shrink(transcript, int(self.tokens * _LOW))

    def _old(self, transcript: Transcript) -> list[Entry]:
        turns = transcript.turns
        if len(turns) <= RECENT:
            return []
        return transcript.entries[: transcript.entries.index(turns[-RECENT])]

    def _shrink(self, transcript: Transcript, goal: int) -> None:
        tokens = self._shorten_all(self._old(transcript), transcript.tokens, goal, _SHORT)
        if tokens > goal:
            tokens = self._leave_out(transcript, tokens, goal)
        if tokens > goal:
            limit = max(_SHORT, self.result_limit // 4)
            self._shorten_all(transcript.entries, tokens, goal, limit)

    def _shorten_all(self, entries: Sequence[Entry], tokens: int, goal: int, limit: int) -> int:
        """Shorten answers, oldest first, until the whole is down to `goal`; what it is then."""
        for answer in answers(entries):
            if tokens <= goal:
                break
            before = answer.tokens
            self._shorten(answer, limit)
            tokens -= before - answer.tokens
        return tokens

    def _shorten(self, answer: Answered, limit: int) -> None:
        if answer.failed or len(answer.text) <= limit + 120:
            return
        handle = self.store.keep(answer.whole)
        size = len(answer.whole)
        note = self._note(max(0, size - limit), size, handle, limit)
        answer.text = f"{answer.text[:limit]}\n{note}"

    def _leave_out(self, transcript: Transcript, tokens: int, goal: int) -> int:
        """Leave out the oldest turns whole; one line says so. What the whole is then."""
        old = [entry for entry in self._old(transcript) if isinstance(entry, Turn)]
        gone = set()
        for turn in old:
            if tokens <= goal:
                break
            tokens -= turn.tokens
            gone.add(id(turn))
            self._left_out[0] += 1
            for answer in turn.answers:
                self._left_out[2 if answer.failed else 1] += 1
                if answer.failed and answer.folded.endswith(self._unknown):
                    self._open.append(answer.call.name)
        if not gone:
            return tokens
        entries = [entry for entry in transcript.entries if id(entry) not in gone]
        entries = [entry for entry in entries if not isinstance(entry, _LeftOut)]
        entries.insert(1 if entries and isinstance(entries[0], Said) else 0, self._summary())
        transcript.entries = entries
        return transcript.tokens

    @property
    def _unknown(self) -> str:
        return say(self.lang, f"agent_folded_{Effect.UNKNOWN.value}")

    def _summary(self) -> "_LeftOut":
        turns, good, bad = self._left_out
        text = say(self.lang, "agent_left_out", turns=turns, good=good, bad=bad)
        if self._open:
            names = ", ".join(dict.fromkeys(self._open[-20:]))
            text += say(self.lang, "agent_left_out_open", names=names)
        return _LeftOut(text)


class _LeftOut(Said):
    """The line that says what was left out; there is one at most."""
