"""Good outputs that speak of failures: pages, answers to questions, code, lists, hits of a search, JSON.

Of 26,000 pieces of public documentation, code and success examples of APIs, as tools give them back, 0.4 % were
called failures that were none, paragraphs with a word of failing 1.8 %; pages and lists hardly ever. These rows
are of the kinds behind those false alarms, in words of their own, and of kinds that were always right. Because they were chosen so,
`first_try` (right before the rules knew the kind) is no rate.
"""

from collections import Counter

import pytest

from failwise.classify import Classifier
from failwise.evidence import from_value
from tests.classify import recorded

_ROWS = recorded.rows("heldout5_benign.jsonl")


def test_what_was_right_at_first() -> None:
    """The first verdicts are those of the rows."""
    assert Counter(row["first_try"] for row in _ROWS) == {True: 213, False: 62}


def test_good_outputs_are_no_failures() -> None:
    """None of them is called a failure: as a tool's result, as a body, as a line of a log."""
    wrong = [row["id"] for row in _ROWS if recorded.given(row)["category"] != "success"]
    assert not wrong


@pytest.mark.parametrize(
    "text",
    [
        "为您查询航班时发生异常",
        "要删除的文件不存在，操作失败",
        "当前系统繁忙，请求失败",
        "其中2个文件上传失败",
        "该订单支付失败，请重试",
        "用于支付的卡已失效，支付失败",
        "您的账号已过期，请联系客服",
        "操作失败，如问题持续存在请联系管理员",
        "连接失败，检查网络后重试",
        "错误的请求：参数缺失",
        "很抱歉，未能完成预订",
        "由于余额不足，支付失败",
        "The following error occurred: disk full",
        "The following required parameters are missing: city",
        "When processing your request, an error occurred.",
        "Could not save the file because the disk is full",
        "Booking no. 5 cannot be cancelled",
        "Document /srv/a.docx does not exist",
        "foo.sh:3: command not found: frob",
        "err: connection refused",
        "サーバーに接続できませんでした",
        "결제할 때 오류가 발생했습니다",
        "Se ha producido un error",
        "Ocorreu um erro ao salvar o pedido",
        "Une erreur est survenue",
    ],
)
def test_sentences_that_fail_remain_failures(text: str) -> None:
    """What begins like an explanation and tells of a failure is one."""
    assert Classifier().classify(from_value(text)) is not None
