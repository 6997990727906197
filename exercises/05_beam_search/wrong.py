"""Wrong answers: each must be told its mistake first, and lose its own question only."""

import torch


# %% q1 sign of the length
# to multiply by it lowers long answers
def best_answer(log_p, symbols, alpha):
    scores = log_p * (symbols + 1) ** alpha
    return scores.argmax().item(), scores.max().item()


# %% q1 end not counted
# The EOS is not counted
def best_answer(log_p, symbols, alpha):
    scores = log_p / symbols**alpha
    return scores.argmax().item(), scores.max().item()


# %% q1 exponent as a factor
# not a factor of it
def best_answer(log_p, symbols, alpha):
    scores = log_p / (alpha * (symbols + 1))
    return scores.argmax().item(), scores.max().item()


# %% q1 exponent forgotten
# as with α = 1
def best_answer(log_p, symbols, alpha):
    scores = log_p / (symbols + 1)
    return scores.argmax().item(), scores.max().item()


# %% q1 length forgotten
# as with α = 0
def best_answer(log_p, symbols, alpha):
    return log_p.argmax().item(), log_p.max().item()


# %% q1 smallest
# This is the worst answer
def best_answer(log_p, symbols, alpha):
    scores = log_p / (symbols + 1) ** alpha
    return scores.argmin().item(), scores.min().item()


# %% q1 chosen before it is scored
# chosen by log p and scored afterwards
def best_answer(log_p, symbols, alpha):
    best = log_p.argmax().item()
    return best, (log_p[best] / (symbols[best] + 1) ** alpha).item()


# %% q1 only the score
# Return two things, the place of the best answer and its score
def best_answer(log_p, symbols, alpha):
    return (log_p / (symbols + 1) ** alpha).max().item()


# %% q2 totals forgotten
# The totals are not used
def beam_step(totals, scores, k):
    ranked, places = scores.flatten().sort(descending=True)
    rows = zip(ranked.tolist(), places.tolist(), strict=True)
    candidates = [(t, *divmod(i, scores.shape[1])) for t, i in rows]
    alive = [c for c in candidates if c[2] != EOS][:k]
    return alive, [c for c in candidates[:k] if c[2] == EOS]


# %% q2 logarithms multiplied
# Logarithms are multiplied
def beam_step(totals, scores, k):
    ranked, places = (totals[:, None] * scores).flatten().sort(descending=True)
    rows = zip(ranked.tolist(), places.tolist(), strict=True)
    candidates = [(t, *divmod(i, scores.shape[1])) for t, i in rows]
    alive = [c for c in candidates if c[2] != EOS][:k]
    return alive, [c for c in candidates[:k] if c[2] == EOS]


