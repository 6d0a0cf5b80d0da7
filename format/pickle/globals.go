package pickle

import (
	"strings"

	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/quant"
)

// global is a name that a pickle imports. Only those of this file are known,
// and each stands for data; none is looked up or called.
type global struct{ module, name string }

func (g global) String() string { return shelf.Quote(g.module + "." + g.name) }

// storageTypes are PyTorch's classes of typed storages.
var storageTypes = map[string]quant.Type{
	"FloatStorage": quant.F32, "DoubleStorage": quant.F64, "HalfStorage": quant.F16, "BFloat16Storage": quant.BF16,
	"LongStorage": quant.I64, "IntStorage": quant.I32, "ShortStorage": quant.I16, "CharStorage": quant.I8,
	"ByteStorage": quant.U8, "BoolStorage": quant.Bool, "ComplexFloatStorage": quant.C64,
}

// dtypes are PyTorch's dtypes.
var dtypes = map[string]quant.Type{
	"float32": quant.F32, "float": quant.F32, "float64": quant.F64, "double": quant.F64, "float16": quant.F16, "half": quant.F16,
	"bfloat16": quant.BF16, "int64": quant.I64, "long": quant.I64, "int32": quant.I32, "int": quant.I32, "int16": quant.I16, "short": quant.I16,
	"int8": quant.I8, "uint8": quant.U8, "uint16": quant.U16, "uint32": quant.U32, "uint64": quant.U64, "bool": quant.Bool, "complex64": quant.C64,
	"float8_e4m3fn": quant.F8_E4M3, "float8_e5m2": quant.F8_E5M2, "float8_e4m3fnuz": quant.F8_E4M3FNUZ, "float8_e5m2fnuz": quant.F8_E5M2FNUZ,
	"float8_e8m0fnu": quant.F8_E8M0,
}

// builderOf is what makes data of the arguments that a pickle hands to a name;
// nil for a name that is not known.
func builderOf(g global) func(*machine, []any) (any, error) {
	switch g {
	case global{"collections", "OrderedDict"}:
		return (*machine).orderedDict
	case global{"torch._utils", "_rebuild_tensor"}, global{"torch._utils", "_rebuild_tensor_v2"}:
		return (*machine).rebuildTensor
	case global{"torch._utils", "_rebuild_tensor_v3"}:
		return (*machine).rebuildTyped
	case global{"torch._utils", "_rebuild_parameter"}, global{"torch._utils", "_rebuild_parameter_with_state"}:
		return (*machine).rebuildParameter
	case global{"torch._tensor", "_rebuild_from_type_v2"}:
		return (*machine).rebuildFromType
	case global{"torch", "Size"}:
		return (*machine).size
	case global{"torch", "device"}:
		return (*machine).device
	case global{"_codecs", "encode"}:
		return (*machine).latin1
	}
	return nil
}

// names stand for themselves: they may be handed on, never called.
var names = map[global]bool{
	{"torch", "Tensor"}: true, {"torch._tensor", "Tensor"}: true, {"torch.nn.parameter", "Parameter"}: true,
	{"torch", "UntypedStorage"}: true, {"torch.storage", "UntypedStorage"}: true, {"torch", "strided"}: true,
}

// typeOf is the type that a class of storages or a dtype stands for.
func (g global) typeOf() (quant.Type, bool) {
	if g.module != "torch" && g.module != "torch.cuda" {
		return 0, false
	}
	if t, ok := storageTypes[g.name]; ok {
		return t, true
	}
	t, ok := dtypes[g.name]
	return t, ok && g.module == "torch"
}

// global pushes a known name and refuses any other.
func (m *machine) global(module, name string) error {
	g := global{module, name}
	if module == "__builtin__" || module == "builtins" {
		return m.forbidden(g)
	}
	if builderOf(g) != nil || names[g] {
		return m.push(g)
	}
	if _, ok := g.typeOf(); ok {
		return m.push(g)
	}
	return m.forbidden(g)
}

func (m *machine) forbidden(g global) error {
	hint := ""
	if strings.HasPrefix(g.module, "torch.nn") || strings.HasPrefix(g.module, "transformers") || strings.HasPrefix(g.module, "__main__") {
		hint = " (a whole module was saved; save its state_dict, or safetensors)"
	}
	return m.bad(ErrForbidden, "the global %s%s", g, hint)
}

