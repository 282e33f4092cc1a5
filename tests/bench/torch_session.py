#!/usr/bin/env python3
"""Two peers of PyTorch modules on one device, whose models must agree in the end; for
tools/gpu-steps. Each works on a stream of its own. form: graph: captures with torch.cuda.graph
while an exchange is under way. layers: with transport.overlap.

usage: torch_session.py DEVICE float32|bfloat16|graph|layers
"""
import hashlib
import os
import socket
import subprocess
import sys

STEPS, LIMIT_S = 100, 100


def capture(torch, device):
    """2000 additions in a graph, done once."""
    graph, z = torch.cuda.CUDAGraph(), torch.zeros(1 << 20, device=device)
    with torch.cuda.graph(graph):
        for _ in range(2000):
            z += 1
    graph.replay()
    assert z[0].item() == 2000, z[0].item()


def train(torch, starling, rank, ports, device, form):
    """The digest of the averaged model."""
    torch.manual_seed(rank)
    layers = torch.nn.Linear(784, 1021), torch.nn.ReLU(), torch.nn.Linear(1021, 10)
    dtype = torch.bfloat16 if form == "bfloat16" else torch.float32
    model = torch.nn.Sequential(*layers).to(device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    topology = {"nodes": 2, "family": "complete"}
    experiment = {"device": device, "algorithm": "d-psgd", "topology": topology}
    if form == "layers":
        experiment["algorithm"] = {"name": "d-psgd", "variant": "adapt-then-combine"}
        experiment["transport"] = {"overlap": "layers"}
    roster = [f"127.0.0.1:{port}" for port in ports]
    with starling.join(experiment, model, rank=rank, size=2, roster=roster) as peer:
        peer.attach(optimizer)
        for _ in range(STEPS):
            samples = torch.randn(64, 784).to(device, dtype)
            labels = torch.randint(0, 10, (64,)).to(device)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(samples).float(), labels).backward()
            optimizer.step()
        if form == "graph":
            capture(torch, device)
        mean = peer.average().values()
    return hashlib.sha256(b"".join(t.float().cpu().numpy().tobytes() for t in mean)).hexdigest()


def work(rank, ports, device, form):
    import torch

    import starling

    stream = torch.cuda.stream(torch.cuda.Stream()) if device != "cpu" else torch.enable_grad()
    with stream:
        print(train(torch, starling, rank, ports, device, form), flush=True)


def main():
    device, form = sys.argv[1:3]
    if len(sys.argv) > 3:
        work(int(sys.argv[3]), sys.argv[4:], device, form)
        return 0
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [str(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    command = [sys.executable, os.path.abspath(__file__), device, form]
    peers = [
        subprocess.Popen([*command, str(r), *ports], stdout=subprocess.PIPE, text=True)
        for r in range(2)
    ]
    said = [peer.communicate(timeout=LIMIT_S)[0].strip() for peer in peers]
    good = all(peer.returncode == 0 for peer in peers) and said[0] == said[1] != ""
    print("equal models" if good else f"not ok: {said}", said[0][:16])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
