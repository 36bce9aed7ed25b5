"""Answer the contract of the Retry-After scorer: {"value", "now"} lines in, {"seconds"} lines out."""

import json
import sys

from failwise.evidence import parse_retry_after

for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps({"seconds": parse_retry_after(case["value"], now=case["now"])}))
