"""Two networks, two optimizers; the discriminator's loss must not touch the generator."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
discriminator = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
loader = torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=16, shuffle=True)

for _ in range(3):
    for real in loader:
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        discriminator.zero_grad()
        criterion(discriminator(real), ones).backward()
        fake = generator(torch.randn(len(real), 8))
        criterion(discriminator(fake.detach()), zeros).backward()
        opt_d.step()

        generator.zero_grad()
        criterion(discriminator(fake), ones).backward()
        opt_g.step()
