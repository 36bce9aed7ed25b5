"""LiteLLM: requests to models, and its router."""

import asyncio
import logging
import os
from collections.abc import Iterator
from typing import Any

import openai
import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask for prices on import
import litellm
from litellm.integrations.custom_logger import CustomLogger

import failwise
from failwise.connect.litellm import client, result_of
from failwise.connect.remarks import _said
from failwise.faults import Fault, FaultServer
from failwise.testing import ProviderServer, Says, Trouble, recorded
from tests.frameworks.driving import runtime

HI = [{"role": "user", "content": "hi"}]
PATH = "/v1/chat/completions"
DOWN = Fault.status(503, json={"error": {"message": "overloaded", "type": "server_error"}})
QUICK = {"server": {"base": 0.02}, "network": {"base": 0.02}, "rate_limit": {"base": 0.02}}


@pytest.fixture(autouse=True)
def _as_ever() -> Iterator[None]:
    litellm.suppress_debug_info = True
    _said.clear()
    yield
    litellm.num_retries = None
    litellm.callbacks = []


def where(url: str) -> dict[str, Any]:
    return {"api_base": url, "api_key": "test"}


def router(url: str, *names: str, **options: Any) -> litellm.Router:
    models = [
        {"model_name": name, "litellm_params": {"model": f"openai/{name}", **where(url)}}
        for name in names or ("m",)
    ]
    return litellm.Router(model_list=models, **options)


@pytest.mark.parametrize("routed", [False, True])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_request_is_repeated_and_recorded(routed: bool, asynchronous: bool) -> None:
    """A refusal that passes is repeated as told; the response is LiteLLM's own, with the result on it."""
    troubles = [Trouble("rate_limit", retry_after=0.2), Trouble("overloaded"), Says("hello")]
    with ProviderServer(troubles) as provider, runtime(policy=QUICK) as rt:
        results = recorded(rt)
        given = router(provider.openai_url, disable_cooldowns=True) if routed else None
        llm = client(rt, given)
        options = {"model": "m"} if routed else {"model": "openai/m", **where(provider.openai_url)}
        if asynchronous:
            answer = asyncio.run(llm.acompletion(messages=HI, **options))
        else:
            answer = llm.completion(messages=HI, **options)
        assert len(provider.requests) == 3
        assert all("metadata" not in request for request in provider.requests)
    assert answer.choices[0].message.content == "hello"
    result = result_of(answer)
    assert result is not None
    assert result is results[0]
    assert [attempt.failure and attempt.failure.layer for attempt in result.attempts] == [
        failwise.Layer.TRANSPORT,
        failwise.Layer.TRANSPORT,
        None,
    ]
    assert "failwise" not in answer.model_dump()


@pytest.mark.parametrize("trouble", ["bad_key", "bad_request"])
def test_a_permanent_failure_is_asked_once(trouble: str) -> None:
    """It is raised as LiteLLM's exception, after one request, with the verdict on it."""
    with ProviderServer([Trouble(trouble)]) as provider, runtime() as rt:
        with pytest.raises((litellm.AuthenticationError, litellm.BadRequestError)) as caught:
            client(rt).completion("openai/m", HI, **where(provider.openai_url))
        assert len(provider.requests) == 1
    result = result_of(caught.value)
    assert result is not None
    assert result.failure is not None
    assert result.failure.layer is failwise.Layer.TRANSPORT


