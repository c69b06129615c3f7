"""Every public function with one argument made odd: `python -m tests.fuzz.api [options]`.

The answer to an odd argument is a result or an error about that argument, soon and in little memory. Crashes, hangs,
internal errors, and errors that speak of the library's own insides are findings. Functions run in child processes with
bounded memory; one that dies is noted, and the next goes on.
"""

import argparse
import contextlib
import dataclasses
import importlib
import inspect
import itertools
import json
import os
import pathlib
import random
import resource
import signal
import sys
import tempfile
import time
import warnings

import ferrax
import ferrax.numpy as jnp
from tests.fuzz import children
from tests.fuzz.oddities import ODD, SCOPE, USUAL
from tests.fuzz.report import Failure, Report
from tests.fuzz.values import words

MODULES = [
    "ferrax", "ferrax.numpy", "ferrax.lax", "ferrax.nn", "ferrax.random", "ferrax.numpy.linalg", "ferrax.numpy.fft",
    "ferrax.lax.linalg", "ferrax.tree_util", "ferrax.tree", "ferrax.ops", "ferrax.flatten_util", "ferrax.dlpack",
    "ferrax.nn.initializers", "ferrax.custom_batching", "ferrax.custom_derivatives", "ferrax.dtypes", "ferrax.debug",
]  # fmt: skip
#: Functions that change the process, that wait for someone, whose work an argument asks for as it is, or that write
#: files of any size.
SKIPPED = {
    "ferrax.clear_caches", "ferrax.numpy.set_printoptions", "ferrax.numpy.array_split", "ferrax.numpy.resize",
    "ferrax.debug.breakpoint", "ferrax.config", "ferrax.lax.fori_loop", "ferrax.lax.while_loop",
    "ferrax.numpy.save", "ferrax.numpy.savez",
}  # fmt: skip

#: Bytes of address space of a child, seconds of processor time that a call may take and after which it is a hang, bytes
#: it may keep, and seconds by the clock after which a call that takes no processor time is one.
MEMORY, SLOW, HANG, KEPT, PATIENCE = 5 << 29, 5, 12, 700 << 20, 120
#: Seconds of processor time beyond that for an element of a result, a random number's.
EACH = 3e-9
#: Ordinary calls of each function that are varied.
TEMPLATES = 4
#: Errors that are never about an argument.
FAULTS = words("""InternalError SystemError PanicException AssertionError UnboundLocalError SystemExit KeyboardInterrupt
    StopIteration error KeyError""")


def patience_for(result):
    """Seconds of processor time that a call may take which gives this: more for billions of elements."""
    sizes = [leaf.size for leaf in ferrax.tree.leaves(result) if isinstance(leaf, ferrax.Array)]
    return SLOW + EACH * sum(sizes)


class Hang(BaseException):
    """A call that takes too long; no library code may catch it."""


def on_alarm(*_):
    raise Hang


def targets():
    """Names and functions of the public API."""
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for attribute in sorted(dir(module)):
            function = getattr(module, attribute)
            full = f"{name}.{attribute}"
            error = inspect.isclass(function) and issubclass(function, BaseException)
            theirs = str(getattr(function, "__module__", "")).startswith(("numpy", "ml_dtypes"))
            skipped = attribute.startswith("_") or full in SKIPPED or error or theirs
            if callable(function) and not skipped:
                found.setdefault(full, function)
    return found


def is_fault(error, text):
    """Whether an error is about the library's insides instead of the argument."""
    name, message = type(error).__name__, str(error)
    if "of the argument" in message:
        return False
    if name in FAULTS:
        return True
    if name == "NameError":
        return "unbound axis" not in message
    if name == "ZeroDivisionError":
        return "1/0" not in text and "the step is zero" not in message
    return name == "RecursionError" and "deep" not in text and "recursive" not in text


def resident():
    pages = pathlib.Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def consume(result):
    """Waits for arrays and prints small ones."""
    for leaf in ferrax.tree_util.tree_leaves(result)[:20]:
        if isinstance(leaf, ferrax.Array):
            leaf.block_until_ready()
            if leaf.size < 100:
                repr(leaf)


