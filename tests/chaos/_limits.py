"""What hosts lack: memory, by a control group, and clocks that are right."""
import contextlib
import os

from _scene import Skipped

GROUPS = (
    ("/sys/fs/cgroup", "memory.max"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
)


@contextlib.contextmanager
def little_memory(mib):
    """A wrapper that gives a command and its children so much memory in all."""
    for above, file in GROUPS:
        group = os.path.join(above, f"starling-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(os.path.join(group, file), "r+") as limit:
                limit.write(str(mib << 20))
            yield "sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"
            return
        except FileNotFoundError:  # this hierarchy has no memory
            pass
        finally:
            os.rmdir(group)
    raise Skipped("no control group with a limit can be made here")


def set_clock(scene, seconds):
    """Ahead by so many: of processes that are started from now on, and of those so started."""
    scene.write("clock.new", str(seconds))
    os.replace(scene.path("clock.new"), scene.path("clock"))
    scene.preload("wrong_clock")
    scene.environment["STARLING_CLOCK"] = scene.path("clock")
