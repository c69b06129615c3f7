"""The command line of the trials."""

import argparse
import random
import sys

from tests.fuzz import trials


def main():
    known = trials.names()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.trials", description=trials.__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *known], help="all by default")
    parser.add_argument("--share", type=float, default=1.0, help="part of each trial's usual count")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        (name,) = args.names
        known[name](lambda count: range(max(1, int(count * args.share))), random.Random(f"{name} {args.seed}"))
        return 0
    failures = 0
    for name in args.names or known:
        failure = trials.run(name, args.share, args.seed)
        print(failure or f"{name}: passed", flush=True)
        failures += failure is not None
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
