"""Windows whose losses are summed, and where something else makes up for their number."""

from __future__ import annotations

import pytest

from tests.static.reading import TORCH, marked, told

LOOP = """
def train(model, loader, args):
    k = args.accumulation_steps
    {rate}
    optimizer = torch.optim.SGD({params}, lr={lr})
    {after}
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = {loss}
        {backward}{mark}
        if (i + 1) % k == 0 or i + 1 == len(loader):
            {divide}
            optimizer.step()
            optimizer.zero_grad()
"""
PLAIN = {
    "rate": "pass",
    "params": "model.parameters()",
    "lr": "args.lr",
    "after": "pass",
    "loss": "F.cross_entropy(model(x), y)",
    "backward": "loss.backward()",
    "divide": "pass",
    "mark": "",
}

MADE_UP_FOR = [
    {"lr": "args.lr / k"},
    {"lr": "0.1 / args.accumulation_steps"},
    {"lr": "args.lr * (1 / k)"},
    {"rate": "rate = args.lr / k", "lr": "rate", "after": "lr = rate / k"},
    {"rate": "args.lr /= k"},
    {"rate": "args.lr = args.lr / k"},
    {"rate": "args.lr *= args.batch_size / 16"},
    {"rate": "cfg.SOLVER.BASE_LR *= args.batch_size / default_batch_size", "lr": "cfg.SOLVER.BASE_LR"},
    {"rate": "lr = args.base_lr * args.batch_size / 256", "lr": "lr"},
    {"lr": "0.1 * args.batch_size / 256"},
    {"rate": "cfg['BASE_LR'] = cfg['BASE_LR'] / k", "lr": "cfg['BASE_LR']"},
    {"params": "[{'params': model.parameters(), 'lr': args.lr / k}]"},
    {"after": "for group in optimizer.param_groups: group['lr'] /= k"},
    {"after": "for group in optimizer.param_groups: group['lr'] = args.lr / k"},
    {"divide": "for p in model.parameters(): p.grad /= k"},
    {"divide": "for p in model.parameters(): p.grad = p.grad / k"},
    {"divide": "for p in model.parameters(): p.grad.mul_(1 / k)"},
    {"divide": "torch._foreach_div_([p.grad for p in model.parameters()], k)"},
    {"divide": "grads = [p.grad for p in model.parameters()]; torch._foreach_mul_(grads, 1 / k)"},
    {"divide": "list(map(lambda p: p.grad.div_(k), model.parameters()))"},
    {"after": "for p in model.parameters(): p.register_hook(lambda grad: grad / k)"},
    {"after": "optimizer.register_step_pre_hook(lambda *_: [p.grad.div_(k) for p in model.parameters()])"},
    {"backward": "loss.backward(torch.tensor(1 / k))"},
    {"backward": "loss.backward(gradient=torch.full_like(loss, 1 / k))"},
    {"backward": "torch.autograd.backward(loss, torch.tensor(1 / k))"},
    {"after": "w = torch.ones(32) / k", "loss": "(w * F.mse_loss(model(x), y, reduction='none')).mean()"},
    {"after": "w = torch.full((), 1 / k)", "loss": "F.cross_entropy(model(x), y) * w"},
]

NOT_MADE_UP_FOR = [
    {},
    {"lr": "args.lr / 10"},
    {"lr": "args.lr / args.world_size"},
    {"rate": "print(args.samples / k)"},
    {"rate": "batch_size = args.batch_size * k; rate = args.lr * batch_size / 256", "lr": "rate"},
    {"after": "args.lr = args.base * (1 - args.batch_size * args.done / args.samples)"},
    {"after": "warmup_lr = linear(args.batch_size * 10)"},
    {"divide": "print(loss.item() / k)"},
    {"backward": "loss.backward(None)"},
]


@pytest.mark.parametrize("way", MADE_UP_FOR, ids=str)
def test_it_is_right_as_it_is(way: dict[str, str]) -> None:
    assert told(TORCH + LOOP.format(**PLAIN | way)) == set()


@pytest.mark.parametrize("way", NOT_MADE_UP_FOR, ids=str)
def test_what_is_not_made_up_for_is_told(way: dict[str, str]) -> None:
    source = TORCH + LOOP.format(**PLAIN | way | {"mark": "  # GC106"})
    assert told(source) == marked(source)
