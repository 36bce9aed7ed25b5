"""Is this text a failure at all? What a tool returned needs an anchor; what a log says need not."""

import re
from typing import Final

from failwise.classify import outputs
from failwise.classify.folding import fold
from failwise.classify.opened import is_wrapped
from failwise.classify.prose import explains

_ANCHOR: Final = re.compile(
    r"\s{0,8}(?:result:\s{0,4}|output:\s{0,4}|\[|\*\*|<[a-z_]{0,20}error>|<|❌\s?|⚠️?\s?|░){0,2}"
    r"(?:error|err|fatal|exception|failure|fail(?:ed)?|traceback \(most recent call last\):\n|mcp error|api error"
    r"|(?!(?:on|no|any|each|if|every|without) )[a-z]{2,20}[ _]error|tool error|错误(?:信息|代码|码)?|錯誤|异常|異常|失败|失敗|出错了?|报错|エラー|errore|erro|erreur|fehler|ошибка|오류|에러"
    r"|(?:unhandled|uncaught)(?: \w{1,20}){0,2} (?:error|exception)|\((?:error|fatal)(?=\)\s))"
    r"\s{0,2}(?:code)?\s{0,2}(?::(?!=)|[：!\]*>)]|\((?! ?[^\s()]{1,24}\.? [^\n()]{0,40}\) - )|-\d|\d{3}(?=\s{0,3}(?:[:：,.{(<-]|$))|$)",
    re.IGNORECASE,
)
_ANNOUNCED: Final = re.compile(
    r"\s{0,8}(?:[❌⚠✗✖]\ufe0f?\s{0,2})?(?:error|exception|failed|failure|unable|cannot|could not|can't|couldn't)\s(?:while |when |during |in |to |on |of |executing |"
    r"calling |invoking |running |processing |fetching |connecting |loading |parsing |reading |getting |creating |sending )"
    r"|\s{0,8}(?:(?:i |we )?(?:have )?encountered an? (?:\w{2,20} )?error|(?:there was|an?) (?:an )?(?:\w{2,20} )?error (?:occurred|has occurred))\s"
    r"|\s{0,8}(?:cannot|could not|can't|couldn't) (?:parse|connect|open|read|load|resolve|fetch|complete|reach|authenticate|access|determine|process|retrieve|update|delete|save|create|send) ",
    re.IGNORECASE,
)
_ANNOUNCED_ZH: Final = re.compile(
    r"\s{0,8}(?:执行|调用|请求|获取|操作|查询|创建|发送|处理|连接|加载|读取|工具|接口|\w{1,12})(?:出错|失败|异常|错误|超时|未完成|未成功|不成功|被拒绝|受限|中断)(?=[^一-龥]|[了原码信代次过详提重请检已无未不或和及]|$)"
)
_REGRET_ZH: Final = re.compile(
    r"\s{0,8}(?:【[^】\n]{1,12}】\s{0,2})?(?:(?:(?:很?抱歉|对不起|不好意思)[，,。！!：:\s]{0,2}[^\n，。]{0,12}?)?(?:未能|无法|没能|不能(?![不。，,]))[^\n]{1,60}"
    r"|(?:很?抱歉|对不起|不好意思)[，,。！!：:\s]{0,2}[^\n，。]{0,16}?(?:未(?!来)|没有?|不(?!过|妨|仅|同|久)|暂|无(?!论)|已(?:经)?(?:约?满|停|售|截止|结束|下架|过期|失效|到期|关闭|取消|达))"
    r"|[^\n，,。！!：:；;]{1,20}(?:已(?:经)?|均已)?(?:过期|失效|到期|超时|截止|售罄|约满|满员|下架|冻结|锁定|停用)[，,。！!]\s?请[^\n，,。]{1,20}[。！!]?\s{0,4}$)"
)
_REGRET: Final = re.compile(
    r"\s{0,8}(?:(?:i['’]m|i am|we['’]re|we are) )?(?:so |very )?(?:sorry|unfortunately|apologies|regrettably)\b[^\n]{0,80}?(?:could not|couldn['’]t|cannot|can['’]t|can no longer|no longer (?:available|valid|possible|supported|accepted|exists?|active)|unable|failed|not (?:available|eligible|allowed|permitted|supported|possible|accepted|enough)|unavailable|went wrong|declined|rejected|denied|has expired|sold out|fully booked|insufficient)",
    re.IGNORECASE,
)
_ANNOUNCED_ELSE: Final = re.compile(
    fold(
        r"\s{0,8}(?:[❌⚠✗✖]\ufe0f?\s{0,2})?(?:"
        r"(?:\[[\w .:@/-]{1,40}\]\s?){1,3}(?:[\w.-]{1,40} )?(?:error|failed|failure|exception)\b\s?[:：]"
        r"|si è verificato un errore|ocorreu um erro |se (?:ha producido|produjo|ha generado) un error|une erreur (?:s['’]est produite|est survenue)|errore (?:di|nel|nella|durante|interno|del|in|imprevisto)|impossibile \w{3,20}|non è (?:stato )?possibile"
        r"|erreur (?:de|du|lors|interne|pendant|dans|inattendue|réseau)|impossible d[e'’]|[ée]chec d[eu'’]|nous n'avons pas pu"
        r"|error (?:de|del|al|en el|en la|interno|durante|inesperado)|no (?:se |ha )?(?:pudo|puede|fue posible|ha sido posible|pude)|fallo (?:de|en|al)"
        r"|erro (?:de|do|da|ao|na|no|em|interno|durante|inesperado)|n[ãa]o (?:foi|[ée]) poss[íi]vel|falha (?:ao|na|no|de|em)"
        r"|fehler (?:beim|bei|in|im|während|aufgetreten)|\w{3,20} (?:konnte|konnten) nicht|konnte nicht|es ist ein fehler"
        r"|ошибка (?:при|подключения|сети|сервера|доступа|авторизации|соединения|выполнения|запроса|загрузки|чтения)|не удалось|невозможно|произошла ошибка"
        r"|\w{0,24}(?:に失敗しました|でエラーが発生|エラーが発生しました|できませんでした)|[^\n.]{0,40}(?:실패했습니다|오류가 발생|할 수 없습니다|하지 못했습니다))"
    ),
    re.IGNORECASE,
)
"""Sentences that begin as failures are told in Italian, French, Spanish, Portuguese, German, Russian, or end as in Japanese, Korean."""
_LATER: Final = re.compile(
    r"(?:请|可)[^\n，。]{0,16}(?:再试|重试|再操作|再次尝试)[!！。.]?\s{0,8}$|try again(?: later| in [\w ]{1,20}| shortly| soon)?[.!]?\s{0,8}$"
    r"|お試しください[。！!]?\s{0,8}$|다시 시도[^\n]{0,12}$|(?:inténtelo|intente)[^\n]{0,24}$|tente novamente[^\n]{0,16}$|versuchen sie es[^\n]{0,24}$"
    r"|попробуйте[^\n]{0,24}$|riprova(?:re)?[^\n]{0,16}$|(?:veuillez )?réessay(?:ez|er)[^\n]{0,16}$|(?:請|请)[^\n，。]{0,16}再試[!！。.]?\s{0,8}$",
    re.IGNORECASE,
)
_LATER_WORDS: Final = (
    "again", "请", "請", "可", "試", "시도", "intente", "inténte", "novamente", "versuchen", "попробуйте", "riprova", "réessay",
    "reessay",
)  # fmt: skip
"""One of these stands in all that `_LATER` finds."""
_LAST: Final = 64
"""Characters at the end of a text in which it may stand."""
_ASKED: Final = 160
"""A longer text that ends with the advice to try again may be about something else."""
_SENTENCE: Final = re.compile(
    r"\s{0,8}[A-Z][\w '\"/.-]{0,60}? (?:failed|failure|error)(?: with [^:\n]{0,40})?:\s|\s{0,8}[\w ]{0,20}(?:失败|出错|错误|异常)[:：]",
    re.ASCII,
)
_CLASS: Final = re.compile(
    r"\s{0,8}(?:(?:[a-z_][\w]{0,40}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Timeout)\b\s{0,2}[:(\n]"
    r"|(?:[a-z_]\w{0,40}\.){1,5}(?:errors|exceptions|exc)\.[A-Z]\w{1,60}:\s)",
    re.ASCII,
)
_TAGGED: Final = re.compile(r"\s{0,8}<[a-z_]{0,24}error(?:>| [45]\d\d |\(| \[)", re.IGNORECASE)
_SHORT_WAY: Final = 400
"""A long text that holds a traceback further on is a page about one, unless it ends there."""
_TRACEBACK: Final = re.compile(r"^Traceback \(most recent call last\):\s*\n\s+File ", re.MULTILINE)
_LOG_LINE: Final = re.compile(
    r"\s{0,8}[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|(?:INFO|DEBUG|WARN(?:ING)?|TRACE|NOTICE)\b)"
)
"""How lines of logs begin: a log that holds a traceback is content, unless it ends with one."""
_SHELL: Final = re.compile(
    r"[\w./-]{1,30}: (?:[^\n:]{1,200}: )?(?:[A-Z][a-z]+ [a-z ]{3,40}|command not found|permission denied)",
    re.ASCII,
)
_FORM: Final = re.compile(
    r"\s{0,8}(?:exit (?:code|status):? [1-9]|permission to [^\n]{1,80} denied|unknown|invalid|missing|unauthorized|forbidden|unsupported|unrecognized|illegal|bad|no such|no (?:tool|function) named|(?:sub-?)?agent [\"'`][^\n]{1,60}[\"'`] not found|option requires|[\w.-]{1,20}: '[^'\n]{1,60}' is not a \w{2,16} command|usage: [^\0]{1,380}?\n[^\n:]{1,60}: error: |\"?[\w ./-]{1,40}\"? requires (?:exactly|at least|at most) \d|code execution failed|the user doesn['’]t want|(?:the )?user (?:denied|rejected|declined)|\w{1,24} requested permissions?|not found|access denied|permission denied|"
    r"(?:tool|function) [^\n]{1,60} (?:is not|isn't|was not) (?:available|found|registered|known|a valid)|rate limit|too many requests|\d{1,3} validation errors?|validation[_ ]error|agent stopped|request (?:failed|timed out)|http error(?! codes?)|connection (?:refused|reset|error)|"
    r"[45]\d\d (?:page )?(?:not found|bad request|forbidden|unauthorized|too many requests|internal server error|bad gateway|service unavailable|gateway time-?out)|"
    r"-?(?:moved|ask) \d{1,5} [\w.:\[\]-]{1,255}:\d{2,5}$|timed? ?out(?!s)|[\w.-]{1,40} timed out after \d|无效|未知|缺少|没有权限|权限不足|余额不足|库存不足|请求过于频繁|参数错误|网络错误|系统繁忙)",
    re.IGNORECASE,
)
_RECOVERED: Final = re.compile(
    r"(?:successfully|succeeded|success|completed|finished|done|passed|installed|成功|完成|已创建|已恢复)",
    re.IGNORECASE,
)
_ON_THE_WAY: Final = re.compile(
    r"objects: {1,3}100% \(\d|last packet (?:sent |received )?successfully", re.IGNORECASE
)
"""Progress that git prints before and after what stopped it, and what a driver says of the last packet: no end."""
_NEGATED: Final = re.compile(
    r"(?:not|un|without|0|no|never)[ -]?$|(?:未|不|没有|没能|无法|[未不没]能|未被)$", re.IGNORECASE
)
_COUNTS: Final = re.compile(
    r"\b(?:0|no|none|zero) (?:errors?|failed|failures|timeouts?)\b|\d+ passed", re.IGNORECASE
)
_NO_DETAILS: Final = re.compile(
    r"(?:failed|failure|error)\b[^\n]{0,40} (?:with|but|and) no error (?:details?|messages?|text|output|code)",
    re.IGNORECASE,
)
"""A failure of which nothing more is told."""
_CALM: Final = re.compile(
    r"(?:(?!ERROR|FATAL|WARN|CRIT|[Ee]rror|[Ff]ail|[Ee]xception)[^\n\"'{]){0,112}?(?<![\w.])(?:INFO|DEBUG|TRACE|NOTICE|VERBOSE|\[(?:info|debug|trace|notice)\])(?![\w.])"
    r"|[ID]\d{4} \d\d:\d\d:\d\d|[^\n]{0,120}?(?:\b(?:level|lvl|severity)=[\"']?|[\"'](?:level|lvl|severity|log\.level)[\"']: ?[\"'])(?i:info|debug|trace|notice)\b"
    r"|\[[^\]\n]{10,40}\] \{[\w.]{1,60}:\d{1,6}\} (?:INFO|DEBUG)\b|(?:ok|changed|skipping|included): \[[\w.-]{1,80}\]|\S{0,32} ?##\[(?:group|endgroup|debug|command|section)\]"
    r"|\W?\d[\d:. -]{7,32} (?:INF|DBG|VRB)\]|[^\n]{0,80}\bLOG:  (?:duration|statement|execute|connection|disconnection|checkpoint|automatic)\b"
    r"|[^\n]{0,80}\bCRON\[\d{1,8}\]: \(\w{1,32}\) CMD \(|[^\n]{0,200}? (?:\d{1,7}/){4}\+?\d{1,7} [23]\d\d \d{1,12} "
    r"|[^\n]{0,120}?(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) \S{1,400}(?: HTTP/\d(?:\.\d)?)?[\"']? [23]\d\d(?!\d)"
)
_CALM_SIGN: Final = re.compile(
    r"INFO|DEBUG|TRACE|NOTICE|VERBOSE|info|debug|trace|notice|Info|Debug|INF\]|DBG\]|VRB\]|LOG:  |CRON\[|##\[|[ID]\d{4} |: \[| [23]\d\d(?!\d)"
)
"""One of these stands in every line that is calm."""
_DENIED: Final = re.compile(
    r"(?:未(?!能|知|处理|捕获|授权|登[录陆]|通过|找到|响应|定义)|没有?(?!能|权限|找到|响应)|无(?!法|效|权|响应|可)|并无|不会|不再|避免了?|防止|预防|修复(?:了)?|解决(?:了)?)[^\n，。,;；：:]{0,8}?"
    r"(?:过期|失效|超时|异常|错误|失败|故障|冻结|封禁|报错|出错|重复\w{0,2}|限流|中断|断开|丢失|逾期|欠费)"
    r"|(?:限流|频率限制|频次限制|限速|限购|并发限制|超时(?:时间)?|阈值|重试)[^\n，。,;；]{0,6}(?:配置|设置|规则|策略|设为|调整|为|是|[:：]) ?[^\n，。,;；]{0,16}"
    r"|(?<![\d.])0 ?[个条次项处]?(?:错误|失败|异常|超时)|(?:失败|错误|异常|超时|出错)(?:数|量|条数|次数)?[：: ]{0,2}0(?![\d.])|\w{0,24}[Tt]ime_?[Oo]ut\w{0,6}[\"']?\s?[=:]\s?\d{1,9}(?:ms|s)?"
    r"|(?:初始化|创建|启动|配置|加载)(?:完成|成功)[，,；;][^\n，。]{0,16}(?:超时|重试)|(?:将|会)(?:在|于)?[^\n，。,;；]{0,14}(?:过期|到期|失效|关闭|维护|下线)|即将(?:过期|到期|失效|下线)"
    r"|(?:已|自动)(?:跳过|忽略|过滤)[^\n，。,;；]{0,8}|上次(?:失败|超时|错误|异常)|(?:失败|错误|异常|超时|出错)率|限购 ?\d{1,4}|(?:校验|验证|检查|审核|认证|检测|测试)(?:均|已|全部|结果)?(?:通过|成功|正常)"
)
"""In Chinese one sign before the word says that it did not happen, or a word after it that it is a setting."""
_UNDONE: Final = re.compile(r"\b(?:did|does|was|were|is|are) not ", re.IGNORECASE)
_GOOD_WORDS: Final = (
    "success", "succeeded", "completed", "finished", "done", "passed", "installed", "成功", "完成", "已创建",
    "已恢复", "0 error", "no error", "0 fail", "no fail", "0 timeout", "no timeout",
)  # fmt: skip
"""One of these stands in every line that ends well."""
_LOGGED: Final = re.compile(
    r"\[GIN\] |\W{0,3}\d{2,4}[-/.]\d\d[-/.]\d\d[ T]\d\d:\d\d[\d:.,+Z-]{0,16} {0,4}\|[^\n|]{0,40}\b(?:ERROR|CRITICAL|FATAL|WARN(?:ING)?)\b"
)
_LISTING: Final = re.compile(
    r"^\s{0,40}(?:\|(?! \S[^|\n]*$)|[+`├└│]|-{2,}(?![->])|\d{1,3}[.)] |[-*•] )", re.MULTILINE
)
"""How rows of tables, trees and lists begin. One bar before words, and no other, only quotes them."""
_ERRORS_LISTED: Final = re.compile(r"(?:^|[(:\s])\d{1,4} errors? occurred:\s{0,8}\n\s{0,8}\* ")
"""How programs in Go print several errors of one call: a list, and no data."""
SHORT: Final = 400
"""A longer text without an anchor is content, whatever words it holds."""