@dataclasses.dataclass
class Caller:
    """Calls one function with many arguments."""

    report: Report
    name: str
    function: object

    def call(self, args, keywords=None):
        """Whether the call returned; findings go to the report."""
        keywords = keywords or {}
        text = f"{self.name}({', '.join([*args, *(f'{k}={v}' for k, v in keywords.items())])})"
        self.report.begin([self.name, text])
        self.report.count("calls")
        before, start, returned, allowed = resident(), time.process_time(), False, SLOW
        signal.setitimer(signal.ITIMER_PROF, HANG)
        try:
            values = [eval(a, SCOPE) for a in args]
            named = {k: eval(v, SCOPE) for k, v in keywords.items()}
            start = time.process_time()
            result = self.function(*values, **named)
            allowed = patience_for(result)
            consume(result)
            returned = True
        except Hang:
            self.fault("hang", f"more than {HANG} s of processor time", text)
        except MemoryError:
            allowed = HANG  # what there was room for may have been poisoned before
        except BaseException as error:
            if is_fault(error, text):
                self.fault(type(error).__name__, str(error)[:300], text)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            values = named = result = None
        if time.process_time() - start > allowed:
            self.fault("slow", f"{time.process_time() - start:.1f} s", text)
        if resident() - before > KEPT:
            self.fault("memory", f"{(resident() - before) >> 20} MiB", text)
        return returned

    def fault(self, what, why, text):
        self.report.fail(Failure(f"argument: {what}", 0, f"{self.name} {what}", why, text))

    def vary(self, rng, count):
        """Calls with ordinary arguments, then with each of them odd, and with odd keywords."""
        templates = itertools.islice((args for args in USUAL if self.call(args)), TEMPLATES)
        for args in list(templates):
            for place in range(len(args)):
                for odd in rng.sample(ODD, min(count, len(ODD))):
                    self.call([*args[:place], odd, *args[place + 1 :]])
            for keyword in self.keywords()[len(args) :]:
                for odd in rng.sample(ODD, min(count // 2, len(ODD))):
                    self.call(args, {keyword: odd})
        for _ in range(count):
            self.call([rng.choice(ODD) for _ in range(rng.randrange(5))])

    def keywords(self):
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            return []
        return [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]


def run_child(args):
    """The functions of one job, from `args.skip` on; what they write under odd names lies with the findings."""
    args.out = os.path.abspath(args.out)
    os.chdir(args.out)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.filterwarnings("ignore")
    signal.signal(signal.SIGPROF, on_alarm)
    report, functions = Report(args.out), targets()
    # Around all calls: a hang that is noticed where one call's own redirection ends would leave it in place.
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        for name in chosen(args)[args.skip :]:
            Caller(report, name, functions[name]).vary(random.Random(f"{args.seed} {name}"), args.arguments)
            report.count("functions")
            well = float(ferrax.jit(lambda x: jnp.sin(x) + 3)(jnp.float32(0.0))) == 3.0
            assert well, f"the process computes wrongly after {name}"
    print(json.dumps(report.counts))


def chosen(args):
    """The names of a job's functions, shuffled by the seed."""
    names = [name for name in targets() if args.only in name]
    random.Random(args.seed).shuffle(names)
    return names[: args.functions][args.job :: args.jobs]


def run(args):
    """Runs the functions, `args.jobs` at once; the counts, and the failures of each kind."""

    def work(job, folder, counts):
        names, skip = chosen(argparse.Namespace(**{**vars(args), "job": job})), 0
        while skip < len(names):
            options = {"seed": args.seed, "arguments": args.arguments, "only": args.only, "functions": args.functions,
                       "job": job, "jobs": args.jobs, "skip": skip, "out": folder}  # fmt: skip
            flags = [f"--{name}={value}" for name, value in options.items() if value is not None]
            child = children.run_child("tests.fuzz.api", flags, folder, PATIENCE)
            if child.ended_well():
                counts.update(child.counts())
                return
            name, text = child.current
            children.note_crash(folder, child, "argument: crash", 0, name, text)
            skip = names.index(name) + 1

    return children.run_jobs(work, args.jobs, args.out or tempfile.mkdtemp(prefix="ferrax-fuzz-api-"))


def arguments(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.api", description=__doc__.split("\n")[0])
    parser.add_argument("--arguments", type=int, default=10, help="odd values for each argument")
    parser.add_argument("--only", default="", help="functions whose names contain this")
    parser.add_argument("--functions", type=int, help="how many functions; every one by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2))
    parser.add_argument("--out", help="folder of the findings; a new one by default")
    parser.add_argument("--job", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--skip", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main():
    args = arguments()
    if args.child:
        run_child(args)
        return 0
    return children.conclude(*run(args), lambda f: f"{f.check}: {f.signature}\n   {f.why}\n   {f.program}")


if __name__ == "__main__":
    sys.exit(main())
