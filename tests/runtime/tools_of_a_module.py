"""Tools at module level, as users write them; a module of its own because functions are pickled by name."""

from failwise import Runtime

rt = Runtime(":memory:")


@rt.tool(read_only=True)
def double(number: int) -> int:
    """Twice the number."""
    return number * 2


@rt.tool(read_only=True, timeout=5)
async def triple(number: int) -> int:
    """Three times the number."""
    return number * 3
