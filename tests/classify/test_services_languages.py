"""What services say in other languages: a kind each, and good news in the same words."""

import json

import pytest

from failwise.classify import classify_text
from failwise.classify.contract import answer

KINDS = {
    "auth.credential_expired": "セッションが切れました。もう一度ログインしてください|세션이 만료되었습니다|Anmeldung abgelaufen – bitte neu einloggen|Su sesión ha caducado|Sua sessão expirou|Ваша сессия истекла, войдите снова",
    "auth.account_disabled": "アカウントが停止されています|계정이 정지되었습니다|Ihr Konto wurde gesperrt|Su cuenta ha sido suspendida|Sua conta foi suspensa|Ваш аккаунт заблокирован",
    "auth.signature": "署名が一致しません|서명이 일치하지 않습니다|Die Signatur ist ungültig|La firma no es válida|Assinatura inválida|Неверная подпись",
    "rate_limit.requests": "短時間に多数のリクエストが送信されました|너무 많은 요청을 보냈습니다|Die maximale Anzahl an Anfragen wurde überschritten|Ha superado el número máximo de peticiones|Número máximo de requisições excedido|Превышено количество запросов",
    "business.quota_exhausted": "1日の利用回数の上限に達しました|일일 사용 한도를 초과했습니다|Ihr Tageslimit ist erreicht|Ha alcanzado su límite diario de consultas|Você atingiu o limite diário de consultas|Исчерпан дневной лимит",
    "business.payment_declined": "お支払いに失敗しました|결제가 거절되었습니다|Die Zahlung wurde abgelehnt|El pago fue rechazado por el banco|Pagamento recusado pelo banco|Платёж отклонён банком",
    "business.out_of_stock": "満席のため予約できません|좌석이 매진되었습니다|Keine Plätze mehr verfügbar|No quedan plazas disponibles|Não há vagas disponíveis|Мест нет",
    "business.precondition": "この注文はキャンセルできません|영업시간이 아닙니다|Die Bestellung kann nicht mehr storniert werden|El pedido ya no se puede cancelar|A conta ainda não foi verificada|Заказ нельзя отменить",
    "business.conflict": "他のユーザーによって更新されています|다른 사용자가 수정했습니다|El registro fue modificado por otro usuario|Запись была изменена другим пользователем",
    "business.locked": "現在処理中です|이미 처리 중인 요청입니다|Der Vorgang wird bereits verarbeitet|La solicitud ya se está procesando|Запрос уже обрабатывается",
    "invalid_request.missing_parameter": "電話番号を入力してください|필수 항목을 입력해 주세요|Bitte geben Sie eine E-Mail-Adresse an|Debe indicar el número de documento|Informe a data de nascimento|Поле «имя» обязательно для заполнения",
    "invalid_request.too_large": "ファイルサイズの上限を超えています|파일 용량이 초과되었습니다|Die Datei überschreitet die maximale Größe|El archivo supera el tamaño máximo permitido|Размер файла превышает допустимый",
    "security.content_policy": "不適切な内容が含まれています|부적절한 내용이 포함되어 있습니다|Der Inhalt verstößt gegen die Richtlinien|O conteúdo viola as políticas",
}
CASES = [(text, code) for code, texts in KINDS.items() for text in texts.split("|")]


@pytest.mark.parametrize(("text", "code"), CASES)
def test_a_kind(text: str, code: str) -> None:
    """In a body that says that it failed."""
    body = json.dumps({"success": False, "message": text}, ensure_ascii=False)
    given = {"status": 200, "headers": {"content-type": "application/json"}, "body": body, "method": "POST"}  # fmt: skip
    assert answer({"id": 1, "kind": "http", "input": given})["code"] == code


@pytest.mark.parametrize(
    "text",
    [
        "ログインしました",
        "残高は1000円です",
        "予約が完了しました",
        "로그인되었습니다",
        "결제가 완료되었습니다",
        "Verbindung erfolgreich hergestellt",
        "Guthaben: 20 EUR",
        "La cuenta fue creada",
        "Pagamento recebido",
        "Conexão estabelecida",
        "Оплата прошла успешно",
    ],
)
def test_good_news(text: str) -> None:
    """The same subjects without trouble are no failures."""
    assert classify_text(text) is None
