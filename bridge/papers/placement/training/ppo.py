# SPDX-License-Identifier: Apache-2.0
"""Proximal policy optimisation with masked actions, for placement networks.

Rules
    1. A round plays some moves on all boards with the current networks and records every decision,
       its probability, and the reward of its episode. Rewards are not discounted: an episode has
       at most two decisions, and the last one gets the whole reward.
    2. The advantage of a decision is the reward minus the critic's estimate, normalised over the
       round to mean 0 and deviation 1.
    3. Each round is used for a few passes in small batches. The actor follows the clipped objective
       (Schulman et al. 2017, equation 7) plus an entropy bonus; the critic minimises its squared
       error. The round ends early when the policy has moved too far.
    4. Nodes that do not exist get minus infinity before the softmax, so they are never chosen
       (Huang and Ontañón, "A Closer Look at Invalid Action Masking").
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from bridge.papers.placement.neural_weights import CHANNELS, NETWORKS, Q, Weights
from bridge.papers.placement.training.environment import Boards

_FORBIDDEN = torch.finfo(torch.float32).min


@dataclass(frozen=True)
class PpoSettings:
    """Training parameters.

    Attributes:
        moves: moves of every board in a round.
        passes: over each round.
        clip: relative change of a probability allowed in a round.
        rate: initial learning rate; it falls to a tenth during the training.
        critic_rate: the critic's.
        entropy: initial weight of the entropy bonus; it falls to a tenth, too.
        too_far: Kullback-Leibler divergence that ends a round.
        warmth: temperature of lessons, thousands.
        lesson_passes: over each round of lessons.
    """

    moves: int = 4
    passes: int = 4
    batch: int = 1024
    clip: float = 0.2
    rate: float = 1e-3
    critic_rate: float = 2e-3
    entropy: float = 0.01
    too_far: float = 0.03
    warmth: float = 0.5
    lesson_passes: int = 2


def make(network: str, outputs: int) -> nn.Sequential:
    """An untrained network of table II."""
    shape = NETWORKS[network]
    layers: list[nn.Module] = []
    channels = CHANNELS
    for i, (out, width, stride) in enumerate(shape.convolutions):
        layers += [nn.Tanh()] if i else []
        layers.append(nn.Conv1d(channels, out, width, stride))
        channels = out
    layers.append(nn.Flatten())
    inputs = shape.layers()[len(shape.convolutions)][1]
    for i, out in enumerate((*shape.hidden, outputs)):
        layers += [nn.Tanh()] if i and shape.bent else []
        layers.append(nn.Linear(inputs, out))
        inputs = out
    return nn.Sequential(*layers)


@dataclass
class Round:
    """Statistics of a round.

    Attributes:
        reward: mean of its episodes.
        cost: mean cost of the jobs put back, per thousand of their cost before.
        entropy: the entropy of the choices, nats.
        divergence: how far the policy moved.
    """

    reward: float
    entropy: float
    divergence: float
    decisions: int


class PpoLearner:
    """Actor and critic with their optimisers."""

    def __init__(self, network: str, settings: PpoSettings, seed: int) -> None:
        torch.manual_seed(seed)
        self.network = network
        self._settings = settings
        self.actor, self.critic = make(network, Q), make(network, 1)
        self._optimiser = torch.optim.Adam(
            [
                {"params": self.actor.parameters(), "lr": settings.rate},
                {"params": self.critic.parameters(), "lr": settings.critic_rate},
            ]
        )
        self._chance = torch.Generator().manual_seed(seed)

    def weights(self) -> Weights:
        """The actor's weights, as stored."""
        return [np.array(each.detach().numpy()) for each in self.actor.parameters()]

    def state(self) -> dict[str, object]:
        """The state that resuming needs."""
        return {
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "chance": self._chance.get_state(),
        }

    def resume(self, state: dict[str, object]) -> None:
        """Restores what `state` returned."""
        self.actor.load_state_dict(cast("dict[str, Tensor]", state["actor"]))
        self.critic.load_state_dict(cast("dict[str, Tensor]", state["critic"]))
        self._optimiser.load_state_dict(cast("dict[str, object]", state["optimiser"]))
        self._chance.set_state(cast("Tensor", state["chance"]))

    def _batches(self, n: int) -> list[Tensor]:
        order, size = torch.randperm(n, generator=self._chance), self._settings.batch
        return [order[first : first + size] for first in range(0, n, size)]

    def _logits(self, state: Tensor, legal: Tensor) -> Tensor:
        return cast("Tensor", self.actor(state)).masked_fill(~legal, _FORBIDDEN)

    def play(self, boards: Boards) -> tuple[list[Tensor], float]:
        """Plays one round.

        Returns:
            (state, legal, choice, log probability, reward) of all decisions; the mean reward.
        """
        kept: list[list[Tensor]] = []
        rewards = []
        for _ in range(self._settings.moves):
            boards.begin()
            seen = []
            for which in range(2):
                step = boards.look(which)
                state, legal = torch.from_numpy(step.state), torch.from_numpy(step.legal)
                with torch.no_grad():
                    chances = torch.log_softmax(self._logits(state, legal), dim=1)
                    choice = torch.multinomial(chances.exp(), 1, generator=self._chance)
                boards.put(step, which, choice[:, 0].numpy())
                seen.append((step.boards, state, legal, choice, chances.gather(1, choice)))
            reward = boards.end()
            rewards.append(float(reward.mean()))
            for at, state, legal, choice, chance in seen:
                kept.append([state, legal, choice, chance, torch.from_numpy(reward[at])[:, None]])
        return [torch.cat(column) for column in zip(*kept, strict=True)], float(np.mean(rewards))

    def lesson(self, boards: Boards, done: float) -> Round:
        """Plays a round and learns from the cost of every choice.

        The cost of a job at each place is known, so the actor is trained towards probabilities
        proportional to exp(-cost / `warmth`). The effect on the next job is ignored; `learn`
        accounts for it.

        Args:
            done: share of the training that is done, 0 to 1.
        """
        settings = self._settings
        self._optimiser.param_groups[0]["lr"] = settings.rate * (1 - 0.9 * done)
        states, legals, aims, rewards, entropies, apart = [], [], [], [], [], []
        for _ in range(settings.moves):
            boards.begin()
            seen_by = []
            for which in range(2):
                step = boards.look(which)
                state, legal = torch.from_numpy(step.state), torch.from_numpy(step.legal)
                with torch.no_grad():
                    chances = torch.softmax(self._logits(state, legal), dim=1)
                    choice = torch.multinomial(chances, 1, generator=self._chance)
                prices = torch.from_numpy(boards.prices(step, which))
                boards.put(step, which, choice[:, 0].numpy())
                states.append(state)
                legals.append(legal)
                aims.append(torch.softmax(-prices / settings.warmth, dim=1))
                seen_by.append(step.boards)
            reward = boards.end()
            rewards.append(float(reward.mean()))
        for state, at in zip(states[-2:], seen_by, strict=True):
            missed = (self.critic(state)[:, 0] - torch.from_numpy(reward[at])).square().mean()
            self._optimiser.zero_grad()
            torch.autograd.backward(0.05 * missed)
            self._optimiser.step()
        state, legal, aim = torch.cat(states), torch.cat(legals), torch.cat(aims)
        for _ in range(settings.lesson_passes):
            for some in self._batches(len(state)):
                chances = torch.log_softmax(self._logits(state[some], legal[some]), dim=1)
                seen = chances.clamp(min=-50)
                loss = -(aim[some] * seen).sum(dim=1).mean()
                self._optimiser.zero_grad()
                torch.autograd.backward(loss)
                self._optimiser.step()
                entropies.append(float(-(seen.detach().exp() * seen.detach()).sum(dim=1).mean()))
                own = -(aim[some] * aim[some].clamp(min=1e-30).log()).sum(dim=1).mean()
                apart.append(float(loss.detach() - own))
        return Round(
            float(np.mean(rewards)), float(np.mean(entropies)), float(np.mean(apart)), len(state)
        )

    def learn(self, boards: Boards, done: float) -> Round:
        """Plays a round and learns from it.

        Args:
            done: share of the training that is done, 0 to 1; rates fall with it.
        """
        settings = self._settings
        fall = 1 - 0.9 * done
        rates = (settings.rate, settings.critic_rate)
        for group, rate in zip(self._optimiser.param_groups, rates, strict=True):
            group["lr"] = rate * fall
        (state, legal, choice, chance, reward), mean = self.play(boards)
        with torch.no_grad():
            advantage = reward - self.critic(state)
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        entropies, moved = [], 0.0
        for _ in range(settings.passes):
            moved = 0.0
            batches = self._batches(len(state))
            for some in batches:
                chances = torch.log_softmax(self._logits(state[some], legal[some]), dim=1)
                now = chances.gather(1, choice[some])
                ratio = (now - chance[some]).exp()
                held = ratio.clamp(1 - settings.clip, 1 + settings.clip)
                gain = torch.minimum(ratio * advantage[some], held * advantage[some]).mean()
                entropy = -(chances.exp() * chances.clamp(min=-50)).sum(dim=1).mean()
                missed = (self.critic(state[some]) - reward[some]).square().mean()
                loss = -gain - settings.entropy * fall * entropy + 0.05 * missed
                self._optimiser.zero_grad()
                torch.autograd.backward(loss)
                nn.utils.clip_grad_norm_(self.actor.parameters(), 0.5)
                self._optimiser.step()
                entropies.append(float(entropy.detach()))
                moved += float((ratio.detach() - 1 - (now - chance[some]).detach()).mean())
            moved /= len(batches)
            if moved > settings.too_far:
                break
        return Round(mean, float(np.mean(entropies)), moved, len(state))
