"""Raw model text and a JSON Schema in, arguments and repairs out, or a ``model_output`` failure.

Strict reading first; then recoveries that have exactly one reading, each recorded as a `Repair`;
where two readings exist, the call goes back to the model.
"""

from failwise.arguments.reader import ArgumentReader, Reading

__all__ = ["ArgumentReader", "Reading", "fix_from_violations", "unknown_tool"]


def __getattr__(name: str) -> object:
    if name == "unknown_tool":
        from failwise.arguments.failures import unknown_tool

        return unknown_tool
    if name == "fix_from_violations":
        from failwise.arguments.hints import fix_from_violations

        return fix_from_violations
    raise AttributeError(name)
