package main

import (
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The machine has no firmware and no disk. Bochs lays three images into its
// memory, and a 64 KiB ROM at the reset vector enters the kernel by the PVH
// protocol (Xen's docs/misc/pvh.pandoc):
//
//	bootAddr   hvm_start_info, the module list, the memory map, the command line
//	info.Base  the unpacked kernel
//	the end    the initramfs: guest as /init, the program, its files, /emu.json
const (
	bootAddr   = 0x80000
	modAddr    = bootAddr + 0x100
	mapAddr    = bootAddr + 0x200
	cmdAddr    = bootAddr + 0x400
	lowEnd     = 0x9f000  // the PC's conventional memory, less the BIOS area
	highStart  = 0x100000 // memory again above the video and ROM area
	romSize    = 0x10000
	romBase    = 0x100000000 - romSize
	pvhMagic   = 0x336ec578
	pageSize   = 4096
	memRAM     = 1 // an e820 type
	pvhVersion = 1
)

// cmdline makes the boot short: no probing for buses and tables that are not
// there, no mitigations, no waits for calibration.
const cmdline = "console=ttyS0,115200 panic=-1 reboot=t nosmp acpi=off pci=off noapic " +
	"mitigations=off nopti nokaslr no_timer_check tsc=reliable tsc_early_khz=200000 idle=halt random.trust_cpu=on " +
	"cryptomgr.notests=1 initcall_blacklist=load_system_certificate_list,init_encrypted,digsig_init " +
	"audit=0 lsm= cgroup_disable=memory clearcpuid=124,580 rdinit=/init"

// buildImages writes into dir what the machine boots from, and its bochsrc.
func buildImages(o options, dir, cwd string) error {
	text, err := os.ReadFile(o.kernel + ".json")
	if err != nil {
		return err
	}
	var info kernelInfo
	if err := json.Unmarshal(text, &info); err != nil {
		return fmt.Errorf("%s.json: %w", o.kernel, err)
	}
	if err := checkStatic(o.program); err != nil {
		return err
	}
	initrd := filepath.Join(dir, "initrd")
	size, err := writeInitramfs(initrd, o, cwd)
	if err != nil {
		return err
	}
	top := int64(o.megs) << 20
	at := (top - size) &^ (pageSize - 1)
	if need := int64(info.Base) + int64(info.Size) + size*2 + 64<<20; need > top {
		return fmt.Errorf("%d MiB of memory are too few for %d MiB of files: give -mem %d or more",
			o.megs, size>>20, (need+1<<20)>>20)
	}
	level := " loglevel=4"
	if o.verbose {
		level = " loglevel=8 initcall_debug printk.time=1"
	}
	files := map[string][]byte{
		"boot":    bootInfo(uint64(at), uint64(size), uint64(top), cmdline+level),
		"rom":     rom(info.Entry),
		"norom":   make([]byte, 512), // Bochs insists on a video BIOS; nothing runs it
		"bochsrc": []byte(bochsrc(o, info, at)),
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// instructionsPerSecond is how fast the guest's clocks think they run. It is
// above what Bochs does, so that a guest's second is some seconds outside and
// a test's own time limits do not strike early.
const instructionsPerSecond = 200_000_000

func bochsrc(o options, info kernelInfo, initrdAt int64) string {
	return fmt.Sprintf(`config_interface: textconfig
display_library: nogui
cpu: model=%s, count=1, ips=%d, reset_on_triple_fault=0
memory: guest=%d, host=%d, block_size=512
romimage: file=rom
vgaromimage: file=norom
optramimage1: file=boot, address=%#x
optramimage2: file=%s, address=%#x
optramimage3: file=initrd, address=%#x
vga: extension=none, update_freq=1
clock: sync=none, time0=utc
pci: enabled=0
ata0: enabled=0
ata1: enabled=0
com1: enabled=1, mode=file, dev=serial.log
parport1: enabled=0
speaker: enabled=1, mode=none
port_e9_hack: enabled=1
log: bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
`, o.model, instructionsPerSecond, o.megs, o.megs, bootAddr, o.kernel, info.Base, initrdAt)
}

// bootInfo is the page at bootAddr.
func bootInfo(initrd, size, top uint64, cmdline string) []byte {
	b := make([]byte, 0x1000)
	le := binary.LittleEndian
	put := func(at int, words ...uint64) {
		for i, w := range words {
			le.PutUint64(b[at-bootAddr+8*i:], w)
		}
	}
	le.PutUint32(b[0:], pvhMagic)
	le.PutUint32(b[4:], pvhVersion)
	le.PutUint32(b[12:], 1)                           // one module
	put(bootAddr+16, modAddr, cmdAddr, 0, mapAddr, 2) // no ACPI; two areas of memory
	put(modAddr, initrd, size)                        // without a command line of its own
	put(mapAddr, 0, lowEnd, memRAM)                   // address, size, type and padding
	put(mapAddr+24, highStart, top-highStart, memRAM)
	copy(b[cmdAddr-bootAddr:], cmdline)
	return b
}

// rom is the reset code: from 16-bit mode at the top of the address space
// straight into flat 32-bit mode and the kernel, as PVH asks.
func rom(entry uint32) []byte {
	const code16, code32, gdtr, gdt = 0xf000, 0xf040, 0xf100, 0xf110
	le := binary.LittleEndian
	b := make([]byte, romSize)
	word := func(w uint32) []byte { return le.AppendUint32(nil, w) }
	asm := func(at int, parts ...[]byte) {
		for _, p := range parts {
			at += copy(b[at:], p)
		}
	}
	const farFlat = romBase + code32
	asm(0xfff0, []byte{0xe9}, le.AppendUint16(nil, uint16((code16-0xfff3)&0xffff))) // jmp code16
	asm(code16,
		[]byte{0xfa}, // cli
		[]byte{0x2e, 0x66, 0x0f, 0x01, 0x16, gdtr & 0xff, gdtr >> 8}, // lgdtl %cs:gdtr
		[]byte{0x66, 0xb8, 1, 0, 0, 0},                               // movl $1, %eax
		[]byte{0x0f, 0x22, 0xc0},                                     // movl %eax, %cr0
		[]byte{0x66, 0xea}, word(farFlat), []byte{8, 0})              // ljmpl $8, code32
	asm(code32,
		[]byte{0xb8, 0x10, 0, 0, 0},                // movl $16, %eax
		[]byte{0x8e, 0xd8, 0x8e, 0xc0, 0x8e, 0xd0}, // movw %ax, %ds, %es, %ss
		[]byte{0xbb}, word(bootAddr), // movl $bootAddr, %ebx
		[]byte{0xb8}, word(entry), []byte{0xff, 0xe0}) // jmp *entry
	asm(gdtr, []byte{0x17, 0}, word(romBase+gdt))
	asm(gdt+8, []byte{0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0}, // code: flat, 32-bit
		[]byte{0xff, 0xff, 0, 0, 0, 0x93, 0xcf, 0}) // data
	return b
}

// checkStatic refuses a program that the machine, which has no libraries,
// could not start.
func checkStatic(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("%s: not a linux program: %w", program, err)
	}
	defer f.Close()
	if f.Machine != elf.EM_X86_64 {
		return fmt.Errorf("%s: built for %v, not for amd64", program, f.Machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s: dynamically linked; build it with CGO_ENABLED=0", program)
		}
	}
	return nil
}

// archive writes a cpio archive of the "newc" form, the kernel's initramfs.
type archive struct {
	w    *os.File
	ino  int
	seen map[string]bool
}

// writeInitramfs packs what the machine's file system starts with: every file
// lies where it lies on the host, so that a test finds its data by the same
// paths. It returns the archive's size.
func writeInitramfs(name string, o options, cwd string) (int64, error) {
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	a := &archive{w: f, seen: map[string]bool{}}
	text, err := o.job(cwd)
	if err != nil {
		return 0, err
	}
	// The kernel's own console, before /dev is mounted.
	err = a.add("dev/console", 0o020600, 5, 1, 0, nil)
	if err == nil {
		err = a.add("emu.json", 0o100644, 0, 0, int64(len(text)), strings.NewReader(string(text)))
	}
	if err == nil {
		err = a.file(o.guest, "init", 0o100755)
	}
	if err == nil {
		err = a.dir(cwd)
	}
	for _, p := range append([]string{o.program}, o.with...) {
		if err == nil {
			err = a.tree(p)
		}
	}
	if err == nil {
		err = a.add("TRAILER!!!", 0, 0, 0, 0, nil)
	}
	if err != nil {
		return 0, err
	}
	return f.Seek(0, io.SeekCurrent)
}

// tree adds a file, or a folder with all below it, following no link inside.
func (a *archive) tree(root string) error {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	return filepath.WalkDir(real, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside := filepath.Join(root, strings.TrimPrefix(p, real))
		switch {
		case d.IsDir():
			return a.dir(inside)
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			return a.at(inside, 0o120777, int64(len(to)), strings.NewReader(to))
		case d.Type().IsRegular():
			if err := a.dir(filepath.Dir(inside)); err != nil {
				return err
			}
			return a.file(p, strings.TrimPrefix(inside, "/"), 0o100755)
		}
		return nil
	})
}

// dir adds a folder and those above it.
func (a *archive) dir(p string) error {
	if p == "/" || a.seen[p] {
		return nil
	}
	if err := a.dir(filepath.Dir(p)); err != nil {
		return err
	}
	return a.at(p, 0o040777, 0, nil)
}

func (a *archive) at(p string, mode uint32, size int64, r io.Reader) error {
	return a.add(strings.TrimPrefix(p, "/"), mode, 0, 0, size, r)
}

func (a *archive) file(host, inside string, mode uint32) error {
	f, err := os.Open(host)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return a.add(inside, mode, 0, 0, st.Size(), f)
}

// add writes one entry; name has no leading slash. A name comes only once.
func (a *archive) add(name string, mode uint32, major, minor, size int64, r io.Reader) error {
	if a.seen["/"+name] {
		return nil
	}
	a.seen["/"+name] = true
	if size >= 1<<32 {
		return fmt.Errorf("%s: %d bytes are too many for an initramfs", name, size)
	}
	a.ino++
	head := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
		a.ino, mode, 0, 0, 1, 0, size, 0, 0, major, minor, len(name)+1, 0, name)
	head += strings.Repeat("\x00", -len(head)&3)
	if _, err := a.w.WriteString(head); err != nil || r == nil {
		return err
	}
	if _, err := io.CopyN(a.w, r, size); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err := a.w.WriteString("\x00\x00\x00"[:-size&3])
	return err
}
