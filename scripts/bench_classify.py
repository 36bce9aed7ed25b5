"""What classification costs: `failwise classify --jsonl`, and one failure in process.

    python scripts/bench_classify.py [--lines N] [--failing SHARE] [--json]

The log is made up: lines of ten formats, hardly any of them twice, and failures in seven languages
strewn among them. Absolute figures depend on the machine; each stands beside a yardstick taken on
the same one, so that the ratios can be compared anywhere: for lines a loop that parses the JSON, does
one search of a small pattern, and prints a small answer; for a failure in process
`traceback.format_exception` of a short chain. A failure is read twice: what decides at once (category,
code, effect), and with all that is put in words only when read, as the journal and the model's message
do for a failed call. Each is a new one, with words that never came before; the same one again, as in an
outage, is measured beside it. Processor time is counted, not the wall's. Exits non-zero where a bound is missed.
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


def failures() -> dict[str, Callable[[int], Callable[[], object]]]:
    """What an agent's tools meet: for each a maker of calls that classify it, by a number that is told
    somewhere in its words, so that one number is the same failure again and another a new one."""
    classifier = Classifier()
    request = httpx.Request("POST", "https://api.example.com/v1/orders")

    def answered(status: int, **body: Any) -> httpx.Response:
        return httpx.Response(status, request=request, **body)

    def refused(number: int) -> BaseException:
        error = urllib3.exceptions.NewConnectionError(
            None,  # type: ignore[arg-type]
            f"Failed to establish a new connection to port {number}: [Errno 111] Connection refused",
        )
        error.__cause__ = ConnectionRefusedError(111, "Connection refused")
        return requests.ConnectionError(
            urllib3.exceptions.MaxRetryError(None, "/", error)  # type: ignore[arg-type]
        )

    def expired(number: int) -> ssl.SSLCertVerificationError:
        error = ssl.SSLCertVerificationError(
            1,
            f"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate {number} has expired",
        )
        error.verify_code, error.verify_message = 10, "certificate has expired"
        return error

    errors: dict[str, Callable[[int], BaseException]] = {
        "read timeout (httpx)": lambda number: _raised(
            lambda: httpx.ReadTimeout(f"timed out {number}", request=request),
            TimeoutError(f"timed out {number}"),
        ),
        "connection refused (requests)": lambda number: _raised(lambda: refused(number)),
        "certificate expired": lambda number: _raised(
            lambda: httpx.ConnectError(str(expired(number)), request=request), expired(number)
        ),
        "ValueError in a tool": lambda number: _raised(
            lambda: ValueError(f"the basket holds no item number {number}")
        ),
        "Chinese text": lambda number: _raised(
            lambda: RuntimeError(f"调用下游接口 {number} 失败: 请求过于频繁, 请稍后重试")
        ),
        "OpenAI client's text": lambda number: _raised(
            lambda: RuntimeError(
                f"Error code: 400 - {{'error': {{'message': \"Invalid value: 'foo{number}'.\", "
                "'type': 'invalid_request_error', 'param': 'tools[0].type', 'code': 'invalid_value'}}"
            )
        ),
    }
    answers: dict[str, Callable[[int], httpx.Response]] = {
        "429 with JSON": lambda number: answered(
            429,
            json={"error": {"code": "too_many", "message": f"Slow down, please ({number})."}},
            headers={"retry-after": "3"},
        ),
        "502 with a page": lambda number: answered(
            502,
            text="<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway"
            f"</h1></center><hr><center>nginx {number}</center></body></html>",
            headers={"content-type": "text/html"},
        ),
        "400 like OpenAI's": lambda number: answered(
            400,
            json={
                "error": {
                    "message": f"Invalid value: 'foo{number}'. Supported values are: 'function'.",
                    "type": "invalid_request_error",
                    "param": "tools[0].type",
                    "code": "invalid_value",
                }
            },
        ),
        "422 of a validation": lambda number: answered(
            422,
            json={
                "detail": [
                    {"type": "missing", "loc": ["body", f"item{number}"], "msg": "Field required"}
                ]
            },
        ),
        "500 with a text": lambda number: answered(500, text=f"Internal Server Error {number}"),
        "200 with a failure inside": lambda number: answered(
            200, json={"code": 40013, "msg": f"invalid appid {number}"}
        ),
    }

    def of_error(make: Callable[[int], BaseException]) -> Callable[[int], Callable[[], object]]:
        def made(number: int) -> Callable[[], object]:
            error = make(number)
            return lambda: classifier.classify(from_exception(error), tool="order")

        return made

    def of_answer(make: Callable[[int], httpx.Response]) -> Callable[[int], Callable[[], object]]:
        def made(number: int) -> Callable[[], object]:
            answer = make(number)
            return lambda: classifier.classify(from_response(answer), tool="order")

        return made

    return {name: of_error(make) for name, make in errors.items()} | {
        name: of_answer(make) for name, make in answers.items()
    }


def _median_us(calls: list[Callable[[], object]]) -> float:
    clock, taken = time.perf_counter_ns, []
    for call in calls:
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
    times: int, read: Callable[[Any], object] = _decided, *, again: bool = False
) -> dict[str, dict[str, float]]:
    """Microseconds of each failure at the median, and how often the yardstick's cost; each time a new
    one, or (`again`) the same one."""
    chained = _raised(lambda: ValueError("outer"), _raised(lambda: KeyError("inner")))
    yardstick: list[Callable[[], object]] = [lambda: traceback.format_exception(chained)] * times
    figures = {}
    number = 0
    for name, make in failures().items():
        medians, yards = [], []
        for _ in range(
            4
        ):  # the first round warms up; of the others the least: others use the machine too
            number += 1
            calls = []
            for each in range(times):
                call = make(number if again else number * 10_000 + each)
                calls.append(lambda call=call: read(call()))  # type: ignore[misc]
            medians.append(_median_us(calls))
            yards.append(_median_us(yardstick))
        took, yard = min(medians[1:]), min(yards[1:])
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
    again = failure_figures(options.times, again=True)
    middle, ratio = _middle(single)
    whole_middle, whole_ratio = _middle(whole)
    again_middle, again_ratio = _middle(again)
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
        figures |= {"read_whole_median_us": whole_middle, "again": again}
        print(json.dumps({**figures, "again_median_us": again_middle, "missed": missed}))
        return 1 if missed else 0
    print(
        f"log lines    {lines['lines_per_second']:9,.0f} a second   {lines['lines_ratio']:.1f} times a "
        f"bare loop over the JSON   ({options.failing:.0%} failures)"
    )
    for name, row in single.items():
        print(
            f"  {name:<32} {row['median_us']:7.1f} us   ratio {row['ratio']:.1f}   "
            f"read whole {whole[name]['median_us']:7.1f} us   ratio {whole[name]['ratio']:.1f}   "
            f"again {again[name]['median_us']:7.1f} us"
        )
    print(f"one failure  {middle:9.1f} us at the median   {ratio:.1f} times format_exception")
    print(f"read whole   {whole_middle:9.1f} us at the median   {whole_ratio:.1f} times")
    print(f"again        {again_middle:9.1f} us at the median   {again_ratio:.1f} times")
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