@pytest.mark.parametrize("routed", [False, True])
def test_their_retries_do_not_multiply(routed: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Retries asked of LiteLLM, in a request or by a router's policy, are left out; of those of a request
    one warning says so."""
    with FaultServer() as up, runtime(policy=QUICK) as rt, caplog.at_level("WARNING", "failwise"):
        up.route("POST", PATH, DOWN)
        given = None
        if routed:
            given = router(up.url("/v1"), num_retries=4, retry_policy={"DefaultRetries": 3})
            given.disable_cooldowns = True
        llm = client(rt, given)
        options = {} if routed else where(up.url("/v1"))
        for _ in range(2):
            with pytest.raises(litellm.ServiceUnavailableError) as caught:
                llm.completion("m" if routed else "openai/m", HI, num_retries=3, **options)
        result = result_of(caught.value)
        assert result is not None
        # 2 retries of the policy, then the guards' retry quota; never times LiteLLM's.
        assert up.count(PATH) <= 2 * 3
    assert sum("num_retries=3 is left out" in record.message for record in caplog.records) == 1


def test_a_global_setting_and_fallbacks_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """What no option of a request turns off is warned of once, with what to do."""
    with (
        ProviderServer(Says("hello")) as provider,
        runtime() as rt,
        caplog.at_level(logging.WARNING, "failwise"),
    ):
        litellm.num_retries = 2
        llm = client(rt, router(provider.openai_url, "m", "n", fallbacks=[{"m": ["n"]}]))
        for _ in range(2):
            llm.completion("m", HI)
    said = [record.getMessage() for record in caplog.records]
    assert sum("litellm.num_retries = None" in text for text in said) == 1
    assert sum("Router(fallbacks=[])" in text for text in said) == 1


def test_a_router_chooses_and_falls_back_as_ever() -> None:
    """A deployment that is gone is left for its fallback, within one attempt."""
    with FaultServer() as down, ProviderServer(Says("hello")) as provider, runtime() as rt:
        down.route("POST", PATH, Fault.status(404, json={"error": {"message": "no such model"}}))
        models = [
            {"model_name": "m", "litellm_params": {"model": "openai/m", **where(down.url("/v1"))}},
            {
                "model_name": "n",
                "litellm_params": {"model": "openai/n", **where(provider.openai_url)},
            },
        ]
        given = litellm.Router(model_list=models, fallbacks=[{"m": ["n"]}])
        answer = client(rt, given).completion("m", HI)
    assert answer.choices[0].message.content == "hello"
    result = result_of(answer)
    assert result is not None
    assert len(result.attempts) <= 1


def test_a_cooldown_of_the_router_is_a_told_wait() -> None:
    """Where all deployments cool down nothing is sent before it is over: the wait is handed back."""
    with FaultServer() as up, runtime(policy=QUICK) as rt:
        up.route("POST", PATH, Fault.status(401, json={"error": {"message": "no key"}}))
        given = router(up.url("/v1"), "m", cooldown_time=45)
        with pytest.raises(litellm.AuthenticationError):
            client(rt, given).completion("m", HI)
        given.cooldown_cache.add_deployment_to_cooldown(
            model_id=given.model_list[0]["model_info"]["id"],
            original_exception=litellm.AuthenticationError("x", "openai", "m"),
            exception_status=401,
            cooldown_time=45,
        )
        before = up.count(PATH)
        with pytest.raises(Exception, match="No deployments available") as caught:
            client(rt, given).completion("m", HI)
        assert up.count(PATH) == before
    result = result_of(caught.value)
    assert result is not None
    assert result.failure is not None
    assert result.failure.category is failwise.Category.RATE_LIMIT
    assert result.failure.retry_after is not None
    assert 30 < result.failure.retry_after <= 45


def test_what_is_not_sent_is_a_connection_error() -> None:
    """An upstream whose circuit is open is not asked; the exception is LiteLLM's kind, and says why."""
    with FaultServer() as up, runtime(policy=QUICK) as rt:
        up.route("POST", PATH, DOWN)
        llm = client(rt)
        for _ in range(30):
            with pytest.raises(openai.APIError) as caught:
                llm.completion("openai/m", HI, **where(up.url("/v1")))
            if "not sent" in str(caught.value):
                break
        assert isinstance(caught.value, litellm.APIConnectionError)
        result = result_of(caught.value)
        assert result is not None
        assert result.failure is not None
        assert result.failure.category is failwise.Category.RUNTIME


def test_attempts_stand_in_their_logs() -> None:
    """Each attempt is a request in LiteLLM's callbacks, and says of itself which one it is."""
    seen: list[Any] = []

    class Keep(CustomLogger):
        def log_pre_api_call(self, model: Any, messages: Any, kwargs: Any) -> None:
            metadata = kwargs["litellm_params"]["metadata"]
            seen.append((metadata["failwise"]["attempt"], metadata["mine"]))

    litellm.callbacks = [Keep()]
    with (
        ProviderServer([Trouble("overloaded"), Says("hello")]) as provider,
        runtime(policy=QUICK) as rt,
    ):
        client(rt).completion(
            "openai/m", HI, metadata={"mine": "yes"}, **where(provider.openai_url)
        )
    assert seen == [(1, "yes"), (2, "yes")]


def test_inside_of_a_tool_it_is_sent_once() -> None:
    """A tool that asks a model leaves the repeating to its own call: attempts are not multiplied."""
    with FaultServer() as up, runtime(policy=QUICK) as rt:
        up.route("POST", PATH, DOWN)
        llm = client(rt)

        @rt.tool(read_only=True)
        def summary(text: str) -> str:
            """Sum up."""
            llm.completion("openai/m", HI, **where(up.url("/v1")))
            return "never"

        result = rt.call_sync("summary", {"text": "x"})
        assert up.count(PATH) == len(result.attempts) == 3


def test_a_stream_is_handed_on_when_it_begins() -> None:
    """A stream that could not begin is asked for again; its pieces are the caller's."""
    with (
        ProviderServer([Trouble("overloaded"), Says("hello there")]) as provider,
        runtime(policy=QUICK) as rt,
    ):
        stream = client(rt).completion("openai/m", HI, stream=True, **where(provider.openai_url))
        said = "".join(piece.choices[0].delta.content or "" for piece in stream)
    assert said == "hello there"


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_watching_changes_nothing(mode: Any) -> None:
    """In observe mode and switched off, LiteLLM's own retries are as asked."""
    with FaultServer() as up, runtime(mode=mode) as rt:
        up.route("POST", PATH, DOWN)
        with pytest.raises(litellm.ServiceUnavailableError):
            client(rt).completion("openai/m", HI, max_retries=1, **where(up.url("/v1")))
        assert up.count(PATH) == 2


def test_what_is_no_router_is_refused() -> None:
    """The message says what to give; all else of LiteLLM is there."""
    with runtime() as rt:
        with pytest.raises(failwise.UsageError, match=r"litellm\.Router"):
            client(rt, "router")
        assert client(rt).token_counter is litellm.token_counter
