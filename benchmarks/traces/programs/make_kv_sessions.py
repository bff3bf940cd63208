# SPDX-License-Identifier: Apache-2.0
"""Writes kv_sessions.csv.gz: a made trace of chat sessions whose KV cache is grown by concatenation and dropped at random.
Per layer and step the old K and V live until the longer copy exists; prefill activations come and go. usage: make_kv_sessions.py OUT.csv.gz [SEED [EVENTS]]"""
import gzip, random, sys
rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
LAYERS, KV_BYTES, HIDDEN, INTER = 20, 2 * 96 * 2, 1280, 3456     # bytes of K (or V) per token and layer; activation widths
LEAST_EVENTS = int(sys.argv[3]) if len(sys.argv) > 3 else 240000
events, live, serial, now = [], {}, 0, 0.0
def alloc(n):
    global serial, now
    now += 0.02; serial += 1; live[serial] = n; events.append(('allocate', serial, n)); return serial
def free(i):
    global now
    now += 0.01; events.append(('free', i, live.pop(i)))
stamp = []
weights = [alloc(n) for _ in range(LAYERS) for n in (HIDDEN * HIDDEN * 2, HIDDEN * 2 * 384 * 2, HIDDEN * HIDDEN * 2, HIDDEN * INTER * 2, HIDDEN * INTER * 2, INTER * HIDDEN * 2)] + [alloc(32000 * HIDDEN * 2)]
sessions = {}
def forward(tokens, kv, length):
    x = alloc(tokens * HIDDEN * 2)
    for layer in range(LAYERS):
        q, a, b, c = alloc(tokens * HIDDEN * 2), alloc(tokens * INTER * 2), alloc(tokens * INTER * 2), alloc(tokens * 512)
        new = alloc(length * KV_BYTES), alloc(length * KV_BYTES)
        if kv[layer]:
            for i in kv[layer]: free(i)
        kv[layer] = new
        y = alloc(tokens * HIDDEN * 2)
        for i in (q, a, b, c, x): free(i)
        x = y
    logits = alloc(tokens * 32000 * 2 if tokens < 64 else 64000); free(x); free(logits)
step = 0
while len(events) < LEAST_EVENTS:
    step += 1
    if sessions and rng.random() < 0.6:
        k = rng.choice(list(sessions)); kv, n = sessions[k]
        for _ in range(rng.randrange(1, 7)): n += 1; forward(1, kv, n)
        sessions[k] = kv, n
    else:
        n = int(2 ** rng.uniform(6, 13.3)); kv = [None] * LAYERS; forward(n, kv, n); sessions[step] = kv, n
    if len(sessions) > 30 or rng.random() < 0.2:
        kv, _ = sessions.pop(rng.choice(list(sessions)))
        for pair in kv:
            for i in pair: free(i)
with gzip.GzipFile(sys.argv[1], 'wb', 9, mtime=0) as f:
    t = 0.0; out = ['Thread,Time,Action,Pointer,Size,Stream']
    for a, i, n in events: t += 0.06; out.append(f'0,{int(t)},{a},{i},{n},0')
    f.write(('\n'.join(out) + '\n').encode())
