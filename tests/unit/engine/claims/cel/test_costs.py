"""Costs of expressions in Kubernetes' units.

Values are the run-time costs that Kubernetes' own test of its libraries expects
(apiserver/pkg/cel/library/cost_test.go), less what it counts for constants: it does not compute those while it
compiles, as the compiler of selectors does.
"""

import pytest

from engine.claims.cel import costs
from tests.support.builders.cel_devices import GPU, run_expression

_LONG = "01234567890123456789012345678901234567890123456789"


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        # A walk through a list: one for each number, a tenth of each text.
        ("[1, 2, 3, 4, 5].sum()", 5),
        ("[1.0, 2.0, 3.0, 4.0, 5.0].isSorted()", 5),
        ("[1, 2, 3, 4, 5].indexOf(3)", 5),
        ("['012345678901', '012345678901', '012345678901', '012345678901', '012345678901'].max()", 5),
        (f"'{_LONG}'.indexOf('123')", 5),
        (f"'{_LONG}'.lastIndexOf('123')", 5),
        # A text: a tenth of it, twice where a text is made of it.
        ("'ABCDEFGHIJ abcdefghij'.lowerAscii()", 3),
        ("'ABCDEFGHIJ abcdefghij'.lowerAscii() == 'abcdefghij ABCDEFGHIJ'.lowerAscii()", 9),
        ("strings.quote('ABCDEFGHIJ abcdefghij')", 3),
        ("'abc 123 def 123'.replace('123', '456', 1)", 3),
        ("'abc 123 def 123'.split(' ')", 3),
        ("'abc 123 def 123'.substring(5, 8)", 2),
        ("'  abc 123 def 123  '.trim()", 2),
        ("['aa', 'bb', 'cc', 'd', 'e', 'f', 'g', 'h', 'i', 'j'].join(' ')", 5),
        ("['aa', 'bb', 'cc', 'd', 'e', 'f', 'g', 'h', 'i', 'j'].join()", 3),
        ("'abc 123 def 123'.find('123')", 2),
        ("'abc 123 def 123'.findAll('123', 1)", 2),
        # Kubernetes' types.
        ("url('https:://kubernetes.io/').getScheme()", 4),
        ("url('https:://kubernetes.io/') == url('https:://kubernetes.io/')", 7),
        ("url('https:://kubernetes.io/') == url('http://x.b')", 5),
        ("ip('192.168.0.1')", 2),
        ("ip('2001:db8:3333:4444:5555:6666:7777:8888').family()", 5),
        ("ip('192.168.0.1') == ip('192.168.0.1')", 5),
        ("ip.isCanonical('192.168.0.1')", 3),
        ("ip.isCanonical('2001:db8:3333:4444:5555:6666:7777:8888')", 8),
        ("cidr('2001:db8::/32').masked()", 3),
        ("cidr('192.168.0.0/16').ip()", 3),
        ("cidr('192.168.0.0/16').containsIP('192.0.0.1')", 4),
        ("cidr('192.168.0.0/16').containsIP(ip('192.0.0.1'))", 4),
        ("cidr('192.168.0.0/16').containsIP('192.169.0.1')", 5),
        ("cidr('192.168.0.0/16').containsCIDR('192.0.0.0/30')", 7),
        ('quantity("50k").add(20).sub(quantity("100k")).sub(-50000).asInteger() > 0', 7),
        ('semver("1234.56789012345.67890123456789")', 4),
        ('isSemver("1.0.0")', 1),
        ('format.named("dns1123Subdomain").value().validate("my-name")', 17),
        ('format.named("dns1123Label").value().validate("my-name")', 10),
        ('format.named("dns1123Label").value() == format.named("dns1123Label").value()', 5),
        # Sets: each element with each.
        ("sets.contains([], [])", 1),
        ("sets.contains([1, 2, 3, 4], [2, 3])", 9),
        ("sets.equivalent([], [])", 1),
        ("sets.equivalent([1, 2, 3], [3u, 2.0, 1])", 19),
        ("sets.intersects([1, 2], [2u, 2, 2.0])", 7),
        ("!sets.intersects([1], [])", 2),
        # Loops; the empty list or map that one begins with is a constant as well.
        ("{'a': 1, 'b': 2}.all(k, v, v > 0)", 11),
        ("{'a': 1, 'b': 2}.exists(k, v, v > 0)", 10),
        ("[1, 2].all(i, v, v > 0)", 11),
        ("[1, 2].exists(i, v, v > 0)", 10),
        ("[1, 2].existsOne(i, v, v > 0)", 10),
        ("[1, 2].transformList(i, v, v + 1)", 29),
        ("[1, 2].transformList(i, v, v < 5, v + 1)", 33),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v + 1)", 11),
        ("{'a': 1, 'b': 2}.transformMapEntry(k, v, {k: v + 1})", 71),
    ],
)
def test_an_expression_costs_what_it_costs_in_kubernetes(expression: str, cost: int) -> None:
    assert run_expression(expression)[1] == cost


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        # One for the variable, one for each step from it (cel-go's "select").
        ("device.driver", 2),
        (f"{GPU}.model", 4),
        (f"has({GPU}.model)", 3),
        # A comparison of texts costs a tenth of the shorter one, at least one; of anything else one.
        (f"{GPU}.model == 'A100'", 5),
        (f"{GPU}.model < '{_LONG}'", 5),
        (f"{GPU}.index > 2", 5),
        (f"{GPU}.model in ['A100']", 4),
        # Only the branch that is taken counts, without its variable.
        (f"{GPU}.mig ? device.driver : 'none'", 4),
        # Texts that are joined cost a tenth of both; a text times a quarter of a pattern.
        (f"{GPU}.model + '{_LONG}'", 10),
        (f"{GPU}.model.matches('A[0-9]+')", 6),
        (f"'{_LONG}'.contains({GPU}.model)", 9),
        (f"{GPU}.model.startsWith('A')", 5),
    ],
)
def test_steps_to_an_attribute_count(expression: str, cost: int) -> None:
    assert run_expression(expression)[1] == cost


def test_an_evaluation_may_cost_a_million() -> None:
    assert costs.LIMIT == 1_000_000
