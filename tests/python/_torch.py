"""torch for tests that need it; where it is absent, the test says so and ends."""

import sys

try:
    import torch
except ImportError:
    print("skip torch: it is not installed here")
    sys.exit(0)

torch.set_num_threads(1)
