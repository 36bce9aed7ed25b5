"""What a person can change from a page."""

from collections.abc import Mapping
from typing import Final

from failwise.insight import recorded
from failwise.journal.reader import Reader
from failwise.vocabulary.errors import UsageError

_NAME: Final = 200


def do(reader: Reader, form: Mapping[str, str]) -> None:
    """Do what a form says, by its field ``do``. Raises `UsageError` where that cannot be."""
    wanted = form.get("id", "")
    match form.get("do"):
        case "settle":
            state = form.get("state")
            if state not in ("done", "not_done"):
                raise UsageError("settle: say done or not_done")
            reader.settle(wanted, "done" if state == "done" else "not_done")
        case "name":
            name = " ".join(form.get("name", "").split())[:_NAME]
            recorded.name_cluster(reader, wanted, name)
        case "merge":
            others = [one for one in form.get("others", "").split() if one != wanted]
            recorded.merge_clusters(reader, [wanted, *others])
        case "split":
            recorded.split_cluster(reader, form.get("fingerprint", ""))
        case "mute" | "unmute" as word:
            recorded.mute_cluster(reader, wanted, word == "mute")
        case _:
            raise UsageError("this is nothing that can be done")
