"""torchrun with what makes it work on every release of torch that a distribution has.

Debian 13's is built without libuv, with which torchrun's own stores begin unless they are told not
to; Debian 12's (torch 1.13, Python 3.11) cannot do without --redirects and --tee.
"""

WITHOUT_LIBUV = {"USE_LIBUV": "0", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def torchrun(count, file, *rest, python="/usr/bin/python3"):
    """The command and its variables: count processes on this host, that meet in a file which is not
    there yet."""
    command = [python, "-m", "torch.distributed.run", "--redirects", "1", "--tee", "1"]
    command += ["--rdzv_backend", "c10d", "--rdzv_endpoint", file]
    command += ["--rdzv_conf", "store_type=file", "--nproc_per_node", str(count), *rest]
    return command, WITHOUT_LIBUV
