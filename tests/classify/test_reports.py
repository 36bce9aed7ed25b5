"""Lines that report work on what had failed are calm; lines that report failures are not."""

import pytest

from failwise.classify import Classifier
from failwise.evidence import from_text, from_value

CLASSIFIER = Classifier(now=lambda: 1_800_000_000.0)


def code_of(text: str) -> str | None:
    failure = CLASSIFIER.classify(from_text(text))
    return failure.code if failure else None


@pytest.mark.parametrize(
    "line",
    [
        "Deleted 3 failed jobs", 'Found 3 matches for "error"', "Found 12 lines matching timeout", "0 errors, 2 warnings",
        "Retried 2 failed uploads successfully", "no errors found", "Removed 2 expired tokens", "Cleared 5 timeout errors.",
        "Marked 3 failed payments as reviewed", "Build finished with 0 errors and 2 warnings", "Cleaned up 7 expired sessions",
        "已删除 3 个失败的任务", '找到 3 处与"错误"匹配的内容', "共找到 5 条“失败”记录", "0 个错误，2 个警告", "已成功重试 2 个失败的上传", "未发现错误",
        "没有检测到任何异常。", "清除了 12 条超时记录", "已修复 3 个错误",
    ],
)  # fmt: skip
def test_calm_lines(line: str) -> None:
    """So many were handled, so many found, none failed: a success, in a log and from a tool."""
    assert code_of(line) is None
    assert CLASSIFIER.classify(from_value(line)) is None


@pytest.mark.parametrize(
    "line",
    [
        "Deleted 3 jobs; 1 failed", "Deleted 3 jobs, but could not delete 2", "Removed 2 files failed", "Found 3 errors",
        "Deleting 3 failed jobs failed: permission denied", "Retried 3 uploads: connection refused", "Found error: connection refused",
        "已删除 3 个任务，2 个失败", "删除 3 个任务失败", "发现 3 个错误", "10 个错误", "未发现配置文件，启动失败",
    ],
)  # fmt: skip
def test_lines_that_report_failures(line: str) -> None:
    """What follows the work, or is what was found, may be a failure after all."""
    assert code_of(line) is not None
