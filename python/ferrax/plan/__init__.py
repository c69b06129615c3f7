"""How a function scales over a mesh, from its program alone: no devices, nothing is run.

`plan` divides a traced program over a mesh as its arguments' shardings say, finds which collective operations that
takes, and counts what each device computes, reads, keeps and sends. `python -m ferrax.plan script.py --mesh 64x8`
prints it for a function of a script.

Read next: `_report.py` for what a plan says, `_partition.py` for how programs are divided.
"""

from ferrax.plan._machines import MACHINES as MACHINES
from ferrax.plan._machines import Level as Level
from ferrax.plan._machines import Machine as Machine
from ferrax.plan._report import Plan as Plan
from ferrax.plan._report import plan as plan
