"""`python -m lab.vendor --profile small`: build the vendor files and list them."""

import sys

from lab.vendor import main

sys.exit(main())
