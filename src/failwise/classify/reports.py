"""Lines that report work on what had failed, or that nothing has: they speak of failures and are none."""

import re
from typing import Final

_LENGTH: Final = 200
_DONE: Final = re.compile(
    r"\s{0,8}(?:successfully )?(?:deleted|removed|cleared|cleaned up|purged|pruned|dropped|listed|retried|re-?queued|resent|re-?tried|re-?processed"
    r"|re-?uploaded|archived|fixed|resolved|marked|cancell?ed|dismissed|acknowledged|closed|revoked|evicted|expired|exported|reported)"
    r" (?:all |the |another )?\d{1,9}((?: [\w-]{1,24}){1,3})(?P<rest>[^\n]{0,120})",
    re.IGNORECASE | re.ASCII,
)
_FOUND: Final = re.compile(
    r"\s{0,8}(?:found|showing|listing|returned|matched|got) \d{1,9} (?:match(?:es)?|results?|hits?|lines?|entries|entry|rows?|records?|documents?|files?|messages?|occurrences?|issues?|events?)"
    r"(?: (?:for|matching|containing|with|of|about|titled|named))?(?P<rest>[^\n]{0,120})",
    re.IGNORECASE | re.ASCII,
)
_DONE_ZH: Final = re.compile(
    r"\s{0,8}(?:已经?|共|成功|全部|重新){0,3}(?:删除|清理|清除|移除|取消|归档|重试|上传|提交|发送|入队|处理|修复|解决|导出|列出|标记|关闭|吊销)(?:了|完成)? ?\d{1,9} ?[个条项次份笔件张行]"
    r"(?P<object>[^\n，。；：,;:]{1,16})(?P<rest>[^\n]{0,60})"
)
_FOUND_ZH: Final = re.compile(
    r"\s{0,8}(?:已|共|总共|一共)?(?:找到|查到|搜索到|检索到|匹配到|查询到|返回)(?:了)? ?\d{1,9} ?[个条项次份处行](?P<rest>[^\n]{0,80})"
)
_MADE: Final = re.compile(
    r"\s{0,8}[✓✔✅☑]\ufe0f? {0,2}(?:created|updated|closed|reopened|merged|edited|added|opened|assigned|transferred|pinned|locked|commented on)"
    r" (?:an? |the )?(?:draft )?(?:issue|pull request|pr|merge request|mr|ticket|bug|task|card|discussion|comment|alert|incident)\b[^\n]{0,160}",
    re.IGNORECASE | re.ASCII,
)
"""What trackers' own tools say once it is done; a title follows, and a title may be of any failure."""
_NOTHING: Final = re.compile(
    r"\s{0,8}(?:(?:并|暂|均)?(?:未|没有?|无))(?:发现|检测到|检查出|检查到|出现|发生|查到)?(?:任何)?(?:错误|异常|失败|问题|故障|超时)(?:的?(?:记录|项目?|任务|日志))?[。.!！]?\s{0,8}"
)
_QUOTED: Final = re.compile(
    r"\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'|`[^`\n]{0,80}`|“[^”\n]{0,80}”|‘[^’\n]{0,80}’|「[^」\n]{0,80}」"
)
_SOUGHT: Final = re.compile(r" [\w.*-]{1,40}[.!]?", re.ASCII)
_FAILS: Final = re.compile(
    r"fail|error|denied|refused|reject|timed? ?out|exception|invalid|unable|cannot|could not|but |except|失败|错误|异常|超时|出错|拒绝|无法|未能|但",
    re.IGNORECASE,
)
_ENDS_BADLY: Final = re.compile(
    r"(?:failed|denied|refused|rejected|失败|出错|超时|异常|被拒绝)$", re.IGNORECASE
)


def reports_work(text: str) -> bool:
    """One short line: so many failed things were handled, so many matches were found, no error was.

    What is handled may be called failed or expired; what follows it may speak of nothing of the
    kind (``Deleted 3 failed jobs`` is calm, ``Deleted 3 jobs, 1 failed`` and ``Found 3 errors`` are not).
    """
    if len(text) > _LENGTH or "\n" in text.strip():
        return False
    if not text.isascii() and _NOTHING.fullmatch(text):
        return True
    if not text.isascii() and _MADE.fullmatch(text):
        return True
    done = _DONE.fullmatch(text)
    if done is not None:
        return not _ENDS_BADLY.search(done[1]) and not _FAILS.search(done["rest"])
    found = _FOUND.fullmatch(text)
    if found is not None:
        rest = _QUOTED.sub("", found["rest"])
        return _SOUGHT.fullmatch(rest) is not None or not _FAILS.search(rest)
    if text.isascii():
        return False
    done = _DONE_ZH.fullmatch(text)
    if done is not None:
        return not _ENDS_BADLY.search(done["object"]) and not _FAILS.search(done["rest"])
    found = _FOUND_ZH.fullmatch(text)
    return found is not None and not _FAILS.search(_QUOTED.sub("", found["rest"]))
