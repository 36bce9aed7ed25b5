"""Chinese texts: kinds of failure with their counter-examples, and what says that nothing happened."""

import json

import pytest

from failwise.classify import classify_text
from failwise.classify.contract import answer

KINDS = {
    "auth.credential_expired": "登录状态已失效，请重新扫码登录|您的会话已过期|KEY已过期|access_token过期,请刷新或重新授权",
    "auth.forbidden": "您暂无操作权限|IP不在白名单内|该IP禁止访问|仅文档所有者可访问|接口未开通，请联系客服",
    "auth.account_disabled": "商户号已被冻结|该用户已被禁用|店铺已关闭",
    "auth.signature": "签名校验未通过|sign校验失败|客户端时间与服务器时间相差超过 300 秒",
    "rate_limit.requests": "触发限流，请稍后重试|60秒内只能发送1次|达到每分钟调用上限|操作过于频繁",
    "rate_limit.concurrency": "当前并发任务数已达上限（5）|连接数已满",
    "business.quota_exhausted": "您今日的免费次数已用完|套餐余量已用尽|触发天级流控Permits:10|剩余调用次数为0",
    "business.insufficient_balance": "可用资金不足|余额不足，请充值|预存款不足",
    "business.out_of_stock": "二等座已无余票|该时段已被预约|商品已售罄|今日预约已满",
    "business.already_exists": "订单已经确认过了|请勿重复提交|单号重复|您已报名",
    "business.precondition": "该订单已关闭，不能再支付|不在营业时间内|活动尚未开始|交易状态不合法",
    "business.conflict": "数据已被他人修改，请刷新后重试",
    "business.locked": "文件正被他人编辑|数据正在处理中，请勿重复操作",
    "business.payment_declined": "交易被拒绝|银行卡已过期",
    "invalid_request.parameter": "手机号格式不正确|金额必须大于0|结束时间不能早于开始时间|经纬度超出范围",
    "invalid_request.missing_parameter": "未填写收货地址|userId不能为空|请选择城市",
    "invalid_request.too_large": "文件大小超过10MB限制|批量查询最多100条|内容超长",
    "invalid_request.unsupported": "暂不支持该功能|文件格式不支持，仅支持 xlsx",
    "security.content_policy": "您发布的内容包含违规信息",
    "server.internal": "系统执行出错|服务器出现异常|数据库异常",
    "server.overloaded": "当前排队人数较多，请稍后重试|资源紧张，请稍后",
    "server.maintenance": "银行通道维护中|系统升级中，请稍后访问",
    "server.unavailable": "服务降级，请稍后重试|接口暂时无法访问",
    "network.timeout": "下游服务调用超时|等待时间过长",
    "tool.missing_dependency": "缺少依赖 libnss3",
}
CASES = [(text, code) for code, texts in KINDS.items() for text in texts.split("|")]


@pytest.mark.parametrize(("text", "code"), CASES)
def test_a_kind_in_a_body_that_failed(text: str, code: str) -> None:
    """In the usual envelope with a code that no table has, the text says what it is."""
    body = json.dumps({"code": 91_234, "msg": text}, ensure_ascii=False)
    given = {"status": 200, "headers": {"content-type": "application/json"}, "body": body, "method": "POST"}  # fmt: skip
    assert answer({"id": 1, "kind": "http", "input": given})["code"] == code


@pytest.mark.parametrize(
    "line",
    [
        "登录状态未过期，继续使用",
        "账号未被冻结，可正常使用",
        "本次查询耗时 30 秒，未超时",
        "系统运行正常，无异常",
        "已避免重复提交",
        "本次更新修复了登录超时的问题",
        "限流配置已更新：每秒 100 次",
        "频率限制为每分钟 60 次",
        "定时任务完成，失败 0 条，成功 320 条",
        "用户 1024 修改了超时配置：connectTimeout=3000",
        "INFO 用户 7 登录成功，token 将于 2 小时后过期",
        "缓存命中率 98%，超时率 0.01%",
        "DEBUG 已跳过重复数据 3 条",
        "参数校验通过",
        "价格不含税，限购 2 件",
        "系统维护已完成，服务恢复",
        "手机号已绑定",
        "为防止重复下单，已加锁",
    ],
)
def test_what_did_not_happen(line: str) -> None:
    """One sign before the word denies it, and a setting is none: no failure."""
    assert classify_text(line) is None


@pytest.mark.parametrize(
    "line", ["未知错误", "未捕获异常：空指针", "未能连接服务器超时", "没有权限，操作失败"]
)
def test_a_sign_that_denies_nothing(line: str) -> None:
    """Words that begin with the same signs are failures all the same."""
    assert classify_text(line) is not None


@pytest.mark.parametrize("line", ["系统繁忙", "抱歉，出了点小问题，请稍后重试"])
def test_what_says_nothing_stays_unknown(line: str) -> None:
    """No status, no cause: unknown effect, and no kind that claims more than that."""
    failure = classify_text(line)
    assert failure is not None
    assert failure.effect == "unknown"
    assert failure.category in ("unknown", "server")
