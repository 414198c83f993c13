import json

import pytest

from ingest.hami.registry import Card, cards_of_nodes, cards_of_registration

JSON_FORM = (
    '[{"id":"GPU-a","index":0,"count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-Tesla V100","numa":1,'
    '"health":true}]'
)
COLON_FORM = "GPU-a,10,32768,100,NVIDIA-Tesla V100,1,true:GPU-b,4,16384,100,NVIDIA A30,0,false,1,hami-core:"


def test_both_forms_of_a_registration_are_read() -> None:
    v100 = Card("n1", "NVIDIA-Tesla V100", 32768, 100, 10, 1)
    assert dict(cards_of_registration("n1", JSON_FORM)) == {"GPU-a": v100}
    a30 = Card("n1", "NVIDIA A30", 16384, 100, 4, 0)
    assert dict(cards_of_registration("n1", COLON_FORM)) == {"GPU-a": v100, "GPU-b": a30}


@pytest.mark.parametrize("text", ["", "[", "[3, null, {}]", "GPU-a,1,2", ":::", '[{"id":"","count":"x"}]'])
def test_a_registration_that_is_none_has_no_cards(text: str) -> None:
    assert dict(cards_of_registration("n1", text)) == {}


def test_a_node_list_says_which_card_sits_where() -> None:
    node = {"metadata": {"name": "n1", "annotations": {"hami.io/node-nvidia-register": JSON_FORM, "other": "x"}}}
    assert set(cards_of_nodes(json.dumps({"kind": "List", "items": [node, {"metadata": None}]}).encode())) == {"GPU-a"}


@pytest.mark.parametrize("text", [b"", b"NAME STATUS", b"[]", b'{"items": 3}'])
def test_what_is_no_node_list_is_said_with_the_command_that_makes_one(text: bytes) -> None:
    with pytest.raises(ValueError, match="kubectl get nodes -o json"):
        cards_of_nodes(text)
