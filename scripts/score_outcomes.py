"""Failed or not, from the text of a tool's output: the contract of the outcomes scorer.

Reads ``{"id", "tool", "output"}`` a line, answers ``{"failed", "retry"}`` a line: the library's own
classification of a tool result, with nothing added.
"""

import json
import sys

from failwise.classify import Classifier
from failwise.classify.contract import retry_verdict
from failwise.evidence import from_value


def main() -> None:
    """Answer every line of standard input."""
    classifier = Classifier()
    for line in sys.stdin:
        if not line.strip():
            continue
        case = json.loads(line)
        failure = classifier.classify(from_value(case["output"]), tool=case.get("tool") or "")
        again = failure is not None and retry_verdict(failure) in ("yes", "after_wait")
        print(json.dumps({"failed": failure is not None, "retry": again}))


if __name__ == "__main__":
    main()