def announces_failure(text: str) -> bool:
    """Does it begin as failures begin: a wrapper word, a class name, a traceback, a shell's form?"""
    text = fold(text)
    return bool(
        _ANCHOR.match(text)
        or _TAGGED.match(text)
        or _CLASS.match(text)
        or (
            _TRACEBACK.search(text[: 2_000 if len(text) <= 2_000 else _SHORT_WAY])
            and not _LOG_LINE.match(text)
        )
        or (
            len(text) <= SHORT
            and (
                _ANNOUNCED.match(text)
                or _ANNOUNCED_ZH.match(text)
                or _SENTENCE.match(text)
                or _REGRET.match(text)
                or _ANNOUNCED_ELSE.match(text)
                or (not text.isascii() and _REGRET_ZH.match(text))
            )
        )
        or (len(text) <= _ASKED and _asks_to_wait(text[-_LAST:].lower()))
    )


def _asks_to_wait(end: str) -> bool:
    return any(map(end.__contains__, _LATER_WORDS)) and _LATER.search(end) is not None


def has_failed(text: str) -> bool:
    """The same of what a tool gave back, which has more forms than a log: it also ends as failures do."""
    return (announces_failure(text) or outputs.fails(text)) and not explains(text)


def has_failing_form(text: str) -> bool:
    """A short text of which the first words say that something failed, without a wrapper."""
    text = fold(text)
    return (
        len(text) <= SHORT
        and text.count("\n") <= 12
        and bool(_FORM.match(text) or _SHELL.match(text))
        and not explains(text)
    )


