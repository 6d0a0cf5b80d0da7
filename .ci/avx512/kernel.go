package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// kernelInfo says where the flat kernel image lies in the machine's memory and
// where it is entered.
type kernelInfo struct {
	Base  uint32
	Entry uint32 // 32-bit, by the PVH boot protocol
	Size  uint32
}

// maxKernel bounds what a kernel image may claim to unpack to.
const maxKernel = 256 << 20

// extract unpacks a bzImage, once, so that the emulated processor need not do
// it at every boot: OUT is the flat image, OUT.json its kernelInfo.
func extract(bzImage, out string) error {
	raw, err := os.ReadFile(bzImage)
	if err != nil {
		return err
	}
	packed, err := payload(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", bzImage, err)
	}
	vmlinux, err := unlz4(packed)
	if err != nil {
		return fmt.Errorf("%s: %w", bzImage, err)
	}
	image, info, err := flatten(vmlinux)
	if err != nil {
		return fmt.Errorf("%s: %w", bzImage, err)
	}
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, image, 0o644); err != nil {
		return err
	}
	return os.WriteFile(out+".json", text, 0o644)
}

// payload gives the compressed kernel inside a bzImage (Linux's
// Documentation/x86/boot.rst, the setup header).
func payload(raw []byte) ([]byte, error) {
	if len(raw) < 0x250 || string(raw[0x202:0x206]) != "HdrS" {
		return nil, errors.New("no bzImage header")
	}
	sects := int(raw[0x1f1])
	if sects == 0 {
		sects = 4
	}
	le := binary.LittleEndian
	start := (sects+1)*512 + int(le.Uint32(raw[0x248:]))
	end := start + int(le.Uint32(raw[0x24c:])) - 4 // the last four are the unpacked size
	if start < 0 || end < start || end > len(raw) {
		return nil, errors.New("payload outside the file")
	}
	return raw[start:end], nil
}

// unlz4 unpacks the "legacy" LZ4 frame that kernels use: magic, then blocks of
// a size and the block's data.
func unlz4(in []byte) ([]byte, error) {
	le := binary.LittleEndian
	if len(in) < 4 || le.Uint32(in) != 0x184c2102 {
		return nil, fmt.Errorf("payload is not legacy LZ4 (starts with % x)", in[:min(4, len(in))])
	}
	var out []byte
	for in = in[4:]; len(in) >= 4; {
		n := int(le.Uint32(in))
		if n > len(in)-4 {
			return nil, errors.New("LZ4 block longer than the payload")
		}
		var err error
		if out, err = unlz4Block(out, in[4:4+n]); err != nil {
			return nil, err
		}
		in = in[4+n:]
	}
	return out, nil
}

var errLZ4 = errors.New("bad LZ4 block")

// unlz4Block appends one unpacked block to out; matches stay inside the block.
func unlz4Block(out, in []byte) ([]byte, error) {
	start := len(out)
	for len(in) > 0 {
		token := in[0]
		lit, in2, ok := lz4Length(int(token>>4), in[1:])
		if !ok || lit > len(in2) || len(out)+lit > maxKernel {
			return nil, errLZ4
		}
		out, in = append(out, in2[:lit]...), in2[lit:]
		if len(in) == 0 {
			return out, nil // a block ends with literals
		}
		if len(in) < 2 {
			return nil, errLZ4
		}
		back := int(binary.LittleEndian.Uint16(in))
		n, in2, ok := lz4Length(int(token&15), in[2:])
		if n += 4; !ok || back == 0 || back > len(out)-start || len(out)+n > maxKernel {
			return nil, errLZ4
		}
		for i := len(out) - back; n > 0; n-- { // may overlap what it writes
			out = append(out, out[i])
			i++
		}
		in = in2
	}
	return out, nil
}

func lz4Length(n int, in []byte) (int, []byte, bool) {
	if n != 15 {
		return n, in, true
	}
	for len(in) > 0 && n < maxKernel {
		c := in[0]
		in = in[1:]
		n += int(c)
		if c != 255 {
			return n, in, true
		}
	}
	return 0, nil, false
}

// flatten lays an ELF kernel's segments at their physical addresses and finds
// its PVH entry, the note that Xen's elfnote.h calls XEN_ELFNOTE_PHYS32_ENTRY.
func flatten(vmlinux []byte) ([]byte, kernelInfo, error) {
	var info kernelInfo
	f, err := elf.NewFile(bytes.NewReader(vmlinux))
	if err != nil {
		return nil, info, err
	}
	lo, hi := uint64(1<<32), uint64(0)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			if p.Filesz > maxKernel || p.Memsz > maxKernel || p.Paddr > 1<<31 {
				return nil, info, errors.New("kernel segment out of range")
			}
			lo, hi = min(lo, p.Paddr), max(hi, p.Paddr+p.Memsz)
		}
	}
	if lo >= hi || hi-lo > maxKernel {
		return nil, info, errors.New("kernel segments out of range")
	}
	image := make([]byte, hi-lo)
	for _, p := range f.Progs {
		switch p.Type {
		case elf.PT_LOAD:
			if _, err := p.ReadAt(image[p.Paddr-lo:][:p.Filesz], 0); err != nil {
				return nil, info, err
			}
		case elf.PT_NOTE:
			notes := make([]byte, min(p.Filesz, 1<<20))
			if _, err := p.ReadAt(notes, 0); err != nil {
				return nil, info, err
			}
			info.Entry = pvhEntry(notes)
		}
	}
	if info.Entry == 0 {
		return nil, info, errors.New("kernel has no PVH entry (CONFIG_PVH)")
	}
	info.Base, info.Size = uint32(lo), uint32(hi-lo)
	return image, info, nil
}

func pvhEntry(notes []byte) uint32 {
	const phys32Entry = 18
	le := binary.LittleEndian
	for len(notes) >= 12 {
		n, d, typ := le.Uint32(notes), le.Uint32(notes[4:]), le.Uint32(notes[8:])
		name := 12
		desc := name + int(n+3)&^3
		next := desc + int(d+3)&^3
		if n > 1<<16 || d > 1<<16 || next > len(notes) {
			return 0
		}
		if typ == phys32Entry && string(notes[name:name+int(n)]) == "Xen\x00" && d >= 4 {
			return le.Uint32(notes[desc:])
		}
		notes = notes[next:]
	}
	return 0
}
