"""The texts of answers of the API."""

from assistant.texts import changes_for_many


def test_a_change_for_many_pods_has_who_acts_and_what_is_not_known() -> None:
    change = {
        "sentence": {"en": "Uncordon the devices of m-one: then 2 of the 4 pods fit."},
        "who_acts": "administrator",
    }
    found = {"waiting": 4, "judged": 4, "fit": 0, "items": [change], "not_known": [{"en": "The quota."}]}
    assert changes_for_many(found).splitlines() == [
        "4 pods wait, 4 were tried, 0 of these fit as it is.",
        "- Uncordon the devices of m-one: then 2 of the 4 pods fit. By an administrator.",
        "Not known:",
        "- The quota.",
    ]
