# SPDX-License-Identifier: Apache-2.0
"""The PyTorch programs that the traces were recorded from. usage: workloads.py NAME trace|native|exp OUTDIR (SEED in the environment)."""
import torch, sys, time, json, random, os, gzip
name, mode, out = sys.argv[1], sys.argv[2], sys.argv[3]
SEED=int(os.environ.get('SEED','0')); torch.manual_seed(SEED); random.seed(SEED)
dev='cuda'
torch.cuda.init(); torch.zeros(1,device=dev)
from torch import nn
def llama(h,l,heads,inter,vocab=32000,kv=None):
    from transformers import LlamaConfig, LlamaForCausalLM
    c=LlamaConfig(hidden_size=h,num_hidden_layers=l,num_attention_heads=heads,num_key_value_heads=kv or heads,intermediate_size=inter,vocab_size=vocab,max_position_embeddings=8192)
    with torch.device(dev):
        m=LlamaForCausalLM(c).to(torch.bfloat16)
    return m.to(dev)
def train_loop(m,steps,mk,opt=None,ckpt=False):
    m.train()
    if ckpt: m.gradient_checkpointing_enable()
    ps=[p for p in m.parameters() if p.requires_grad]
    opt=opt or torch.optim.AdamW(ps,lr=1e-4,foreach=False)
    for i in range(steps):
        ids=mk(i); o=m(input_ids=ids,labels=ids,use_cache=False); o.loss.backward(); opt.step(); opt.zero_grad(set_to_none=True)
def w_gpt_train():      # variable sequence lengths, plain training
    m=llama(1024,16,16,2816); train_loop(m,30,lambda i: torch.randint(0,32000,(random.choice([4,6,8]),random.randrange(128,1536)),device=dev))
def w_lora_recompute(): # LoRA + gradient checkpointing
    from peft import LoraConfig, get_peft_model
    m=llama(2048,22,16,5632); m=get_peft_model(m,LoraConfig(r=16,target_modules=['q_proj','v_proj','k_proj','o_proj','gate_proj','up_proj','down_proj'],lora_dropout=0.05))
    m.gradient_checkpointing_enable(gradient_checkpointing_kwargs=dict(use_reentrant=False)); m.enable_input_require_grads() if hasattr(m,'enable_input_require_grads') else None
    train_loop(m,24,lambda i: torch.randint(0,32000,(random.choice([1,2,4,8]),random.randrange(256,2048)),device=dev))
def w_llm_serve():      # dynamic batches, KV cache grown by concatenation
    m=llama(2048,16,32,5632,kv=8).eval()
    with torch.inference_mode():
        for r in range(24):
            b=random.choice([1,2,3,5,8,13,16]); s=random.randrange(16,1500); n=random.randrange(8,48)
            ids=torch.randint(0,32000,(b,s),device=dev); past=None
            for _ in range(n):
                o=m(input_ids=ids,past_key_values=past,use_cache=True); past=o.past_key_values; ids=o.logits[:,-1:].argmax(-1)
            del o,past
def w_vision_multiscale(): # multi-scale image training
    import torchvision
    m=torchvision.models.resnet50().to(dev).to(memory_format=torch.channels_last); opt=torch.optim.SGD(m.parameters(),lr=.01,momentum=.9)
    for i in range(30):
        s=random.choice([160,192,224,256,288,320,384,448]); x=torch.randn(random.choice([16,24,32,48]),3,s,s,device=dev)
        with torch.autocast('cuda',torch.bfloat16): loss=m(x).float().square().mean()
        loss.backward(); opt.step(); opt.zero_grad(set_to_none=True)
