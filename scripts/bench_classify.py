"""What classification costs: `failwise classify --jsonl`, and one failure in process.

    python scripts/bench_classify.py [--lines N] [--failing SHARE] [--json]

The log is made up: lines of ten formats, hardly any of them twice, and failures in seven languages
strewn among them. Absolute figures depend on the machine; each stands beside a yardstick taken on
the same one, so that the ratios can be compared anywhere: for lines a loop that parses the JSON, does
one search of a small pattern, and prints a small answer; for a failure in process
`traceback.format_exception` of a short chain. A failure is read twice: what decides at once (category,
code, effect), and with all that is put in words only when read, as the journal and the model's message
do for a failed call. Processor time is counted, not the wall's. Exits non-zero where a bound is missed.
"""

import argparse
import json
import random
import re
import resource
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import requests
import urllib3

from failwise.classify import Classifier
from failwise.evidence import from_exception, from_response

LINES_A_SECOND = 20_000
MEDIAN_US = 60.0
LINES_RATIO = 6.0
"""So many times the yardstick a line may cost; 20,000 lines a second where that does 140,000."""
FAILURE_RATIO = 2.5
WHOLE_RATIO = 5.0

YARDSTICK = """
import json, re, sys
search = re.compile(r"error|fail|refused|denied|timed? ?out", re.IGNORECASE).search
for line in sys.stdin.buffer:
    case = json.loads(line)
    found = search(case["input"]["text"])
    sys.stdout.write(json.dumps({"id": case["id"], "category": "unknown" if found else "success"}) + "\\n")
"""

WORDS = (  # noqa: SIM905
    "orders billing search index cache worker session payment catalogue shipment ledger profile "
    "upload gateway report invoice customer basket warehouse scheduler consumer partition replica "
    "snapshot token checkout webhook tenant region export import mailer render thumbnail feature "
    "rollout canary sync"
).split(" ")
VERBS = (  # noqa: SIM905
    "started finished loaded stored sent received processed scheduled updated created removed "
    "refreshed resolved rendered compacted flushed joined left opened closed accepted published"
).split(" ")


