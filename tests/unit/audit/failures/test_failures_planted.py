"""Tests that every recognisable failure is planted: on a lab host, or for hardware in made-up facts."""

from tests.lab.audit.made_up import MADE_UP
from tests.lab.audit.plants import PLANTS
from tests.lab.test_optional_layers import PLANTED as OPTIONAL
from tests.unit.roles.driver.test_driver_packages import PLANTED as OF_PACKAGES
from tests.unit.roles.environment.failures.test_shadowed import PLANTED as OF_WHEELS
from tests.unit.support.known import SIGNED

#: the hosts of the plants have the default roles; tests of other layers plant the failures of these
PLANTED = {rule for plant in (*PLANTS, *MADE_UP) for rule in plant.rules} | OPTIONAL | OF_WHEELS | OF_PACKAGES


def test_every_rule_is_planted():
    assert {rule.name for rule in SIGNED} - PLANTED == set()


def test_only_rules_that_exist_are_expected():
    assert PLANTED - {rule.name for rule in SIGNED} == set()


def test_names_of_planted_problems_are_unique():
    names = [plant.name for plant in (*PLANTS, *MADE_UP)]
    assert len(names) == len(set(names))


def test_what_provision_does_not_mend_is_cured_by_hand():
    """A plant needs a manual fix if provision fixes none of its rules, and it changes no state."""
    mended = {rule.name: rule.sign.provision for rule in SIGNED if rule.sign}
    for plant in PLANTS:
        if plant.rules and not plant.states and not any(mended[name] for name in plant.rules):
            assert plant.cure, plant.name


#: fixed in one of two cases: a second entry for Hostwright's own repository is disabled, but not one for the
#: distribution's; AUTOINSTALL is enabled in the driver's own dkms.conf, but an operator's override is kept
PARTLY = {"apt-sources-twice", "dkms-not-for-next-kernel"}


def test_what_provision_mends_on_a_lab_host_is_not_said_to_be_left():
    """If a plant needs no manual fix, `invoke provision` fixes it: each of its rules must state this."""
    mended = {rule.name: rule.sign.provision for rule in SIGNED if rule.sign}
    wrong = {name for plant in PLANTS if not plant.cure for name in plant.rules if not mended[name]}
    assert wrong == PARTLY
