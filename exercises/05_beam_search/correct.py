"""Other right answers: each of these scores full marks."""

import heapq
import math

import torch

from seq2seq_lib.search import keep_probable
from seq2seq_lib.search.hypothesis import length_score


# %% q1 with the library
def best_answer(log_p, symbols, alpha):
    scores = [
        length_score(log, n + 1, alpha)
        for log, n in zip(log_p.tolist(), symbols.tolist(), strict=True)
    ]
    return max(enumerate(scores), key=lambda pair: pair[1])


# %% q1 with costs, the smallest of which is the best
def best_answer(log_p, symbols, alpha):
    costs = -log_p * (-alpha * (symbols + 1).log()).exp()
    cost, place = costs.min(dim=0)
    return place, -cost


# %% q2 with loops
def beam_step(totals, scores, k):
    candidates = []
    for w, total in enumerate(totals):
        for v, score in enumerate(scores[w]):
            candidates.append(((total + score).item(), w, v))
    candidates.sort(reverse=True)
    ended = [c for c in candidates[:k] if c[2] == EOS]
    alive = [c for c in candidates if c[2] != EOS]
    return alive[:k], ended


# %% q2 with twice as many candidates
def beam_step(totals, scores, k):
    V = scores.shape[1]
    flat = (totals.unsqueeze(1) + scores).reshape(-1)
    best, places = flat.topk(min(2 * k, len(flat)))
    alive, ended = [], []
    for rank, (total, place) in enumerate(zip(best, places, strict=True)):
        candidate = (total, place // V, place % V)
        if place % V == EOS:
            if rank < k:
                ended.append(candidate)
        elif len(alive) < k:
            alive.append(candidate)
    return alive, ended


# %% q2 with the end hidden
def beam_step(totals, scores, k):
    W, V = scores.shape
    table = scores + totals.view(W, 1)
    best = heapq.nlargest(k, [(float(x), i) for i, x in enumerate(table.flatten())])
    ended = [(x, i // V, EOS) for x, i in best if i % V == EOS]
    table[:, EOS] = -math.inf
    count = min(k, W * (V - 1))
    rest = table.flatten().topk(count)
    rows = zip(rest.values.tolist(), rest.indices.tolist(), strict=True)
    return [(x, i // V, i % V) for x, i in rows], ended


# %% q3 with index_select
def continue_prefixes(prefixes, state, parents, symbols):
    chosen = prefixes.index_select(0, parents)
    return (
        torch.hstack([chosen, symbols.view(-1, 1)]),
        state.index_select(1, parents),
    )


# %% q3 with lists
def continue_prefixes(prefixes, state, parents, symbols):
    rows, states = [], []
    for parent, symbol in zip(parents.tolist(), symbols.tolist(), strict=True):
        rows.append([*prefixes[parent].tolist(), symbol])
        states.append(state[:, parent])
    return torch.tensor(rows), torch.stack(states, dim=1)


# %% q3 as a product with a matrix
def continue_prefixes(prefixes, state, parents, symbols):
    choice = torch.nn.functional.one_hot(parents, len(prefixes)).float()
    longer = torch.empty(len(parents), prefixes.shape[1] + 1, dtype=torch.long)
    longer[:, :-1] = prefixes[parents]
    longer[:, -1] = symbols
    return longer, choice @ state


# %% q4 step by step
def candidates_looked_at(k, n, T):
    alive, count = 1, 0
    for _ in range(T):
        count += n * alive
        alive = min(k, alive * (n - 1))
    return count


# %% q4 by recursion
def candidates_looked_at(k, n, T):
    def from_here(alive, left):
        if left == 0:
            return 0
        return alive * n + from_here(min(alive * (n - 1), k), left - 1)

    return from_here(1, T)


# %% q5 with the library
def keep_top_p(log_p, top_p):
    return keep_probable(log_p, top_p=top_p)


# %% q5 with loops
def keep_top_p(log_p, top_p):
    answer = torch.full_like(log_p, -math.inf)
    for row, kept in zip(log_p.exp(), answer, strict=True):
        chosen, reached = [], 0.0
        for v in row.argsort(descending=True).tolist():
            chosen.append(v)
            reached += row[v].item()
            if reached >= top_p:
                break
        kept[chosen] = (row[chosen] / row[chosen].sum()).log()
    return answer


# %% q5 sorted back with a second sort
def keep_top_p(log_p, top_p):
    p, order = torch.sort(log_p.exp(), dim=1, descending=True)
    count = (p.cumsum(dim=1) < top_p).sum(dim=1, keepdim=True) + 1
    rank = order.argsort(dim=1)
    p = torch.where(rank < count, log_p.exp(), 0.0)
    return (p / p.sum(dim=1, keepdim=True)).log()