class Values:
    """Made-up values, the same in each run."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def get(self, name: str) -> str:
        """A value for one place of a template."""
        chance = self.chance
        match name:
            case "word":
                return chance.choice(WORDS)
            case "verb":
                return chance.choice(VERBS)
            case "n":
                return str(chance.randrange(1, 90_000))
            case "ms":
                return str(chance.randrange(1, 3_000))
            case "id":
                return f"{chance.getrandbits(48):012x}"
            case "uuid":
                bits = f"{chance.getrandbits(128):032x}"
                return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"
            case "ip":
                return ".".join(str(chance.randrange(1, 255)) for _ in range(4))
            case "host":
                return (
                    f"{chance.choice(WORDS)}-{chance.randrange(99)}.{chance.choice(WORDS)}.example"
                )
            case "path":
                return (
                    f"/v{chance.randrange(1, 4)}/{chance.choice(WORDS)}/{chance.randrange(90_000)}"
                )
            case "ts":
                return (
                    f"2026-11-{chance.randrange(1, 31):02d}T{chance.randrange(24):02d}:"
                    f"{chance.randrange(60):02d}:{chance.randrange(60):02d}.{chance.randrange(1000):03d}Z"
                )
            case "ok":
                return chance.choice(("200", "201", "204", "301", "304"))
            case _:
                raise KeyError(name)


FINE = (
    '<ip> - - [<ts>] "GET <path>?page=<n> HTTP/1.1" <ok> <n> "-" "Mozilla/5.0 (X11; Linux x86_64)" rt=<ms>',
    '<ip> - <word> [<ts>] "POST <path> HTTP/2.0" <ok> <n> "https://<host>/<word>" "agent/<n>.<n>"',
    "<ts> INFO [<word>-<n>] com.acme.<word>.<word>Service - <verb> <word> <n> in <ms> ms",
    "<ts> DEBUG <word>.<word>: <verb> <word> id=<uuid> size=<n>",
    "INFO:<word>.<word>:<verb> <n> <word> records for tenant <id>",
    'level=info ts=<ts> caller=<word>.go:<n> msg="<word> <verb>" duration=<ms>ms id=<id>',
    '{"ts":"<ts>","level":"info","logger":"<word>","msg":"<word> <verb>","trace_id":"<id>","took_ms":<ms>}',
    "Nov 30 12:00:01 <word>-<n> <word>[<n>]: <verb> <word> <id> from <ip> port <n>",
    "I1130 12:00:01.<n> <n> <word>.go:<n>] <word> <verb>: <word>/<word>-<id>",
    "<ts> 订单 <n> 已创建, 用户 <id>, 耗时 <ms> 毫秒",
    "<ts> INFO <word>: 处理 <word> 消息 <n> 条, 批次 <uuid>",
    '[<ts>] <word>.INFO: User <n> viewed <word> {"id":<n>,"ip":"<ip>"} []',
    "<ts> [<n>] LOG:  checkpoint complete: wrote <n> buffers (0.<n>%); write=0.<n> s, sync=0.00<n> s",
    "<ts> INFO <word> pool: size=<n> idle=<n> timeout=30s retries=0 errors=0",
)
FAILING = (
    "<ts> ERROR <word>.client: httpx.ReadTimeout: The read operation timed out (url=https://<host><path>)",
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='<host>', port=443): Max retries exceeded with url: <path> (Caused by NewConnectionError('<urllib3.connection.HTTPSConnection object at 0x7f<id>>: Failed to establish a new connection: [Errno 111] Connection refused'))",
    "<ts> ERROR [<word>-<n>] upstream answered 503 Service Unavailable for <path> after <ms>ms",
    "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1000) host=<host>",
    'openai.RateLimitError: Error code: 429 - {"error": {"message": "Rate limit reached for <word>-<n>, try again in <ms>ms", "type": "tokens", "code": "rate_limit_exceeded"}}',
    "<ts> ERROR <word>: 401 Unauthorized: token <id> expired",
    'pq: duplicate key value violates unique constraint "<word>_pkey" (SQLSTATE 23505) id=<n>',
    "[Errno 2] No such file or directory: '/srv/<word>/<id>.csv'",
    "<ts> WARN <word> getaddrinfo ENOTFOUND <host>",
    "TypeError: unsupported operand type(s) for +: 'int' and 'str' in <word>.py line <n>",
    "<ts> 调用 <word> 接口失败: 连接超时 (<ms> 毫秒), 主机 <host>",
    "错误: 余额不足, 账户 <n>, 需要 <ms> 元",
    "请求过于频繁, 请在 <ms> 毫秒后重试 (req <id>)",
    "エラー: サーバーに接続できませんでした (<host>)",
    "오류: 요청 시간이 초과되었습니다 (<ms>ms)",
    "Fehler: Zugriff verweigert für Benutzer <id>",
    "Error: no se pudo conectar con <host>: conexión rechazada",
    "Ошибка: превышено время ожидания ответа от <host>",
    '{"ts":"<ts>","level":"error","msg":"payment refused","error":{"code":"insufficient_funds","message":"balance too low on <id>"}}',
    "<ts> ERROR <word>.<word> quota exhausted for project <id>: 429 RESOURCE_EXHAUSTED",
)


def log(lines: int, failing: float = 0.1, seed: int = 7) -> Iterator[str]:
    """So many lines of a log of which `failing` tell of a failure."""
    values = Values(seed)
    pieces = {text: _pieces(text) for text in (*FINE, *FAILING)}
    for _ in range(lines):
        templates = FAILING if values.chance.random() < failing else FINE
        fixed, names = pieces[values.chance.choice(templates)]
        yield fixed[0] + "".join(
            values.get(name) + text for name, text in zip(names, fixed[1:], strict=True)
        )


def _pieces(template: str) -> tuple[list[str], list[str]]:
    parts = re.split(r"<(word|verb|n|ms|id|uuid|ip|host|path|ts|ok)>", template)
    return parts[::2], parts[1::2]


def write_log(path: Path, lines: int, failing: float) -> None:
    """The log as the JSON lines that the command reads."""
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(log(lines, failing)):
            case = {"id": str(number), "kind": "text", "input": {"text": text}}
            file.write(json.dumps(case, ensure_ascii=False) + "\n")


def _seconds(command: list[str], given: Path) -> float:
    """Processor seconds of a command that reads the file; its answers are dropped."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with given.open("rb") as file:
        subprocess.run(command, stdin=file, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def lines_figures(lines: int, failing: float, rounds: int) -> dict[str, float]:
    """Lines a second of the command, its start taken off, and how often the yardstick's cost."""
    ours = [sys.executable, "-m", "failwise.cli.main", "classify", "--jsonl", "-"]
    theirs = [sys.executable, "-c", YARDSTICK]
    with tempfile.TemporaryDirectory() as name:
        few, many = Path(name) / "few.jsonl", Path(name) / "many.jsonl"
        write_log(few, 200, failing)
        write_log(many, lines, failing)
        taken, pairs = [], []
        for _ in range(rounds):
            cost = [_seconds(command, many) - _seconds(command, few) for command in (ours, theirs)]
            taken.append(cost[0])
            pairs.append(cost[0] / cost[1])
    return {
        "lines_per_second": (lines - 200) / min(taken),
        "lines_ratio": statistics.median(pairs),
    }


def _raised(make: Callable[[], BaseException], cause: BaseException | None = None) -> BaseException:
    try:
        raise make() from cause
    except BaseException as error:
        return error


def failures() -> dict[str, Callable[[], object]]:
    """What an agent's tools meet, each as a call that classifies it."""
    classifier = Classifier()
    request = httpx.Request("POST", "https://api.example.com/v1/orders")

    def answered(status: int, **body: Any) -> httpx.Response:
        return httpx.Response(status, request=request, **body)

    refused = urllib3.exceptions.NewConnectionError(
        None,  # type: ignore[arg-type]
        "Failed to establish a new connection: [Errno 111] Connection refused",
    )
    refused.__cause__ = ConnectionRefusedError(111, "Connection refused")
    expired = ssl.SSLCertVerificationError(
        1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired"
    )
    expired.verify_code, expired.verify_message = 10, "certificate has expired"
    errors = {
        "read timeout (httpx)": _raised(
            lambda: httpx.ReadTimeout("timed out", request=request), TimeoutError("timed out")
        ),
        "connection refused (requests)": _raised(
            lambda: requests.ConnectionError(
                urllib3.exceptions.MaxRetryError(None, "/", refused)  # type: ignore[arg-type]
            )
        ),
        "certificate expired": _raised(
            lambda: httpx.ConnectError(str(expired), request=request), expired
        ),
        "ValueError in a tool": _raised(lambda: ValueError("the basket holds no item number 4")),
        "Chinese text": _raised(lambda: RuntimeError("调用下游接口失败: 请求过于频繁, 请稍后重试")),
        "OpenAI client's text": _raised(
            lambda: RuntimeError(
                "Error code: 400 - {'error': {'message': \"Invalid value: 'foo'.\", "
                "'type': 'invalid_request_error', 'param': 'tools[0].type', 'code': 'invalid_value'}}"
            )
        ),
    }
    answers = {
        "429 with JSON": answered(
            429,
            json={"error": {"code": "too_many", "message": "Slow down, please."}},
            headers={"retry-after": "3"},
        ),
        "502 with a page": answered(
            502,
            text="<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway"
            "</h1></center><hr><center>nginx</center></body></html>",
            headers={"content-type": "text/html"},
        ),
        "400 like OpenAI's": answered(
            400,
            json={
                "error": {
                    "message": "Invalid value: 'foo'. Supported values are: 'function'.",
                    "type": "invalid_request_error",
                    "param": "tools[0].type",
                    "code": "invalid_value",
                }
            },
        ),
        "422 of a validation": answered(
            422,
            json={
                "detail": [
                    {"type": "missing", "loc": ["body", "quantity"], "msg": "Field required"}
                ]
            },
        ),
        "500 with a text": answered(500, text="Internal Server Error"),
        "200 with a failure inside": answered(200, json={"code": 40013, "msg": "invalid appid"}),
    }

    def of_error(error: BaseException) -> Callable[[], object]:
        return lambda: classifier.classify(from_exception(error), tool="order")

    def of_answer(answer: httpx.Response) -> Callable[[], object]:
        return lambda: classifier.classify(from_response(answer), tool="order")

    return {name: of_error(error) for name, error in errors.items()} | {
        name: of_answer(answer) for name, answer in answers.items()
    }


def _median_us(call: Callable[[], object], times: int) -> float:
    clock, taken = time.perf_counter_ns, []
    for _ in range(times):
        begin = clock()
        call()
        taken.append(clock() - begin)
    return statistics.median(taken) / 1_000


def _decided(failure: Any) -> object:
    """What the runtime decides by."""
    return failure.category, failure.code, failure.effect


def _told(failure: Any) -> object:
    """All of it: details, message, fingerprint, excerpt, rules that spoke."""
    return failure.details, failure.message, failure.fingerprint, failure.evidence, failure.spoke


def failure_figures(
    times: int, read: Callable[[Any], object] = _decided
) -> dict[str, dict[str, float]]:
    """Microseconds of each failure at the median, and how often the yardstick's cost."""
    chained = _raised(lambda: ValueError("outer"), _raised(lambda: KeyError("inner")))
    figures = {}
    for name, classify in failures().items():

        def call(classify: Callable[[], object] = classify) -> object:
            return read(classify())

        for _ in range(20):
            call()
        # The least of several medians: the machine is not ours alone.
        took = min(_median_us(call, times) for _ in range(3))
        yard = min(_median_us(lambda: traceback.format_exception(chained), times) for _ in range(3))
        figures[name] = {"median_us": took, "ratio": took / yard}
    return figures


def _middle(figures: dict[str, dict[str, float]]) -> tuple[float, float]:
    """The median of their microseconds, and of their ratios."""
    rows = figures.values()
    return (
        statistics.median(row["median_us"] for row in rows),
        statistics.median(row["ratio"] for row in rows),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="what classification costs")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--lines", type=int, default=60_000)
    parser.add_argument("--failing", type=float, default=0.1, help="share of failures among them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", type=int, default=500, help="repeats of each failure in process")
    parser.add_argument("--write", metavar="FILE", help="only write the log, to try things on")
    options = parser.parse_args()
    if options.write:
        write_log(Path(options.write), options.lines, options.failing)
        return 0
    lines = lines_figures(options.lines, options.failing, options.rounds)
    single = failure_figures(options.times)
    whole = failure_figures(options.times, _told)
    middle, ratio = _middle(single)
    whole_middle, whole_ratio = _middle(whole)
    missed = []
    if lines["lines_per_second"] < LINES_A_SECOND and lines["lines_ratio"] > LINES_RATIO:
        missed.append(
            f"{lines['lines_per_second']:,.0f} lines a second, {lines['lines_ratio']:.1f} times the "
            f"yardstick: below {LINES_A_SECOND:,} and above {LINES_RATIO:g}"
        )
    if whole_ratio > WHOLE_RATIO:
        missed.append(f"read whole {whole_ratio:.1f} times the yardstick: above {WHOLE_RATIO:g}")
    if middle > MEDIAN_US and ratio > FAILURE_RATIO:
        missed.append(
            f"a failure takes {middle:.0f} us, {ratio:.1f} times the yardstick: above {MEDIAN_US:g} us "
            f"and {FAILURE_RATIO:g}"
        )
    if options.json:
        figures = {**lines, "failures": single, "median_us": middle, "read_whole": whole}
        print(json.dumps({**figures, "read_whole_median_us": whole_middle, "missed": missed}))
        return 1 if missed else 0
    print(
        f"log lines    {lines['lines_per_second']:9,.0f} a second   {lines['lines_ratio']:.1f} times a "
        f"bare loop over the JSON   ({options.failing:.0%} failures)"
    )
    for name, row in single.items():
        print(
            f"  {name:<32} {row['median_us']:7.1f} us   ratio {row['ratio']:.1f}   "
            f"read whole {whole[name]['median_us']:7.1f} us   ratio {whole[name]['ratio']:.1f}"
        )
    print(f"one failure  {middle:9.1f} us at the median   {ratio:.1f} times format_exception")
    print(f"read whole   {whole_middle:9.1f} us at the median   {whole_ratio:.1f} times")
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
