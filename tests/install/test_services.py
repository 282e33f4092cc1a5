#!/usr/bin/env python3
"""The files of examples/services/, each with the program that reads it: systemd, logrotate, a
builder of images, Kubernetes' own models, a shell for Slurm's script."""
import json
import os
import re
import shutil

from _install import ROOT, Failure, call, check, needs, run_tests

try:
    import yaml
except ImportError:
    yaml = None
try:
    from kubernetes.client import models
except ImportError:
    models = None

FILES = os.path.join(ROOT, "examples", "services")
UNIT = "starling@.service"
FEW = {"rounds": 4, "topology": {"nodes": 2, "family": "ring"}, "record": {"every": 4}}


def written(scene, name, **changes):
    with open(os.path.join(FILES, name)) as file:
        text = file.read()
    for old, new in changes.values():
        check(old in text, f"{old} is not in {name}")
        text = text.replace(old, new)
    return scene.write(name.replace("@", "@digits"), text)


def needs_root_and(tool):
    needs(os.geteuid() == 0 and shutil.which(tool), f"{tool} is absent, or this is not root")


def the_unit_is_understood_and_hardened(scene):
    needs(shutil.which("systemd-analyze"), "systemd-analyze is absent")
    path = written(scene, UNIT, command=("/usr/bin/starling", scene.starling))
    said = call("systemd-analyze", "verify", "--man=no", path)
    check(UNIT not in said and "digits" not in said, said)
    said = call("systemd-analyze", "security", "--offline=true", "--threshold=30", path)
    level = float(re.search(r"exposure level for \S+: ([\d.]+)", said)[1])
    check(level < 3, said)


def its_user_and_folders_are_made(scene):
    needs_root_and("systemd-sysusers")
    root = scene.path("root")
    os.makedirs(root + "/etc")
    for name in ("passwd", "group"):
        shutil.copy("/etc/" + name, root + "/etc/")
    call("systemd-sysusers", "--root", root, os.path.join(FILES, "starling.sysusers"))
    with open(root + "/etc/passwd") as file:
        user = next(line.split(":") for line in file if line.startswith("starling:"))
    check(user[5] == "/var/lib/starling" and "nologin" in user[6], user)
    call("systemd-tmpfiles", "--create", "--root", root, os.path.join(FILES, "starling.tmpfiles"))
    made = os.stat(root + "/var/lib/starling")
    check((made.st_uid, made.st_mode & 0o777) == (int(user[2]), 0o750), f"{made}")


def logs_rotate_under_a_process_that_goes_on(scene):
    needs_root_and("logrotate")
    os.mkdir(scene.path("log"), 0o750)
    path = written(
        scene,
        "starling.logrotate",
        folder=("/var/log/starling", scene.path("log")),
        user=("su starling starling", "su root root"),
    )
    os.chmod(path, 0o644)
    with open(scene.path("log/digits.log"), "a") as log:
        log.write("round 1\n" * 10000)
        log.flush()
        call("logrotate", "-f", "-s", scene.path("state"), path)
        log.write("round 2\n")
    sizes = [os.path.getsize(scene.path("log/digits.log" + end)) for end in ("", ".1")]
    check(sizes == [8, 80000], f"{sizes}")


def the_image_is_built_without_a_network_and_trains(scene):
    builder = shutil.which("buildah") or shutil.which("podman")
    needs(builder and os.geteuid() == 0, "no buildah and no podman here, or this is not root")
    image = scene.path("image")
    build = os.path.dirname(os.path.dirname(scene.starling))
    call(os.path.join(FILES, "image-root"), build, image)
    scene.experiment("image/experiment.json", **FEW)
    here = [builder, "--storage-driver", "vfs", "--root", scene.path("store")]
    here += ["--runroot", scene.path("running")]
    containerfile = os.path.join(FILES, "Containerfile")
    call("unshare", "-n", *here, "build", "--isolation", "chroot", "-t", "starling", "-f",
         containerfile, image)  # fmt: skip
    needs(builder.endswith("buildah"), "built; only buildah runs it here")
    name = call(*here, "from", "starling").split()[-1]
    said = call(*here, "run", "--isolation", "chroot", name, "--", "starling", "run",
                "/experiment.json", "--out", "/tmp/out")  # fmt: skip
    check("averaged model" in said, said)


def manifests():
    """Kind -> what is declared."""
    needs(yaml, "python3-yaml is absent")
    kinds = {}
    for name in ("kubernetes-job.yaml", "kubernetes-jobset.yaml"):
        with open(os.path.join(FILES, name)) as file:
            kinds.update({each["kind"]: each for each in yaml.safe_load_all(file)})
    return kinds


def pods_find_each_other(scene):
    kinds = manifests()
    job, jobset = kinds["Job"], kinds["JobSet"]
    one = jobset["spec"]["replicatedJobs"][0]
    for spec, names, service in (
        (job["spec"], job["metadata"]["name"], job["spec"]["template"]["spec"]["subdomain"]),
        (
            one["template"]["spec"],
            f"{jobset['metadata']['name']}-{one['name']}-0",
            jobset["spec"]["network"]["subdomain"],
        ),
    ):
        check(spec["completionMode"] == "Indexed", spec)
        check(spec["completions"] == spec["parallelism"] == 4, spec)
        pod = spec["template"]["spec"]
        agent = pod["containers"][0]
        env = {each["name"]: each.get("value") for each in agent["env"]}
        port = agent["ports"][0]["containerPort"]
        check(env["STARLING_ROSTER"] == f"{names}-{{rank}}.{service}:{port}", env)
        volumes = {each["name"] for each in pod["volumes"]}
        for each in pod["initContainers"] + pod["containers"]:
            mounts = {mount["name"] for mount in each["volumeMounts"]}
            check(mounts <= volumes, f"{mounts} are not all of {volumes}")
    check(kinds["Service"]["metadata"]["name"] == service, kinds["Service"])


