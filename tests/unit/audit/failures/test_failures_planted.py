"""Every failure that can be recognised is planted: on a lab host, or in made-up facts where hardware is due."""

from tests.lab.audit.made_up import MADE_UP
from tests.lab.audit.plants import PLANTS
from tests.unit.support.known import SIGNED

PLANTED = {rule for plant in (*PLANTS, *MADE_UP) for rule in plant.rules}


def test_every_rule_is_planted():
    assert {rule.name for rule in SIGNED} - PLANTED == set()


def test_only_rules_that_exist_are_expected():
    assert PLANTED - {rule.name for rule in SIGNED} == set()


def test_names_of_planted_problems_are_unique():
    names = [plant.name for plant in (*PLANTS, *MADE_UP)]
    assert len(names) == len(set(names))


def test_what_provision_does_not_mend_is_cured_by_hand():
    """A plant whose rules all say that provision does not mend it, and that changes no state, needs a cure."""
    mended = {rule.name: rule.sign.provision for rule in SIGNED if rule.sign}
    for plant in PLANTS:
        if plant.rules and not plant.states and not any(mended[name] for name in plant.rules):
            assert plant.cure, plant.name
