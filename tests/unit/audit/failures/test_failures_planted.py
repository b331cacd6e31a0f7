"""Every failure that can be recognised is planted: on a lab host, or in made-up facts where hardware is due."""

from tests.lab.audit.made_up import MADE_UP
from tests.lab.audit.plants import PLANTS
from tests.lab.test_optional_layers import PLANTED as OPTIONAL
from tests.unit.roles.driver.test_driver_packages import PLANTED as OF_PACKAGES
from tests.unit.roles.environment.failures.test_shadowed import PLANTED as OF_WHEELS
from tests.unit.support.known import SIGNED

#: the hosts of the plants have the default roles; those of other layers are planted by the tests of these
PLANTED = {rule for plant in (*PLANTS, *MADE_UP) for rule in plant.rules} | OPTIONAL | OF_WHEELS | OF_PACKAGES


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


#: mended in one of two cases: our own repository a second time is disabled, one of the distribution's is not;
#: AUTOINSTALL is put on in the driver's own dkms.conf, and what an operator wrote over it stays
PARTLY = {"apt-sources-twice", "dkms-not-for-next-kernel"}


def test_what_provision_mends_on_a_lab_host_is_not_said_to_be_left():
    """What a plant needs no hand for is what `invoke provision` does: each of its rules must say so."""
    mended = {rule.name: rule.sign.provision for rule in SIGNED if rule.sign}
    wrong = {name for plant in PLANTS if not plant.cure for name in plant.rules if not mended[name]}
    assert wrong == PARTLY
