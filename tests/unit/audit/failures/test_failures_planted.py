"""Every failure that can be recognised is planted: on a lab host, or in made-up facts where hardware is due."""

from tests.lab.audit.made_up import MADE_UP
from tests.lab.audit.plants import PLANTS
from tests.unit.support.known import SIGNED

PLANTED = {rule for one in (*PLANTS, *MADE_UP) for rule in one.rules}


def test_every_rule_is_planted():
    assert {rule.name for rule in SIGNED} - PLANTED == set()


def test_only_rules_that_exist_are_expected():
    assert PLANTED - {rule.name for rule in SIGNED} == set()


def test_plants_have_names_of_their_own():
    names = [one.name for one in (*PLANTS, *MADE_UP)]
    assert len(names) == len(set(names))


def test_what_provision_does_not_mend_is_cured_by_hand():
    """A plant whose rules all say that provision does not mend it, and that changes no state, needs a cure."""
    mended = {rule.name: rule.sign.provision for rule in SIGNED if rule.sign}
    for one in PLANTS:
        if one.rules and not one.states and not any(mended[name] for name in one.rules):
            assert one.cure, one.name
