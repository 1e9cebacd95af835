from torch_xla.experimental import custom_kernel

class _Ops:
    xla = custom_kernel
    def __getattr__(self, name: str) -> object: ...

ops: _Ops
