"""Known versions of cuDNN. The compatibility rules of frameworks list the versions that a framework supports."""

from hostwright.roles import Choice, disk_is_enough

CUDNNS = ("8.1.0.77", "8.6.0.163")

RULES = (disk_is_enough,)
CHOICES = (Choice("cudnn", "cuDNN", 40, CUDNNS, usual="8.1.0.77"),)
