"""The known versions of cuDNN. Each framework's own rules list the versions that it works with."""

from hostwright.roles import Choice, disk_is_enough

CUDNNS = ("8.1.0.77", "8.6.0.163")

RULES = (disk_is_enough,)
CHOICES = (Choice("cudnn", "cuDNN", 40, CUDNNS, usual="8.1.0.77"),)
