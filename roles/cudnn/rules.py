"""List of the known versions of cuDNN. Frameworks' own compatibility rules list the versions that they support."""

from hostwright.roles import Choice, disk_is_enough

CUDNNS = ("8.1.0.77", "8.6.0.163")

RULES = (disk_is_enough,)
CHOICES = (Choice("cudnn", "cuDNN", 40, CUDNNS, usual="8.1.0.77"),)
