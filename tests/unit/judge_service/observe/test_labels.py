"""Labels stay few, whatever callers send."""

from __future__ import annotations

from hallujudge.judge_service.access.caller import Caller
from hallujudge.judge_service.observe.prometheus import OTHER, BoundedLabel
from hallujudge.judge_service.observe.recorder import key_label


def test_values_beyond_the_bound_share_one_label() -> None:
    label = BoundedLabel(3)
    assert {label(f"key-{number}") for number in range(100)} == {"key-0", "key-1", "key-2", OTHER}
    assert label("key-1") == "key-1"


def test_a_long_value_is_cut() -> None:
    assert len(BoundedLabel(1)("x" * 20_000_000)) == 80


def test_only_ids_of_keys_tell_callers_apart() -> None:
    def label(id: str, key_id: str = "") -> str:
        return key_label(Caller(id=id, name="<script>", key_id=key_id))

    assert label("key:k1", "k1") == "k1"
    assert label("peer:ipv4:10.0.0.7") == label("peer:ipv4:10.0.0.8") == "anonymous"
    assert label("certificate:any name at all") == "certificate"