def is_content(text: str) -> bool:
    """Plain words without the form of a failure, which no profile is asked about: neither a page, a
    stream nor JSON. False proves nothing."""
    return (
        text[:1].isalpha()
        and "<" not in text
        and " | " not in text[:120]  # containers' names, perhaps
        and "data:" not in text
        and "event:" not in text
        and "=>" not in text  # an array as PHP prints it
        and not is_wrapped(text)
        and not has_failed(text)
        and not has_failing_form(text)
    )


def is_listing(text: str) -> bool:
    """A table, a tree or a list: rows that name errors are data. Loggers put bars too between the
    time, the level and the place of a line."""
    if text.isprintable() and text.count(" | ") < 3:
        return False  # one line, as most texts are
    lines = [line for line in text.splitlines()[:40] if line.strip()]
    if (
        text.count(" | ") >= 3
        and not _ends_in_error(text)
        and sum(line.lstrip(" |").count(" | ") for line in lines) >= 3
        and not _LOGGED.match(text)
        and not text.lstrip().lower().startswith("error")
    ):
        return True
    if len(lines) < 2 or _CLASS.match(lines[0]) or _ends_in_error(text):
        return False
    if " occurred:" in text and _ERRORS_LISTED.search(text):
        return False
    marked = sum(
        1 for line in lines if _LISTING.match(line) or line.count("|") >= 2 or line.count("\t") >= 2
    )
    return marked * 2 > len(lines)


