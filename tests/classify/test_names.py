"""Fields that go by other names, heads and carriers around an answer, and the reports of a batch."""

import json
from typing import Any

import pytest

from failwise.classify.contract import answer
from failwise.classify.names import renamed


def code_of(body: Any) -> str | None:
    """The code of a 200 with this body; None for a success."""
    text = json.dumps(body, ensure_ascii=False)
    given = {"status": 200, "headers": {"content-type": "application/json"}, "body": text, "method": "POST"}  # fmt: skip
    code: str | None = answer({"id": 1, "kind": "http", "input": given})["code"]
    return code


@pytest.mark.parametrize(
    ("body", "code"),
    [
        # compound names, in any case
        ({"apiErrorMsg": "签名错误", "apiResultCode": "A1004"}, "auth.signature"),
        ({"rspCod": "8", "rspMsg": "余额不足"}, "business.insufficient_balance"),
        ({"ErrorCode": "E03", "ErrorDesc": "商户签名错误"}, "auth.signature"),
        ({"Success": False, "Code": "105", "Reason": "请勿重复操作"}, "business.already_exists"),
        ({"ok": False, "err": "没有权限"}, "auth.forbidden"),
        # names in other languages, nested too
        ({"exito": False, "mensaje": "Saldo insuficiente"}, "business.insufficient_balance"),
        ({"erro": {"codigo": "7", "mensagem": "CPF inválido"}, "sucesso": False}, "invalid_request.parameter"),
        ({"状态": "失败", "原因": "库存不足"}, "business.out_of_stock"),
        ({"успех": False, "сообщение": "Доступ запрещён"}, "auth.forbidden"),
        ({"ステータス": "エラー", "メッセージ": "在庫が不足しています"}, "business.out_of_stock"),
        # what the caller sent stands beside them
        ({"respCode": "51", "respMsg": "余额不足", "orderId": "1"}, "business.insufficient_balance"),
        ({"code": 51, "msg": "余额不足", "orderNo": "1"}, "business.insufficient_balance"),
        # an error's general and special message
        ({"error_response": {"code": 15, "msg": "Remote service error", "sub_msg": "商品不存在"}}, "business.not_found"),
        # a flag that is no boolean
        ({"isSuccess": "F", "errorMessage": "运单号不存在"}, "business.not_found"),
        # heads, and answers as text
        ({"header": {"code": 11200, "message": "功能未授权", "sid": "1"}}, "auth.forbidden"),
        ({"head": {"transMessage": "验签失败", "transRespCode": "S0103"}, "body": {}}, "auth.signature"),
        ({"code": 0, "msg": "ok", "data": '{"code":4001,"msg":"参数错误"}'}, "invalid_request.parameter"),
        ({"data": {"error_code": 8, "description": "token已过期"}, "message": "error"}, "auth.credential_expired"),
        ({"ret": ["FAIL_SYS_TOKEN::令牌过期"], "data": {}}, "auth.credential_expired"),
        # reports of this very call
        ({"code": 0, "data": {"successCount": 8, "failCount": 1, "failList": [{"id": 1}]}}, "business.partial"),
        ({"results": [{"status": "ok"}, {"status": "error", "message": "bad address"}]}, "business.partial"),
    ],
)  # fmt: skip
def test_a_failure_by_another_name(body: Any, code: str) -> None:
    """Whatever the fields are called, the failure is read."""
    assert code_of(body) == code


@pytest.mark.parametrize(
    "body",
    [
        {"respCode": "00", "respMsg": "成功[0000000]"},
        {"rsp_code": "000000", "rsp_msg": "交易成功"},
        {"resp_code": "S", "resp_msg": "交易受理成功"},
        {"exito": True, "mensaje": "Pedido creado"},
        {"状态": "成功", "说明": "无异常"},
        {"結果": "正常", "件数": 0},
        {"header": {"code": 0, "message": "Success"}, "payload": {}},
        {"meta": {"code": 200}, "response": []},
        {"ret": ["SUCCESS::调用成功"], "data": {}},
        {"ret": 0, "msg": "", "data": {"errcode": 40001}},
        {"error": False, "message": "Expired tokens were purged"},
        {"error": {"code": 0, "message": ""}, "data": [1]},
        {"successCount": 40, "failCount": 2, "jobId": "j1", "state": "finished"},
        {"results": [{"id": "r1", "status": "failed", "error": {"code": "x"}}, {"id": "r2", "status": "completed"}]},
        {"code": 0, "data": {"failCount": 0, "failList": []}},
        {"title": "论坛帖子", "message": "余额不足怎么办？", "author": "小王"},
        {"flag": False, "message": "Feature flag is off", "name": "new-ui"},
        {"data": {"msg": "余额不足提醒已发送"}, "code": 20000, "message": "ok"},
    ],
)  # fmt: skip
def test_a_success_by_another_name(body: Any) -> None:
    """Success under such names, codes of zeros, reads of jobs, and data about errors stay successes."""
    assert code_of(body) is None


def test_names_that_are_known_stay() -> None:
    """Only what has another name is renamed, and a known field with a value is never covered."""
    assert renamed({"code": 1, "msg": "x"}) is None
    assert renamed({"bizCode": "1", "bizMsg": "x"}) == {"bizCode": "1", "message": "x"}
    assert renamed({"message": "a", "mensaje": "b"}) is None
    assert renamed({str(number): 1 for number in range(60)} | {"mensaje": "b"}) is None
