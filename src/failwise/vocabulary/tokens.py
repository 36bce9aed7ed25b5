"""How many tokens a text is for a model, where nobody counted them."""


def estimated(text: str) -> int:
    """Tokens of a text: four ASCII characters to a token, any other character one of its own.

    A little high for most tokenizers, which is the side to err on.
    """
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return (plain + 3) // 4 + len(text) - plain