def w_multi_model():    # several models loaded, served and evicted in one process
    import torchvision
    from transformers import LlamaConfig, LlamaForCausalLM
    def meta(f,dt):
        with torch.device('meta'): m=f()
        return m.to(dt).to_empty(device=dev).eval()
    def L(h,l,heads,inter): return lambda: meta(lambda: LlamaForCausalLM(LlamaConfig(hidden_size=h,num_hidden_layers=l,num_attention_heads=heads,num_key_value_heads=heads,intermediate_size=inter,vocab_size=32000,max_position_embeddings=8192)),torch.bfloat16)
    mk={'a':L(2048,12,16,5632),'b':L(1536,16,12,4096),'c':lambda:meta(torchvision.models.vit_l_16,torch.half),'d':lambda:meta(torchvision.models.convnext_base,torch.half),'e':L(1024,24,16,2816),'f':L(2560,10,20,6912)}
    live={}; order=[]
    with torch.inference_mode():
        for r in range(70):
            k=random.choice('aabbcdeef')
            if k not in live:
                while len(live)>=3: v=order.pop(0); del live[v]
                live[k]=mk[k](); order.append(k)
            else: order.remove(k); order.append(k)
            m=live[k]
            if k in 'cd': m(torch.randn(random.randrange(1,33),3,224,224,device=dev,dtype=torch.half))
            else:
                ids=torch.randint(0,32000,(random.randrange(1,9),random.randrange(16,1200)),device=dev); past=None
                for _ in range(random.randrange(1,10)):
                    o=m(input_ids=ids,past_key_values=past,use_cache=True); past=o.past_key_values; ids=torch.randint(0,32000,(ids.shape[0],1),device=dev)
                del o,past
            m=None
def w_offload_train():  # parameters and optimiser state streamed layer by layer from the host (ZeRO-offload-like)
    layers=[nn.TransformerEncoderLayer(1536,16,6144,batch_first=True).bfloat16() for _ in range(12)]
    side=torch.cuda.Stream()
    for step in range(14):
        b,s=random.choice([2,4,8]),random.randrange(128,1024); x=torch.randn(b,s,1536,device=dev,dtype=torch.bfloat16,requires_grad=True); acts=[x]
        with torch.no_grad():
            for l in layers:
                with torch.cuda.stream(side): l.to(dev,non_blocking=True)
                torch.cuda.current_stream().wait_stream(side); acts.append(l(acts[-1])); l.to('cpu')
        g=torch.randn_like(acts[-1])
        for i in reversed(range(12)):
            l=layers[i]; l.to(dev); a=acts[i].detach().requires_grad_(True); y=l(a); y.backward(g); g=a.grad; acts[i+1]=None
            st=[torch.zeros_like(p,dtype=torch.float32) for p in l.parameters()]; 
            for p,q in zip(l.parameters(),st): q.add_(p.grad.float()); p.data.add_(q.to(p.dtype),alpha=-1e-4); p.grad=None
            del st; l.to('cpu')
if mode=='trace': torch.cuda.memory._record_memory_history(enabled='all',context=None,max_entries=8000000)
torch.cuda.synchronize(); t=time.time()
globals()['w_'+name](); torch.cuda.synchronize(); dt=time.time()-t
st=torch.cuda.memory_stats()
res=dict(w=name,mode=mode,s=round(dt,2),alloc_peak=st['allocated_bytes.all.peak'],req_peak=st['requested_bytes.all.peak'],res_peak=st['reserved_bytes.all.peak'],retries=st['num_alloc_retries'],n=st['allocation.all.allocated'],segs=st['segment.all.allocated'],dev_alloc=st.get('num_device_alloc'))
if mode=='trace':
    s=torch.cuda.memory._snapshot(); ev=s['device_traces'][0]; ids={}; n=0; streams={}; acts={}
    with gzip.open(f'{out}/{name}.csv.gz','wt',compresslevel=9) as f:
        f.write('Thread,Time,Action,Pointer,Size,Stream\n'); t0=ev[0]['time_us'] if 'time_us' in ev[0] else 0; live={}
        for e in ev:
            a=e['action']; acts[a]=acts.get(a,0)+1
            if a=='alloc':
                sid=streams.setdefault(e['stream'],len(streams)); live[e['addr']]=(n,e['size'],sid); f.write(f"0,{e.get('time_us',0)-t0},allocate,{n},{e['size']},{sid}\n"); n+=1
            elif a=='free_completed' and e['addr'] in live:
                i,sz,sid=live.pop(e['addr']); f.write(f"0,{e.get('time_us',0)-t0},free,{i},{sz},{sid}\n")
    res['acts']=acts; res['events']=len(ev); res['gz']=os.path.getsize(f'{out}/{name}.csv.gz')
print('RES',json.dumps(res),flush=True)