NEWER = {"V1JobSpec": {"backoffLimitPerIndex", "podFailurePolicy"}}  # than Debian 12's client


# What ours says around its jobs, by JobSet's definition (of 2026), which is no part of Kubernetes:
# its own models begin with the template of a job.
JOBSET = {
    "network": {
        "enableDNSHostnames": "bool",
        "publishNotReadyAddresses": "bool",
        "subdomain": "str",
    },
    "failurePolicy": {"maxRestarts": "int"},
    "replicatedJobs": [{"name": "str", "replicas": "int", "template": "V1JobTemplateSpec"}],
}


def fit_table(value, table, where):
    """As `fit`, of a table or a list of them: all its keys, and no others."""
    if isinstance(table, list):
        return [fit(each, table[0], f"{where}.{key}") for key, each in enumerate(value)]
    check(isinstance(value, dict) and set(value) == set(table), f"{where}: {value!r}")
    return {key: fit(each, table[key], f"{where}.{key}") for key, each in value.items()}


def fit(value, kind, where):
    """Only the keys that Kubernetes' own model of this kind has, all that it requires, each of its
    type."""
    if not isinstance(kind, str):
        return fit_table(value, kind, where)
    inner = re.fullmatch(r"(list|dict)[\[(](?:str, )?(.*)[\])]", kind)
    if inner:
        check(isinstance(value, {"list": list, "dict": dict}[inner[1]]), f"{where}: {value!r}")
        pairs = value.items() if inner[1] == "dict" else enumerate(value)
        return [fit(each, inner[2], f"{where}.{key}") for key, each in pairs]
    if not hasattr(models, kind):
        types = {"str": str, "int": int, "bool": bool, "float": (int, float)}.get(kind, object)
        check(isinstance(value, types) and (types is not int or value is not True), where)
        return value
    model = getattr(models, kind)
    names = {key: attribute for attribute, key in model.attribute_map.items()}
    unknown = set(value) - set(names) - NEWER.get(kind, set())
    check(not unknown, f"{where}: {unknown} are not of {kind}")
    return model(**{names[key]: fit(each, model.openapi_types[names[key]], f"{where}.{key}")
                    for key, each in value.items() if key in names})  # fmt: skip


def the_manifests_fit_kubernetes_models(scene):
    needs(models, "python3-kubernetes is absent")
    kinds = manifests()
    for kind in ("PersistentVolumeClaim", "Service", "Job"):
        fit(kinds[kind], "V1" + kind, kind)
    pod, jobset = kinds["Job"]["spec"]["template"]["spec"], kinds["JobSet"]["spec"]
    fit(kinds["JobSet"]["metadata"], "V1ObjectMeta", "JobSet.metadata")
    fit(jobset, JOBSET, "JobSet.spec")
    check(kinds["JobSet"]["apiVersion"] == "jobset.x-k8s.io/v1alpha2", kinds["JobSet"])
    for whole, kind, wrong in (
        (pod, "V1PodSpec", {"subDomain": "x"}),
        (pod, "V1PodSpec", {"hostNetwork": "no"}),
        (pod, "V1PodSpec", {"containers": None}),
        (jobset, JOBSET, {"networks": {}}),
        (jobset, JOBSET, {"failurePolicy": {"maxRestarts": "10"}}),
        (jobset, JOBSET, {"replicatedJobs": [{"name": "agents"}]}),
    ):
        try:
            fit({**whole, **wrong}, kind, "wrong")
        except (Failure, ValueError, TypeError):
            continue
        check(False, f"{wrong} was accepted")


SRUN = """#!/bin/sh
while [ "$1" != bash ]; do shift; done
for rank in 0 1; do
    SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=localhost SLURM_STEP_ID=0 "$@" &
done
wait %1; code=$?
wait %2
exit $code
"""


def a_slurm_job_ends_and_comes_again(scene):
    """srun and scontrol are played."""
    for name, text in (("srun", SRUN), ("scontrol", '#!/bin/sh\necho "scontrol $*"\n')):
        os.chmod(scene.write(name, text), 0o755)
    paths = [scene.folder, os.path.dirname(scene.starling), os.environ["PATH"]]
    environment = {**os.environ, "PATH": ":".join(paths), "SLURM_JOB_ID": "7"}
    script = os.path.join(FILES, "starling.slurm")
    call(script, scene.experiment(**FEW), cwd=scene.folder, env=environment)
    for rank in (0, 1):
        with open(scene.path(f"runs/7/rank-{rank}/run-{rank}.json")) as file:
            check(json.load(file)["outcome"] == "done", f"rank {rank}")
    scene.write("srun", "#!/bin/sh\nexit 75\n")
    said = call(script, scene.experiment(**FEW), cwd=scene.folder, env=environment)
    check(said == "scontrol requeue 7\n", said)


if __name__ == "__main__":
    run_tests()