// opReduce hands a tuple of arguments to a name.
func (m *machine) opReduce() error {
	a, err := m.pop()
	if err != nil {
		return err
	}
	f, err := m.pop()
	if err != nil {
		return err
	}
	v, err := m.apply(f, a)
	if err != nil {
		return err
	}
	return m.build(v)
}

func (m *machine) apply(f, a any) (any, error) {
	args, ok := a.(*tuple)
	if !ok {
		return nil, m.bad(ErrCorrupt, "%s are the arguments of %s", kindOf(a), kindOf(f))
	}
	g, ok := f.(global)
	if !ok {
		return nil, m.bad(ErrForbidden, "a call of %s", kindOf(f))
	}
	build := builderOf(g)
	if build == nil {
		return nil, m.bad(ErrForbidden, "a call of %s", g)
	}
	return build(m, args.items)
}

// opBuild sets the state of an object. A state_dict carries its _metadata so,
// which says nothing of the tensors and is dropped; nothing else has a state.
func (m *machine) opBuild() error {
	state, err := m.pop()
	if err != nil {
		return err
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	d, ok := v.(*dict)
	if _, plain := state.(*dict); !ok || !d.ordered || !plain {
		return m.bad(ErrForbidden, "BUILD sets the state of %s", kindOf(v))
	}
	return nil
}

func (m *machine) orderedDict(args []any) (any, error) {
	d := &dict{ordered: true}
	if len(args) == 0 {
		return d, nil
	}
	pairs, ok := args[0].(*list)
	if !ok || len(args) != 1 {
		return nil, m.bad(ErrCorrupt, "an OrderedDict is made of %d arguments", len(args))
	}
	if m.objects += len(pairs.items); m.objects > maxObjects {
		return nil, m.bad(ErrTooLarge, "more than %d objects", maxObjects)
	}
	for _, p := range pairs.items {
		var kv []any
		switch p := p.(type) {
		case *tuple:
			kv = p.items
		case *list:
			kv = p.items
		}
		if len(kv) != 2 {
			return nil, m.bad(ErrCorrupt, "an item of an OrderedDict is no pair")
		}
		d.keys, d.values = append(d.keys, kv[0]), append(d.values, kv[1])
	}
	return d, nil
}

func (m *machine) size(args []any) (any, error) {
	if len(args) == 1 {
		switch a := args[0].(type) {
		case *tuple:
			return a, nil
		case *list:
			return &tuple{a.items}, nil
		}
	}
	return nil, m.bad(ErrCorrupt, "torch.Size of other arguments than a tuple")
}

// device is dropped: tensors are where the file is.
func (m *machine) device([]any) (any, error) { return nil, nil }

// latin1 makes bytes of a string, as Python 3 writes them for protocol 2.
func (m *machine) latin1(args []any) (any, error) {
	if len(args) == 2 && args[1] == "latin1" {
		if s, ok := args[0].(string); ok {
			if err := m.make(len(s)); err != nil {
				return nil, err
			}
			b := make([]byte, 0, len(s))
			for _, r := range s {
				if r > 255 {
					return nil, m.bad(ErrCorrupt, "bytes are written with the character %q", r)
				}
				b = append(b, byte(r))
			}
			return b, nil
		}
	}
	return nil, m.bad(ErrForbidden, "a call of %s with other arguments than a string and latin1", global{"_codecs", "encode"})
}

// rebuildFromType is a tensor with attributes: (function, class, arguments, state).
func (m *machine) rebuildFromType(args []any) (any, error) {
	if len(args) != 4 {
		return nil, m.bad(ErrCorrupt, "_rebuild_from_type_v2 has %d arguments", len(args))
	}
	if g, ok := args[0].(global); ok && g.name == "_rebuild_from_type_v2" {
		return nil, m.bad(ErrForbidden, "a call of %s by itself", g)
	}
	return m.apply(args[0], args[2])
}

func (m *machine) rebuildParameter(args []any) (any, error) {
	if len(args) > 0 {
		if t, ok := args[0].(*strided); ok {
			return t, nil
		}
	}
	return nil, m.bad(ErrCorrupt, "a parameter is made of no tensor")
}
