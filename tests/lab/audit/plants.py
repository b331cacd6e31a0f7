"""All plants for lab hosts, family by family."""

from __future__ import annotations

from tests.lab.audit.planting import Plant
from tests.lab.audit.plants_base import BASE
from tests.lab.audit.plants_container import CONTAINER
from tests.lab.audit.plants_cuda import CUDNN, ENVIRONMENT, TOOLKIT
from tests.lab.audit.plants_driver import DRIVER
from tests.lab.audit.plants_gpu import GPU
from tests.lab.audit.plants_tensorflow import TENSORFLOW

PLANTS: tuple[Plant, ...] = (*BASE, *DRIVER, *TOOLKIT, *CUDNN, *ENVIRONMENT, *TENSORFLOW, *CONTAINER, *GPU)
