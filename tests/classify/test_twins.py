"""The phrases everybody meets, English and Chinese, as bare texts and as bare exceptions; and texts
that hold the same words and mean something else."""

import pytest

from failwise.classify import classify_exception, classify_text

# phrase, its Chinese twin, category, counter-examples in both languages
TWINS = [
    ("timeout", "超时", "network", "timeout = 30 s is the default", "超时时间已设置为 30 秒"),
    ("timed out", "请求超时", "network", "he timed the outing well", "请求未超时"),
    ("connection refused", "连接被拒绝", "network", "He refused the connecting flight", "他拒绝了这次连接测试的邀请"),
    ("connection reset", "连接被重置", "network", "The connection string was reset to its default", "密码已重置，连接正常"),
    ("no route to host", "没有到主机的路由", "network", "This route has no host", "该路线没有主持人"),
    ("temporary failure in name resolution", "域名解析暂时失败", "network", "The name of the resolution is temporary", "域名解析成功"),
    ("eof", "意外的文件结尾", "network", "geofence updated, typeof x", "文件结尾有签名"),
    ("broken pipe", "管道破裂", "network", "the plumber repaired the pipe that broke", "管道工修好了水管"),
    ("unauthorized", "未授权", "auth", "authorized users: 3", "已授权 3 个用户"),
    ("forbidden", "禁止访问", "auth", "Forbidden City tickets are on sale", "二楼禁止吸烟"),
    ("access denied", "访问被拒绝", "auth", "access granted", "访问成功"),
    ("permission denied", "权限不足", "auth", "bash: /etc/shadow: Permission denied", "bash: /etc/shadow: 权限不够"),
    ("invalid api key", "API 密钥无效", "auth", "api key rotated", "API 密钥已更新"),
    ("token expired", "令牌已过期", "auth", "the token expires in 3600 s", "令牌将于 3600 秒后过期"),
    ("insufficient scope", "权限范围不足", "auth", "scope: read write", "权限范围：读写"),
    ("invalid parameter", "参数无效", "invalid_request", "parameter city = 3", "参数有效"),
    ("missing required", "缺少必填参数", "invalid_request", "The missing cat came home", "参数齐全"),
    ("validation error", "校验失败", "invalid_request", "validation passed with 0 errors", "校验通过"),
    ("bad request", "错误的请求", "invalid_request", "a bad day to request leave", "请求正确"),
    ("unprocessable entity", "无法处理的实体", "invalid_request", "processable entities: 4", "实体已处理"),
    ("invalid format", "格式错误", "invalid_request", "format: csv", "格式正确"),
    ("internal server error", "服务器内部错误", "server", "internal servers: 4", "服务器内部网络正常"),
    ("service unavailable", "服务不可用", "server", "service available 99.9 % of the time", "服务可用"),
    ("bad gateway", "错误的网关", "network", "gateway of the month", "网关正常"),
]  # fmt: skip
PHRASES = [(text, row[2]) for row in TWINS for text in row[:2]]
COUNTERS = [(text, row[2]) for row in TWINS for text in row[3:]]


@pytest.mark.parametrize(("text", "category"), PHRASES)
def test_a_phrase_alone(text: str, category: str) -> None:
    """As a text, in capitals, and as all that an exception of no known class says."""
    for said in (text, text.upper(), f"{text}."):
        failure = classify_text(said)
        assert failure is not None, said
        assert failure.category == category, (said, failure.rule)
    failure = classify_exception(Exception(text))
    assert failure.category == category, failure.rule
    assert classify_exception(RuntimeError(f"step 3: {text}")).category == category


@pytest.mark.parametrize(("text", "category"), COUNTERS)
def test_the_same_words_that_mean_something_else(text: str, category: str) -> None:
    """Nothing at all, or another kind: a local permission is the machine's."""
    failure = classify_text(text)
    assert failure is None or failure.category != category, failure.rule
    assert classify_exception(Exception(text)).category != category


@pytest.mark.parametrize("text", ["bash: /etc/shadow: Permission denied", "PermissionError: [Errno 13] Permission denied: '/x'"])  # fmt: skip
def test_a_local_permission_is_the_tools(text: str) -> None:
    """Nobody's credential helps with a file of this machine."""
    failure = classify_text(text)
    assert failure is not None
    assert failure.category == "tool"


@pytest.mark.parametrize("text", ["Something went wrong", "系统繁忙", "出错了", "Oops!"])
def test_what_says_nothing_is_not_guessed_at(text: str) -> None:
    """Unknown, or so weak that a reader sees it."""
    failure = classify_exception(Exception(text))
    assert failure.category == "unknown" or failure.confidence < 0.8, failure.rule
    assert failure.transient is not True or failure.category != "unknown"
