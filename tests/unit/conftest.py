"""How properties are searched: as long as it takes. A machine under load is slow, and that is nobody's failure."""

from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
