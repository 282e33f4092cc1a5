"""What hosts lack: memory, by a control group, and clocks that are right."""
import contextlib
import os

from _scene import Skipped

@contextlib.contextmanager
def limited(*ways):
    """A wrapper that runs a command in a control group: of the first that can be made of rows
    (folder, file, what is written there)."""
    for above, file, text in ways:
        group = os.path.join(above, f"starling-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(os.path.join(group, file), "r+") as limit:
                limit.write(text)
            yield "sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"
            return
        except FileNotFoundError:  # this hierarchy has no such limit
            pass
        finally:
            os.rmdir(group)
    raise Skipped("no control group with a limit can be made here")


def little_memory(mib):
    """For a command and its children so much in all."""
    top, text = "/sys/fs/cgroup", str(mib << 20)
    return limited((top, "memory.max", text), (f"{top}/memory", "memory.limit_in_bytes", text))


def few_cores(share):
    """Likewise, of a core."""
    top, text = "/sys/fs/cgroup", str(int(1e5 * share))
    return limited((top, "cpu.max", text), (f"{top}/cpu", "cpu.cfs_quota_us", text))


def set_clock(scene, seconds):
    """Ahead by so many: of processes that are started from now on, and of those so started."""
    scene.write("clock.new", str(seconds))
    os.replace(scene.path("clock.new"), scene.path("clock"))
    scene.preload("wrong_clock")
    scene.environment["STARLING_CLOCK"] = scene.path("clock")