def _ends_in_error(text: str) -> bool:
    """Is the last line no row, and begins as failures do? A builder quotes its file before it says why."""
    last = text.rstrip().rsplit("\n", 1)[-1]
    return "|" not in last and _LISTING.match(last) is None and _ANCHOR.match(last) is not None


# The words of a frame are names of the program: ``SaveChangesAsync(Boolean acceptAllChangesOnSuccess)``.
_FRAME: Final = re.compile(
    r"(?:Stack ?Trace:)?\s{1,16}(?:at|in|bei|à|en|в|在|場所|위치:?) [\w$][\w$.<>`,|/\[\]]{2,400}\(|#\d{1,4} +[\w/{]"
)


def ends_well(text: str) -> bool:
    """The last line says that it worked after all, or the counts of failures are zero."""
    last = text.rstrip().rsplit("\n", 1)[-1]
    lowered = last.lower()
    if not any(map(lowered.__contains__, _GOOD_WORDS)) or _ON_THE_WAY.search(last):
        return False
    if _FRAME.match(last):
        return False
    if _COUNTS.search(last):
        return _NO_DETAILS.search(last) is None
    found = None
    for match in _RECOVERED.finditer(last):
        found = match
    return (
        found is not None
        and not _NEGATED.search(last[: found.start()])
        and not _TROUBLE.search(last)
        and not _UNDONE.search(last)
    )


