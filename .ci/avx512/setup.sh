#!/usr/bin/env bash
# Makes what run.sh needs, once, in $AVX512_CACHE: bochs, kernel (+ .json),
# guest, avx512emu. Needs apt (Debian), g++, make and go; installs nothing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${AVX512_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/inferflow-avx512}
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9

# Bochs 3.0 has AVX-512 with VNNI, VBMI, BF16 and FP16, and the VEX form of
# VNNI. The sum pins the source whichever suite carries it.
bochs_suite=trixie
bochs_tar=bochs_3.0+dfsg.orig.tar.xz
bochs_sum=78f6c73d4a6472d5130a87ab9dc306d02c7c71ed8e25b3a8ef642e2a7acd282b

# source_tar downloads Bochs's source package with apt, in a configuration of
# its own that leaves the system's lists as they are.
source_tar() {
	local apt=$1/apt mirror
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	# The mirror that this system takes Debian from, whichever it is.
	mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' | awk '$1 == "Debian" { print $2; exit }')
	[ -n "$mirror" ] || { echo "no Debian mirror in apt's lists: run apt-get update" >&2; return 1; }
	echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $bochs_suite main" >"$apt/sources.list"
	local opts=(-o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=-
		-o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root)
	apt-get -q "${opts[@]}" update
	# Only the upstream tarball is used; a mirror that lacks the packaging will do.
	(cd "$1" && apt-get -q "${opts[@]}" source --download-only "bochs/$bochs_suite") || true
	echo "$bochs_sum  $1/$bochs_tar" | sha256sum --check --quiet
}

build_bochs() {
	local tmp=$1
	source_tar "$tmp"
	tar -xf "$tmp/$bochs_tar" -C "$tmp"
	cd "$tmp/bochs-3.0"
	# Images are read into memory in one piece, so memory has to be one piece.
	sed -i 's/^  if (0) {$/  if (guest == host) {/' memory/memory_stub.cc
	grep -q 'guest == host' memory/memory_stub.cc
	CFLAGS='-O2 -pipe' CXXFLAGS='-O2 -pipe' ./configure --with-nogui --disable-docbook --disable-plugins \
		--disable-debugger --disable-debugger-gui --enable-cpu-level=6 --enable-x86-64 --enable-fpu \
		--enable-avx --enable-evex --enable-all-optimizations --disable-logging --disable-readline \
		--disable-cdrom --disable-gameport --disable-busmouse
	nice -n 10 make -j"$(nproc)"
	strip -o "$cache/bochs.new" bochs
	mv "$cache/bochs.new" "$cache/bochs"
}

# fetch_kernel takes the kernel out of Debian's cloud image package.
fetch_kernel() {
	local tmp=$1 meta=linux-image-cloud-amd64 name
	name=$(apt-cache depends "$meta" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
	if [ -z "$name" ]; then
		apt-get -q update
		name=$(apt-cache depends "$meta" | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
	fi
	(cd "$tmp" && apt-get -q -o APT::Sandbox::User=root download "$name" && dpkg-deb -x linux-image-*.deb kernel)
	"$cache/avx512emu" -extract-kernel "$tmp"/kernel/boot/vmlinuz-* "$cache/kernel"
}

# once NAME STEP runs a step unless the file it makes is there; its output is
# shown only when it fails.
once() {
	local name=$1 step=$2 tmp status
	[ -s "$cache/$name" ] && return
	tmp=$(mktemp -d)
	echo "avx512: making $name, once, in $cache" >&2
	# Not inside "if": bash would ignore set -e in there.
	set +e
	(set -e; "$step" "$tmp") >"$cache/$name.log" 2>&1
	status=$?
	set -e
	if [ $status != 0 ]; then
		tail -n 40 "$cache/$name.log" >&2
		echo "avx512: making $name failed; the whole log is $cache/$name.log" >&2
		rm -rf "$tmp"
		exit 125
	fi
	rm -rf "$tmp"
}

cd "$here"
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off
env GOOS=linux GOARCH=amd64 go build -o "$cache/avx512emu" .
env GOOS=linux GOARCH=amd64 go build -ldflags='-s -w' -o "$cache/guest" ./guest
once bochs build_bochs
once kernel.json fetch_kernel
