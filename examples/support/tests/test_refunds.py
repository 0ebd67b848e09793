"""Refunds, played as they were recorded, with the shop's API; see docs/own/cassettes.md."""

from collections.abc import Iterator
from threading import Thread

import httpx
import pytest
from modeshift.testing import APPROVE, REJECT, Recorded, edit, judge_call

from api import Shop

FIND = ("find_order", {"order": "A-17"})
SWITCH = ("switch_mode", {"mode_slug": "refund", "reason": "A-17: 49.90, as it came broken."})
REFUND = ("refund", {"order": "A-17", "amount": 49.9})
ALL = ("refund", {"order": "A-18", "amount": 120})


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with Shop(port=0) as shop:
        monkeypatch.setenv("SHOP", shop.url)
        Thread(target=shop.serve_forever).start()
        yield shop
        shop.shutdown()


async def test_a_refund_is_paid_once_a_person_approves(recorded: Recorded, shop: Shop) -> None:
    steps = [FIND], [SWITCH], [REFUND], "49.90 are paid back."
    talk = recorded(*steps, modes=["triage", "refund"], services=[shop.url])
    await talk.say("The kettle of A-17 came broken.")
    for name in ("switch_mode", "refund"):
        assert [request["name"] for request in await talk.waiting()] == [name]
        assert shop.orders["A-17"]["refunded"] == 0
        await talk.decide(APPROVE)
    assert (shop.orders["A-17"]["refunded"], await talk.mode()) == (49.9, "triage")


async def test_a_refund_is_turned_down(recorded: Recorded, shop: Shop) -> None:
    talk = recorded([REFUND], "Nothing is paid back.", modes=["refund", "triage"])
    await talk.say("The kettle of A-17 came broken.")
    await talk.decide({**REJECT, "message": "It was used for a year."})
    (result,) = (await talk.results()).values()
    assert ("for a year" in result.text, shop.orders["A-17"]["refunded"]) == (True, 0)


async def test_triage_pays_nothing_back(recorded: Recorded) -> None:
    talk = recorded([REFUND], "Only Refund mode can do that.", modes=["triage", "refund"])
    await talk.say("Pay back A-17.")
    (result,) = (await talk.results()).values()
    assert (await talk.waiting(), result.status) == ([], "error")


async def test_more_than_fifty_is_for_a_manager(recorded: Recorded, shop: Shop) -> None:
    steps = [ALL], [REFUND], "That is over my limit.", [ALL], "120 are paid back."
    talk = recorded(*steps, modes=["refund", "manager", "triage"], services=[shop.url])
    await talk.say("Pay back A-18.")
    await talk.decide(edit("refund", order="A-18", amount=120))
    assert shop.orders["A-18"]["refunded"] == 0, "the model may not, nor may who edits its call"
    asked = {"mode_slug": "manager", "reason": "A-18: 120."}
    assert (await judge_call(talk.agent, "refund", "switch_mode", asked)).kind == "deny"
    await talk.say("Do it as a manager.", mode="manager")
    await talk.decide(APPROVE)
    assert shop.orders["A-18"]["refunded"] == 120


def test_a_key_is_paid_once(shop: Shop) -> None:
    for key, refunded in (("a", 10), ("a", 10), ("b", 20), ("", 20)):
        path, headers = f"{shop.url}/orders/A-17/refunds", {"Idempotency-Key": key}
        httpx.post(path, json={"amount": 10}, headers=headers, trust_env=False)
        assert shop.orders["A-17"]["refunded"] == refunded
