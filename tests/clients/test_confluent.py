"""confluent-kafka: one exception class, whose error tells its own name."""

from typing import Any

import pytest

from tests.clients.provoking import judged, raised, refused_port

confluent = pytest.importorskip("confluent_kafka")


def _settings(**more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": f"127.0.0.1:{refused_port()}", "log_level": 0, **more}


def test_no_broker() -> None:
    """Asking for metadata, and a message that never left: librdkafka cannot tell where it ended."""
    producer = confluent.Producer(_settings(**{"message.timeout.ms": 200}))
    judged(raised(lambda: producer.list_topics(timeout=0.3)), "network.error|network.timeout|network.connection_reset", "unknown")  # fmt: skip
    ended: list[Any] = []
    producer.produce("orders", b"x", on_delivery=lambda error, message: ended.append(error))
    producer.flush(3)
    judged(confluent.KafkaException(ended[0]), "network.timeout", "unknown")


def test_what_it_refuses_itself() -> None:
    """A full queue and a message too large: nothing was sent."""
    producer = confluent.Producer(_settings(**{"queue.buffering.max.messages": 1}))

    def fill() -> None:
        for _ in range(3):
            producer.produce("orders", b"x")

    judged(raised(fill), "network.pool_timeout", "not_sent")
    producer = confluent.Producer(_settings())
    error = raised(lambda: producer.produce("orders", b"x" * 10_000_000))
    judged(error, "invalid_request.too_large", "rejected")


@pytest.mark.parametrize(
    ("name", "code", "effect"),
    [
        ("_ALL_BROKERS_DOWN", "network.error|network.connection_reset", "unknown"),
        ("_RESOLVE", "network.dns", "not_sent"),
        ("_SSL", "security.handshake", "not_sent"),
        ("_AUTHENTICATION", "auth.invalid_credential", "rejected"),
        ("_UNKNOWN_TOPIC", "business.not_found", "rejected"),
        ("_FENCED", "business.conflict", "rejected"),
        ("UNKNOWN_TOPIC_OR_PART", "business.not_found", "rejected"),
        ("TOPIC_AUTHORIZATION_FAILED", "auth.forbidden", "rejected"),
        ("SASL_AUTHENTICATION_FAILED", "auth.invalid_credential", "rejected"),
        ("NOT_ENOUGH_REPLICAS", "server.unavailable", "rejected"),
        ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "network.read_timeout", "unknown"),
        ("REQUEST_TIMED_OUT", "network.read_timeout", "unknown"),
        ("TOPIC_ALREADY_EXISTS", "business.already_exists", "rejected"),
        ("THROTTLING_QUOTA_EXCEEDED", "rate_limit.requests", "rejected"),
        ("INVALID_CONFIG", "invalid_request.parameter", "rejected"),
    ],
)
def test_names(name: str, code: str, effect: str) -> None:
    """librdkafka's own errors, and the broker's."""
    number = getattr(confluent.KafkaError, name)
    judged(confluent.KafkaException(confluent.KafkaError(number)), code, effect)