# %% q2 prefix and symbol exchanged
# Prefix and symbol are exchanged
def beam_step(totals, scores, k):
    ranked, places = (totals[:, None] + scores).flatten().sort(descending=True)
    rows = zip(ranked.tolist(), places.tolist(), strict=True)
    V = scores.shape[1]
    candidates = [(t, i % V, i // V) for t, i in rows]
    alive = [c for c in candidates if c[2] != EOS][:k]
    return alive, [c for c in candidates[:k] if c[2] == EOS]


# %% q2 divided by the number of prefixes
# divided by the number of prefixes
def beam_step(totals, scores, k):
    ranked, places = (totals[:, None] + scores).flatten().sort(descending=True)
    rows = zip(ranked.tolist(), places.tolist(), strict=True)
    candidates = [(t, *divmod(i, len(totals))) for t, i in rows]
    alive = [c for c in candidates if c[2] != EOS][:k]
    return alive, [c for c in candidates[:k] if c[2] == EOS]


# %% q2 ended answers go on
# An answer that has ended goes on
def beam_step(totals, scores, k):
    ranked, places = (totals[:, None] + scores).flatten().sort(descending=True)
    rows = zip(ranked.tolist(), places.tolist(), strict=True)
    best = [(t, *divmod(i, scores.shape[1])) for t, i in rows][:k]
    return best, [c for c in best if c[2] == EOS]


# %% q2 thinner and thinner
# The beam gets thinner
def beam_step(totals, scores, k):
    ranked, places = (totals[:, None] + scores).flatten().sort(descending=True)
    rows = zip(ranked.tolist(), places.tolist(), strict=True)
    best = [(t, *divmod(i, scores.shape[1])) for t, i in rows][:k]
    return [c for c in best if c[2] != EOS], [c for c in best if c[2] == EOS]


# %% q2 everything may end
# Everything that could end is put aside
def beam_step(totals, scores, k):
    ranked, places = (totals[:, None] + scores).flatten().sort(descending=True)
    rows = zip(ranked.tolist(), places.tolist(), strict=True)
    candidates = [(t, *divmod(i, scores.shape[1])) for t, i in rows]
    alive = [c for c in candidates if c[2] != EOS][:k]
    return alive, [c for c in candidates if c[2] == EOS]


# %% q2 each prefix once
# Each prefix goes on once
def beam_step(totals, scores, k):
    table = totals[:, None] + scores
    best, places = table.flatten().topk(min(k, table.numel()))
    rows = zip(best.tolist(), places.tolist(), strict=True)
    ended = [(t, i // table.shape[1], EOS) for t, i in rows if i % table.shape[1] == 2]
    table[:, EOS] = -torch.inf
    best, symbols = table.max(dim=1)
    rows = zip(best.tolist(), range(len(table)), symbols.tolist(), strict=True)
    return sorted(rows, reverse=True)[:k], ended


# %% q2 least likely
# These are the least likely candidates
def beam_step(totals, scores, k):
    ranked, places = (totals[:, None] + scores).flatten().sort()
    rows = zip(ranked.tolist(), places.tolist(), strict=True)
    candidates = [(t, *divmod(i, scores.shape[1])) for t, i in rows]
    alive = [c for c in candidates if c[2] != EOS][:k]
    return alive, [c for c in candidates[:k] if c[2] == EOS]


# %% q2 more candidates than there are
# topk cannot take more candidates than there are
def beam_step(totals, scores, k):
    best, places = (totals[:, None] + scores).flatten().topk(2 * k)
    rows = zip(best.tolist(), places.tolist(), strict=True)
    candidates = [(t, *divmod(i, scores.shape[1])) for t, i in rows]
    alive = [c for c in candidates if c[2] != EOS][:k]
    return alive, [c for c in candidates[:k] if c[2] == EOS]


# %% q3 state not reordered
# The state is not reordered
def continue_prefixes(prefixes, state, parents, symbols):
    return torch.cat([prefixes[parents], symbols[:, None]], dim=1), state


# %% q3 prefixes not reordered
# The prefixes are not reordered
def continue_prefixes(prefixes, state, parents, symbols):
    return torch.cat([prefixes, symbols[:, None]], dim=1), state[:, parents]


# %% q3 parents forgotten
# `parents` is not used
def continue_prefixes(prefixes, state, parents, symbols):
    return torch.cat([prefixes, symbols[:, None]], dim=1), state


# %% q3 layers reordered
# The layers were reordered
def continue_prefixes(prefixes, state, parents, symbols):
    return torch.cat([prefixes[parents], symbols[:, None]], dim=1), state[parents]


# %% q3 wrong way
# Rows went the wrong way
def continue_prefixes(prefixes, state, parents, symbols):
    moved, states = prefixes.clone(), state.clone()
    moved[parents], states[:, parents] = prefixes, state
    return torch.cat([moved, symbols[:, None]], dim=1), states


# %% q3 symbols reordered
# The symbols were reordered too
def continue_prefixes(prefixes, state, parents, symbols):
    longer = torch.cat([prefixes, symbols[:, None]], dim=1)
    return longer[parents], state[:, parents]


# %% q3 symbol in front
# The new symbol stands in front
def continue_prefixes(prefixes, state, parents, symbols):
    return torch.cat([symbols[:, None], prefixes[parents]], dim=1), state[:, parents]


# %% q3 overwritten while it is read
# read all rows before you write one
def continue_prefixes(prefixes, state, parents, symbols):
    longer = torch.cat([prefixes[parents], symbols[:, None]], dim=1)
    for w, parent in enumerate(parents):
        state[:, w] = state[:, parent]
    return longer, state


# %% q3 as many rows as before
# make as many rows as there are parents
def continue_prefixes(prefixes, state, parents, symbols):
    states = torch.empty_like(state)
    for w, parent in enumerate(parents):
        states[:, w] = state[:, parent]
    return torch.cat([prefixes[parents], symbols[:, None]], dim=1), states


# %% q4 the bound
# the beam begins with one prefix, not k
def candidates_looked_at(k, n, T):
    return k * n * T


# %% q4 full from the second step on
# The second step has too many prefixes
def candidates_looked_at(k, n, T):
    return n + k * n * (T - 1)


# %% q4 the ended go on
# Answers that have ended go on here
def candidates_looked_at(k, n, T):
    return sum(n * min(k, n**t) for t in range(T))


# %% q4 a step too many
# There is a step too many
def candidates_looked_at(k, n, T):
    return sum(n * min(k, (n - 1) ** t) for t in range(T + 1))


# %% q4 a step too few
# There is a step too few
def candidates_looked_at(k, n, T):
    return sum(n * min(k, (n - 1) ** t) for t in range(T - 1))


# %% q4 prefixes counted
# each has n candidates
def candidates_looked_at(k, n, T):
    return sum(min(k, (n - 1) ** t) for t in range(T))


# %% q4 everything
# This is exhaustive search
def candidates_looked_at(k, n, T):
    return sum(n * (n - 1) ** t for t in range(T))


# %% q4 answers counted
# count the candidates of every step
def candidates_looked_at(k, n, T):
    return n**T


# %% q4 division by zero
# the formula of the geometric series divides by zero
def candidates_looked_at(k, n, T):
    s = n - 1
    grows = next((t for t in range(T) if s**t > k), T) if s > 1 else T
    return n * ((s**grows - 1) // (s - 1) + k * (T - grows))


# %% q5 crossing symbol dropped
# the symbol that crosses it belongs to those kept
def keep_top_p(log_p, top_p):
    p, order = log_p.exp().sort(dim=-1, descending=True)
    keep = p.cumsum(dim=-1) <= top_p
    keep = torch.zeros_like(keep).scatter(1, order, keep)
    return log_p.masked_fill(~keep, -torch.inf).log_softmax(dim=-1)


# %% q5 not scaled
# The probabilities do not add up to 1 again
def keep_top_p(log_p, top_p):
    p, order = log_p.exp().sort(dim=-1, descending=True)
    keep = p.cumsum(dim=-1) - p < top_p
    keep = torch.zeros_like(keep).scatter(1, order, keep)
    return log_p.masked_fill(~keep, -torch.inf)


# %% q5 dropped to zero
# Dropped symbols can still be drawn
def keep_top_p(log_p, top_p):
    p, order = log_p.exp().sort(dim=-1, descending=True)
    keep = p.cumsum(dim=-1) - p < top_p
    keep = torch.zeros_like(keep).scatter(1, order, keep)
    return (log_p * keep).log_softmax(dim=-1)


# %% q5 left sorted
# undo the sorting
def keep_top_p(log_p, top_p):
    ranked, _ = log_p.sort(dim=-1, descending=True)
    keep = ranked.exp().cumsum(dim=-1) - ranked.exp() < top_p
    return ranked.masked_fill(~keep, -torch.inf).log_softmax(dim=-1)


# %% q5 logarithms added up
# add up probabilities, not their logarithms
def keep_top_p(log_p, top_p):
    ranked, order = log_p.sort(dim=-1, descending=True)
    keep = ranked.cumsum(dim=-1) - ranked < top_p
    keep = torch.zeros_like(keep).scatter(1, order, keep)
    return log_p.masked_fill(~keep, -torch.inf).log_softmax(dim=-1)


# %% q5 ascending
# sort in descending order
def keep_top_p(log_p, top_p):
    p, order = log_p.exp().sort(dim=-1)
    keep = p.cumsum(dim=-1) - p < top_p
    keep = torch.zeros_like(keep).scatter(1, order, keep)
    return log_p.masked_fill(~keep, -torch.inf).log_softmax(dim=-1)


# %% q5 probabilities returned
# return their logarithms
def keep_top_p(log_p, top_p):
    p, order = log_p.exp().sort(dim=-1, descending=True)
    keep = p.cumsum(dim=-1) - p < top_p
    keep = torch.zeros_like(keep).scatter(1, order, keep)
    return log_p.masked_fill(~keep, -torch.inf).softmax(dim=-1)


# %% q5 each symbol alone
# Each symbol alone was compared with p
def keep_top_p(log_p, top_p):
    keep = log_p.exp() >= top_p
    return log_p.masked_fill(~keep, -torch.inf).log_softmax(dim=-1)


# %% q5 as many in every row
# how many are needed differs from row to row
def keep_top_p(log_p, top_p):
    p, order = log_p.exp().sort(dim=-1, descending=True)
    count = int((p[0].cumsum(dim=-1) - p[0] < top_p).sum())
    keep = torch.zeros_like(p, dtype=torch.bool).scatter(1, order[:, :count], True)
    return log_p.masked_fill(~keep, -torch.inf).log_softmax(dim=-1)


# %% q5 a threshold
# a threshold for the probability cannot tell them apart
def keep_top_p(log_p, top_p):
    p = log_p.exp().sort(dim=-1, descending=True)[0]
    least = torch.where(p.cumsum(dim=-1) - p < top_p, p, 1.0).amin(dim=-1, keepdim=True)
    return log_p.masked_fill(log_p.exp() < least, -torch.inf).log_softmax(dim=-1)