_CALM_LINES: Final = 12


def is_calm(text: str) -> bool:
    """Lines of a log that each say of themselves that they are no failure: by their level, or the
    status that an access log has behind the request. Settings may follow one, a line each."""
    lines = text.strip().split("\n", _CALM_LINES)
    return (
        len(lines) <= _CALM_LINES
        and _CALM_SIGN.search(lines[0]) is not None
        and _CALM.match(lines[0]) is not None
        and all(_CALM.match(line) or _SETTING.fullmatch(line) for line in lines if line.strip())
    )


_SETTING: Final = re.compile(
    r"\s{1,8}(?!error|err|cause|caused|reason|exception|failure)[a-z][\w.-]{1,80} ?[=:] ?[^\n]{0,800}",
    re.IGNORECASE,
)
"""How programs print what they were set up with."""


_TROUBLE: Final = re.compile(
    r"出(?:了|现)(?:一?[点些]|某些)?(?:小)?(?:问题|故障|状况|差错)|something went wrong|oops|try again|not available|fatal|^code: [a-z]\w{3,60}\s{1,8}message: |(?<![-_/])error(?![-_/]\w|s=(?:remount|continue))|fail|exception|denied|refused|timed? ?out|invalid(?!at)|错误|失败|异常|超时|无效|无法|不支持|拒绝|过期|cannot|unable to|could not|not allowed",
    re.IGNORECASE,
)


_DENIABLE: Final = re.compile(r"[\u4e00-\u9fff]|[Tt]ime")
"""One of these stands in all that is a denial."""


def without_denials(text: str) -> str:
    """The text without what it says did not happen, or is only set up: 未超时, 无异常, 限流配置."""
    if text.isascii():
        return text
    folded = fold(text)
    return _DENIED.sub(" ", folded) if _DENIABLE.search(folded) else folded


def speaks_of_trouble(text: str) -> bool:
    """Any word of failing at all; without one a log line is simply not a failure."""
    return _TROUBLE.search(text) is not None
